"""Article 02: reductions, from a tree of one block to one pass at the speed of memory.

The sum and the largest element of x, and the dot product of a and b. Kernels that bring their
blocks together by atomics add to what lies in the result, so results are given as 0 (or as a
number below every element) before each launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernelbook.experiment import (
    Arrays,
    Buffer,
    Chart,
    Cpu,
    Experiment,
    Kernel,
    Library,
    Shape,
    Text,
    Tolerance,
    Variant,
    ceil_div,
)

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


def max_cpu(inputs: Arrays, outputs: Arrays, shape: Shape) -> None:
    outputs["max"][0] = np.max(inputs["x"])


def dot_cpu(inputs: Arrays, outputs: Arrays, shape: Shape) -> None:
    outputs["dot"][0] = np.dot(inputs["a"], inputs["b"])


# Values in [-1, 1) add up to about sqrt(k / 3) after k of them. The longest chain of roundings here
# is one atomic addition a block: of blocks of 1024 elements or more, whose roundings of that growing
# sum wander off by about n / 280 * 2**-24 at full size. Eight times that is allowed. It is less than
# one element up to 2**24 of them: one that is left out or added twice is found at the ragged sizes.
WANDERING = Tolerance(
    relative=2.0**-24, absolute=2.0**-24, scale=lambda s: 16.0 + float(s["n"]) / 32
)
EXACT = Tolerance(relative=0.0, absolute=0.0)


# ---- kernels ---------------------------------------------------------------------------------


def single_block(source: str, title: Text, macros: Mapping[str, int] | None = None) -> Kernel:
    return Kernel(
        name=source,
        source=f"{source}.cu",
        entry=source,
        args=("x", "sum", "n"),
        grid=lambda s, t: (1, 1, 1),
        block=lambda s, t: (1024, 1, 1),
        title=title,
        macros=macros or {},
    )


def by_segments(
    source: str,
    title: Text,
    args: tuple[str, ...],
    block: int,
    segment: int,
    name: str = "",
    **macros: int,
) -> Kernel:
    """A kernel of one block for each segment."""
    return Kernel(
        name=name or source,
        source=f"{source}.cu",
        entry=source,
        args=args,
        grid=lambda s, t: (max(1, ceil_div(s["n"], segment)), 1, 1),
        block=lambda s, t: (block, 1, 1),
        title=title,
        macros={"BLOCK": block, **macros},
    )


SUM, MAX, DOT = ("x", "sum", "n"), ("x", "max", "n"), ("a", "b", "dot", "n")


def coarse_text(coarse: int) -> Text:
    return Text(f"每线程 {coarse} 个元素", f"{coarse} elements a thread")


def coarsened_sum(coarse: int) -> Kernel:
    return by_segments(
        "coarsened_reduce_sum", coarse_text(coarse), SUM, 256, 256 * coarse,
        name=f"coarsened_reduce_sum_{coarse}", COARSE=coarse,
    )  # fmt: skip


def vectorized(vectors: int, blocks_a_sm: int) -> Kernel:
    return Kernel(
        name="vectorized_reduce_sum",
        source="vectorized_reduce_sum.cu",
        entry="vectorized_reduce_sum",
        args=SUM,
        # As many blocks as are resident at once, or as there is work for.
        grid=lambda s, t: (
            max(1, min(t.sms * blocks_a_sm, ceil_div(s["n"], 256 * 4 * vectors))), 1, 1,
        ),
        block=lambda s, t: (256, 1, 1),
        title=Text("float4，跨步循环", "float4, grid-stride loop"),
        macros={"BLOCK": 256, "VECTORS": vectors},
    )  # fmt: skip


def single_pass(operation: str, **macros: int) -> Kernel:
    """The last kernel for "sum", "max" or "dot"."""
    block, vectors = 512, 4
    inputs = ("a", "b") if operation == "dot" else ("x", "x")
    chunk = block * vectors * 4 * 2

    return Kernel(
        name=f"single_pass_{operation}",
        source="single_pass_reduce.cu",
        entry="single_pass_reduce",
        args=(*inputs, operation, "n"),
        grid=lambda s, t: (max(1, min(ceil_div(s["n"], chunk), 65536)), 1, 1),
        block=lambda s, t: (block, 1, 1),
        title=Text("一趟完成，结果可重现", "one pass, the same bits every time"),
        macros={
            "OP": ("sum", "max", "dot").index(operation),
            "BLOCK": block,
            "VECTORS": vectors,
            **macros,
        },
        scalars={"n": "int64"},
    )


unordered = replace(
    single_pass("sum", ORDERED=0),
    name="single_pass_unordered",
    title=Text("一趟完成，票据不排序", "one pass, a ticket that orders nothing"),
    counter_example=True,
)
simple = single_block("simple_reduce_sum", Text("分歧的树，全局内存", "divergent tree, global"))
convergent = single_block(
    "convergent_reduce_sum", Text("收敛的树，全局内存", "convergent tree, global")
)
shared = single_block("shared_reduce_sum", Text("收敛的树，共享内存", "convergent tree, shared"))
shuffled = single_block("shuffle_reduce_block", Text("warp 洗牌", "warp shuffles"))
no_barrier = replace(
    shared,
    name="shared_reduce_no_barrier",
    title=Text("共享内存的树，去掉屏障", "shared tree without its barrier"),
    macros={"BARRIER": 0},
    counter_example=True,
)
segmented = by_segments(
    "segmented_reduce_sum",
    Text("每块一棵树，原子加", "a tree a block, atomic addition"), SUM, 1024, 2048,
)  # fmt: skip
shuffle_sum = by_segments(
    "shuffle_reduce_sum",
    Text("每线程 16 个元素，warp 洗牌", "16 elements a thread, shuffles"),
    SUM, 256, 256 * 16, COARSE=16,
)  # fmt: skip
coarsened_max = by_segments(
    "coarsened_reduce_max", coarse_text(16), MAX, 256, 256 * 16, COARSE=16
)  # fmt: skip
shared_dot = by_segments(
    "shared_dot_product", Text("每线程一个乘积", "a product a thread"), DOT, 1024, 1024
)  # fmt: skip
coarsened_dot = by_segments(
    "coarsened_dot_product", coarse_text(16), DOT, 256, 256 * 16, COARSE=16
)  # fmt: skip
separate_dot = replace(
    coarsened_dot,
    name="coarsened_dot_product_separate",
    title=Text("每线程 16 个，禁止融合乘加", "16 a thread, never fused"),
    macros={**coarsened_dot.macros, "SEPARATE": 1},
)
fma_dot = by_segments(
    "fma_dot_product", Text("每线程 16 个，fmaf", "16 a thread, fmaf"), DOT, 256, 256 * 16,
    COARSE=16,
)  # fmt: skip


def serial(name: str, title: Text, compensated: int) -> Kernel:
    return Kernel(
        name=name,
        source="serial_reduce_sum.cu",
        entry="serial_reduce_sum",
        args=SUM,
        grid=lambda s, t: (1, 1, 1),
        block=lambda s, t: (1, 1, 1),
        title=title,
        macros={"COMPENSATED": compensated},
    )


# ---- baselines -------------------------------------------------------------------------------


def cub(operation: str, routine: str, title: str) -> Library:
    return Library(
        f"cub_{operation}",
        routine,
        text(title),
        note=Text("主机代码直接调用，nvcc 编译", "called from host code that nvcc builds"),
        source="baselines/cub_reduce.cu",
    )


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
    "tree_2048",
    Text("一个线程块的归约，2048 个元素", "One block's reduction, 2048 elements"),
    2048,
    "sum",
    (simple, convergent, shared, shuffled, no_barrier),
    emulator_n=2048,
    ragged=(0, 1, 31, 1000, 2049, 5000),
)


def size_text(operation: str, n: int) -> Text:
    size = f"{n * 4 >> 20} MiB" if n < 2**28 else f"{n * 4 >> 30} GiB"
    return {
        "sum": Text(f"求和，{size}", f"Sum of {size}"),
        "max": Text(f"求最大值，{size}", f"Maximum of {size}"),
        "dot": Text(f"点积，两个数组各 {size}", f"Dot product of two arrays of {size} each"),
    }[operation]


def sums(name: str, n: int) -> Experiment:
    kernels = (
        segmented, coarsened_sum(4), coarsened_sum(16), coarsened_sum(64), shuffle_sum,
        vectorized(4, 8), single_pass("sum"), unordered,
    )  # fmt: skip
    return problem(
        name, size_text("sum", n), n, "sum",
        (*kernels, cub("reduce_sum", "cub_reduce_sum", "CUB DeviceReduce::Sum")),
    )  # fmt: skip


def maxima(name: str, n: int) -> Experiment:
    return problem(
        name, size_text("max", n), n, "max",
        (
            coarsened_max, single_pass("max"),
            cub("reduce_max", "cub_reduce_max", "CUB DeviceReduce::Max"),
        ),
        ragged=RAGGED[1:],  # the identity is minus infinity, which no error can be taken against
    )  # fmt: skip


def dots(name: str, n: int) -> Experiment:
    return problem(
        name, size_text("dot", n), n, "dot",
        (shared_dot, coarsened_dot, separate_dot, fma_dot, single_pass("dot")),
    )  # fmt: skip


EXPERIMENTS = [
    TREES,
    sums("reduce_sum_256m", 2**26),
    sums("reduce_sum_1g", 2**28),
    maxima("reduce_max_256m", 2**26),
    maxima("reduce_max_1g", 2**28),
    dots("dot_256m", 2**26),
    dots("dot_1g", 2**28),
]
CHARTS: list[Chart] = []
