"""Spaces, widths, arguments, and accesses that are refused by array, index and line."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda

from kernelbook.errors import PtxError
from kernelbook.ptx import Pointer, Struct, run


def go(source: str, kernel: str, grid: object, block: object, args: list[object], **more: object):  # type: ignore[no-untyped-def]
    return run(compile_cuda(source), kernel, grid, block, args, **{"observers": (), **more})  # type: ignore[arg-type]


COPY = """
#define COPY(T, NAME) extern "C" __global__ void NAME(const T* x, T* y) { \\
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x]; }
COPY(char, c1) COPY(short, c2) COPY(int, c4) COPY(long long, c8) COPY(int2, c8v) COPY(int4, c16)
COPY(double2, c16d) COPY(short4, c8s)
"""


@pytest.mark.parametrize(
    ("kernel", "size"),
    [("c1", 1), ("c2", 2), ("c4", 4), ("c8", 8), ("c8v", 8), ("c16", 16), ("c16d", 16), ("c8s", 8)],
)
@pytest.mark.parametrize("block", [32, 20])
def test_every_width_and_vector(kernel: str, size: int, block: int) -> None:
    x = np.random.default_rng(1).integers(0, 256, 3 * block * size).astype(np.uint8)
    y = np.zeros_like(x)
    go(COPY, kernel, 3, block, [x, y])
    assert np.array_equal(x, y)


def test_narrow_loads_extend_by_their_sign() -> None:
    source = """extern "C" __global__ void f(const signed char* a, const unsigned char* b,
                                           const short* c, int* y) {
        int i = threadIdx.x;
        y[3 * i] = a[i]; y[3 * i + 1] = b[i]; y[3 * i + 2] = c[i];
    }"""
    a = np.array([-1, 5], np.int8)
    c = np.array([-300, 300], np.int16)
    y = np.zeros(6, np.int32)
    go(source, "f", 1, 2, [a, a.view(np.uint8).copy(), c, y])
    assert y.tolist() == [-1, 255, -300, 5, 5, 300]


OUTSIDE = """extern "C" __global__ void read(const float* x, float* y, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i + d];
}
extern "C" __global__ void write(float* y, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i + d] = 1;
}"""


def test_read_beyond_the_end_names_array_index_thread_and_line() -> None:
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PtxError) as error:
        go(OUTSIDE, "read", 2, 32, [x, y, 3], names=["x", "y", "d"])
    text = str(error.value)
    assert "out of bounds: block (1, 0, 0), thread (29, 0, 0) reads 4 bytes at x[64]" in text
    assert "of an array of 64 elements" in text
    assert error.value.line == 3


def test_write_before_the_start() -> None:
    with pytest.raises(PtxError, match=r"writes 4 bytes at argument 0\[-2\]"):
        go(OUTSIDE, "write", 1, 32, [np.zeros(64, np.float32), -2])


def test_results_before_a_fault_are_kept() -> None:
    y = np.zeros(64, np.float32)
    with pytest.raises(PtxError):
        go(OUTSIDE, "write", 3, 32, [y, 0], batch_lanes=32)
    assert (y == 1).all()


def test_null_pointer() -> None:
    with pytest.raises(PtxError, match="null pointer"):
        go(OUTSIDE, "read", 1, 32, [None, np.zeros(32, np.float32), 0])


def test_read_only_arrays_may_not_be_stored_to() -> None:
    y = np.zeros(32, np.float32)
    y.flags.writeable = False
    with pytest.raises(PtxError, match="read-only"):
        go(OUTSIDE, "write", 1, 32, [y, 0])


VECTOR = """extern "C" __global__ void sum(const float4* x, float* y) {
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}"""


def test_misaligned_vector_load_is_refused() -> None:
    x = np.arange(129, dtype=np.float32)
    y = np.zeros(32, np.float32)
    for pointer in (x[1:], Pointer(x, 1)):
        with pytest.raises(PtxError, match=r"misaligned.*not a multiple of 16"):
            go(VECTOR, "sum", 1, 32, [pointer, y])
    go(VECTOR, "sum", 1, 31, [Pointer(x, 4), y])
    assert y[0] == 4 + 5 + 6 + 7


def test_pointer_reaches_the_whole_array() -> None:
    x = np.arange(40, dtype=np.float32)
    y = np.zeros(32, np.float32)
    go(OUTSIDE, "read", 1, 32, [Pointer(x, 8), y, -8])
    assert np.array_equal(y, x[:32])


def test_overlapping_arguments_alias() -> None:
    source = """extern "C" __global__ void f(int* a, int* b) {
        a[threadIdx.x] = 5;
        b[threadIdx.x] += 1;
    }"""
    x = np.zeros(48, np.int32)
    go(source, "f", 1, 32, [x[:32], x[16:]])
    assert x.tolist() == [5] * 16 + [6] * 16 + [1] * 16
    y = np.zeros(32, np.int32)
    go(source, "f", 1, 32, [y, y])
    assert (y == 6).all()


def test_shared_memory_bounds() -> None:
    source = """extern "C" __global__ void f(int* y, int d) {
        extern __shared__ int s[];
        s[threadIdx.x + d] = threadIdx.x;
        __syncthreads();
        y[threadIdx.x] = s[31 - threadIdx.x];
    }"""
    y = np.zeros(32, np.int32)
    go(source, "f", 1, 32, [y, 0], shared=128)
    assert y[0] == 31
    with pytest.raises(
        PtxError, match=r"thread \(31, 0, 0\) writes 4 bytes at shared memory .*32\]"
    ):
        go(source, "f", 1, 32, [y, 1], shared=128)


def test_blocks_do_not_see_each_others_shared_memory() -> None:
    source = """extern "C" __global__ void f(int* y) {
        __shared__ int s[32];
        s[threadIdx.x] = blockIdx.x;
        __syncthreads();
        y[blockIdx.x * 32 + threadIdx.x] = s[31 - threadIdx.x];
    }"""
    y = np.zeros((7, 32), np.int32)
    go(source, "f", 7, 32, [y])
    assert np.array_equal(y, np.repeat(np.arange(7), 32).reshape(7, 32))


def test_generic_pointers_to_every_space() -> None:
    source = """extern "C" __global__ void f(int* g, int* y) {
        __shared__ int s[32];
        int l[4];
        s[threadIdx.x] = 100 + threadIdx.x;
        for (int i = 0; i < 4; i++) l[i] = 200 + i;
        __syncthreads();
        int* p = threadIdx.x % 3 == 0 ? g : threadIdx.x % 3 == 1 ? s : l;
        y[threadIdx.x] = p[threadIdx.x & 3];
        p[threadIdx.x & 3] = -1;
    }"""
    g, y = np.arange(4, dtype=np.int32), np.zeros(32, np.int32)
    go(source, "f", 1, 32, [g, y])
    t = np.arange(32)
    assert np.array_equal(y, np.choose(t % 3, [t & 3, 100 + (t & 3), 200 + (t & 3)]))
    assert (g == -1).all()


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ([np.zeros(4, np.float32)], "takes 3 argument"),
        ([1.5, np.zeros(4, np.float32), 0], "argument 0 of read .*takes an integer"),
        ([np.zeros(4, np.float32), np.zeros(4, np.float32), 1.5], "argument 2 of read .*integer"),
        ([np.zeros(4, np.float32), np.zeros(4, np.float32), 1 << 40], "does not fit 32 bits"),
        (
            [np.zeros(4, np.float32), np.zeros(4, np.float32), np.zeros(1)],
            "pointer for a parameter",
        ),
        ([np.zeros((4, 4), np.float32)[:, 1], np.zeros(4, np.float32), 0], "not C-contiguous"),
        (["text", np.zeros(4, np.float32), 0], "cannot take a str"),
        ([np.array([None]), np.zeros(4, np.float32), 0], "Python objects"),
        ([b"1234", np.zeros(4, np.float32), 0], "takes 8 bytes, got 4"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(args: list[object], what: str) -> None:
    with pytest.raises(PtxError, match=what):
        go(OUTSIDE, "read", 1, 4, args)


def test_scalars_become_the_parameter_type() -> None:
    source = """extern "C" __global__ void f(double* y, float a, int b, unsigned char c, double d,
                                           long long e, bool g) {
        y[0] = a; y[1] = b; y[2] = c; y[3] = d; y[4] = e; y[5] = g;
    }"""
    y = np.zeros(6)
    go(source, "f", 1, 1, [y, 1, np.int64(-2), 200, np.float32(0.5), -(1 << 40), True])
    assert y.tolist() == [1, -2, 200, 0.5, -(2.0**40), 1]


def test_struct_members_are_aligned() -> None:
    source = """struct S { char a; double b; short c; };
    extern "C" __global__ void f(double* y, S s) { y[0] = s.a; y[1] = s.b; y[2] = s.c; }"""
    y = np.zeros(3)
    go(source, "f", 1, 1, [y, Struct(np.int8(-3), np.float64(0.25), np.int16(9))])
    assert y.tolist() == [-3, 0.25, 9]
    with pytest.raises(PtxError, match="takes 24 bytes, got 8"):
        go(source, "f", 1, 1, [y, Struct(np.float64(1))])


def test_module_variables_are_read_and_written() -> None:
    source = """__constant__ int table[3];
    __device__ int counter = 5;
    __device__ int* where = &counter;
    extern "C" __global__ void f(int* y) { y[0] = table[2] + *where; counter = 11; }"""
    y, counter = np.zeros(1, np.int32), np.array([7], np.int32)
    table = np.array([1, 2, 3], np.int32)
    go(source, "f", 1, 1, [y], variables={"table": table, "counter": counter})
    assert y[0] == 10
    assert counter[0] == 11
    go(source, "f", 1, 1, [y], variables={"table": table})
    assert y[0] == 8
    with pytest.raises(PtxError, match="no variable 'other'"):
        go(source, "f", 1, 1, [y], variables={"other": counter})


def test_cp_async_without_its_wait_reads_stale_shared_memory() -> None:
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void f(const int* x, int* y, int wait) {
        __shared__ int s[32];
        s[threadIdx.x] = -1;
        __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
        __pipeline_commit();
        if (wait) __pipeline_wait_prior(0);
        y[threadIdx.x] = s[threadIdx.x];
    }"""
    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    go(source, "f", 1, 32, [x, y, 0])
    assert (y == -1).all()
    go(source, "f", 1, 32, [x, y, 1])
    assert np.array_equal(y, x)


def test_cp_async_fills_what_it_does_not_read_with_zeros() -> None:
    source = """#include <cuda_pipeline.h>
    extern "C" __global__ void f(const int4* x, int4* y, int n) {
        __shared__ int4 s[32];
        int i = threadIdx.x;
        s[i].x = s[i].y = s[i].z = s[i].w = -1;
        __pipeline_memcpy_async(&s[i], &x[i], 16, i < n ? 0 : i == n ? 8 : 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        y[i] = s[i];
    }"""
    x = np.arange(1, 35, dtype=np.int32)[:32]  # lanes from 8 on would read beyond the array
    y = np.full(128, 7, np.int32)
    go(source, "f", 1, 32, [x, y, 7])
    assert np.array_equal(y[:30], x[:30])
    assert (y[30:] == 0).all()


def test_a_base_below_its_window_is_brought_back_by_the_offset() -> None:
    # The compiler keeps -4 * tid in a register and adds the rest as an immediate offset.
    ptx = """.version 7.8
.target sm_90
.address_size 64
.visible .entry f(.param .u64 f_param_0) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<5>;
    .shared .align 4 .b8 s[128];
    ld.param.u64 %rd1, [f_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    neg.s64 %rd3, %rd2;
    st.shared.u32 [%rd3+124], %r1;
    bar.sync 0;
    mov.u32 %r3, 7;
    ld.shared.u32 %r2, [%rd3+124];
    add.s64 %rd4, %rd1, %rd2;
    st.global.u32 [%rd4], %r2;
    ret;
}"""
    y = np.zeros(64, np.int32)
    run(ptx, "f", 2, 32, [y])
    assert y[:32].tolist() == list(range(32))
    ptx_other = ptx.replace("ld.shared.u32 %r2, [%rd3+124];", "ld.shared.u32 %r2, [%rd2];")
    run(ptx_other, "f", 1, 32, [y])
    assert y[:32].tolist() == list(range(31, -1, -1))
