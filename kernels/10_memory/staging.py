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

from .common import COPY_OF_N

LIGHT, HEAVY = 1, 48  # multiply-adds an element


def polynomial_reference(degree: int) -> Callable[[Any, Arrays, Shape], Arrays]:
    def reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
        x = inputs["x"].astype(xp.float64)
        y = xp.ones_like(x)
        for _ in range(degree):
            y = y * x + 1.0
        return {"y": y}

    return reference


def staged(
    name: str, source: str, title: Text, degree: int, blocks: int, vectors: int = 4,
    stages: int = 0, min_cc: tuple[int, int] = (7, 5), **macros: int,
) -> Kernel:  # fmt: skip
    """``blocks`` of 256 threads an SM; with ``stages``, a ring in dynamic shared memory."""
    tile = 256 * vectors * 4

    def grid(s: Shape, t: Target) -> Dim:
        return max(1, min(ceil_div(s["n"], tile), t.sms * blocks)), 1, 1

    return Kernel(
        name=name,
        source=f"{source}.cu",
        entry=source,
        args=("x", "y", "n"),
        grid=grid,
        block=lambda s, t: (256, 1, 1),
        title=title,
        macros={
            "DEGREE": degree, "VECTORS": vectors, **macros,
            **({"STAGES": stages} if stages else {}),
        },
        dynamic_shared=lambda s: stages * tile * 4,
        min_cc=min_cc,
        gpu_only="bulk copies and mbarriers" if source == "staged_bulk" else "",
    )  # fmt: skip


def copies(degree: int) -> tuple[Kernel, ...]:
    ampere, hopper = (8, 0), (9, 0)
    return (
        staged("direct", "staged_sync", Text("不用共享内存", "no shared memory"), degree, 8,
               DIRECT=1),
        staged("staged_sync", "staged_sync", Text("同步搬运", "synchronous staging"), degree, 8),
        staged("staged_async", "staged_async", Text("单级 cp.async", "cp.async, one stage"),
               degree, 8, min_cc=ampere),
        staged("staged_pipeline", "staged_pipeline",
               Text("cp.async，4 级流水线", "cp.async, 4 stages"),
               degree, 3, 4, 4, ampere, SHARED=1),
        staged("staged_pipeline_2", "staged_pipeline",
               Text("cp.async，2 级流水线", "cp.async, 2 stages"),
               degree, 6, 4, 2, ampere, SHARED=1),
        staged("staged_pipeline_own", "staged_pipeline",
               Text("cp.async，4 级，各线程只读自己的拷贝", "cp.async, 4 stages, no barrier"),
               degree, 3, 4, 4, ampere, SHARED=0),
        staged("staged_bulk", "staged_bulk", Text("批量拷贝，4 级", "bulk copies, 4 stages"),
               degree, 3, 4, 4, hopper, BULK_STORE=0),
        staged("staged_bulk_both", "staged_bulk",
               Text("批量拷贝，读写双向，4 级", "bulk copies both ways, 4 stages"),
               degree, 3, 4, 4, hopper, BULK_STORE=1),
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
        variants=(*copies(degree), COPY_OF_N),
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
