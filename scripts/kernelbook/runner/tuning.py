"""Choosing a kernel's configuration by size: what ``--tune`` does and the table it writes.

A chapter whose kernel has a table declares a `Tuning` as ``TUNING`` in its experiments.py. Tuning
times every configuration at every shape and writes which one was fastest; the chapter reads the
table when it is imported. Tuned times are not results: they are few samples, and not kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..codec import write_atomically
from ..compiler import Compiled
from ..errors import KernelbookError
from ..experiment import Experiment, Kernel, Shape, Tuning
from ..gpu.backend import Backend, Launch
from ..gpu.device_info import target_of
from ..resources import compile_kernel
from ..sampling import median
from ..verify import TIMING_SEED_OFFSET, make_inputs

KEPT_WITHIN = 1.2  # a configuration this much slower at first sight is not timed further
SAMPLES = 7
LONG_US, LONG_SAMPLES = 10_000.0, 3  # a long run says enough in few samples


@dataclass(frozen=True)
class Choice:
    """The fastest configuration at a shape, and the time of the first baseline, both in µs."""

    shape: Shape
    configuration: str
    time_us: float
    baseline_us: float

    @property
    def key(self) -> str:
        return shape_key(self.shape)


def shape_key(shape: Shape) -> str:
    """A shape as the table spells it: its entries in order, ``1024x1024x1024``."""
    return "x".join(str(size) for size in shape.values())


def tune(backend: Backend, tuning: Tuning, cache: Path | None = None) -> Iterator[Choice]:
    """Time every configuration at every shape, cold, interleaved with the library baseline.

    Kernels are verified when their experiments are measured, not here. Raises KernelbookError where
    a shape has no configuration that runs on this device.
    """
    compiled: dict[str, Compiled] = {}
    for shape in tuning.shapes:
        experiment = tuning.experiment(shape)
        kernels = [k for k in experiment.kernels if k.min_cc <= backend.info.cc]
        if not kernels:
            raise KernelbookError(f"no configuration of {experiment.name} runs on this device")
        if missing := [k for k in kernels if k.name not in compiled]:
            compiled |= _compile(experiment, missing, backend.arch, cache)
        yield _choose(backend, experiment, kernels, compiled)


def write_table(tuning: Tuning, device: str, choices: Sequence[Choice]) -> bool:
    """Write the choices into the table, beside its configurations; False where nothing changed.

    Choices of shapes that were not tuned stay. Raises KernelbookError where the table is broken.
    """
    path = tuning.table
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        configurations, chosen = table["configurations"], dict(table["choices"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KernelbookError(f"is no tuning table: {error}", file=path) from error
    for choice in choices:
        if choice.configuration not in configurations:
            raise KernelbookError(f"has no configuration {choice.configuration!r}", file=path)
        chosen[choice.key] = choice.configuration
    return write_atomically(path, _text(device, configurations, chosen))


def _text(
    device: str, configurations: Mapping[str, Mapping[str, int]], choices: Mapping[str, str]
) -> str:
    """The table with one configuration and one shape a line, so that a diff reads well."""
    rows = [f"    {json.dumps(name)}: {json.dumps(c)}" for name, c in configurations.items()]
    lines = [f"    {json.dumps(key)}: {json.dumps(name)}" for key, name in choices.items()]
    return "\n".join(
        [
            "{",
            f'  "device": {json.dumps(device)},',
            '  "configurations": {',
            ",\n".join(rows),
            "  },",
            '  "choices": {',
            ",\n".join(lines),
            "  }",
            "}",
            "",
        ]
    )


def _compile(
    experiment: Experiment, kernels: Sequence[Kernel], arch: str, cache: Path | None
) -> dict[str, Compiled]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = pool.map(lambda k: compile_kernel(experiment, k, arch, cache), kernels)
        return {k.name: c for k, c in zip(kernels, done, strict=True)}


def _choose(
    backend: Backend,
    experiment: Experiment,
    kernels: Sequence[Kernel],
    compiled: Mapping[str, Compiled],
) -> Choice:
    shape = experiment.shape
    arrays = make_inputs(backend.xp, experiment, shape, experiment.seed + TIMING_SEED_OFFSET)
    for buffer in experiment.outputs:
        arrays[buffer.name] = backend.xp.empty(buffer.dims(shape), dtype=buffer.dtype)
    target = target_of(backend.info)
    launches: dict[str, Launch] = {
        k.name: backend.bind(experiment, k, compiled[k.name], shape, target)(arrays)
        for k in kernels
    }
    baseline = next(v for v in experiment.variants if v.kind == "library")
    library = backend.routine(baseline, experiment, shape, arrays).launch

    def times(names: Sequence[str], samples: int) -> dict[str, list[float]]:
        taken: dict[str, list[float]] = {name: [] for name in ("", *names)}
        for _ in range(samples):
            for name in taken:
                launch = launches[name] if name else library
                taken[name].append(backend.sample(launch, cold=True))
        return taken

    times(list(launches), 1)  # the first launch of a kernel also loads it
    first = {name: taken[0] for name, taken in times(list(launches), 1).items() if name}
    quickest = min(first.values())
    kept = [name for name, time_us in first.items() if time_us <= KEPT_WITHIN * quickest]
    taken = times(kept, LONG_SAMPLES if quickest > LONG_US else SAMPLES)
    best = min(kept, key=lambda name: median(taken[name]))
    backend.release()
    return Choice(shape, best, median(taken[best]), median(taken[""]))
