"""The table of a tuned kernel: its configurations, and by size which one was fastest.

A JSON file of the chapter, with one configuration and one shape a line, so that a diff reads well:

    device           the card of the last tuning
    configurations   what an author offers: macros by name
    choices          the fastest one at each shape
    times            what it took there in µs, the baseline's time, and when that was
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..codec import write_atomically
from ..errors import KernelbookError
from ..experiment import Shape, Tuning
from .provenance import Provenance

ROWS = ("configurations", "choices", "times")  # one entry a line


@dataclass(frozen=True)
class Choice:
    """The fastest configuration at a shape, and the time of the first baseline, both in µs."""

    key: str  # the shape, as the table spells it
    configuration: str
    time_us: float
    baseline_us: float

    @property
    def ratio(self) -> float:
        """The baseline's time over the configuration's: above 1, ours is faster."""
        return self.baseline_us / self.time_us


def shape_key(shape: Shape) -> str:
    """A shape as the table spells it: its entries in order, ``1024x1024x1024``."""
    return "x".join(str(size) for size in shape.values())


def write_table(tuning: Tuning, device: str, origin: Provenance, choices: Sequence[Choice]) -> bool:
    """Write the choices into the table, beside its configurations; False where nothing changed.

    Choices of shapes that were not tuned stay. Raises KernelbookError where the table is broken.
    """
    path = tuning.table
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        configurations, chosen = table["configurations"], dict(table["choices"])
        times = dict(table.get("times", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KernelbookError(f"is no tuning table: {error}", file=path) from error
    commit = origin.commit[:10] + ("+" if origin.dirty else "")
    run = " ".join(filter(None, (origin.date[:10], device, commit)))
    for choice in choices:
        if choice.configuration not in configurations:
            raise KernelbookError(f"has no configuration {choice.configuration!r}", file=path)
        chosen[choice.key] = choice.configuration
        times[choice.key] = {
            "us": round(choice.time_us, 2),
            "baseline_us": round(choice.baseline_us, 2),
            "ratio": round(choice.ratio, 3),
            "run": run,
        }
    content = {"configurations": configurations, "choices": chosen, "times": times}
    return write_atomically(path, text_of(device, content))


def text_of(device: str, content: Mapping[str, Mapping[str, Any]]) -> str:
    """The table's text."""
    parts = [f'  "device": {json.dumps(device)}']
    for name in ROWS:
        rows = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in content.get(name, {}).items()]
        parts.append("\n".join([f'  "{name}": {{', ",\n".join(rows), "  }"]))
    return "\n".join(["{", ",\n".join(parts), "}", ""])
