"""Atomics: every operation, collisions in lane order, what each lane finds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.ptx import run


def atomics(call: str, kind: str, start: np.ndarray, spread: int, n: int = 64) -> np.ndarray:
    """Every thread applies ``call`` to cell ``t % spread``; what each found."""
    source = f"""extern "C" __global__ void f({kind}* a, {kind}* old) {{
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        {kind}* p = &a[t % {spread}];
        old[t] = {call};
    }}"""
    old = np.zeros(n, start.dtype)
    run(compile_cuda(source), "f", n // 32, 32, [start, old], observers=())
    return old


@pytest.mark.parametrize("spread", [1, 3, 64])
@pytest.mark.parametrize(
    ("call", "kind", "dtype", "step"),
    [
        ("atomicAdd(p, t)", "int", np.int32, lambda a, t: a + t),
        ("atomicSub(p, t)", "int", np.int32, lambda a, t: a - t),
        ("atomicMin(p, 20 - t)", "int", np.int32, lambda a, t: min(a, 20 - t)),
        ("atomicMax(p, t)", "unsigned", np.uint32, lambda a, t: max(a, t)),
        ("atomicAnd(p, t)", "unsigned", np.uint32, lambda a, t: a & t),
        ("atomicOr(p, t)", "unsigned", np.uint32, lambda a, t: a | t),
        ("atomicXor(p, t)", "unsigned", np.uint32, lambda a, t: a ^ t),
        ("atomicExch(p, t)", "int", np.int32, lambda a, t: t),
        ("atomicCAS(p, t - 1, t)", "int", np.int32, lambda a, t: t if a == t - 1 else a),
        ("atomicInc(p, 7)", "unsigned", np.uint32, lambda a, t: 0 if a >= 7 else a + 1),
        ("atomicDec(p, 7)", "unsigned", np.uint32, lambda a, t: 7 if a == 0 or a > 7 else a - 1),
        ("atomicAdd(p, (unsigned long long)t << 40)", "unsigned long long", np.uint64,
         lambda a, t: a + (t << 40)),
    ],
)  # fmt: skip
def test_lanes_take_turns_in_order(
    call: str, kind: str, dtype: type, step: object, spread: int
) -> None:
    cells = np.full(spread, 3, dtype)
    old = atomics(call, kind, cells, spread)
    expected = [3] * spread
    for t in range(64):
        assert int(old[t]) == expected[t % spread]
        expected[t % spread] = step(expected[t % spread], t)  # type: ignore[operator]
    assert cells.tolist() == expected


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.parametrize("spread", [1, 40])
def test_float_sums_round_after_every_turn(kind: str, dtype: type, spread: int) -> None:
    values = np.random.default_rng(3).standard_normal(96).astype(dtype)
    source = f"""extern "C" __global__ void f({kind}* a, const {kind}* x) {{
        atomicAdd(&a[threadIdx.x % {spread}], x[threadIdx.x]);
    }}
    extern "C" __global__ void g({kind}* a, const {kind}* x) {{
        __shared__ {kind} s[{spread}];
        if (threadIdx.x < {spread}) s[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&s[threadIdx.x % {spread}], x[threadIdx.x]);
        __syncthreads();
        if (threadIdx.x < {spread}) a[threadIdx.x] = s[threadIdx.x];
    }}"""
    expected = np.zeros(spread, dtype)
    for t, value in enumerate(values):
        expected[t % spread] += value
    for kernel in ("f", "g"):
        cells = np.zeros(spread, dtype)
        run(compile_cuda(source), kernel, 1, 96, [cells, values], observers=())
        assert np.array_equal(cells, expected)


def test_half2_atomic_add() -> None:
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void f(half2* a) {
        atomicAdd(a, __floats2half2_rn(threadIdx.x, 0.5f));
    }"""
    cells = np.zeros(2, np.float16)
    run(compile_cuda(source), "f", 1, 32, [cells], observers=())
    assert cells.tolist() == [496, 16]


def test_many_lanes_on_one_counter() -> None:
    source = """extern "C" __global__ void f(int* counter, int* ticket) {
        ticket[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
    }"""
    counter, ticket = np.zeros(1, np.int32), np.zeros(8192, np.int32)
    run(compile_cuda(source), "f", 32, 256, [counter, ticket], observers=())
    assert np.array_equal(ticket, np.arange(8192))
    assert counter[0] == 8192
