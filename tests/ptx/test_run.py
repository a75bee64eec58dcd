"""The façade: what a run carries and shows, and how observers and batches are chosen."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.ptx import Event, count_observers, run

SOURCE = """extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void racy(int* y) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = s[63 - threadIdx.x];
}"""


def test_observers_are_on_by_default_and_count() -> None:
    a, b, c = np.ones((3, 1000), np.float32)
    done = run(compile_cuda(SOURCE), "add", 4, 256, [a, b, c, 1000])
    counts = done.counts.to_dict()
    assert counts["fadd"] == 1000
    assert counts["global_load_bytes"] == 2 * 4000
    assert done.findings == ()
    assert "no findings" in str(done)
    assert "add" in done._repr_html_()


def test_findings_are_part_of_a_run() -> None:
    done = run(compile_cuda(SOURCE), "racy", 1, 64, [np.zeros(64, np.int32)])
    assert done.findings
    assert str(done.findings[0]) in str(done)


def test_observers_can_be_off_or_chosen() -> None:
    a, b, c = np.ones((3, 32), np.float32)
    assert run(compile_cuda(SOURCE), "add", 1, 32, [a, b, c, 32], observers=()).observers == ()
    some = count_observers()
    done = run(compile_cuda(SOURCE), "add", 1, 32, [a, b, c, 32], observers=some)
    assert done.observers == some
    assert done.counts.to_dict()["fadd"] == 32


@pytest.mark.parametrize("batch_lanes", [1, 512, 1 << 16])
def test_counts_do_not_depend_on_the_batch(batch_lanes: int) -> None:
    a, b, c = np.ones((3, 1000), np.float32)
    done = run(compile_cuda(SOURCE), "add", 4, 256, [a, b, c, 1000], batch_lanes=batch_lanes)
    whole = run(compile_cuda(SOURCE), "add", 4, 256, [a, b, c, 1000])
    assert done.counts.to_dict() == whole.counts.to_dict()
    assert done.batches == (2 if batch_lanes == 512 else 4 if batch_lanes == 1 else 1)


class Addresses:
    """Keeps what memory events say of where they went."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None, int, int, list[int], int]] = []

    def begin_batch(self, batch: object) -> None: ...

    def end_batch(self, batch: object) -> None: ...

    def on_barrier(self, batch: object, blocks: object, barrier: int) -> None: ...

    def on_event(self, event: Event) -> None:
        if event.address is not None and event.access and event.space != "param":
            first = event.address[event.active][:2].tolist()
            self.seen.append(
                (event.access, event.space, event.size, event.offset, first, event.part)
            )


def test_events_name_space_size_and_address() -> None:
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void f(float2* x) {
        __shared__ float2 s[64];
        __pipeline_memcpy_async(&s[threadIdx.x + 1], &x[threadIdx.x], 8);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        volatile float* p = (volatile float*)&s[threadIdx.x + 1];
        x[threadIdx.x].x = p[1];
    }"""
    watch = Addresses()
    done = run(compile_cuda(source), "f", 1, 32, [np.zeros(64, np.float32)], observers=[watch])
    assert done.batches == 1
    read, write, load, store = watch.seen
    base = read[4][0]
    assert read[:3] == ("read", "global", 8)
    assert read[4] == [base, base + 8]
    assert write[:3] == ("write", "shared", 8)
    assert write[4:] == ([8, 16], 1)  # offsets in the block's window, the copy's second part
    assert load[:3] == ("read", "shared", 4)
    assert load[4:] == ([12, 20], 0)
    assert store[:3] == ("write", "global", 4)
    assert store[4] == [base, base + 8]


def test_generic_accesses_give_one_event_for_each_space() -> None:
    source = """extern "C" __global__ void f(int* g, int which) {
        __shared__ int s[32];
        s[threadIdx.x] = 1;
        int* p = threadIdx.x < 10 ? g : s;
        atomicAdd(p + threadIdx.x, 1);
    }"""

    class Parts(Addresses):
        def on_event(self, event: Event) -> None:
            if event.access == "atomic":
                self.seen.append(("", event.space, int(event.active.sum()), 0, [], event.part))

    watch = Parts()
    run(compile_cuda(source), "f", 1, 32, [np.zeros(32, np.int32), 0], observers=[watch])
    assert [(e[1], e[2], e[5]) for e in watch.seen] == [("global", 10, 0), ("shared", 22, 1)]
