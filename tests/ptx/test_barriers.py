"""Block barriers: named, counted, reducing, and those that not everyone reaches."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.errors import PtxError
from kernelbook.ptx import run


def go(source: str, grid: int, block: object, args: list[object], **more: object) -> None:
    run(compile_cuda(source), "f", grid, block, args, observers=(), **more)  # type: ignore[arg-type]


def test_named_barriers_hand_over_between_producers_and_consumers() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s[32];
        int t = threadIdx.x;
        if (t >= 32) {                      // the producer comes later in program order
            for (int i = 0; i < 4; i++) {
                asm volatile("bar.sync 1, 64;" ::: "memory");   // wait until the buffer is free
                s[t - 32] = i * 100 + t;
                asm volatile("bar.arrive 2, 64;" ::: "memory");
            }
        } else {
            for (int i = 0; i < 4; i++) {
                asm volatile("bar.arrive 1, 64;" ::: "memory");
                asm volatile("bar.sync 2, 64;" ::: "memory");
                y[i * 32 + t] = s[31 - t];
            }
        }
    }"""
    y = np.zeros((4, 32), np.int32)
    go(source, 3, 64, [y])
    i, t = np.indices((4, 32))
    assert np.array_equal(y, i * 100 + 63 - t)


@pytest.mark.parametrize("block", [64, 50])
def test_barrier_reductions(block: int) -> None:
    source = """extern "C" __global__ void f(int* y) {
        int t = threadIdx.x;
        y[t * 3] = __syncthreads_count(t % 3 == 0);
        y[t * 3 + 1] = __syncthreads_and(t < 1000);
        y[t * 3 + 2] = __syncthreads_or(t == 70);
    }"""
    y = np.zeros((block, 3), np.int32)
    go(source, 1, block, [y])
    assert (y == [-(-block // 3), 1, 0]).all()


def test_exited_threads_are_not_waited_for() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s;
        if (threadIdx.x >= 40) return;
        if (threadIdx.x == 39) s = 5;
        __syncthreads();
        y[threadIdx.x] = s;
    }"""
    y = np.zeros(64, np.int32)
    go(source, 2, 64, [y])
    assert y.tolist() == [5] * 40 + [0] * 24


def test_threads_that_exit_while_others_wait_release_them() -> None:
    source = """extern "C" __global__ void f(int* y) {
        if (threadIdx.x < 32) { __syncthreads(); y[threadIdx.x] = 1; return; }
        y[threadIdx.x] = 2;
    }"""
    y = np.zeros(64, np.int32)
    go(source, 1, 64, [y])
    assert y.tolist() == [1] * 32 + [2] * 32


def test_arrivals_at_two_places_complete_one_barrier() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = t;
        if (t < 32) { asm volatile("bar.sync 0;" ::: "memory"); y[t] = s[t + 32]; }
        else { asm volatile("barrier.sync 0;" ::: "memory"); y[t] = s[t - 32]; }
    }"""
    y = np.zeros(64, np.int32)
    go(source, 1, 64, [y])
    assert np.array_equal(y, np.arange(64) ^ 32)


def test_blocks_pass_their_barriers_each_on_its_own() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s[32];
        int t = threadIdx.x;
        for (int i = 0; i <= blockIdx.x; i++) {
            s[t] = i;
            __syncthreads();
            y[blockIdx.x * 32 + t] += s[(t + 1) % 32];
            __syncthreads();
        }
    }"""
    y = np.zeros((5, 32), np.int32)
    go(source, 5, 32, [y])
    assert (y == np.array([0, 1, 3, 6, 10])[:, None]).all()


def test_barrier_that_not_all_reach_is_named() -> None:
    source = """extern "C" __global__ void f(int* y) {
    if (threadIdx.x < 16) {
        asm volatile("bar.sync 1;" ::: "memory");
    } else {
        asm volatile("bar.sync 2;" ::: "memory");
    }
    y[threadIdx.x] = 1;
}"""
    with pytest.raises(PtxError) as error:
        go(source, 2, 32, [np.zeros(32, np.int32)])
    text = str(error.value)
    assert "divergent barrier: in block (0, 0, 0), 16 of 32 running threads wait at barrier" in text
    assert "others wait at line" in text
    assert error.value.line in (3, 5)


@pytest.mark.parametrize("batch_lanes", [32, 64, 4096])
def test_results_do_not_depend_on_the_batch(batch_lanes: int) -> None:
    source = """extern "C" __global__ void f(const int* x, int* y) {
        __shared__ int s[32];
        s[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
        __syncthreads();
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += s[i] * (i + 1);
        y[blockIdx.x * 32 + threadIdx.x] = sum + threadIdx.x;
    }"""
    x = np.random.default_rng(2).integers(0, 99, (11, 32)).astype(np.int32)
    y = np.zeros_like(x)
    go(source, 11, 32, [x, y], batch_lanes=batch_lanes)
    assert np.array_equal(y, (x @ np.arange(1, 33))[:, None] + np.arange(32))
