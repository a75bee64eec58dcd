"""Article 04: the matrix product on the FMA units, from a tile in shared memory to cuBLAS's speed.

A is m x n, B is n x k, C is m x k, row-major, as in chapter 01.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernelbook.experiment import (
    Arrays,
    Buffer,
    Chart,
    Dim,
    Experiment,
    Kernel,
    Library,
    Rule,
    Shape,
    Sweep,
    Target,
    Text,
    Tolerance,
    Tuning,
    ceil_div,
)

from .configurations import (
    ARGS,
    CONFIGURATIONS,
    TABLE_FILE,
    ablations,
    configuration_of,
    fast,
    fast_for,
)

LADDER_SIZES = (1024, 2048, 4096)
SQUARES = tuple(range(256, 8193, 256))
EDGES = (128, 1000, 1037, 4096, 11008)


# ---- kernels of a fixed shape ---------------------------------------------------------------


def tile(
    name: str,
    title: Text,
    *,
    rows: int,
    cols: int,
    block: Dim,
    source: str = "",
    macros: Mapping[str, int | str] | None = None,
    min_cc: tuple[int, int] = (7, 5),
) -> Kernel:
    """A kernel whose block of threads computes rows x cols elements of C."""
    file = source or name

    def grid(s: Shape, t: Target) -> Dim:
        return ceil_div(s["k"], cols), ceil_div(s["m"], rows), 1

    return Kernel(
        name=name,
        source=f"{file}.cu",
        entry=file,
        args=ARGS,
        grid=grid,
        block=lambda s, t: block,
        title=title,
        macros=macros or {},
        min_cc=min_cc,
    )


SQUARE = (32, 32, 1)
LINE = (256, 1, 1)

tiled = tile("tiled_gemm", Text("分块，32×32", "tiled, 32×32"), rows=32, cols=32, block=SQUARE)
coarse = tile(
    "coarse_gemm", Text("每线程 1×4 个元素", "1×4 elements a thread"),
    rows=32, cols=128, block=SQUARE,
)  # fmt: skip
coarse_keeping_a = tile(
    "coarse_gemm_keeps_a",
    Text("每线程 1×4 个元素，A 留在寄存器", "1×4 elements a thread, A kept in a register"),
    rows=32, cols=128, block=SQUARE, source="coarse_gemm", macros={"KEEP_A": 1},
)  # fmt: skip
register_tiled = tile(
    "register_tiled_gemm", Text("每线程 4×4 个元素", "4×4 elements a thread"),
    rows=128, cols=128, block=SQUARE,
)  # fmt: skip
vectorized = tile(
    "vectorized_gemm",
    Text("float4 装载，每四个 lane 一个", "float4 loads by every fourth lane"),
    rows=32, cols=32, block=SQUARE,
)  # fmt: skip
vectorized_whole = tile(
    "vectorized_gemm_whole_warps",
    Text("float4 装载，整个 warp", "float4 loads by whole warps"),
    rows=32, cols=32, block=SQUARE, source="vectorized_gemm", macros={"WHOLE_WARPS": 1},
)  # fmt: skip
double_buffer = tile(
    "double_buffer_gemm", Text("双缓冲，无重叠", "two buffers, no overlap"),
    rows=32, cols=32, block=SQUARE,
)  # fmt: skip
double_buffer_held = tile(
    "double_buffer_gemm_registers",
    Text("双缓冲，经寄存器重叠", "two buffers, overlapped through registers"),
    rows=32, cols=32, block=SQUARE, source="double_buffer_gemm", macros={"OVERLAP": 1},
)  # fmt: skip
double_buffer_async = tile(
    "double_buffer_gemm_async", Text("双缓冲，cp.async", "two buffers, cp.async"),
    rows=32, cols=32, block=SQUARE, source="double_buffer_gemm", macros={"OVERLAP": 2},
    min_cc=(8, 0),
)  # fmt: skip


def register_tiling(suffix: str, title: Text, **macros: int) -> Kernel:
    return tile(
        "register_tiling_gemm" + suffix, title,
        rows=128, cols=128, block=LINE, source="register_tiling_gemm", macros=macros,
    )  # fmt: skip


published = register_tiling("", Text("每线程 8×8 个元素", "8×8 elements a thread"))
unrolled = register_tiling("_unrolled", Text("… 循环展开", "… unrolled"), UNROLL=8)
padded_a = register_tiling("_padded_a", Text("… A 的行加 1", "… pitch of A + 1"), UNROLL=8, PAD_A=1)
padded_b = register_tiling("_padded_b", Text("… B 的行加 1", "… pitch of B + 1"), UNROLL=8, PAD_B=1)


def step(name: str, zh: str, en: str, min_cc: tuple[int, int] = (7, 5)) -> Kernel:
    return tile(name, Text(zh, en), rows=128, cols=128, block=LINE, min_cc=min_cc)


STEPS = (
    step("conflict_free_gemm", "无冲突的列", "columns without conflicts"),
    step("transposed_gemm", "A 转置，全部 128 位读取", "A transposed, 128-bit reads only"),
    step("warp_tiled_gemm", "warp 分块", "warp tiles"),
    step("overlapped_gemm", "重叠的双缓冲", "overlapped double buffer"),
    step("async_gemm", "cp.async 三级流水", "cp.async, three stages", (8, 0)),
    step("fragments_gemm", "寄存器片段双缓冲", "fragments double-buffered in registers"),
)


# ---- what the FMA units give -----------------------------------------------------------------

CHAINS = 16  # of multiply-adds a thread, as in ffma_loop.cu


def sum_of_chains(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    """Chain j starts at b + j and goes to b / (1 - a), which is left by a^steps of the distance."""
    b = inputs["x"].astype(xp.float64)
    a = 0.5 * b
    left = a ** shape["steps"]
    return {"y": left * sum(b + j for j in range(CHAINS)) + CHAINS * (1 - left) * b / (1 - a)}


FFMA_LOOP = Experiment(
    name="ffma_loop",
    title=Text("只有乘加的循环", "A loop of nothing but multiply-adds"),
    shape={"n": 132 * 2048, "steps": 16384},  # all threads that an H200 holds at once
    emulator_shape={"n": 512, "steps": 40},
    ragged=({"n": 1, "steps": 1}, {"n": 300, "steps": 37}),
    buffers=(
        Buffer("x", "in", lambda s: (s["n"],)),
        Buffer("y", "out", lambda s: (s["n"],)),
    ),
    reference=sum_of_chains,
    flops=lambda s: 2 * CHAINS * s["n"] * s["steps"],
    # A chain forgets its roundings by half a step; 16 sums of up to 32 in a row do not.
    tolerance=Tolerance(relative=16 * 2.0**-24, absolute=16 * 2.0**-24),
    variants=(
        Kernel(
            name="ffma_loop",
            source="ffma_loop.cu",
            entry="ffma_loop",
            args=("x", "y", "n", "steps"),
            grid=lambda s, t: (ceil_div(s["n"], 256), 1, 1),
            block=lambda s, t: LINE,
            title=Text("16 条独立的乘加链", "16 independent chains of multiply-adds"),
        ),
    ),
    bound="compute",
)


# ---- experiments ----------------------------------------------------------------------------


def reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"c": inputs["a"].astype(xp.float64) @ inputs["b"].astype(xp.float64)}


cublas = Library(
    "cublas_sgemm",
    "cublas_sgemm",
    Text("cuBLAS SGEMM", "cuBLAS SGEMM"),
    note=Text("FP32，FMA 单元，TF32 关闭", "FP32 on the FMA units, TF32 off"),
)


def product(
    name: str,
    title: Text,
    shape: Shape,
    kernels: tuple[Kernel, ...],
    emulator_shape: Shape,
    ragged: tuple[Shape, ...],
) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape=shape,
        emulator_shape=emulator_shape,
        ragged=ragged,
        buffers=(
            Buffer("a", "in", lambda s: (s["m"], s["n"])),
            Buffer("b", "in", lambda s: (s["n"], s["k"])),
            Buffer("c", "out", lambda s: (s["m"], s["k"])),
        ),
        reference=reference,
        flops=lambda s: 2 * s["m"] * s["n"] * s["k"],
        # As in chapter 01: about ten times the random walk of n roundings of partial sums.
        tolerance=Tolerance(
            relative=2.0**-24, absolute=2.0**-24, scale=lambda s: 16.0 + float(s["n"])
        ),
        variants=(*kernels, cublas),
        bound="compute",
    )


def dims(m: int, n: int, k: int) -> Shape:
    return {"m": m, "n": n, "k": k}


RAGGED = (dims(1, 1, 1), dims(33, 7, 257), dims(100, 65, 31), dims(129, 130, 132))


def ladder(size: int) -> Experiment:
    shape = dims(size, size, size)
    return product(
        f"ladder_{size}",
        Text(f"矩阵乘法的阶梯，{size}³", f"The ladder of the matrix product, {size}³"),
        shape,
        (
            tiled, coarse, coarse_keeping_a, register_tiled, vectorized, vectorized_whole,
            double_buffer, double_buffer_held, double_buffer_async,
            published, unrolled, padded_a, padded_b, *STEPS, fast_for(shape), *ablations(shape),
        ),
        dims(256, 256, 256),
        RAGGED,
    )  # fmt: skip


SQUARE_SWEEP = Sweep(
    "squares",
    Text("边长 256 到 8192 的方阵", "Square matrices of 256 to 8192"),
    Text(
        "每个边长用调优表为它选的配置；表由 `run_all.py --tune` 写出。",
        "Each size in the configuration that the tuning table gives it; "
        "`run_all.py --tune` writes the table.",
    ),
)
EDGE_SWEEP = Sweep(
    "edges",
    Text("不规则的规模", "Odd shapes"),
    Text(
        "m、n、k 各取 128、1000、1037、4096、11008。",
        "m, n and k each out of 128, 1000, 1037, 4096 and 11008.",
    ),
)


def against_cublas(m: int, n: int, k: int) -> Experiment:
    """The last kernel and cuBLAS at one size of a sweep."""
    shape = dims(m, n, k)
    square = m == n == k and m in SQUARES
    kernel = replace(
        fast_for(shape),
        title=Text("最终版", "final kernel"),
        configuration=configuration_of(shape),
    )
    member = product(
        f"square_{m}" if square else f"edges_{m}_{n}_{k}",
        Text(f"矩阵乘法，{m}×{n}×{k}", f"Matrix product, {m}×{n}×{k}"),
        shape,
        (kernel,),
        dims(128, 64, 128),
        (dims(1, 1, 1), dims(129, 70, 132)),
    )
    return replace(member, sweep=SQUARE_SWEEP if square else EDGE_SWEEP)


def every_configuration(shape: Shape) -> Experiment:
    """What ``--tune`` times: fast_gemm in each configuration of the table."""
    kernels = tuple(fast(name, name, Text(name, name)) for name in CONFIGURATIONS)
    whole = product("tuning", Text("调优", "tuning"), shape, kernels, dims(1, 1, 1), ())
    return replace(whole, folder=TABLE_FILE.parent)


SQUARE_SHAPES = tuple(dims(size, size, size) for size in SQUARES)
EDGE_SHAPES = tuple(
    dims(m, n, k) for m in EDGES for n in EDGES for k in EDGES if not m == n == k == 4096
)
TUNING = Tuning(
    table=TABLE_FILE,
    shapes=(*SQUARE_SHAPES, *EDGE_SHAPES),
    experiment=every_configuration,
)

SQUARE_MEMBERS = [against_cublas(**shape) for shape in SQUARE_SHAPES]
EDGE_MEMBERS = [against_cublas(**shape) for shape in EDGE_SHAPES]
EXPERIMENTS = [
    *(ladder(size) for size in LADDER_SIZES), FFMA_LOOP, *SQUARE_MEMBERS, *EDGE_MEMBERS,
]  # fmt: skip

STEP_NAMES = (tiled.name, coarse.name, register_tiled.name, published.name,
              *(s.name for s in STEPS), "fast_gemm", cublas.name)  # fmt: skip
SIDE = Text("矩阵边长 m = n = k", "matrix size m = n = k")
CHARTS = [
    Chart(
        name="gemm_ladder",
        title=Text("每一级的计算吞吐，4096³", "Throughput of every step, 4096³"),
        kind="bars",
        experiments=("ladder_4096",),
        variants=STEP_NAMES,
        roof="fp32_flops",
    ),
    Chart(
        name="gemm_roofline",
        title=Text("阶梯在 Roofline 上的位置", "The ladder under the roofline"),
        kind="roofline",
        experiments=("ladder_4096",),
        variants=STEP_NAMES,
    ),
    Chart(
        name="gemm_by_size",
        title=Text("最终版与 cuBLAS：计算吞吐随边长", "The final kernel and cuBLAS by matrix size"),
        kind="sweep",
        experiments=tuple(e.name for e in SQUARE_MEMBERS),
        variants=("fast_gemm", "cublas_sgemm"),
        x="n",
        x_scale="linear",
        x_title=SIDE,
        roof="fp32_flops",
    ),
    Chart(
        name="gemm_ratio_by_size",
        title=Text(
            "最终版与 cuBLAS 的计算吞吐之比", "Throughput of the final kernel over that of cuBLAS"
        ),
        kind="sweep",
        experiments=tuple(e.name for e in SQUARE_MEMBERS),
        variants=("fast_gemm",),
        over="cublas_sgemm",
        x="n",
        x_scale="linear",
        x_title=SIDE,
        rules=(Rule("y", 1.0, Text("1.00：与 cuBLAS 相同", "1.00: as fast as cuBLAS")),),
    ),
]
