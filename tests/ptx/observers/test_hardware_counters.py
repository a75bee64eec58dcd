"""The emulator as it is today against what a GPU's counters said of the same PTX."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import golden_counters
from kernelbook.report.counters import UNEXPLAINED, Comparison, load, pairs, reason
from kernelbook.resources import compile_kernel

ROOT = Path(__file__).resolve().parents[3]
TAKEN = load(ROOT / "results")


@pytest.mark.parametrize("comparison", TAKEN, ids=lambda c: f"{c.experiment}/{c.variant}")
def test_counts_are_those_of_the_gpu_or_the_machine_code_says_why(comparison: Comparison) -> None:
    experiment = golden_counters.chapters().experiment(comparison.experiment)
    kernel = next((k for k in experiment.kernels if k.name == comparison.variant), None)
    if kernel is None:
        pytest.skip("this kernel is no longer in the tree: take the comparison again")
    compiled = compile_kernel(experiment, kernel, "sm_90")
    if compiled.ptx_hash != comparison.ptx_hash:
        pytest.skip("the kernel or its compiler has changed since: take the comparison again")
    now = golden_counters.counted(experiment.name, kernel.name, compiled.ptx)
    for pair in pairs(replace(comparison, counted=now)):
        if not pair.equal:
            assert not pair.counter.exact, f"{pair.counter.name}: {pair.emulator} != {pair.gpu}"
            assert reason(pair) is not UNEXPLAINED, pair.counter.name
