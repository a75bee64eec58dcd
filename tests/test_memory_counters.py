"""Chapter 10: what was counted is what a card's counters say, wherever those have been read.

Two places hold a card's counters. `scripts/golden_counters.py` launches every kernel at its
emulator size, strides, offsets and conflicts of every degree included: those numbers must be the
counts. And a measured record of one problem holds ncu's counters at full size: as many times the
counts as there are more elements. Neither may be left out once measurements are published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from kernelbook import catalog
from kernelbook.experiment import Experiment, Kernel, Shape
from kernelbook.records import Record, Result, load_all
from kernelbook.report.counters import UNEXPLAINED, Comparison, Pair, pairs, reason
from kernelbook.report.counters import load as load_comparisons
from tiny import ROOT

CHAPTER = "10_memory"
RESULTS = ROOT / "results"
CATALOG = catalog.load(ROOT)
CHAPTERS_OWN = tuple(e for e in CATALOG.experiments if e.chapter == CHAPTER)
# What is counted of memory; of global memory at full size, too.
GLOBAL = (
    "global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors",
)  # fmt: skip
SHARED = ("shared_load_instructions", "shared_store_instructions")
WAVEFRONTS = ("shared_load_wavefronts", "shared_store_wavefronts")


def stored(evidence: str) -> dict[str, Record]:
    folder = RESULTS / "data"
    return {
        s.record.experiment: s.record
        for s in load_all(RESULTS)
        if s.record.chapter == CHAPTER
        and s.record.evidence == evidence
        and s.path.is_relative_to(folder)
    }


MEASURED = stored("measured")
COUNTED = stored("counted")
COMPARED = {
    (c.experiment, c.variant): c
    for c in load_comparisons(RESULTS)
    if c.experiment in {e.name for e in CHAPTERS_OWN}
}


def counts_of(experiment: str, variant: str) -> Result | None:
    record = COUNTED.get(experiment)
    return record.result(variant) if record else None


def exact_pairs(comparison: Comparison) -> Iterator[Pair]:
    return (p for p in pairs(comparison) if p.counter.name in (*GLOBAL, *SHARED, *WAVEFRONTS))


# ---- at the emulator's size ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(COMPARED), ids="/".join)
def test_a_card_counts_what_the_emulator_counts(name: tuple[str, str]) -> None:
    comparison = COMPARED[name]
    for pair in exact_pairs(comparison):
        explained = pair.gpu is not None and reason(pair) is not UNEXPLAINED
        assert pair.equal or (explained and not pair.counter.exact), pair


@pytest.mark.parametrize("name", sorted(COMPARED), ids="/".join)
def test_a_comparison_is_of_the_counts_that_are_published(name: tuple[str, str]) -> None:
    result = counts_of(*name)
    assert result is not None, "compared, but not counted"
    for metric in (*GLOBAL, *SHARED, *WAVEFRONTS):
        counted = COMPARED[name].counted.get(metric, 0)
        assert counted == result.counts.get(metric, 0), metric


def test_every_kernel_of_published_measurements_is_compared() -> None:
    """Kernels of one key are compared once, under the first experiment that has them."""
    compared = {COMPARED[name].entry for name in COMPARED}
    strides = [f"{kind}_stride_{s}" for kind in ("access", "read", "write") for s in (2, 8, 32)]
    offsets = [f"{kind}_offset_{at}" for kind in ("read", "write") for at in range(1, 33)]
    wanted = [*strides, *offsets, *(f"bank_conflict_{ways}" for ways in range(1, 33))]
    wanted += ["aos_all", "soa_all", "aos_one", "soa_one", "transpose_8192", "gather_dram"]
    published = [name for name in wanted if name in MEASURED]
    having = {experiment for experiment, _ in COMPARED}
    assert [name for name in published if name not in having] == []
    assert {
        k.entry
        for e in CHAPTERS_OWN
        if e.name in MEASURED
        for k in e.kernels
        if not k.gpu_only
    } <= compared  # fmt: skip


# ---- at full size -------------------------------------------------------------------------------


def elements(shape: Shape) -> int:
    return shape["n"] if "n" in shape else shape["rows"] * shape["cols"]


def grows_evenly(experiment: Experiment) -> bool:
    """Whether every warp of the full size does what a warp of the emulator's size does."""
    ragged = any(side % 128 for side in experiment.shape.values() if side > 64)
    drawn = any(b.dtype == "int32" for b in experiment.buffers)  # other indices, other sectors
    return not (ragged or drawn or "x_skip" in experiment.shape)


def profiled() -> Iterator[tuple[Experiment, Kernel, Result, Result]]:
    """Kernels with ncu's counters of the full size and the emulator's counts."""
    for experiment in CHAPTERS_OWN:
        record = MEASURED.get(experiment.name)
        for kernel in experiment.kernels if record and grows_evenly(experiment) else ():
            assert record is not None
            measured = record.result(kernel.name)
            counted = counts_of(experiment.name, kernel.name)
            # Copies by cp.async have counters of their own, which `golden_counters` reads.
            by_async = "async" in kernel.source or "pipeline" in kernel.source
            if measured and measured.counters and counted and not (by_async or kernel.gpu_only):
                yield experiment, kernel, measured, counted


@pytest.mark.parametrize(
    ("experiment", "kernel", "measured", "counted"),
    [pytest.param(*row, id=f"{row[0].name}/{row[1].name}") for row in profiled()],
)
def test_counters_at_full_size_are_a_multiple_of_the_counts(
    experiment: Experiment, kernel: Kernel, measured: Result, counted: Result
) -> None:
    times = elements(experiment.shape) / elements(experiment.emulator_shape)
    for metric in GLOBAL:
        found, wanted = measured.counters[metric], times * counted.counts.get(metric, 0)
        assert math.isclose(found, wanted, rel_tol=1e-9), (metric, found, wanted)


def test_published_measurements_of_single_problems_hold_counters() -> None:
    bare = [
        f"{experiment.name}/{kernel.name}"
        for experiment in CHAPTERS_OWN
        if experiment.sweep is None and experiment.name in MEASURED
        for kernel in experiment.kernels
        for row in (MEASURED[experiment.name].result(kernel.name),)
        if row and row.status == "ok" and not (row.counters or kernel.counter_example)
    ]
    assert bare == []
