"""Instructions: floating-point operations by kind, classes, barriers, what records keep."""

from __future__ import annotations

import numpy as np
import pytest

from kernelbook.ptx.observers import InstructionObserver, count_observers

from .conftest import Launch, kernel


def test_a_fused_multiply_add_is_two_operations(launch: Launch) -> None:
    source = kernel(
        "float v = x[t]; v = __fmaf_rn(v, v, 1.0f); v = __fadd_rn(v, 2.0f);"
        "v = __fmul_rn(v, 3.0f); x[t] = __fsub_rn(v, 1.0f);",
        "float* x",
    )
    counted = launch(source, 2, 64, [np.ones(64, np.float32)]).counts.total.instructions
    assert counted is not None
    assert counted.arithmetic == {"f32.fma": 128, "f32.add": 256, "f32.mul": 128}
    assert counted.flops == {"f32": 128 * (2 + 1 + 1 + 1)}


def test_kinds_are_kept_apart_and_packed_halves_count_twice(launch: Launch) -> None:
    source = """#include <cuda_fp16.h>
    extern "C" __global__ void k(double* d, __half2* h) {
        int t = threadIdx.x;
        d[t] = __fma_rn(d[t], d[t], 1.0);
        h[t] = __hfma2(h[t], h[t], h[t]);
    }"""
    run = launch(source, 1, 32, [np.zeros(32), np.zeros(64, np.float16)])
    counted = run.counts.total.instructions
    assert counted is not None
    assert counted.flops == {"f64": 64, "f16": 128}
    assert run.counts.to_dict()["flops"] == 192


def test_operations_of_lanes_with_a_false_guard_do_not_count(launch: Launch) -> None:
    source = kernel("float v = x[t]; if (t < 20) v = v * 3.0f; x[t] = v;", "float* x")
    counts = launch(source, 1, 32, [np.ones(32, np.float32)]).counts.to_dict()
    assert counts["fmul"] in (20, 32)  # 32 where the compiler selects instead of branching
    source = kernel("if (t < 20) x[t] = x[t] * 3.0f;", "float* x")
    counts = launch(source, 1, 32, [np.ones(32, np.float32)]).counts.to_dict()
    assert counts["fmul"] == counts["flops"] == 20


def test_classes_add_up_to_all_thread_instructions(launch: Launch) -> None:
    source = kernel(
        "__shared__ float s[64]; s[t] = sqrtf(x[t]); __syncthreads();"
        "atomicAdd(&x[0], s[63 - t] * 2.0f); x[t] = __shfl_xor_sync(~0u, s[t], 1);",
        "float* x",
    )
    counted = launch(source, 1, 64, [np.ones(64, np.float32)]).counts.total.instructions
    assert counted is not None
    assert sum(counted.classes.values()) == counted.threads
    expected = {"global": 128, "shared": 192, "special": 64, "atomic": 64, "barrier": 64}
    assert {name: counted.classes[name] for name in expected} == expected
    assert counted.classes["warp"] == 64


def test_a_barrier_counts_once_a_warp(launch: Launch) -> None:
    source = kernel("for (int i = 0; i < 5; ++i) __syncthreads(); out[t] = 1;")
    run = launch(source, 3, 96, [np.zeros(96, np.int32)])
    assert run.counts.to_dict()["barriers"] == 5 * 3 * 3


def test_a_partial_last_warp_has_fewer_threads(launch: Launch) -> None:
    run = launch(kernel("out[t] = t;"), 1, 40, [np.zeros(40, np.int32)])
    counted = run.counts.total.instructions
    assert counted is not None
    assert counted.threads * 64 == counted.warps * 32 * 40


def test_an_observer_that_was_off_counts_nothing_rather_than_zero(launch: Launch) -> None:
    source, arguments = kernel("out[t] = t;"), [np.zeros(32, np.int32)]
    run = launch(source, 1, 32, arguments, observers=(InstructionObserver(),))
    assert run.counts.total.global_memory is None
    assert "global_store_sectors" not in run.counts.to_dict()
    assert launch(source, 1, 32, arguments, observers=()).counts.to_dict() == {}


def test_counts_do_not_depend_on_how_blocks_are_batched(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[128]; int i = blockIdx.x * 128 + t; s[t * 2 & 127] = i; __syncthreads();"
        "if (i % 3) out[i] = s[127 - t];"
    )
    found = {
        lanes: launch(
            source, 9, 128, [np.zeros(9 * 128, np.int32)],
            observers=count_observers(), batch_lanes=lanes,
        ).counts.to_dict()
        for lanes in (128, 512, 4096)
    }  # fmt: skip
    assert found[128] == found[512] == found[4096]


def test_counts_show_themselves_as_text_and_as_a_table(launch: Launch) -> None:
    run = launch(kernel("out[t] = t;"), 1, 32, [np.zeros(32, np.int32)])
    counts = run.counts
    assert "global_store_sectors" in str(counts)
    assert "<td>global_store_sectors</td>" in counts._repr_html_()
    assert all("/" not in name for name in counts.lines_dict())
    with pytest.raises(AttributeError):
        counts.kernel = "other"  # type: ignore[misc]
