"""Transposes of whole and ragged matrices."""

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
    Target,
    Text,
    ceil_div,
)

from .common import copy_of
from .elementwise import HINT_WORDS


def transposed(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"out": xp.ascontiguousarray(inputs["in"].T).astype(xp.float64)}


def naive(width: int, height: int) -> Kernel:
    def grid(s: Shape, t: Target) -> Dim:
        return ceil_div(s["cols"], width), ceil_div(s["rows"], height), 1

    return Kernel(
        name=f"transpose_naive_{width}x{height}",
        source="transpose_naive.cu",
        entry="transpose_naive",
        args=("in", "out", "rows", "cols"),
        grid=grid,
        block=lambda s, t: (width, height, 1),
        title=Text(f"朴素，{width}×{height} 线程", f"naive, {width}×{height} threads"),
    )


LAYOUTS = (
    ("conflicts", Text("32 列", "rows of 32")),
    ("padded", Text("33 列", "rows of 33")),
    ("swizzled", Text("swizzle", "swizzled")),
)


def shared(threads: int, layout: int) -> Kernel:
    name, words = LAYOUTS[layout]
    return Kernel(
        name=f"transpose_{name}" + ("" if threads == 32 else f"_32x{threads}"),
        source="transpose_shared.cu",
        entry="transpose_shared",
        args=("in", "out", "rows", "cols"),
        grid=lambda s, t: (ceil_div(s["cols"], 32), ceil_div(s["rows"], 32), 1),
        block=lambda s, t: (32, threads, 1),
        title=Text(
            f"共享内存，{words.zh}，32×{threads} 线程",
            f"shared memory, {words.en}, 32×{threads} threads",
        ),
        macros={"THREAD_ROWS": threads, "LAYOUT": layout},
    )


def tiles_of(s: Shape, rows: int, cols: int) -> int:
    return ceil_div(s["rows"], rows) * ceil_div(s["cols"], cols)


def order_of(band: int) -> tuple[str, Text]:
    """What names and titles say of BAND in tiles.cuh."""
    if band == 1:
        return "", Text("", "")
    if band == 0:
        return "_down", Text("，沿 tile 的列往下", ", down the columns of tiles")
    return f"_band{band}", Text(f"，{band} 个 tile 一带", f", bands of {band} tiles")


def wide(rows: int, cols: int, threads: int, band: int = 1, hints: int = 0) -> Kernel:
    suffix, words = order_of(band)
    suffix += "_streaming" if hints else ""
    # Registers for 96 KiB of loads under way an SM: 64 bytes for each 4 x 4 block of a thread.
    resident = 1536 * 16 // (rows * cols)
    return Kernel(
        name=f"transpose_wide_{rows}x{cols}{suffix}",
        source="transpose_wide.cu",
        entry="transpose_wide",
        args=("in", "out", "rows", "cols"),
        grid=lambda s, t: (tiles_of(s, rows, cols), 1, 1),
        block=lambda s, t: (threads, 1, 1),
        title=Text(
            f"float4 双向，{rows}×{cols} tile{words.zh}{HINT_WORDS[hints].zh}",
            f"float4 both ways, {rows}×{cols} tile{words.en}{HINT_WORDS[hints].en}",
        ),
        macros={
            "TILE_ROWS": rows, "TILE_COLS": cols, "THREADS": threads, "BAND": band, "HINTS": hints,
            "RESIDENT": resident,
        },
    )  # fmt: skip


def turned_in_a_ring(rows: int, cols: int, threads: int, stages: int, blocks: int) -> Kernel:
    """``blocks`` an SM, each with a ring of ``stages`` tiles."""
    return Kernel(
        name=f"transpose_pipelined_{rows}x{cols}x{stages}",
        source="transpose_pipelined.cu",
        entry="transpose_pipelined",
        args=("in", "out", "rows", "cols"),
        grid=lambda s, t: (min(tiles_of(s, rows, cols), t.sms * blocks), 1, 1),
        block=lambda s, t: (threads, 1, 1),
        title=Text(
            f"cp.async 流水线，{rows}×{cols} tile，{stages} 级",
            f"cp.async pipeline, {rows}×{cols} tile, {stages} stages",
        ),
        macros={
            "TILE_ROWS": rows, "TILE_COLS": cols, "THREADS": threads, "STAGES": stages,
            "RESIDENT": blocks,
        },
        dynamic_shared=lambda s: stages * rows * cols * 4,
        min_cc=(8, 0),
    )  # fmt: skip


NAIVE = (naive(32, 8), naive(16, 16), naive(8, 32))
SHARED = tuple(shared(threads, layout) for threads in (32, 8) for layout in (0, 1, 2))
WIDE = (
    wide(64, 64, 256),
    wide(64, 64, 256, band=32),
    wide(64, 64, 256, band=0),
    wide(64, 64, 256, hints=1),
    wide(128, 32, 256),
    wide(32, 128, 256),
    wide(64, 128, 512, band=0),
    wide(128, 64, 256),
    wide(32, 32, 64),
)
RINGS = (turned_in_a_ring(64, 64, 256, 3, 4), turned_in_a_ring(64, 64, 256, 2, 5))
CUPY_TRANSPOSE = Library(
    "cupy_transpose", "cupy_transpose", Text("CuPy `copyto(out, x.T)`", "CuPy `copyto(out, x.T)`")
)
MATRIX_COPY = copy_of(lambda s: 4 * s["rows"] * s["cols"])


def transpose(rows: int, cols: int, kernels: tuple[Kernel, ...]) -> Experiment:
    return Experiment(
        name=f"transpose_{rows}" if rows == cols else f"transpose_{rows}x{cols}",
        title=Text(f"矩阵转置，{rows}×{cols}", f"Transpose of {rows}×{cols}"),
        shape={"rows": rows, "cols": cols},
        # Whole tiles of every kernel: then counts are those of the inside of a matrix.
        emulator_shape={"rows": 128, "cols": 256},
        ragged=tuple(
            {"rows": r, "cols": c}
            for r, c in ((1, 1), (1, 100), (100, 1), (33, 65), (31, 97), (132, 67), (67, 132),
                         (136, 260))
        ),
        buffers=(
            Buffer("in", "in", lambda s: (s["rows"], s["cols"])),
            Buffer("out", "out", lambda s: (s["cols"], s["rows"])),
        ),
        reference=transposed,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(*kernels, CUPY_TRANSPOSE, MATRIX_COPY),
    )  # fmt: skip


SQUARE = transpose(8192, 8192, (*NAIVE, *SHARED, *WIDE, *RINGS))
RAGGED = replace(
    # Rows of 8191 floats begin on 16 bytes once in four; rows of the output all do.
    transpose(16_384, 8_191, (NAIVE[0], *SHARED[3:], *WIDE, *RINGS)),
    emulator_shape={"rows": 128, "cols": 259},
)
WITHIN_L2 = replace(
    transpose(
        2048, 2048,
        (NAIVE[0], NAIVE[2], *SHARED[3:], wide(64, 64, 256), wide(64, 64, 256, band=0), RINGS[0]),
    ),
    name="transpose_l2_2048",
    title=Text(
        "矩阵转置，2048×2048，两个矩阵在 L2 以内", "Transpose of 2048×2048, both within L2"
    ),
)  # fmt: skip
