"""Article 01: vector addition, and the matrix product without and with tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelbook.experiment import (
    EXACT,
    Arrays,
    Buffer,
    Chart,
    Cpu,
    Dim,
    Experiment,
    Kernel,
    Library,
    Shape,
    Target,
    Text,
    Tolerance,
    Transfer,
    Variant,
    ceil_div,
    device_copy,
    text,
)

# ---- vector addition -----------------------------------------------------------------------


def add_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"c": inputs["a"].astype(xp.float64) + inputs["b"].astype(xp.float64)}


def add_cpu(inputs: Arrays, outputs: Arrays, shape: Shape) -> None:
    np.add(inputs["a"], inputs["b"], out=outputs["c"])


def add_wide(vectors: int, streaming: bool, threads: int = 256) -> Kernel:
    per_block = threads * 4 * vectors
    hint = "，流式" if streaming else ""
    return Kernel(
        name=f"vector_add_float4x{vectors}" + ("_streaming" if streaming else ""),
        source="vector_add_wide.cu",
        entry="vector_add_wide",
        args=("a", "b", "c", "n"),
        grid=lambda s, t: (ceil_div(s["n"], per_block), 1, 1),
        block=lambda s, t: (threads, 1, 1),
        macros={"VECTORS": vectors, "STREAMING": int(streaming)},
        title=Text(
            f"每线程 {vectors} 个 float4{hint}",
            f"{vectors} float4 a thread" + (", streaming" if streaming else ""),
        ),
    )


vector_add = Kernel(
    name="vector_add",
    source="vector_add.cu",
    entry="vector_add",
    args=("a", "b", "c", "n"),
    grid=lambda s, t: (ceil_div(s["n"], 256), 1, 1),
    block=lambda s, t: (256, 1, 1),
    title=Text("每线程一个元素", "one element a thread"),
)

VECTOR_ADD = Experiment(
    name="vector_add_64m",
    title=Text("向量加法，6710 万个元素", "Vector addition, 67.1 million elements"),
    shape={"n": 2**26},
    emulator_shape={"n": 2**16},
    ragged=tuple({"n": n} for n in (1, 31, 257, 1003, 4097, 100_001)),
    buffers=(
        Buffer("a", "in", lambda s: (s["n"],)),
        Buffer("b", "in", lambda s: (s["n"],)),
        Buffer("c", "out", lambda s: (s["n"],)),
    ),
    reference=add_reference,
    flops=lambda s: s["n"],
    tolerance=Tolerance(relative=2.0**-24, absolute=1e-30),  # one correctly rounded addition
    variants=(
        vector_add,
        add_wide(1, False),
        add_wide(2, False),
        add_wide(4, False),
        add_wide(1, True),
        device_copy(
            lambda s: s["n"] * 6,
            Text("总搬运字节数与向量加法相同", "moves as many bytes in all as the addition"),
        ),
        Library("cupy_add", "cupy_add", text("CuPy `a + b`")),
        Cpu("numpy_add", add_cpu, Text("NumPy `np.add`（单线程）", "NumPy `np.add` (one thread)")),
        Transfer("h2d_pageable", "h2d", False, Text("主机→显卡，可分页", "host to GPU, pageable")),
        Transfer("h2d_pinned", "h2d", True, Text("主机→显卡，锁页", "host to GPU, pinned")),
        Transfer("d2h_pageable", "d2h", False, Text("显卡→主机，可分页", "GPU to host, pageable")),
        Transfer("d2h_pinned", "d2h", True, Text("显卡→主机，锁页", "GPU to host, pinned")),
    ),
    bound="memory",
)


# ---- the latency of one load ----------------------------------------------------------------


def chase_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    table = inputs["table"]
    host = table.get() if hasattr(table, "get") else table
    i = 0
    for step in range(shape["steps"]):
        i = (int(host[i]) + step * 0x9E3779B9) % shape["n"]
    return {"last": xp.asarray([i], dtype=xp.float64)}


def latency(name: str, elements: int, title: Text) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape={"n": elements, "steps": 2**14},
        emulator_shape={"n": 2**10, "steps": 2**7},
        ragged=({"n": 1, "steps": 1}, {"n": 2**15, "steps": 100}),
        buffers=(
            Buffer("table", "in", lambda s: (s["n"],), "int32", 0, 2**31 - 1),
            Buffer("last", "out", lambda s: (1,), "int32"),
        ),
        reference=chase_reference,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(
            Kernel(
                name="pointer_chase",
                source="pointer_chase.cu",
                entry="pointer_chase",
                args=("table", "last", "n", "steps"),
                grid=lambda s, t: (1, 1, 1),
                block=lambda s, t: (1, 1, 1),
                title=Text("一个线程的指针追逐", "pointer chase of one thread"),
            ),
        ),
        dtype="int32",
        sparse=True,
    )


# Sizes that lie well inside a level of every card in devices.toml, or well outside its L2.
LATENCY = (
    latency("latency_l1", 2**10, Text("L1 延迟（4 KiB）", "L1 latency (4 KiB)")),
    latency("latency_l2", 2**20, Text("L2 延迟（4 MiB）", "L2 latency (4 MiB)")),
    latency("latency_dram", 2**28, Text("显存延迟（1 GiB）", "DRAM latency (1 GiB)")),
)


# ---- matrix product: A is m x n, B is n x k, C is m x k ------------------------------------


def gemm_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"c": inputs["a"].astype(xp.float64) @ inputs["b"].astype(xp.float64)}


def gemm_cpu(inputs: Arrays, outputs: Arrays, shape: Shape) -> None:
    np.matmul(inputs["a"], inputs["b"], out=outputs["c"])


def naive(width: int, height: int) -> Kernel:
    def grid(s: Shape, t: Target) -> Dim:
        return ceil_div(s["k"], width), ceil_div(s["m"], height), 1

    published = (width, height) == (16, 16)
    return Kernel(
        name="matrix_mul_naive" if published else f"matrix_mul_naive_{width}x{height}",
        source="matrix_mul_naive.cu",
        entry="matrix_mul_naive",
        args=("a", "b", "c", "m", "n", "k"),
        grid=grid,
        block=lambda s, t: (width, height, 1),
        title=Text(f"朴素，{width}×{height} 线程", f"naive, {width}×{height} threads"),
    )


def tiled(tile: int) -> Kernel:
    def grid(s: Shape, t: Target) -> Dim:
        return ceil_div(s["k"], tile), ceil_div(s["m"], tile), 1

    return Kernel(
        name="matrix_mul_tiled" if tile == 32 else f"matrix_mul_tiled_{tile}",
        source="matrix_mul_tiled.cu",
        entry="matrix_mul_tiled",
        args=("a", "b", "c", "m", "n", "k"),
        grid=grid,
        block=lambda s, t: (tile, tile, 1),
        macros={"TILE_WIDTH": tile},
        title=Text(
            f"分块，{tile}×{tile} tile，{tile * tile} 线程",
            f"tiled, {tile}×{tile} tile, {tile * tile} threads",
        ),
    )


def tiled_rows(rows: int) -> Kernel:
    return Kernel(
        name=f"matrix_mul_tiled_32x{rows}",
        source="matrix_mul_tiled_rows.cu",
        entry="matrix_mul_tiled_rows",
        args=("a", "b", "c", "m", "n", "k"),
        grid=lambda s, t: (ceil_div(s["k"], 32), ceil_div(s["m"], 32), 1),
        block=lambda s, t: (32, rows, 1),
        macros={"BLOCK_ROWS": rows},
        title=Text(
            f"分块，32×32 tile，{32 * rows} 线程", f"tiled, 32×32 tile, {32 * rows} threads"
        ),
    )


def barriers(name: str, first: int, second: int, title: Text) -> Kernel:
    return Kernel(
        name=name,
        source="matrix_mul_tiled_barriers.cu",
        entry="matrix_mul_tiled_barriers",
        args=("a", "b", "c", "m", "n", "k"),
        grid=lambda s, t: (ceil_div(s["k"], 32), ceil_div(s["m"], 32), 1),
        block=lambda s, t: (32, 32, 1),
        macros={"FIRST": first, "SECOND": second},
        title=title,
        counter_example=first == 0 or second == 0,
    )


def gemm(size: int, kernels: tuple[Kernel, ...], cpu: bool) -> Experiment:
    baselines: tuple[Variant, ...] = (
        Library(
            "cublas_sgemm",
            "cublas_sgemm",
            text("cuBLAS SGEMM"),
            note=Text("FP32，FMA 单元，TF32 关闭", "FP32 on the FMA units, TF32 off"),
        ),
    )
    if cpu:
        baselines += (
            Cpu("numpy_matmul", gemm_cpu, Text("NumPy `a @ b`（BLAS）", "NumPy `a @ b` (BLAS)")),
        )
    return Experiment(
        name=f"gemm_{size}",
        title=Text(f"矩阵乘法，{size}×{size}×{size}", f"Matrix product, {size}×{size}×{size}"),
        shape={"m": size, "n": size, "k": size},
        emulator_shape={"m": 256, "n": 256, "k": 256},
        ragged=(
            {"m": 1, "n": 1, "k": 1},
            {"m": 33, "n": 7, "k": 257},
            {"m": 100, "n": 65, "k": 31},
            {"m": 16, "n": 130, "k": 48},
        ),
        buffers=(
            Buffer("a", "in", lambda s: (s["m"], s["n"])),
            Buffer("b", "in", lambda s: (s["n"], s["k"])),
            Buffer("c", "out", lambda s: (s["m"], s["k"])),
        ),
        reference=gemm_reference,
        flops=lambda s: 2 * s["m"] * s["n"] * s["k"],
        # Products of values in [-1, 1) add up to about sqrt(k) / 3 after k steps, and every step
        # rounds by up to half an ulp of that: as a random walk about n * 2**-24 / 10 in all.
        # Ten times that is allowed; one missing product would be off by 0.3.
        tolerance=Tolerance(
            relative=2.0**-24, absolute=2.0**-24, scale=lambda s: 16.0 + float(s["n"])
        ),
        variants=(*kernels, *baselines),
        bound="compute",
    )


BARRIERS = replace(
    gemm(1024, (), cpu=False),
    name="tiled_barriers",
    title=Text("分块矩阵乘法的两个屏障", "The two barriers of the tiled product"),
    emulator_shape={"m": 64, "n": 96, "k": 64},
    variants=(
        barriers("both_barriers", 1, 1, Text("两个屏障都在", "both barriers")),
        barriers("no_last_barrier", 1, 2, Text("省去最后一次屏障", "without the very last one")),
        barriers("no_first_barrier", 0, 1, Text("去掉屏障 1", "without barrier 1")),
        barriers("no_second_barrier", 1, 0, Text("去掉屏障 2", "without barrier 2")),
    ),
)


MAIN = (naive(16, 16), tiled(32))
SHAPES = (naive(16, 16), naive(32, 8), naive(8, 32), tiled(32), tiled(16), tiled(8))

EXPERIMENTS = [
    VECTOR_ADD,
    gemm(1024, (*SHAPES, tiled_rows(16), tiled_rows(8)), cpu=True),
    # Rows of 4224 bytes: those 16 or 32 rows apart do not fall a power of two apart.
    gemm(1056, SHAPES, cpu=False),
    gemm(2048, MAIN, cpu=False),
    gemm(4096, (*SHAPES, tiled_rows(16), tiled_rows(8)), cpu=False),
    gemm(8192, MAIN, cpu=False),
    BARRIERS,
    *LATENCY,
]

CHARTS = [
    Chart(
        name="vector_add_bandwidth",
        title=Text("向量加法的有效带宽", "Effective bandwidth of vector addition"),
        kind="bars",
        experiments=("vector_add_64m",),
        variants=tuple(v.name for v in VECTOR_ADD.variants if v.kind in ("kernel", "library")),
        metric="bandwidth",
        roof="bandwidth",
    ),
    Chart(
        name="gemm_1024_throughput",
        title=Text(
            "1024×1024×1024 矩阵乘法的计算吞吐", "Throughput of the 1024×1024×1024 matrix product"
        ),
        kind="bars",
        experiments=("gemm_1024",),
        variants=("matrix_mul_naive", "matrix_mul_tiled", "cublas_sgemm"),
    ),
    Chart(
        name="gemm_sweep",
        title=Text("矩阵越大，分块的收益是否越大", "Does tiling pay more for larger matrices?"),
        kind="sweep",
        experiments=("gemm_1024", "gemm_2048", "gemm_4096", "gemm_8192"),
        variants=("matrix_mul_naive", "matrix_mul_tiled", "cublas_sgemm"),
        x="n",
        x_title=Text("矩阵边长 m = n = k", "matrix size m = n = k"),
        roof="fp32_flops",
    ),
    Chart(
        name="gemm_shapes",
        title=Text("线程块形状与 tile 大小的影响", "What block shape and tile size change"),
        kind="bars",
        experiments=("gemm_1024", "gemm_4096"),
        variants=tuple(k.name for k in (*SHAPES, tiled_rows(16), tiled_rows(8))),
    ),
    Chart(
        name="gemm_sectors",
        title=Text(
            "各种线程块形状读取的扇区（模拟器规模）",
            "Sectors that each block shape reads (at the emulator's size)",
        ),
        kind="bars",
        experiments=("gemm_1024",),
        variants=tuple(k.name for k in (*SHAPES, tiled_rows(16), tiled_rows(8))),
        metric="global_load_sectors",
        evidence="counted",
    ),
    Chart(
        name="roofline_01",
        title=Text(
            "Roofline：向量加法与矩阵乘法", "Roofline: vector addition and the matrix product"
        ),
        kind="roofline",
        experiments=("vector_add_64m", "gemm_1024"),
        variants=("vector_add", "matrix_mul_naive", "matrix_mul_tiled", "cublas_sgemm"),
    ),
]
