"""Locks and flags within a block: neither a race nor clean, and no excuse for anything else."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Launch

LOCK = """extern "C" __global__ void f(int* result, int* lock) {
    __shared__ int held, count;
    if (threadIdx.x == 0) held = count = 0;
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(LOCK, 0, 1) == 0) {
            FENCE
            COUNT += 1;
            FENCE
            atomicExch(LOCK, 0);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *result += count;
}"""
FLAG = """extern "C" __global__ void f(int* result) {
    __shared__ volatile int flag;
    __shared__ int data;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = 42;
        FENCE
        flag = 1;
    }
    if (threadIdx.x < 32) {
        while (flag == 0) {}
        FENCE
        result[threadIdx.x] = data;
    }
}"""
LAST = """extern "C" __global__ void f(int* result, int* done) {
    __shared__ int last;
    result[1 + threadIdx.x] = threadIdx.x;
    __threadfence();
    if (threadIdx.x == 0) last = atomicAdd(done, 1) == 0;
    BARRIER
    if (last) result[1 + threadIdx.x] += 1;
}"""


def kinds(launch: Launch, source: str, *arrays: np.ndarray) -> set[str]:
    return {f.kind for f in launch(source, 1, 64, list(arrays)).findings}


def lock(where: str, count: str, fence: str) -> str:
    return LOCK.replace("LOCK", where).replace("COUNT", count).replace("FENCE", fence)


@pytest.mark.parametrize("where", ["&held", "lock"])
@pytest.mark.parametrize("count", ["count", "*result"])
def test_what_a_lock_guards_is_not_judged(launch: Launch, where: str, count: str) -> None:
    result, held = np.zeros((2, 1), np.int32)
    assert kinds(launch, lock(where, count, "__threadfence();"), result, held) == {"not-judged"}
    assert result[0] == 64


def test_a_fence_within_the_block_is_enough_for_its_lock(launch: Launch) -> None:
    result, held = np.zeros((2, 1), np.int32)
    source = lock("&held", "count", "__threadfence_block();")
    assert kinds(launch, source, result, held) == {"not-judged"}


@pytest.mark.parametrize("where", ["&held", "lock"])
@pytest.mark.parametrize("count", ["count", "*result"])
def test_a_lock_without_fences_guards_nothing(launch: Launch, where: str, count: str) -> None:
    result, held = np.zeros((2, 1), np.int32)
    assert "race" in kinds(launch, lock(where, count, ""), result, held)


def test_data_behind_a_flag_is_not_judged(launch: Launch) -> None:
    result = np.zeros(32, np.int32)
    source = FLAG.replace("FENCE", "__threadfence_block();")
    assert kinds(launch, source, result) == {"not-judged"}
    assert (result == 42).all()
    assert "race" in kinds(launch, FLAG.replace("FENCE", ""), result)


def test_a_missing_barrier_is_a_race_whatever_else_fences(launch: Launch) -> None:
    result, done = np.zeros(65, np.int32), np.zeros(1, np.int32)
    assert kinds(launch, LAST.replace("BARRIER", "__syncthreads();"), result, done) == set()
    done[0] = 0
    assert "race" in kinds(launch, LAST.replace("BARRIER", ""), result, done)
