"""Divergence: branches that split warps, threads per instruction, barriers in branches."""

from __future__ import annotations

import numpy as np
import pytest

from kernelbook.errors import PtxError

from .conftest import Launch, kernel

# Stores on both sides keep the compiler from selecting instead of branching.
BRANCH = "if (CONDITION) { out[t] = t * 3; out[t + 128] = 1; } else { out[127 - t] = 7; }"


def branchy(condition: str) -> str:
    return kernel(BRANCH.replace("CONDITION", condition))


@pytest.mark.parametrize(
    ("condition", "divergent"),
    [
        ("t & 1", 4),  # splits every one of the four warps
        ("t < 48", 1),  # splits the second warp only
        ("t < 64", 0),  # whole warps go one way
        ("t >= 0", 0),
    ],
)
def test_a_branch_diverges_in_the_warps_it_splits(
    launch: Launch, condition: str, divergent: int
) -> None:
    counts = launch(branchy(condition), 1, 128, [np.zeros(256, np.int32)]).counts.to_dict()
    assert counts["divergent_branches"] == divergent


def test_divergence_lowers_threads_per_instruction(launch: Launch) -> None:
    whole = launch(branchy("t < 64"), 1, 128, [np.zeros(256, np.int32)]).counts.to_dict()
    split = launch(branchy("t & 1"), 1, 128, [np.zeros(256, np.int32)]).counts.to_dict()
    assert whole["threads_per_instruction"] == 32
    assert split["threads_per_instruction"] < 28
    assert split["warp_instructions"] > whole["warp_instructions"]


def test_loops_of_different_length_keep_fewer_lanes_busy(launch: Launch) -> None:
    source = kernel("int v = 0; for (int i = 0; i <= t; ++i) v += out[i]; out[64 + t] = v;")
    run = launch(source, 1, 32, [np.ones(96, np.int32)])
    loads = next(row for row in run.counts.lines if row.line == 2).counts.global_memory
    assert loads is not None
    assert loads.load.bytes == 4 * 32 * 33 // 2  # lane t runs t + 1 times


def test_a_barrier_that_half_a_warp_takes_elsewhere_is_reported(launch: Launch) -> None:
    source = kernel(
        'if (t & 1) { out[t] = 1; asm volatile("bar.sync 0;"); }\n'
        'else { out[t] = 2; asm volatile("bar.sync 0;"); }\nout[t] += t;'
    )
    run = launch(source, 2, 64, [np.zeros(64, np.int32)])
    found = [f for f in run.findings if f.kind == "divergent-barrier"]
    assert len(found) == 1
    assert found[0].count == 4  # warps
    assert {p.line for p in (found[0].first, found[0].second) if p} == {2, 3}


def test_a_barrier_the_rest_never_reaches_is_a_deadlock(launch: Launch) -> None:
    source = kernel(
        "if (t < 40) __syncthreads();\nelse while (*(volatile int*)out == 0) {}\nout[t] = t;"
    )
    with pytest.raises(PtxError):
        launch(source, 1, 64, [np.zeros(64, np.int32)], budget=10_000_000)


def test_lanes_that_have_returned_are_not_missed_at_a_barrier(launch: Launch) -> None:
    source = kernel("if (t >= 40) return; out[t] = t; __syncthreads(); out[39 - t] += 1;")
    run = launch(source, 1, 64, [np.zeros(64, np.int32)])
    assert not run.findings
