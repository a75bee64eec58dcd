"""Elementwise kernels: y = max(0, x), with vectors, hints, grids and views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelbook.experiment import (
    EXACT,
    Arrays,
    Buffer,
    Dim,
    Experiment,
    Kernel,
    Library,
    Shape,
    Sweep,
    Target,
    Text,
    Variant,
    ceil_div,
    text,
)

from .access import touched
from .common import COPY_OF_N, Grid, blocks_of


def relu_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"y": xp.maximum(inputs["x"].astype(xp.float64), 0.0)}


HINT_WORDS = (
    Text("", ""),
    Text("，流式读写", ", evict-first loads and stores"),
    Text("，读不留在 L1", ", loads that leave nothing in L1"),
    Text("，读不留在 L1、流式写", ", loads that leave nothing in L1, evict-first stores"),
)


def relu_wide(vectors: int, hints: int, threads: int = 256, name: str = "") -> Kernel:
    suffix = f"_x{vectors}" if vectors > 1 else ""
    suffix += ("", "_streaming", "_no_l1", "_no_l1_streaming")[hints]
    suffix += f"_{threads}" if threads != 256 else ""
    hint = HINT_WORDS[hints]
    return Kernel(
        name=name or f"relu_vectorized{suffix}",
        source="relu_vectorized.cu",
        entry="relu_vectorized",
        args=("x", "y", "n"),
        grid=blocks_of(threads * 4 * vectors),
        block=lambda s, t: (threads, 1, 1),
        title=Text(
            f"每线程 {vectors} 个 float4，{threads} 线程{hint.zh}",
            f"{vectors} float4 a thread, {threads} threads{hint.en}",
        ),
        macros={"THREADS": threads, "VECTORS": vectors, "HINTS": hints},
    )


def grid_stride(name: str, title: Text, grid: Grid, unroll: int = 1) -> Kernel:
    return Kernel(
        name=name,
        source="relu_grid_stride.cu",
        entry="relu_grid_stride",
        args=("x", "y", "n"),
        grid=grid,
        block=lambda s, t: (256, 1, 1),
        title=title,
        macros={"UNROLL": unroll},
    )


def usual_rule(s: Shape, t: Target) -> Dim:
    """A constant that is written down often; it fits no card in particular."""
    return max(1, min(ceil_div(s["n"], 256), 1024)), 1, 1


def resident(s: Shape, t: Target) -> Dim:
    """What the occupancy query says of 256 threads that need at most 32 registers each."""
    return max(1, min(ceil_div(s["n"], 256), t.sms * (t.max_threads_per_sm // 256))), 1, 1


RELU_SCALAR = Kernel(
    name="relu_scalar",
    source="relu_scalar.cu",
    entry="relu_scalar",
    args=("x", "y", "n"),
    grid=blocks_of(256),
    block=lambda s, t: (256, 1, 1),
    title=Text("每线程一个 float", "one float a thread"),
)
RELU_VECTORS = (
    relu_wide(1, 0),
    relu_wide(2, 0),
    relu_wide(4, 0),
    relu_wide(1, 1),
    relu_wide(2, 1),
    relu_wide(1, 2),
    relu_wide(1, 3),
    relu_wide(2, 3),
    relu_wide(1, 1, 512),
    relu_wide(1, 1, 1024),
)
RELU_STRIDES = (
    grid_stride(
        "relu_grid_stride", Text("grid-stride，1024 块", "grid-stride, 1024 blocks"), usual_rule
    ),
    grid_stride(
        "relu_grid_stride_resident",
        Text("grid-stride，块数取自占用率", "grid-stride, as many blocks as are resident"),
        resident,
    ),
    grid_stride(
        "relu_grid_stride_unrolled",
        Text("… 每线程同时 4 个元素", "… 4 elements of a thread at once"), resident, 4,
    ),
)  # fmt: skip
CUPY_RELU = Library("cupy_relu", "cupy_relu", text("CuPy `maximum(x, 0)`"))


def relu(name: str, title: Text, n: int, variants: tuple[Variant, ...]) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape={"n": n},
        emulator_shape={"n": 2**16},
        ragged=tuple({"n": k} for k in (0, 1, 2, 3, 31, 1003, 4097, 100_002)),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=relu_reference,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=variants,
    )


RELU = relu(
    "relu_64m",
    Text("ReLU，6710 万个元素", "ReLU, 67.1 million elements"),
    2**26,
    (RELU_SCALAR, *RELU_VECTORS, *RELU_STRIDES, CUPY_RELU, COPY_OF_N),
)

RELU_L2 = relu(
    "relu_l2_2m",
    Text("ReLU，数据在 L2 以内（读写各 8 MiB）", "ReLU within L2 (8 MiB read, 8 MiB written)"),
    2**21,
    (RELU_SCALAR, relu_wide(1, 0), relu_wide(2, 0), *RELU_STRIDES, CUPY_RELU, COPY_OF_N),
)

SHORT = replace(
    RELU,
    name="relu_tail",
    title=Text("没有处理尾部的 float4", "float4 without a tail"),
    shape={"n": 2**20 + 3},
    emulator_shape={"n": 1003},
    ragged=(),
    variants=(
        Kernel(
            name="relu_vectorized_short",
            source="relu_counterexample.cu",
            entry="relu_vectorized_short",
            args=("x", "y", "n"),
            grid=blocks_of(1024),
            block=lambda s, t: (256, 1, 1),
            title=Text("丢掉 n mod 4 个元素", "drops n mod 4 elements"),
            counter_example=True,
        ),
    ),
)


def views_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    x = inputs["x"][shape["x_skip"] :].astype(xp.float64)
    y = inputs["y"].astype(xp.float64)
    y[shape["y_skip"] :] = xp.maximum(x, 0.0)
    return {"y": y}


def views(name: str, title: Text, x_skip: int, y_skip: int) -> Experiment:
    """Views that do not begin on 16 bytes: element number ``skip`` of an array that does."""
    return Experiment(
        name=name,
        title=title,
        shape={"n": 2**26 - 8, "x_skip": x_skip, "y_skip": y_skip},
        emulator_shape={"n": 2**14, "x_skip": x_skip, "y_skip": y_skip},
        ragged=tuple(
            {"n": n, "x_skip": a, "y_skip": b}
            for n, a, b in (
                (0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 5), (5, 2, 2), (1003, 3, 3), (1003, 1, 2),
                (4099, 0, 3), (100_001, 1, 1),
            )
        ),
        buffers=(
            Buffer("x", "in", lambda s: (s["n"] + s["x_skip"],), used=touched),
            Buffer("y", "inout", lambda s: (s["n"] + s["y_skip"],), used=touched, kept=True),
        ),
        reference=views_reference,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(
            replace(
                relu_wide(1, 0), name="relu_views", entry="relu_views",
                args=("x", "y", "n", "x_skip", "y_skip"),
                title=Text("float4，头尾逐个元素", "float4, head and tail by elements"),
            ),
            COPY_OF_N,
        ),
    )  # fmt: skip


VIEWS = (
    views("relu_view_1_1", Text("ReLU，两个视图偏移相同", "ReLU, views off by the same"), 1, 1),
    views("relu_view_1_2", Text("ReLU，两个视图偏移不同", "ReLU, views off by unlike"), 1, 2),
)

GRIDS = Sweep(
    "relu_grids",
    Text("grid-stride 的块数", "Grids of the grid-stride loop"),
    Text("每块 256 线程，6710 万个元素", "256 threads a block, 67.1 million elements"),
)
# Parts, wholes and multiples of what an H200 holds at once, 132 * 8 blocks; just past it; and 1024.
GRID_SIZES = (
    66, 132, 264, 528, 792, 1024, 1056, 1057, 1320, 1584, 2112, 2113, 3168, 4224, 8448, 33_792,
    262_144,
)  # fmt: skip


def grid_of(blocks: int) -> Experiment:
    def grid(s: Shape, t: Target) -> Dim:
        return s["blocks"], 1, 1

    return replace(
        relu(f"relu_grid_{blocks}", text(str(blocks)), 2**26, ()),
        shape={"n": 2**26, "blocks": blocks},
        emulator_shape={"n": 2**16, "blocks": 64},
        ragged=({"n": 1, "blocks": 3}, {"n": 1003, "blocks": 2}, {"n": 100_002, "blocks": 7}),
        variants=(
            grid_stride("relu_grid_stride", Text("grid-stride", "grid-stride"), grid),
            grid_stride(
                "relu_grid_stride_unrolled",
                Text("每线程同时 4 个元素", "4 elements of a thread at once"), grid, 4,
            ),
            COPY_OF_N,
        ),
        sweep=GRIDS,
    )  # fmt: skip
