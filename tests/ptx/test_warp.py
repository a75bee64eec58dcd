"""What lanes of a warp exchange, and who waits for whom."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.errors import PtxError
from kernelbook.ptx import run

LANE = np.arange(64) % 32


def warps(body: str, count: int = 64, dtype: object = np.int32) -> np.ndarray:
    """Run ``body`` (x: the lane's own number) on two warps; what each thread left in v."""
    source = f"""extern "C" __global__ void f(int* y) {{
        int t = threadIdx.x, lane = t & 31; unsigned v = 0;
        {body}
        y[t] = v;
    }}"""
    y = np.zeros(count, np.int32)
    run(compile_cuda(source), "f", 1, count, [y], observers=())
    return y.view(np.uint32)


@pytest.mark.parametrize("width", [32, 16, 8, 1])
@pytest.mark.parametrize("delta", [0, 1, 5, 31])
def test_shuffles_stay_within_their_segment(width: int, delta: int) -> None:
    up = warps(f"v = __shfl_up_sync(~0u, t * 10, {delta}, {width});")
    down = warps(f"v = __shfl_down_sync(~0u, t * 10, {delta}, {width});")
    xor = warps(f"v = __shfl_xor_sync(~0u, t * 10, {delta}, {width});")
    index = warps(f"v = __shfl_sync(~0u, t * 10, {delta}, {width});")
    for t in range(64):
        lane, start = t % 32, t % 32 // width * width
        base = t - lane
        assert up[t] == 10 * (t - delta if lane - delta >= start else t)
        assert down[t] == 10 * (t + delta if lane + delta < start + width else t)
        assert xor[t] == 10 * (base + (lane ^ delta) if lane ^ delta < start + width else t)
        assert index[t] == 10 * (base + start + delta % width)


def test_votes() -> None:
    assert (warps("v = __ballot_sync(~0u, lane % 3 == 0);") == 0x49249249).all()
    assert (warps("v = __any_sync(~0u, t == 40);") == (np.arange(64) >= 32)).all()
    assert (warps("v = __all_sync(~0u, t != 40);") == (np.arange(64) < 32)).all()
    assert (warps("v = __uni_sync(~0u, t >= 32);") == 1).all()


def test_ballot_of_the_lanes_in_a_branch() -> None:
    v = warps("if (lane < 12) v = __ballot_sync(0xfff, lane & 1);")
    assert (v[:12] == 0xAAA).all()
    assert (v[12:32] == 0).all()


def test_activemask_in_a_branch() -> None:
    v = warps("if (lane & 1) v = __activemask(); else v = __activemask() + 0;")
    assert (v[1::2] == 0xAAAAAAAA).all()
    assert (v[::2] == 0x55555555).all()


def test_match_any_and_all() -> None:
    v = warps("v = __match_any_sync(~0u, lane / 5);")
    for t in range(64):
        group = t % 32 // 5
        assert v[t] == sum(1 << lane for lane in range(32) if lane // 5 == group)
    assert (warps("int p; v = __match_all_sync(~0u, t / 32, &p); v ^= p;") == 0xFFFFFFFE).all()
    assert (warps("int p; v = __match_all_sync(~0u, t, &p) + p;") == 0).all()


def test_warp_reductions() -> None:
    assert (warps("v = __reduce_add_sync(~0u, lane);") == 496).all()
    assert (warps("v = __reduce_min_sync(~0u, lane - 5);").view(np.int32) == -5).all()
    assert (warps("v = __reduce_max_sync(~0u, (unsigned)lane * 3);") == 93).all()
    assert (warps("v = __reduce_or_sync(~0u, 1u << (lane & 7));") == 255).all()
    halves = warps("unsigned m = lane < 16 ? 0xffff : 0xffff0000; v = __reduce_add_sync(m, 1);")
    assert (halves == 16).all()


def test_lanes_of_a_mask_are_waited_for() -> None:
    v = warps("""volatile int w = lane;
        if (lane < 10) { for (int i = 0; i < lane; i++) w += 1; }
        v = __shfl_sync(~0u, (int)w, 9);""")
    assert (v == 18).all()


def test_syncwarp_in_both_branches_of_an_if() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s[32];
        int t = threadIdx.x;
        if (t < 16) { s[t] = t; __syncwarp(); y[t] = s[t + 16]; }
        else { s[t] = t; __syncwarp(); y[t] = s[t - 16]; }
    }"""
    y = np.zeros(32, np.int32)
    run(compile_cuda(source), "f", 1, 32, [y], observers=())
    assert np.array_equal(y, np.arange(32) ^ 16)


def test_a_mask_with_a_lane_that_never_comes_is_a_deadlock() -> None:
    source = """extern "C" __global__ void f(int* y) {
        if (threadIdx.x < 16) {
            y[threadIdx.x] = __shfl_down_sync(0xffffffff, (int)threadIdx.x, 1);
        }
        __syncthreads();
        y[threadIdx.x] += 1;
    }"""
    with pytest.raises(PtxError, match=r"deadlock|divergent") as error:
        run(compile_cuda(source), "f", 1, 32, [np.zeros(32, np.int32)], observers=())
    assert error.value.line in (3, 5)


def test_lane_masks_and_ids() -> None:
    v = warps('asm("mov.u32 %0, %%lanemask_lt;" : "=r"(v));')
    assert np.array_equal(v, (1 << LANE) - 1)
    v = warps('asm("mov.u32 %0, %%lanemask_ge;" : "=r"(v));')
    assert np.array_equal(v, (0xFFFFFFFF << LANE) & 0xFFFFFFFF)
    v = warps('asm("mov.u32 %0, %%warpid;" : "=r"(v));')
    assert np.array_equal(v, np.arange(64) // 32)
