"""Every barrier of every kernel of the repository: without it the checks report something.

A barrier that can go without a report is redundant (on the shapes that are run), and is named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.compiler import compile_source
from kernelbook.devices import sheets
from kernelbook.errors import KernelbookError
from kernelbook.experiment import Experiment, Kernel, Shape
from kernelbook.inputs import make_inputs
from kernelbook.ptx.observers import check_observers, findings_of
from kernelbook.staleness import launch_of

ROOT = Path(__file__).resolve().parents[3]
BARRIER = re.compile(r"^(?P<before>[^/\n]*)__sync(?:threads|warp)\([^()]*\);", re.M)
TUNED_SIZE = 64  # two steps of the configurations that split a tile among slices
LARGEST_FLOPS = 8_000_000  # prefer shapes that execute in well under a second

# "file.cu: number of the barrier in it, from 1" and why nothing can go wrong without it.
OWN = "every thread reads back only what it has put there itself"
REDUNDANT: dict[str, str] = {
    "simple_reduce_sum.cu: 1": "in the first step " + OWN,
    "convergent_reduce_sum.cu: 1": "in the first step " + OWN,
    "staged_sync.cu: 1": OWN,
    "staged_sync.cu: 2": OWN,
    "staged_async.cu: 1": OWN,
    "staged_async.cu: 2": OWN,
    "staged_pipeline.cu: 1": OWN,
}
# Barriers that are needed where the emulator does not get to.
OUT_OF_REACH: dict[str, str] = {
    "segmented_scan.cu: 2": "the loop of the second launch comes round with 4,096 blocks and more",
    "staged_bulk.cu: 1": "bulk copies run on a GPU only",
    "staged_bulk.cu: 2": "bulk copies run on a GPU only",
    "staged_bulk.cu: 3": "bulk copies run on a GPU only",
}


def sources() -> list[Path]:
    return [s for s in catalog.load(ROOT).sources() if BARRIER.search(s.read_text("utf-8"))]


def runs_of(source: Path) -> Iterator[tuple[Experiment, Kernel, Shape]]:
    """Kernels of a file on their shapes, small ones with work to do first."""
    seen = set()
    found = []
    for experiment in (*catalog.load(ROOT).experiments, *tuned()):
        for kernel in experiment.kernels:
            here = experiment.folder / kernel.source == source
            if not here or kernel.gpu_only or kernel.counter_example:
                continue
            for shape in (*experiment.ragged, experiment.emulator_shape):
                key = (kernel.entry, tuple(kernel.macros.items()), tuple(shape.items()))
                if key not in seen:
                    seen.add(key)
                    flops = experiment.flops(shape)
                    found.append(((flops > LARGEST_FLOPS, -flops), experiment, kernel, shape))
    for _, experiment, kernel, shape in sorted(found, key=lambda each: each[0]):
        yield experiment, kernel, shape


def tuned() -> Iterator[Experiment]:
    """What tables of configurations hold beside what the experiments chose from them, small."""
    for tuning in catalog.load(ROOT).tunings.values():
        shape = dict.fromkeys(tuning.shapes[0], TUNED_SIZE)
        yield replace(tuning.experiment(shape), emulator_shape=shape, ragged=())


def complaint(file: Path, experiment: Experiment, kernel: Kernel, shape: Shape) -> str:
    """What the checks say first of a kernel in a changed file, "" for nothing."""
    target = sheets().device(sheets().reference).target
    grid, block, shared = launch_of(kernel, shape, target)
    arrays = make_inputs(np, experiment, shape, experiment.seed)
    for buffer in experiment.outputs:
        if buffer.name not in arrays:
            arrays[buffer.name] = np.zeros(buffer.dims(shape), np.dtype(buffer.dtype))
    arguments = [
        arrays[a] if a in arrays else np.dtype(kernel.scalars.get(a, "int32")).type(shape[a])
        for a in kernel.args
    ]
    compiled = compile_source(file, "sm_90", macros=kernel.macros, options=kernel.options)
    observers = check_observers()
    try:
        ptx.run(
            compiled.ptx, kernel.entry, grid, block, arguments, shared=shared, observers=observers
        )
    except KernelbookError as error:
        return str(error)
    return next((str(f) for f in findings_of(observers, {})), "")


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_each_barrier_is_missed_or_redundant_by_name(source: Path, tmp_path: Path) -> None:
    text = source.read_text("utf-8")
    for other in source.parent.glob("*.cuh"):
        (tmp_path / other.name).write_text(other.read_text("utf-8"))
    for number, barrier in enumerate(BARRIER.finditer(text), 1):
        mutant = tmp_path / source.name
        without = text[: barrier.start()] + barrier["before"] + ";" + text[barrier.end() :]
        mutant.write_text(without)
        said = next(filter(None, (complaint(mutant, *run) for run in runs_of(source))), "")
        name = f"{source.name}: {number}"
        line = text[: barrier.end()].count("\n") + 1
        if name in REDUNDANT or name in OUT_OF_REACH:
            assert not said, f"something is said without {name}: {said}"
        else:
            assert said, f"nothing is said without the barrier in line {line} of {source.name}"
