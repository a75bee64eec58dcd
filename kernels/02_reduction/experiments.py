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
    EXACT,
    Arrays,
    Buffer,
    Chart,
    Cpu,
    Experiment,
    Region,
    Shape,
    Sweep,
    Text,
    Tolerance,
    Variant,
)

from .variants import (
    WAYS,
    coarsened_dot,
    coarsened_max,
    coarsened_sum,
    compensated,
    convergent,
    cub,
    cub_dot,
    cub_max,
    cub_sum,
    cublas_dot,
    cupy_sum,
    fma_dot,
    last_block,
    no_barrier,
    read_limit,
    reading,
    renamed,
    segmented,
    separate_dot,
    serial,
    shared,
    shared_dot,
    shuffle_sum,
    shuffled,
    simple,
    single_pass,
    unordered,
    vectorized,
    way_name,
)  # fmt: skip

LOWEST = -3.4028234663852886e38  # the float below all others but minus infinity
RAGGED = (0, 1, 31, 257, 1003, 4099, 100_001)


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
            Region(2**22, "l2", Text("L2 以内", "within the size of L2")),
            Region("l2", math.inf, Text("显存", "DRAM")),
        ),
    ),
]
