"""Divergence, loops, spinning, exits, and what stops a launch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.errors import PtxError, UnsupportedPtx
from kernelbook.ptx import Event, parse, run


def go(source: str, kernel: str, grid: object, block: object, args: list[object], **more: object):  # type: ignore[no-untyped-def]
    return run(compile_cuda(source), kernel, grid, block, args, **{"observers": (), **more})  # type: ignore[arg-type]


def test_lanes_take_their_own_number_of_turns() -> None:
    source = """extern "C" __global__ void collatz(const int* x, int* steps, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        unsigned v = x[i];
        int count = 0;
        while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; count++; }
        steps[i] = count;
    }"""
    x = np.arange(1, 100, dtype=np.int32)
    steps = np.zeros_like(x)
    go(source, "collatz", 2, 64, [x, steps, x.size])

    def count(v: int) -> int:
        return 0 if v == 1 else 1 + count(3 * v + 1 if v % 2 else v // 2)

    assert steps.tolist() == [count(int(v)) for v in x]


class Recorder:
    """Keeps (instruction text, reached lanes, active lanes) of every event."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int]] = []

    def begin_batch(self, batch: object) -> None: ...

    def end_batch(self, batch: object) -> None: ...

    def on_barrier(self, batch: object, blocks: object, barrier: int) -> None: ...

    def on_event(self, event: Event) -> None:
        self.events.append(
            (event.instruction.text, int(event.reached.sum()), int(event.active.sum()))
        )


DIVERGE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b64 %o, %a; .reg .b32 %t, %v; .reg .pred %p;
mov.u32 %t, %tid.x;
setp.lt.u32 %p, %t, 10;
mov.u32 %v, 1;
@%p bra $low;
add.u32 %v, %v, 2;
bra $join;
$low:
@%p add.u32 %v, %v, 10;
@!%p add.u32 %v, %v, 100;
$join:
ld.param.u64 %o, [out];
mul.wide.u32 %a, %t, 4;
add.s64 %a, %a, %o;
st.global.u32 [%a], %v;
ret;
}
"""


def test_diverged_lanes_run_apart_and_meet_again() -> None:
    out = np.zeros(40, np.int32)
    recorder = Recorder()
    run(DIVERGE, "k", 1, 40, [out], observers=(recorder,))
    assert out.tolist() == [11] * 10 + [3] * 30
    by_text = {text: (reached, active) for text, reached, active in recorder.events}
    assert by_text["add.u32 %v, %v, 2"] == (30, 30)
    assert by_text["add.u32 %v, %v, 10"] == (10, 10)
    assert by_text["add.u32 %v, %v, 100"] == (10, 0)  # reached, but the guard held for none
    assert by_text["bra $low"] == (40, 10)
    assert by_text["st.global.u32 [%a], %v"] == (40, 40)
    assert len([e for e in recorder.events if e[0].startswith("st.")]) == 1


def test_padding_lanes_of_a_partial_warp_are_never_active() -> None:
    class Padding(Recorder):
        def on_event(self, event: Event) -> None:
            assert not (event.active & ~event.batch.exists).any()
            assert not (event.reached & ~event.batch.exists).any()
            assert event.active.size == event.batch.lanes == 64

    run(DIVERGE, "k", 1, 40, [np.zeros(40, np.int32)], observers=(Padding(),))


def test_indexed_branch_takes_the_table() -> None:
    text = DIVERGE.replace("setp.lt.u32 %p, %t, 10;", "table: .branchtargets $A, $B, $C;")
    start, end = text.index("mov.u32 %v, 1;"), text.index("$join:")
    cases = "$A: mov.u32 %v, 7;\nbra $join;\n$B: mov.u32 %v, 8;\nbra $join;\n$C: mov.u32 %v, 9;\n"
    text = text[:start] + "and.b32 %v, %t, 3;\nbrx.idx %v, table;\n" + cases + text[end:]
    out = np.zeros(32, np.int32)
    run(text, "k", 1, 32, [out], observers=())
    assert out[:3].tolist() == [7, 8, 9]


LOCK = """extern "C" __global__ void add(int* lock, int* total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)total = *(volatile int*)total + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
extern "C" __global__ void naive(int* lock, int* total) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *(volatile int*)total = *(volatile int*)total + 1;
    __threadfence();
    atomicExch(lock, 0);
}"""


@pytest.mark.parametrize("kernel", ["add", "naive"])
@pytest.mark.parametrize(("grid", "block"), [(4, 1), (2, 33)])
def test_spin_locks_make_progress_within_and_between_warps(
    kernel: str, grid: int, block: int
) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    go(LOCK, kernel, grid, block, [lock, total])
    assert total[0] == grid * block
    assert lock[0] == 0


def test_a_producer_behind_its_consumer_is_reached() -> None:
    source = """extern "C" __global__ void pass(volatile int* flag, int* out) {
        if (threadIdx.x == 0) {
            while (flag[0] == 0) {}
            out[0] = flag[1];
        } else if (threadIdx.x == 64) {
            flag[1] = 42;
            __threadfence();
            flag[0] = 1;
        }
    }"""
    flag, out = np.zeros(2, np.int32), np.zeros(1, np.int32)
    go(source, "pass", 1, 96, [flag, out])
    assert out[0] == 42


def test_endless_loop_is_given_up() -> None:
    source = 'extern "C" __global__ void f(volatile int* x) { while (*x == 0) {} }'
    with pytest.raises(PtxError, match="gave up after 1,000,000 lane-instructions") as error:
        go(source, "f", 1, 32, [np.zeros(1, np.int32)], budget=1_000_000)
    assert error.value.line == 1
    assert "if it waits for another block" in str(error.value)


def test_a_flag_that_nobody_sets_is_given_up_long_before_the_budget() -> None:
    source = 'extern "C" __global__ void f(volatile int* x) { while (*x == 0) {} }'
    with pytest.raises(PtxError, match=r"gave up after 10,001 polls .* that nobody changed"):
        go(source, "f", 1, 32, [np.zeros(1, np.int32)], budget=1_000_000_000)


def test_taking_tickets_is_not_waiting_in_vain() -> None:
    source = """extern "C" __global__ void f(int* next, int* taken, int n) {
        int mine = 0;
        while (atomicAdd(next, 1) < n) mine++;
        atomicAdd(taken, mine);
    }"""
    taken = np.zeros(1, np.int32)
    # More turns than anybody may poll in vain.
    go(source, "f", 1, 1, [np.zeros(1, np.int32), taken, 12_000], budget=1_000_000_000)
    assert taken[0] == 12_000


def test_a_block_that_waits_for_a_later_batch_is_given_up_with_the_reason() -> None:
    source = """extern "C" __global__ void f(volatile int* x) {
        if (blockIdx.x == 0) { while (*x == 0) {} } else *x = 1;
    }"""
    go(source, "f", 2, 32, [np.zeros(1, np.int32)])
    with pytest.raises(PtxError, match="1 of them finish before the next start"):
        go(source, "f", 2, 32, [np.zeros(1, np.int32)], budget=1_000_000, batch_lanes=32)


def test_grid_too_large_is_refused_before_work() -> None:
    source = 'extern "C" __global__ void f(int* x) { x[0] = 1; }'
    with pytest.raises(PtxError, match="too large to emulate"):
        go(source, "f", (1 << 20, 1 << 10), 1024, [np.zeros(1, np.int32)])


@pytest.mark.parametrize(
    ("grid", "block", "what"),
    [
        (1, 2048, "at most 1024 threads"),
        ((1, 70000), 32, "grid is larger"),
        (0, 32, "positive integers"),
        ("x", 32, "positive integers"),
        ((1, 1, 1, 1), 32, "one to three"),
    ],
)
def test_impossible_shapes_are_refused(grid: object, block: object, what: str) -> None:
    with pytest.raises(PtxError, match=what):
        run(DIVERGE, "k", grid, block, [np.zeros(64, np.int32)], observers=())  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["shared", "budget", "batch_lanes"])
@pytest.mark.parametrize("value", [-1, 1.5, "many", None])
def test_options_that_are_no_whole_numbers_are_refused(option: str, value: object) -> None:
    arguments: dict[str, Any] = {option: value}
    with pytest.raises(PtxError, match=f"{option} must be a whole number"):
        run(DIVERGE, "k", 1, 32, [np.zeros(64, np.int32)], observers=(), **arguments)


def test_launch_bounds_are_enforced() -> None:
    source = (
        """extern "C" __global__ void __launch_bounds__(64) f(int* x) { x[threadIdx.x] = 1; }"""
    )
    with pytest.raises(PtxError, match="launch_bounds"):
        go(source, "f", 1, 128, [np.zeros(128, np.int32)])


def test_unknown_kernel_names_those_there_are() -> None:
    with pytest.raises(PtxError, match="it has: k"):
        run(DIVERGE, "j", 1, 32, [np.zeros(64, np.int32)], observers=())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {a,a,a,a}, {a,a,a,a}, {a,a}, "
         "{a,a,a,a};", "mma.sync"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a,a,a,a}, [o];", "ldmatrix"),
        ("mbarrier.init.shared.b64 [o], 32;", "mbarrier.init"),
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("barrier.cluster.arrive;", "barrier.cluster"),
        ("cp.async.bulk.commit_group;", "cp.async.bulk"),
        ("tex.2d.v4.f32.f32 {a,a,a,a}, [o, {a,a}];", "tex.2d"),
        ("vadd.s32.s32.s32 a, a, a;", "vadd"),
        ("st.shared::cluster.u32 [o], a;", "st.shared::cluster"),
    ],
)  # fmt: skip
def test_unknown_instructions_are_refused_by_name(text: str, name: str) -> None:
    body = f"""{DIVERGE.split("{")[0]}{{
.reg .b64 o; .reg .b32 a;
{text}
}}"""
    with pytest.raises(UnsupportedPtx, match=f"does not execute {name}") as error:
        run(body, "k", 1, 32, [np.zeros(1, np.int32)], observers=())
    assert "PTX line 7" in str(error.value)


def test_refusal_names_the_source_line() -> None:
    source = """__device__ __noinline__ float f(float v) { return v * 2; }
extern "C" __global__ void k(float* x) {
    x[0] = f(x[0]);
}"""
    with pytest.raises(UnsupportedPtx, match="does not execute call") as error:
        go(source, "k", 1, 1, [np.zeros(1, np.float32)])
    assert str(error.value).startswith(str(error.value.file))
    assert error.value.line == 3


def test_a_barrier_of_the_whole_grid_is_refused_by_name() -> None:
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void f(int* x) { cooperative_groups::this_grid().sync(); x[0] = 1; }"""
    with pytest.raises(UnsupportedPtx, match="it does not know %envreg2") as error:
        go(source, "f", 1, 32, [np.zeros(1, np.int32)])
    assert error.value.line == 2


def test_the_address_of_a_function_is_refused_by_name() -> None:
    source = """__device__ __noinline__ int one(int x) { return x + 1; }
    __device__ __noinline__ int two(int x) { return x * 2; }
    extern "C" __global__ void f(int* x) {
        int (*all[2])(int) = {one, two};
        x[0] = all[x[0] & 1](3);
    }"""
    with pytest.raises(UnsupportedPtx, match="is a function, and device functions must be inlined"):
        go(source, "f", 1, 32, [np.zeros(1, np.int32)])


def test_printf_is_refused_only_when_it_runs() -> None:
    source = """#include <cstdio>
extern "C" __global__ void k(int* x) {
    if (x[threadIdx.x] > 5) printf("%d", x[threadIdx.x]);
    x[threadIdx.x] += 1;
}""".replace("#include <cstdio>", 'extern "C" __device__ int printf(const char*, ...);')
    x = np.zeros(32, np.int32)
    go(source, "k", 1, 32, [x])
    assert (x == 1).all()
    x[3] = 6
    with pytest.raises(PtxError, match="vprintf"):
        go(source, "k", 1, 32, [x])


def test_trap_names_the_thread() -> None:
    source = """extern "C" __global__ void k(int* x) {
    if (blockIdx.x == 1 && threadIdx.x == 5) __trap();
}"""
    with pytest.raises(PtxError, match=r"block \(1, 0, 0\), thread \(5, 0, 0\) executed trap"):
        go(source, "k", 2, 32, [np.zeros(1, np.int32)])


def test_blocks_see_their_place_in_a_grid_of_three_dimensions() -> None:
    source = """extern "C" __global__ void where(int* out) {
        int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
            blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * threadIdx.x
            + 10000 * threadIdx.y + 100000 * threadIdx.z;
    }"""
    out = np.zeros((4, 3, 2, 2, 3, 5), np.int32)  # bz, by, bx, tz, ty, tx
    go(source, "where", (2, 3, 4), (5, 3, 2), [out], batch_lanes=100)
    bz, by, bx, tz, ty, tx = np.indices(out.shape)
    assert np.array_equal(out, bx + 10 * by + 100 * bz + 1000 * tx + 10000 * ty + 100000 * tz)


def test_parsed_module_can_be_run_again() -> None:
    module = parse(DIVERGE)
    for _ in range(2):
        out = np.zeros(32, np.int32)
        run(module, "k", 1, 32, [out], observers=())
        assert out[0] == 11
