"""Chapter 02: edges that random floats do not reach, and counts worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelbook import ptx
from kernelbook.compiler import compile_source
from kernelbook.runner.counting import device_state

FOLDER = Path(__file__).resolve().parents[1] / "kernels" / "02_reduction"
Floats = NDArray[np.float32]
MINUS_INFINITY = np.float32(-np.inf)


def load(name: str, cache: Path, **macros: int) -> tuple[ptx.Module, dict[str, Any]]:
    text = compile_source(FOLDER / f"{name}.cu", "sm_90", macros=macros, cache_dir=cache).ptx
    module = ptx.parse(text)
    return module, device_state(module)


def one_pass(
    name: str,
    cache: Path,
    x: Any,
    n: int,
    *,
    y: Any = None,
    grid: int = 3,
    launches: int = 1,
    **macros: int,
) -> tuple[Floats, Mapping[str, Any]]:
    """Results of so many launches on BLOCK 64, VECTORS 2, and the module's variables after them."""
    module, state = load(name, cache, BLOCK=64, VECTORS=2, **macros)
    kind = np.int32 if macros.get("INTEGER") else np.float32
    results = np.full(launches, 77, kind)
    for launch in range(launches):
        out = np.full(1, 77, kind)
        arguments = [x, x if y is None else y, out, np.int64(n)]
        ptx.run(module, name, grid, 64, arguments, variables=state)
        results[launch] = out[0]
    return results, state


NO_WAITING = ("last_block_reduce", "single_pass_reduce")


@pytest.mark.parametrize("name", NO_WAITING)
@pytest.mark.parametrize(("operation", "identity"), [(0, 0.0), (1, -np.inf), (2, 0.0)])
def test_nothing_at_all_reduces_to_the_identity(
    name: str, operation: int, identity: float, compile_cache: Path
) -> None:
    x = np.ones(4, np.float32)
    for grid in (1, 3):
        found, _ = one_pass(name, compile_cache, x, 0, grid=grid, OP=operation)
        assert found[0] == np.float32(identity)


@pytest.mark.parametrize("name", NO_WAITING)
def test_launches_leave_the_meeting_place_as_they_found_it(name: str, compile_cache: Path) -> None:
    x = np.random.default_rng(1).random(5000, np.float32)
    found, state = one_pass(name, compile_cache, x, x.size, launches=3)
    assert np.isfinite(found).all()
    assert len(set(found.view(np.uint32).tolist())) == 1  # a slot left full would be added again
    assert not state["arrived"].any()
    assert name == "last_block_reduce" or not state["slots"].any()


@pytest.mark.parametrize("name", NO_WAITING)
def test_fewer_blocks_after_more_do_not_meet_what_is_left_of_them(
    name: str, compile_cache: Path
) -> None:
    module, state = load(name, compile_cache, BLOCK=64, VECTORS=2)
    x, out = np.ones(4096, np.float32), np.zeros(1, np.float32)
    for grid in (8, 2, 5, 1):
        ptx.run(module, name, grid, 64, [x, x, out, np.int64(x.size)], variables=state)
        assert out[0] == 4096.0


def test_both_ways_to_finish_give_the_same_bits(compile_cache: Path) -> None:
    """As long as a lane has one partial result, both add them in one tree."""
    x = np.random.default_rng(2).random(30_000, np.float32) - np.float32(0.5)
    first, _ = one_pass("last_block_reduce", compile_cache, x, x.size, grid=20)
    second, _ = one_pass("single_pass_reduce", compile_cache, x, x.size, grid=20)
    assert first.view(np.uint32) == second.view(np.uint32)


@pytest.mark.parametrize("skip", [1, 2, 3])
def test_arrays_that_do_not_start_on_16_bytes_are_added_up_as_well(
    skip: int, compile_cache: Path
) -> None:
    whole = np.arange(4000, dtype=np.float32) % 7
    view = ptx.Pointer(whole, skip)
    found, _ = one_pass("single_pass_reduce", compile_cache, view, whole.size - skip)
    assert found[0] == whole[skip:].sum(dtype=np.float64)
    found, _ = one_pass("single_pass_reduce", compile_cache, whole, whole.size - skip, y=view, OP=2)
    assert found[0] == (whole[: whole.size - skip].astype(np.float64) * whole[skip:]).sum()


def test_integers_wrap_around_exactly(compile_cache: Path) -> None:
    x = np.full(3000, 2**30, np.int32)
    found, _ = one_pass("single_pass_reduce", compile_cache, x, x.size, INTEGER=1)
    assert int(found[0]) % 2**32 == 3000 * 2**30 % 2**32


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        ([-3.0, -0.5, -2.0], -0.5),
        ([-1.0, -0.0], -0.0),
        ([-0.0, 0.0], 0.0),
        ([2.0, 5.0, -7.0], 5.0),
        ([-np.inf, -np.inf], -np.inf),
        ([np.nan, 1.0], 1.0),
    ],
)
def test_the_maximum_of_bits_is_that_of_floats(
    values: list[float], largest: float, compile_cache: Path
) -> None:
    """Each value in a block of its own, so that only the atomic compares them."""
    module, state = load("coarsened_reduce_max", compile_cache, BLOCK=32, COARSE=1)
    x = np.full(32 * len(values), -np.inf, np.float32)
    x[::32] = values
    out = np.full(1, -np.inf, np.float32)
    ptx.run(module, "coarsened_reduce_max", len(values), 32, [x, out, x.size], variables=state)
    assert out[0] == np.float32(largest)
    if largest == 0 and not np.signbit(largest):
        assert not np.signbit(out[0])
    found, _ = one_pass("single_pass_reduce", compile_cache, x, x.size, OP=1)
    assert found[0] == np.float32(largest)


# ---- counts of one block's trees, n = 2 * 1024 ----------------------------------------------


def counts_of(name: str, cache: Path) -> Mapping[str, float]:
    module, state = load(name, cache)
    x, out = np.ones(2048, np.float32), np.zeros(1, np.float32)
    done = ptx.run(module, name, 1, 1024, [x, out, 2048], variables=state)
    assert out[0] == 2048.0
    return done.counts.to_dict()


def test_the_first_tree_diverges_in_every_warp_until_few_are_left(compile_cache: Path) -> None:
    # Strides 2 to 16: some lanes of all 32 warps. Strides 32 to 1024: one lane of 32, 16, ... 1
    # warps. And thread 0 alone writes the result.
    steps = 4 * 32 + (32 + 16 + 8 + 4 + 2 + 1)
    assert counts_of("simple_reduce_sum", compile_cache)["divergent_branches"] == steps + 1


@pytest.mark.parametrize("name", ["convergent_reduce_sum", "shared_reduce_sum"])
def test_the_other_trees_diverge_in_the_last_five_steps_of_one_warp(
    name: str, compile_cache: Path
) -> None:
    assert counts_of(name, compile_cache)["divergent_branches"] == 5 + 1


def test_shuffles_need_one_barrier_for_the_tree(compile_cache: Path) -> None:
    counts = counts_of("shuffle_reduce_block", compile_cache)
    assert counts["barriers"] == 2 * 32  # and one before the next segment
    assert counts["shared_store_wavefronts"] == 32
    assert counts["shared_load_wavefronts"] == 1
