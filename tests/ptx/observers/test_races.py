"""Races: what orders two accesses and what does not, in shared and in global memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from .conftest import Launch, kernel, races

# ---- shared memory -------------------------------------------------------------------------

EXCHANGE = "__shared__ int s[64]; s[t] = t; FIRST; out[t] = s[t ^ PARTNER]; SECOND; s[t] = 5;"


def exchange(first: str, second: str, partner: int) -> str:
    body = EXCHANGE.replace("FIRST", first).replace("SECOND", second)
    return kernel(body.replace("PARTNER", str(partner)))


@pytest.mark.parametrize(
    ("first", "second", "partner", "details"),
    [
        ("__syncthreads()", "__syncthreads()", 33, []),
        ("", "__syncthreads()", 33, ["write-read"]),
        ("__syncthreads()", "", 33, ["read-write"]),
        ("__syncwarp()", "__syncwarp()", 1, []),
        ("", "__syncwarp()", 1, ["write-read"]),  # lockstep is no order
        ("__syncwarp()", "", 1, ["read-write"]),
        ("__syncwarp()", "__syncwarp()", 33, ["write-read", "read-write"]),  # another warp
        ("__shfl_sync(~0u, t, 0)", "__syncwarp()", 1, ["write-read"]),  # a shuffle neither
    ],
)
def test_barriers_order_and_nothing_else_does(
    launch: Launch, first: str, second: str, partner: int, details: list[str]
) -> None:
    source = exchange(first, second, partner)
    found = races(launch(source, 3, 64, [np.zeros(64, np.int32)]))
    shared = [f for f in found if f.array == "s"]
    assert [f.detail for f in shared] == details
    assert all(f.count == 3 * 64 for f in shared)


def test_each_side_of_a_race_is_named(launch: Launch) -> None:
    source = kernel("__shared__ int s[64];\ns[t] = t;\nout[t] = s[63 - t];")
    (found,) = races(launch(source, 1, 64, [np.zeros(64, np.int32)]))
    assert found.first is not None
    assert found.second is not None
    assert found.what == "s[63]"
    assert (found.first.thread, found.first.access, found.first.line) == ((63, 0, 0), "writes", 3)
    assert (found.second.thread, found.second.access, found.second.line) == ((0, 0, 0), "reads", 4)
    assert found.second.file_name.endswith("k.cu")
    assert "race (write-read) on s[63]" in str(found)


def test_two_lanes_storing_to_one_word_at_once_collide(launch: Launch) -> None:
    source = kernel("__shared__ int s; s = t; __syncthreads(); out[t] = s;")
    (found,) = races(launch(source, 1, 64, [np.zeros(64, np.int32)]))
    assert (found.detail, found.what) == ("same instruction", "s[0]")
    assert found.count == 63


def test_several_readers_are_all_remembered(launch: Launch) -> None:
    # Lane 0 reads last and writes: its own read is no race, those of the others are.
    source = kernel(
        "__shared__ int s[1]; if (t == 0) s[0] = 1; __syncthreads();"
        "int v = s[0]; if (t == 0) s[0] = v + 1; out[t] = v;"
    )
    (found,) = races(launch(source, 1, 32, [np.zeros(32, np.int32)]))
    assert found.detail == "read-write"
    assert found.first is not None
    assert found.first.thread != (0, 0, 0)
    alone = source.replace("int v = s[0]", "int v = 0; if (t == 0) v = *(volatile int*)s")
    assert not races(launch(alone, 1, 32, [np.zeros(32, np.int32)]))


def test_reads_before_a_warp_barrier_do_not_hide_later_ones(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[32]; s[t] = t; __syncwarp(); int v = s[t ^ 1]; __syncwarp();"
        "v += s[t ^ 2]; OR; s[t] = v; out[t] = v;"
    )
    dirty = launch(source.replace("OR;", ""), 1, 32, [np.zeros(32, np.int32)])
    clean = launch(source.replace("OR", "__syncwarp()"), 1, 32, [np.zeros(32, np.int32)])
    assert [f.detail for f in races(dirty)] == ["read-write"]
    assert not clean.findings


def test_atomic_updates_race_with_plain_accesses_only(launch: Launch) -> None:
    body = (
        "__shared__ int s[4]; if (t < 4) s[t] = 0; FIRST; atomicAdd(&s[t & 3], 1); SECOND;"
        "out[t] = s[t & 3];"
    )
    cases: dict[tuple[str, str], list[str]] = {
        ("__syncthreads()", "__syncthreads()"): [],
        ("", "__syncthreads()"): ["write-atomic"],
        ("__syncthreads()", ""): ["atomic-read"],
    }
    for (first, second), details in cases.items():
        source = kernel(body.replace("FIRST", first).replace("SECOND", second))
        found = races(launch(source, 1, 64, [np.zeros(64, np.int32)]))
        assert [f.detail for f in found] == details


def test_a_half_warp_barrier_orders_its_half_only(launch: Launch) -> None:
    body = (
        "__shared__ int s[64]; s[t] = t; __syncwarp(t & 16 ? 0xffff0000u : 0xffffu);"
        "out[t] = s[t ^ PARTNER];"
    )
    near = launch(kernel(body.replace("PARTNER", "1")), 1, 64, [np.zeros(64, np.int32)])
    far = launch(kernel(body.replace("PARTNER", "16")), 1, 64, [np.zeros(64, np.int32)])
    assert not near.findings
    assert [f.detail for f in races(far)] == ["write-read"]


NAMED = """
__device__ void sync(int id) { asm volatile("bar.sync %0, 64;" :: "r"(id) : "memory"); }
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" :: "r"(id) : "memory"); }
extern "C" __global__ void k(int* out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        for (int i = 0; i < 3; ++i) {
            FREE(2);
            s[t] = t + i;
            FULL(1);
        }
    } else {
        arrive(2);
        for (int i = 0; i < 3; ++i) {
            sync(1);
            out[t - 32] += s[t + 1 & 31];
            if (i < 2) arrive(2);
        }
    }
}"""


def test_named_barriers_order_producer_and_consumer(launch: Launch) -> None:
    source = NAMED.replace("FREE", "sync").replace("FULL", "arrive")
    run = launch(source, 2, 64, [np.zeros(32, np.int32)])
    assert not [f for f in run.findings if f.array == "s"]


def test_arriving_at_a_named_barrier_does_not_order_what_comes_after(launch: Launch) -> None:
    # The producer writes again without waiting until the buffer is free.
    source = NAMED.replace("FREE(2);", "").replace("FULL", "sync").replace("arrive(2);", "")
    found = races(launch(source.replace("if (i < 2) ", ""), 1, 64, [np.zeros(32, np.int32)]))
    assert {f.array for f in found} == {"s"}


ASYNC = """#include <cuda_pipeline.h>
extern "C" __global__ void k(const int* in, int* out) {
    __shared__ __align__(16) int s[2][256];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t * 4], &in[t * 4], 16);
    __pipeline_commit();
    for (int i = 0; i < 4; ++i) {
        if (i < 3)
            __pipeline_memcpy_async(&s[i + 1 & 1][t * 4], &in[(i + 1) * 256 + t * 4], 16);
        __pipeline_commit();
        __pipeline_wait_prior(LEFT);
        FIRST;
        out[t] += s[i & 1][t * 5 & 255];
        SECOND;
    }
}"""


@pytest.mark.parametrize(
    ("left", "first", "second", "found"),
    [
        (1, "__syncthreads()", "__syncthreads()", set()),
        (2, "__syncthreads()", "__syncthreads()", {"write-read", "write-write"}),
        (1, "", "__syncthreads()", {"write-read"}),
        (1, "__syncthreads()", "", {"read-write"}),
    ],
)
def test_asynchronous_copies_land_when_waited_for(
    launch: Launch, left: int, first: str, second: str, found: set[str]
) -> None:
    source = ASYNC.replace("FIRST", first).replace("SECOND", second)
    arguments = [np.arange(1024, dtype=np.int32), np.zeros(64, np.int32)]
    run = launch(source, 1, 64, arguments, macros={"LEFT": left})
    assert {f.detail for f in races(run)} == found
    assert any("waited" in f.hint for f in races(run)) == (left == 2)


def test_even_the_copying_lane_must_wait(launch: Launch) -> None:
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void k(const int* in, int* out) {
        __shared__ int s[32];
        int t = threadIdx.x;
        __pipeline_memcpy_async(&s[t], &in[t], 4);
        __pipeline_commit();
        WAIT;
        out[t] = s[t];
    }"""
    arguments = [np.arange(32, dtype=np.int32), np.zeros(32, np.int32)]
    assert not launch(source.replace("WAIT", "__pipeline_wait_prior(0)"), 1, 32, arguments).findings
    (found,) = races(launch(source.replace("WAIT", ""), 1, 32, arguments))
    assert "cp.async" in found.hint


# ---- global memory -------------------------------------------------------------------------


def test_a_barrier_orders_a_block_but_not_blocks(launch: Launch) -> None:
    body = "int b = blockIdx.x * 128; x[b + t] = t; SYNC; x[b + 64 + t] = x[(b + READ) ^ t];"
    own = kernel(body.replace("READ", "33"), "int* x")
    arguments = [np.zeros(512, np.int32)]
    assert not launch(own.replace("SYNC", "__syncthreads()"), 4, 64, arguments).findings
    (found,) = races(launch(own.replace("SYNC", ""), 4, 64, arguments))
    assert (found.detail, found.array) == ("write-read", "argument 0")


def test_blocks_writing_one_word_race(launch: Launch) -> None:
    (found,) = races(launch(kernel("out[t] = t;"), 2, 64, [np.zeros(64, np.int32)]))
    assert (found.kind, found.count) == ("race", 64)
    assert found.first is not None
    assert found.second is not None
    assert found.first.block != found.second.block


@pytest.mark.parametrize("batch_lanes", [64, 65536])
def test_batches_are_not_an_order(launch: Launch, batch_lanes: int) -> None:
    source = kernel("if (blockIdx.x == 0) out[t] = t; else out[64 + t] = out[t];")
    run = launch(source, 2, 64, [np.zeros(128, np.int32)], batch_lanes=batch_lanes)
    assert [f.array for f in races(run)] == ["argument 0"]


def test_a_histogram_of_atomics_is_clean(launch: Launch) -> None:
    source = kernel("atomicAdd(&out[x[blockIdx.x * 64 + t] & 7], 1);", "const int* x, int* out")
    x = np.random.default_rng(1).integers(0, 1 << 20, 640).astype(np.int32)
    out = np.zeros(8, np.int32)
    assert not launch(source, 10, 64, [x, out]).findings
    assert out.sum() == 640


LAST_BLOCK = """
extern "C" __global__ void k(const float* x, VOLATILE float* part, float* sum, unsigned* done) {
    __shared__ float s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int d = 32; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) {
        part[blockIdx.x] = s[0];
        RELEASE;
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        ACQUIRE;
        s[t] = t < gridDim.x ? part[t] : 0.0f;
        __syncthreads();
        for (int d = 32; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t == 0) { *sum = s[0]; *done = 0; }
    }
}"""

LOOK_BACK = """
extern "C" __global__ void k(const int* x, int* y, volatile int* flag, VOLATILE int* total) {
    __shared__ int s[64];
    __shared__ int before;
    int t = threadIdx.x, b = blockIdx.x;
    s[t] = x[b * 64 + t];
    __syncthreads();
    for (int d = 1; d < 64; d <<= 1) {
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 0) {
        int sum = 0;
        if (b > 0) {
            while (flag[b - 1] == 0) {}
            ACQUIRE;
            sum = total[b - 1];
        }
        total[b] = sum + s[63];
        RELEASE;
        flag[b] = 1;
        before = sum;
    }
    __syncthreads();
    y[b * 64 + t] = s[t] + before;
}"""

SEMAPHORE = """
extern "C" __global__ void k(const float* x, float* c, int* lock) {
    int t = threadIdx.x, part = blockIdx.y;
    float v = x[(part * gridDim.x + blockIdx.x) * 64 + t];
    if (t == 0) {
        while (atomicAdd(&lock[blockIdx.x], 0) != part) {}
        ACQUIRE;
    }
    __syncthreads();
    if (part == 0) c[blockIdx.x * 64 + t] = v;
    else c[blockIdx.x * 64 + t] += v;
    EVERYONE;
    __syncthreads();
    if (t == 0) { RELEASE; atomicExch(&lock[blockIdx.x], part + 1); }
}"""

FENCE = "__threadfence()"


def with_fences(source: str, volatile: str = "", **fences: str) -> str:
    source = source.replace("VOLATILE", volatile)
    for name in ("ACQUIRE", "RELEASE", "EVERYONE"):
        source = source.replace(name, fences.get(name.lower(), ""))
    return source


def run_last_block(launch: Launch, source: str) -> tuple[Any, Sequence[np.ndarray]]:
    x = np.arange(20 * 64, dtype=np.float32)
    part, sums, done = np.zeros(64, np.float32), np.zeros(1, np.float32), np.zeros(1, np.uint32)
    run = launch(source, 20, 64, [x, part, sums, done])
    assert sums[0] == x.sum()
    assert done[0] == 0
    return run, (part, sums)


@pytest.mark.parametrize(
    ("volatile", "acquire"), [("", FENCE), ("volatile", FENCE), ("volatile", "")]
)
def test_a_last_block_reduction_is_clean(launch: Launch, volatile: str, acquire: str) -> None:
    source = with_fences(LAST_BLOCK, volatile, acquire=acquire, release=FENCE)
    assert not run_last_block(launch, source)[0].findings


@pytest.mark.parametrize(
    ("volatile", "fences", "hint"),
    [
        ("", {"acquire": FENCE}, "written with no fence"),
        ("volatile", {}, "written with no fence"),
        ("", {"release": FENCE}, "between reading the flag"),
    ],
)
def test_a_last_block_reduction_without_a_fence_is_reported(
    launch: Launch, volatile: str, fences: dict[str, str], hint: str
) -> None:
    found = races(run_last_block(launch, with_fences(LAST_BLOCK, volatile, **fences))[0])
    partial = [f for f in found if f.array == "argument 1"]
    assert [f.detail for f in partial] == ["write-read"]
    assert partial[0].count == 19
    assert hint in partial[0].hint


def run_look_back(launch: Launch, source: str) -> Any:
    x, y = np.ones(30 * 64, np.int32), np.zeros(30 * 64, np.int32)
    run = launch(source, 30, 64, [x, y, np.zeros(30, np.int32), np.zeros(30, np.int32)])
    assert (y == np.arange(1, 30 * 64 + 1)).all()
    return run


def test_a_look_back_scan_is_clean(launch: Launch) -> None:
    source = with_fences(LOOK_BACK, acquire=FENCE, release=FENCE)
    assert not run_look_back(launch, source).findings


@pytest.mark.parametrize(
    ("volatile", "fences"),
    [("", {"acquire": FENCE}), ("", {"release": FENCE}), ("volatile", {"acquire": FENCE})],
)
def test_a_look_back_scan_without_a_fence_is_reported(
    launch: Launch, volatile: str, fences: dict[str, str]
) -> None:
    found = races(run_look_back(launch, with_fences(LOOK_BACK, volatile, **fences)))
    assert [(f.array, f.count) for f in found] == [("argument 3", 29)]


def run_semaphore(launch: Launch, source: str) -> Any:
    x, c = np.ones(3 * 5 * 64, np.float32), np.zeros(3 * 64, np.float32)
    run = launch(source, (3, 5), 64, [x, c, np.zeros(3, np.int32)])
    assert (c == 5).all()
    return run


@pytest.mark.parametrize("where", ["everyone", "release"])
def test_a_split_k_semaphore_is_clean(launch: Launch, where: str) -> None:
    source = with_fences(SEMAPHORE, acquire=FENCE, **{where: FENCE})
    assert not run_semaphore(launch, source).findings


@pytest.mark.parametrize("fences", [{"acquire": FENCE}, {"release": FENCE}])
def test_a_split_k_semaphore_without_a_fence_is_reported(
    launch: Launch, fences: dict[str, str]
) -> None:
    found = races(run_semaphore(launch, with_fences(SEMAPHORE, **fences)))
    assert {f.array for f in found} == {"argument 1"}
    assert {f.detail for f in found} == {"write-read", "write-write"}
    assert all(f.count == 3 * 4 * 64 for f in found)


def test_a_fence_within_the_block_does_not_order_blocks(launch: Launch) -> None:
    fences = {"acquire": FENCE, "release": "__threadfence_block()"}
    found = races(run_look_back(launch, with_fences(LOOK_BACK, **fences)))
    assert [(f.array, f.count) for f in found] == [("argument 3", 29)]


def test_acquire_and_release_need_no_further_fence(launch: Launch) -> None:
    source = """#include <cuda/atomic>
    extern "C" __global__ void k(int* data, int* flag, int* out) {
        cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
        if (blockIdx.x == 0) { *data = 7; f.store(1, cuda::memory_order_STORE); }
        else { while (f.load(cuda::memory_order_acquire) == 0) {} *out = *data; }
    }"""
    for order, clean in (("release", True), ("relaxed", False)):
        arguments = [np.zeros(1, np.int32) for _ in range(3)]
        run = launch(source.replace("STORE", order), 2, 1, arguments)
        assert arguments[2][0] == 7
        assert (not run.findings) == clean


def test_a_value_packed_with_its_flag_is_not_judged(launch: Launch) -> None:
    source = kernel(
        "volatile unsigned long long* f = word; if (blockIdx.x == 0) *f = 1ull << 32 | 42;"
        "else { unsigned long long v; while (((v = *f) >> 32) == 0) {} *out = (int)v; }",
        "unsigned long long* word, int* out",
    )
    run = launch(source, 2, 1, [np.zeros(1, np.uint64), np.zeros(1, np.int32)])
    assert [f.kind for f in run.findings] == ["not-judged"]


@pytest.mark.parametrize(("word", "kind"), [("unsigned long long", "not-judged"), ("int", "race")])
def test_words_with_their_own_flags_may_be_seen_in_any_order(
    launch: Launch, word: str, kind: str
) -> None:
    """Block 1 sees the later word first, and then reads the earlier one."""
    source = kernel(
        "volatile WORD* f = words; if (blockIdx.x == 0) { f[0] = 5; f[1] = 7; }"
        "else { while (f[1] == 0) {} *out = f[0]; }".replace("WORD", word),
        f"{word}* words, {word}* out",
    )
    size = np.uint64 if "long" in word else np.int32
    run = launch(source, 2, 1, [np.zeros(2, size), np.zeros(1, size)])
    assert kind in {f.kind for f in run.findings}
    assert kind == "race" or not races(run)
