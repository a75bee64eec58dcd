"""Tiles that are staged in shared memory, and copied there in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelbook.experiment import (
    Arrays,
    Buffer,
    Dim,
    Experiment,
    Kernel,
    Shape,
    Target,
    Text,
    Tolerance,
    ceil_div,
)

from .common import COPY_OF_N, Grid, blocks_of

LIGHT, HEAVY = 1, 48  # multiply-adds an element
AMPERE, HOPPER = (8, 0), (9, 0)


def polynomial_reference(degree: int) -> Callable[[Any, Arrays, Shape], Arrays]:
    def reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
        x = inputs["x"].astype(xp.float64)
        y = xp.ones_like(x)
        for _ in range(degree):
            y = y * x + 1.0
        return {"y": y}

    return reference


def staged(
    name: str, source: str, title: Text, degree: int, grid: Grid, vectors: int = 4,
    threads: int = 256, stages: int = 0, chunk: int = 0, min_cc: tuple[int, int] = (7, 5),
    **macros: int,
) -> Kernel:  # fmt: skip
    """Tiles of ``vectors`` float4 a thread; with ``stages``, a ring of them in dynamic shared
    memory, and with ``chunk`` so many tiles in a row a block."""
    tile = threads * vectors * 4
    optional = {"STAGES": stages, "CHUNK": chunk}
    return Kernel(
        name=name,
        source=f"{source}.cu",
        entry=source,
        args=("x", "y", "n"),
        grid=grid,
        block=lambda s, t: (threads, 1, 1),
        title=title,
        macros={
            "DEGREE": degree, "THREADS": threads, "VECTORS": vectors, **macros,
            **{macro: value for macro, value in optional.items() if value},
        },
        dynamic_shared=lambda s: stages * tile * 4,
        min_cc=min_cc,
        gpu_only="bulk copies and mbarriers" if source == "staged_bulk" else "",
    )  # fmt: skip


def resident(tile: int, blocks: int) -> Grid:
    """``blocks`` an SM, which stay: each has every so many-th tile of ``tile`` elements."""

    def grid(s: Shape, t: Target) -> Dim:
        return max(1, min(ceil_div(s["n"], tile), t.sms * blocks)), 1, 1

    return grid


def staying(degree: int) -> tuple[Kernel, ...]:
    """Tiles of 16 KiB, blocks that stay."""
    plain, ring, short_ring = (resident(4096, blocks) for blocks in (8, 3, 6))
    return (
        staged("direct", "staged_sync", Text("不用共享内存", "no shared memory"), degree, plain,
               DIRECT=1),
        staged("staged_sync", "staged_sync", Text("同步搬运", "synchronous staging"), degree,
               plain),
        staged("staged_async", "staged_async", Text("单级 cp.async", "cp.async, one stage"),
               degree, plain, min_cc=AMPERE),
        staged("staged_pipeline", "staged_pipeline",
               Text("cp.async，4 级流水线", "cp.async, 4 stages"),
               degree, ring, stages=4, min_cc=AMPERE, SHARED=1),
        staged("staged_pipeline_2", "staged_pipeline",
               Text("cp.async，2 级流水线", "cp.async, 2 stages"),
               degree, short_ring, stages=2, min_cc=AMPERE, SHARED=1),
        staged("staged_pipeline_own", "staged_pipeline",
               Text("cp.async，4 级，各线程只读自己的拷贝", "cp.async, 4 stages, no barrier"),
               degree, ring, stages=4, min_cc=AMPERE, SHARED=0),
        staged("staged_bulk", "staged_bulk", Text("批量拷贝，4 级", "bulk copies, 4 stages"),
               degree, ring, stages=4, min_cc=HOPPER, BULK_STORE=0),
        staged("staged_bulk_both", "staged_bulk",
               Text("批量拷贝，读写双向，4 级", "bulk copies both ways, 4 stages"),
               degree, ring, stages=4, min_cc=HOPPER, BULK_STORE=1),
    )  # fmt: skip


def passing(degree: int) -> tuple[Kernel, ...]:
    """Blocks that end after a tile, or after a few of 2 or 4 KiB: the grid covers the array."""
    cover = Text("，网格铺满数组", ", the grid covers the array")

    def covering(zh: str, en: str) -> Text:
        return Text(zh + cover.zh, en + cover.en)

    def pipeline(vectors: int, tiles: int) -> Kernel:
        kib = 2 * vectors
        return staged(
            "staged_pipeline_cover" + ("_x2" if vectors == 2 else ""), "staged_pipeline",
            covering(f"cp.async，4 级，每块 {tiles} 个 {kib} KiB 的 tile",
                     f"cp.async, 4 stages, {tiles} tiles of {kib} KiB a block"),
            degree, blocks_of(512 * vectors * tiles), vectors, 128, 4, tiles, AMPERE, SHARED=0,
        )  # fmt: skip

    def bulk(vectors: int, tiles: int, both: int) -> Kernel:
        kib = 2 * vectors
        return staged(
            "staged_bulk" + both * "_both" + "_cover" + ("_x2" if vectors == 2 else ""),
            "staged_bulk",
            covering(
                f"批量拷贝{both * '，读写双向'}，4 级，每块 {tiles} 个 {kib} KiB 的 tile",
                f"bulk copies{both * ' both ways'}, 4 stages, {tiles} tiles of {kib} KiB a block",
            ),
            degree, blocks_of(512 * vectors * tiles), vectors, 128, 4, tiles, HOPPER,
            BULK_STORE=both,
        )  # fmt: skip

    return (
        staged("direct_cover", "staged_sync", covering("不用共享内存", "no shared memory"),
               degree, blocks_of(1024), 1, DIRECT=1),
        staged("direct_cover_x4", "staged_sync",
               covering("不用共享内存，每线程 4 个 float4", "no shared memory, 4 float4 a thread"),
               degree, blocks_of(4096), 4, DIRECT=1),
        staged("staged_sync_cover", "staged_sync", covering("同步搬运", "synchronous staging"),
               degree, blocks_of(1024), 1),
        staged("staged_async_cover", "staged_async",
               covering("单级 cp.async", "cp.async, one stage"),
               degree, blocks_of(1024), 1, min_cc=AMPERE),
        pipeline(1, 4), pipeline(2, 8),
        bulk(1, 4, 0), bulk(1, 4, 1), bulk(2, 8, 1),
    )  # fmt: skip


def async_copy(name: str, title: Text, degree: int) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape={"n": 2**26},
        emulator_shape={"n": 2**18},
        ragged=tuple({"n": n} for n in (0, 1, 1003, 4096, 20_001)),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=polynomial_reference(degree),
        flops=lambda s: 2 * degree * s["n"],
        # Every step rounds by 2^-24 of a number of at most degree + 1, and passes on at most what
        # was wrong before. A term that is missing is x^degree or more: found where x is near 1.
        tolerance=Tolerance(relative=0.0, absolute=2.0**-24 * degree * (degree + 1)),
        variants=(*staying(degree), *passing(degree), COPY_OF_N),
    )


ASYNC = (
    async_copy(
        "async_copy_light_64m",
        Text("分 tile 搬运，每元素 1 次乘加", "Staged tiles, 1 multiply-add an element"), LIGHT,
    ),
    async_copy(
        "async_copy_heavy_64m",
        Text("分 tile 搬运，每元素 48 次乘加", "Staged tiles, 48 multiply-adds an element"), HEAVY,
    ),
)  # fmt: skip
