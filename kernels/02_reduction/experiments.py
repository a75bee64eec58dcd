"""Article 02: reductions, from a tree of one block to one pass at the speed of memory.

The sum and the largest element of x, and the dot product of a and b. Kernels that bring their
blocks together by atomics add to what lies in the result, so results are given as 0 (or as a
number below every element) before each launch.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernelbook.experiment import (
    BYTES,
    Arrays,
    Buffer,
    Chart,
    Cpu,
    Experiment,
    Kernel,
    Library,
    Region,
    Shape,
    Sweep,
    Text,
    Tolerance,
    Variant,
    ceil_div,
)  # fmt: skip

LOWEST = -3.4028234663852886e38  # the float below all others but minus infinity
RAGGED = (0, 1, 31, 257, 1003, 4099, 100_001)


def text(both: str) -> Text:
    return Text(both, both)


# ---- the problems: reference, result buffer, tolerance ---------------------------------------


def sum_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"sum": inputs["x"].sum(dtype=xp.float64).reshape(1)}


def int_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"sum": inputs["x"].sum(dtype=xp.int64).astype(xp.float64).reshape(1)}


def max_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"max": inputs["x"].max().astype(xp.float64).reshape(1)}


def dot_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    product = inputs["a"].astype(xp.float64) * inputs["b"]
    return {"dot": product.sum().reshape(1)}


def sum_cpu(inputs: Arrays, outputs: Arrays, shape: Shape) -> None:
    outputs["sum"][0] = np.sum(inputs["x"])


# Values in [-1, 1) add up to about sqrt(k / 3) after k of them. The longest chain of roundings
# here is one atomic addition a block, of 1024 elements or more: as the sum grows, they make it
# wander off by about n / 280 * 2**-24. Eight times that is allowed. It is less than one element up
# to 2**24 of them: one that is left out or taken twice is found at the ragged sizes.
WANDERING = Tolerance(
    relative=2.0**-24, absolute=2.0**-24, scale=lambda s: 16.0 + float(s["n"]) / 32
)
EXACT = Tolerance(relative=0.0, absolute=0.0)


# ---- kernels ---------------------------------------------------------------------------------


SUM, MAX, DOT = ("x", "sum", "n"), ("x", "max", "n"), ("a", "b", "dot", "n")


def plain(
    source: str, zh: str, en: str, args: tuple[str, ...], block: int, segment: int = 0,
    name: str = "", **macros: int,
) -> Kernel:  # fmt: skip
    """A kernel of one block for each segment, or of one block in all."""
    return Kernel(
        name=name or source,
        source=f"{source}.cu",
        entry=source,
        args=args,
        grid=lambda s, t: (max(1, ceil_div(s["n"], segment)) if segment else 1, 1, 1),
        block=lambda s, t: (block, 1, 1),
        title=Text(zh, en),
        macros=macros,
    )


def coarse(source: str, args: tuple[str, ...], each: int = 16, name: str = "") -> Kernel:
    """A kernel of 256 threads a block that take ``each`` elements each."""
    return plain(
        source, f"每线程 {each} 个元素", f"{each} elements a thread", args, 256, 256 * each,
        name or source, BLOCK=256, COARSE=each,
    )  # fmt: skip


def coarsened_sum(each: int) -> Kernel:
    return coarse("coarsened_reduce_sum", SUM, each, f"coarsened_reduce_sum_{each}")


def renamed(kernel: Kernel, name: str, zh: str, en: str, **macros: int) -> Kernel:
    """The kernel with other macros, as another row."""
    return replace(kernel, name=name, title=Text(zh, en), macros={**kernel.macros, **macros})


# Chosen on the reference device from sweeps of threads, vectors and resident blocks.
BLOCK, VECTORS = 512, 4
BLOCKS_A_SM = {"sum": 3, "max": 3, "dot": 2}  # as many as its registers let be resident


def one_pass_grid(n: int, blocks_a_sm: int, sms: int) -> int:
    """One block as long as one round does it, which spares it the meeting. Else two vectors a
    thread until the card is full: more blocks have more loads under way."""
    if n <= BLOCK * VECTORS * 4:
        return 1
    return min(sms * blocks_a_sm, ceil_div(n, BLOCK * 2 * 4))


def one_pass(source: str, operation: str, zh: str, en: str) -> Kernel:
    """A kernel whose blocks stride over the inputs of "sum", "max" or "dot"."""
    inputs = ("a", "b") if operation == "dot" else ("x", "x")
    return Kernel(
        name=f"{source}_{operation}",
        source=f"{source}_reduce.cu",
        entry=f"{source}_reduce",
        args=(*inputs, operation, "n"),
        grid=lambda s, t: (one_pass_grid(s["n"], BLOCKS_A_SM[operation], t.sms), 1, 1),
        block=lambda s, t: (BLOCK, 1, 1),
        title=Text(zh, en),
        macros={
            "OP": ("sum", "max", "dot").index(operation),
            "BLOCK": BLOCK,
            "VECTORS": VECTORS,
        },
        scalars={"n": "int64"},
    )  # fmt: skip


def vectorized(operation: str) -> Kernel:
    return one_pass(
        "vectorized", operation,
        "float4 跨步循环，原子加", "float4 grid-stride loop, atomic addition",
    )  # fmt: skip


def last_block(operation: str) -> Kernel:
    return one_pass(
        "last_block", operation, "… 最后一个块收尾，领号", "… the last block finishes, ticket"
    )


def single_pass(operation: str) -> Kernel:
    return one_pass("single_pass", operation, "… 值与标记同一个字", "… value and mark in one word")


unordered = replace(
    renamed(last_block("sum"), "last_block_unordered", "… 领号不保序",
            "… a ticket that orders nothing", ORDERED=0),
    counter_example=True,
)  # fmt: skip

simple = plain("simple_reduce_sum", "分歧的树，全局内存", "divergent tree, global", SUM, 1024)
convergent = plain(
    "convergent_reduce_sum", "收敛的树，全局内存", "convergent tree, global", SUM, 1024
)
shared = plain("shared_reduce_sum", "收敛的树，共享内存", "convergent tree, shared", SUM, 1024)
shuffled = plain("shuffle_reduce_block", "warp 洗牌", "warp shuffles", SUM, 1024)
no_barrier = replace(
    renamed(shared, "shared_reduce_no_barrier", "共享内存的树，去掉屏障",
            "shared tree without its barrier", BARRIER=0),
    counter_example=True,
)  # fmt: skip
serial = plain("serial_reduce_sum", "串行", "serial", SUM, 1, COMPENSATED=0)
compensated = renamed(
    serial, "serial_compensated", "串行，Kahan 补偿", "serial, compensated", COMPENSATED=1
)

segmented = plain(
    "segmented_reduce_sum", "每块一棵树，原子加", "a tree a block, atomic addition",
    SUM, 1024, 2048, BLOCK=1024,
)  # fmt: skip
shuffle_sum = replace(
    coarse("shuffle_reduce_sum", SUM),
    title=Text("每线程 16 个元素，warp 洗牌", "16 elements a thread, shuffles"),
)
coarsened_max = coarse("coarsened_reduce_max", MAX)
shared_dot = plain(
    "shared_dot_product", "每线程一个乘积", "a product a thread", DOT, 1024, 1024, BLOCK=1024
)
coarsened_dot = coarse("coarsened_dot_product", DOT)
separate_dot = renamed(
    coarsened_dot, "coarsened_dot_product_separate", "每线程 16 个，禁止融合乘加",
    "16 a thread, never fused", SEPARATE=1,
)  # fmt: skip
fma_dot = renamed(
    coarse("fma_dot_product", DOT), "fma_dot_product", "每线程 16 个，fmaf", "16 a thread, fmaf"
)


# ---- baselines -------------------------------------------------------------------------------


def cub(operation: str, title: str) -> Library:
    """CUB by its name in baselines/cub_reduce.cu."""
    return Library(
        f"cub_{operation}",
        f"cub_{operation}",
        text(title),
        note=Text("主机代码直接调用，nvcc 编译", "called from host code that nvcc builds"),
        source="baselines/cub_reduce.cu",
    )


cub_sum = cub("reduce_sum", "CUB DeviceReduce::Sum")
cub_max = cub("reduce_max", "CUB DeviceReduce::Max")
cub_dot = cub("dot", "CUB DeviceReduce::TransformReduce")
cublas_dot = Library("cublas_sdot", "cublas_sdot", text("cuBLAS SDOT"))
cupy_sum = Library("cupy_sum", "cupy_sum", text("CuPy `x.sum()`"))


# Ways of reading that READINGS times. FASTEST was the fastest of an earlier sweep.
WAYS = (
    "256x8 4/SM", "512x4 3/SM", "512x8 2/SM", "256x2 stretch 1", "256x2 stretch 1 cached",
    "256x8 stretch 1", "512x1 stretch 4", "512x8 stretch 2",
)  # fmt: skip
FASTEST = "256x2 stretch 1"


def reading(way: str, name: str = "read_limit") -> Library:
    return Library(
        name,
        f"read_limit {way}",
        Text(f"只读（{way}）", f"read only ({way})"),
        note=Text("读一遍输入，什么也不留", "reads the inputs once and keeps nothing"),
        flops=lambda s: 0,
    )


def way_name(way: str) -> str:
    return "read_" + way.replace(" ", "_").replace("/SM", "_a_sm")


read_limit = reading(FASTEST)


# ---- experiments -----------------------------------------------------------------------------


def problem(
    name: str,
    title: Text,
    n: int,
    operation: str,
    variants: tuple[Variant, ...],
    *,
    emulator_n: int = 2**18,
    ragged: tuple[int, ...] = RAGGED,
) -> Experiment:
    """Sum ("sum"), largest element ("max") or dot product ("dot") of n floats (a pair of them)."""
    start = LOWEST if operation == "max" else 0.0
    names = ("a", "b") if operation == "dot" else ("x",)
    return Experiment(
        name=name,
        title=title,
        shape={"n": n},
        emulator_shape={"n": emulator_n},
        ragged=tuple({"n": r} for r in ragged),
        buffers=(
            *(Buffer(each, "in", lambda s: (s["n"],)) for each in names),
            Buffer(operation, "inout", lambda s: (1,), low=start, high=start),
        ),
        reference={"sum": sum_reference, "max": max_reference, "dot": dot_reference}[operation],
        # One operation an element; a multiplication and an addition for a dot product.
        flops=lambda s: len(names) * s["n"],
        tolerance=EXACT if operation == "max" else WANDERING,
        variants=variants,
        bound="memory",
    )


TREES = problem(
    "tree_2048", Text("一个线程块的归约，2048 个元素", "One block's reduction, 2048 elements"),
    2048, "sum", (simple, convergent, shared, shuffled, no_barrier),
    emulator_n=2048, ragged=(0, 1, 31, 1000, 2049, 5000),
)  # fmt: skip


def size_text(n: int, zh: str, en: str) -> Text:
    size = f"{n * 4 >> 30} GiB" if n >= 2**28 else f"{n * 4 >> 20} MiB"
    return Text(f"{zh} {size}", f"{en} {size}")


def sums(name: str, n: int, *more: Variant) -> Experiment:
    """What finishes a sum of n floats in one pass, after ``more``."""
    variants = (
        *more, vectorized("sum"), last_block("sum"), single_pass("sum"), cub_sum, read_limit,
    )  # fmt: skip
    return problem(name, size_text(n, "求和，", "Sum of"), n, "sum", variants)


def maxima(name: str, n: int, *more: Variant) -> Experiment:
    return problem(
        name, size_text(n, "求最大值，", "Maximum of"), n, "max",
        (*more, single_pass("max"), cub_max, read_limit),
        ragged=RAGGED[1:],  # the identity is minus infinity, which no error can be taken against
    )  # fmt: skip


def dots(name: str, n: int, *more: Variant) -> Experiment:
    return problem(
        name, size_text(n, "点积，两个输入各", "Dot product of two inputs of"), n, "dot",
        (*more, single_pass("dot"), cub_dot, cublas_dot, read_limit),
    )  # fmt: skip


# Integers add up to the same sum in every order, as long as it fits.
INTEGERS = replace(
    problem(
        "reduce_int_256m", size_text(2**26, "int32 求和，", "Sum of int32,"), 2**26, "sum",
        (
            renamed(single_pass("sum"), "single_pass_int", "一趟完成，int32", "one pass, int32",
                    INTEGER=1),
            cub("reduce_sum_int", "CUB DeviceReduce::Sum"), read_limit,
        ),
    ),
    buffers=(
        Buffer("x", "in", lambda s: (s["n"],), "int32", -1000, 1000),
        Buffer("sum", "inout", lambda s: (1,), "int32", 0, 0),
    ),
    reference=int_reference,
    tolerance=EXACT,
    dtype="int32",
)  # fmt: skip

# Positive numbers, so that the partial sums grow: where orders of addition differ the most.
ERRORS = replace(
    problem(
        "sum_error", Text("2¹⁸ 个数求和的误差", "Error of a sum, 2¹⁸ numbers"),
        2**18, "sum",
        (
            serial, compensated, segmented, coarsened_sum(16),
            vectorized("sum"), single_pass("sum"), cub_sum,
        ),
        emulator_n=2**13, ragged=(0, 1, 1000),
    ),
    buffers=(
        Buffer("x", "in", lambda s: (s["n"],), low=0.0, high=1.0),
        Buffer("sum", "inout", lambda s: (1,), low=0.0, high=0.0),
    ),
    # A serial sum rounds n times, each time by up to half an ulp of a sum that grows to n / 2: as a
    # random walk about n**1.5 / 6 * 2**-24 in all. Six times that is allowed.
    tolerance=Tolerance(
        relative=2.0**-24, absolute=2.0**-24, scale=lambda s: 16.0 + float(s["n"]) ** 1.5
    ),
)  # fmt: skip


def size_name(n_bytes: int) -> str:
    power = n_bytes.bit_length() - 1
    return f"{1 << power % 10}{'kmg'[power // 10 - 1]}"


BY_SIZE = Sweep(
    "sum_by_size",
    Text("求和随规模的变化", "Sums by size"),
    Text("冷 L2；括号里的规模是输入的字节数。", "Cold L2; the size is that of the input in bytes."),
)
SIZES = tuple(2**p for p in (10, 13, 16, 20, 23, 26, 30))
MEMBERS = tuple(
    replace(
        problem(
            f"sum_{size_name(size)}",
            Text(f"求和，{size:,} 字节", f"Sum of {size:,} bytes"),
            size // 4, "sum",
            (vectorized("sum"), last_block("sum"), single_pass("sum"), cub_sum, read_limit),
            emulator_n=2**12, ragged=(1, 1003),
        ),
        sweep=BY_SIZE,
    )
    for size in SIZES
)  # fmt: skip

READINGS = problem(
    "read_256m", size_text(2**26, "读一遍", "Reading"), 2**26, "sum",
    tuple(reading(way, way_name(way)) for way in WAYS),
)  # fmt: skip

numpy_sum = Cpu(
    "numpy_sum", sum_cpu, Text("NumPy `x.sum()`（单线程）", "NumPy `x.sum()` (one thread)")
)

EXPERIMENTS = [
    TREES,
    sums("reduce_sum_256m", 2**26, unordered, cupy_sum, numpy_sum),
    sums("reduce_sum_1g", 2**28, segmented, *map(coarsened_sum, (4, 16, 64)), shuffle_sum),
    maxima("reduce_max_256m", 2**26),
    maxima("reduce_max_1g", 2**28, coarsened_max),
    dots("dot_256m", 2**26),
    dots("dot_1g", 2**28, shared_dot, coarsened_dot, separate_dot, fma_dot),
    INTEGERS,
    ERRORS,
    READINGS,
    *MEMBERS,
]
LADDER = (
    segmented.name, "coarsened_reduce_sum_4", "coarsened_reduce_sum_16", "coarsened_reduce_sum_64",
    shuffle_sum.name, "vectorized_sum", "last_block_sum", "single_pass_sum", cub_sum.name,
    read_limit.name,
)  # fmt: skip
CHARTS = [
    Chart(
        name="reduce_ladder",
        title=Text("求和的每一级，1 GiB", "Every step of the sum, 1 GiB"),
        kind="bars",
        experiments=("reduce_sum_1g",),
        variants=LADDER,
        metric="bandwidth",
        roof="bandwidth",
    ),
    Chart(
        name="sum_by_size",
        title=Text("求和的带宽随规模的变化", "Bandwidth of the sum by size"),
        kind="sweep",
        experiments=tuple(e.name for e in MEMBERS),
        variants=(
            "vectorized_sum",
            "last_block_sum",
            "single_pass_sum",
            cub_sum.name,
            read_limit.name,
        ),
        metric="bandwidth",
        x=BYTES,
        x_title=Text("输入", "input"),
        y_scale="log",
        roof="bandwidth",
        regions=(
            Region(0, 2**22, Text("启动开销", "launch floor")),
            Region(2**22, "l2", Text("不满一波", "too little in flight")),
            Region("l2", math.inf, Text("显存", "DRAM")),
        ),
    ),
]
