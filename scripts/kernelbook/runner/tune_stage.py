"""``--tune``: which shapes of which chapters, the process that tries them, and the table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..catalog import Catalog
from ..errors import DeviceError, UsageError
from ..experiment import Tuning
from ..gpu.backend import CUPY, backend_class
from ..report.render import place
from .lock import gpu_lock
from .options import Options
from .process import Worker
from .progress import Display, Stage
from .provenance import provenance
from .request import MeasureSettings, Message, TuneRequest
from .tuning_table import Choice, shape_key, write_table

SHOWN = 12  # shapes where the baseline is faster are named up to so many


@dataclass
class _Tuned:
    """What has come of one chapter so far."""

    choices: dict[str, Choice] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)  # configurations that took the device along
    wrong: dict[str, str] = field(default_factory=dict)  # left out, and where first


def tune_all(display: Display, options: Options, catalog: Catalog, backend: str = CUPY) -> int:
    """Choose configurations for the shapes asked for and write each chapter's table when all its
    shapes are done, so that an interrupt leaves it as it was; returns the exit code.

    Raises UsageError for a pattern that names nothing, DeviceError without a usable GPU.
    """
    asked = shapes_of(catalog, options.only)
    kind = backend_class(backend)
    device = kind.probe(options.device)
    if isinstance(device, str):
        raise DeviceError(f"--tune times kernels, and here is nothing to time them on: {device}")
    origin = provenance(options.root)
    code = 0
    with gpu_lock(kind.identity(options.device)):
        for chapter, keys in asked.items():
            display.say(f"Tuning {chapter} at {len(keys)} shapes on {device.name}.")
            with display.stage("tune", len(keys)) as stage:
                tuned = _tune_chapter(options, chapter, keys, backend, stage)
            tuning = catalog.tunings[chapter]
            changed = write_table(tuning, device.slug, origin, tuple(tuned.choices.values()))
            where = place(options.root, tuning.table)
            display.say(f"Wrote {where}." if changed else f"{where} is as it was.")
            code |= _say(display, tuned)
    return code


def shapes_of(catalog: Catalog, patterns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Shapes by chapter, as tables spell them, that the patterns name: chapters or shapes.

    Without patterns, all. Raises UsageError where there is nothing of a name.
    """
    every = {c: _keys(tuning) for c, tuning in catalog.tunings.items()}
    if not every:
        raise UsageError("no chapter declares a TUNING")
    found: dict[str, tuple[str, ...]] = {}
    unused = set(patterns)
    for chapter, keys in every.items():
        chosen: set[str] = set() if patterns else set(keys)
        for pattern in patterns:
            whole = any(fnmatchcase(n, pattern) for n in (chapter, chapter.split("_")[0]))
            hits = [k for k in keys if whole or fnmatchcase(k, pattern)]
            if hits:
                unused.discard(pattern)
            chosen.update(hits)
        if chosen:
            found[chapter] = tuple(k for k in keys if k in chosen)
    if unused:
        raise UsageError(
            f"{sorted(unused)[0]!r} names no chapter with a tuning table and no shape in one",
            hint=f"chapters: {', '.join(every)}; a shape is {next(iter(every.values()))[0]}",
        )
    return found


def _keys(tuning: Tuning) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shape_key(shape) for shape in tuning.shapes))


def _tune_chapter(
    options: Options, chapter: str, keys: Sequence[str], backend: str, stage: Stage
) -> _Tuned:
    """Processes until one is through; each that a configuration has ended goes on without it."""
    limits = MeasureSettings(options.root)
    tuned = _Tuned()

    def hear(message: Message) -> None:
        if message.kind == "choice":
            choice = Choice(**json.loads(message.text))
            tuned.choices[choice.key] = choice
            stage.step(
                f"{choice.key}: {choice.configuration}, {choice.time_us:,.1f} µs, "
                f"{choice.ratio:.3f} of the baseline"
            )
        elif message.kind == "wrong":
            tuned.wrong.setdefault(message.variant, message.text)
        elif message.kind == "say":
            stage.note(message.text)

    while left := tuple(k for k in keys if k not in tuned.choices):
        request = TuneRequest(
            root=str(options.root),
            chapter=chapter,
            shapes=left,
            without=tuple(tuned.lost),
            device_index=options.device,
            cache_dir=str(options.cache),
            backend=backend,
        )
        with Worker(limits.step_limit_s) as worker:
            ended = worker.ask("tune", request, "", limits.time_limit_s, hear)
        if not ended.reason:
            break  # what is left did not fit into memory
        if not ended.at:
            raise DeviceError(f"tuning {chapter} stopped: {ended.reason}")
        tuned.lost[ended.at] = ended.reason
        stage.note(f"{ended.at}: {ended.reason}; the others go on without it")
    return tuned


def _say(display: Display, tuned: _Tuned) -> int:
    """How it went, and exit code 1 where a configuration is wrong anywhere."""
    ratios = sorted(tuned.choices.values(), key=lambda c: c.ratio)
    if ratios:
        middle = ratios[len(ratios) // 2]
        display.say(
            f"{len(ratios)} shapes; the baseline's time over ours is {ratios[0].ratio:.3f} at "
            f"least ({ratios[0].key}), {middle.ratio:.3f} in the middle."
        )
    slower = [c for c in ratios if c.ratio < 1]
    for c in slower[:SHOWN]:
        display.say(f"  {c.key}: {c.ratio:.3f}, {c.configuration}")
    if len(slower) > SHOWN:
        display.say(f"  and {len(slower) - SHOWN} more where the baseline is faster")
    for name, reason in {**tuned.wrong, **tuned.lost}.items():
        display.problem(f"configuration {name} was left out {reason}")
    return 1 if tuned.wrong or tuned.lost else 0
