"""Article 03: inclusive prefix sums, from the steps of one block to one pass over any length.

``y[i]`` is the sum of ``x[0]`` to ``x[i]``; ``rows`` are scans of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, sqrt
from typing import Any

from kernelbook.experiment import (
    EXACT,
    Arrays,
    Buffer,
    Chart,
    Dim,
    Experiment,
    Kernel,
    Library,
    Region,
    Shape,
    Sweep,
    Target,
    Text,
    Tolerance,
    Variant,
    ceil_div,
    device_copy,
)

RAGGED = tuple({"n": n} for n in (0, 1, 31, 1003, 16_385, 100_001))


# ---- the problem ----------------------------------------------------------------------------


def scan_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    x = inputs["x"].astype(xp.float64)
    return {"y": xp.cumsum(x) if x.size else x}


def int_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    x = inputs["x"].astype(xp.int64)
    return {"y": (xp.cumsum(x) if x.size else x).astype(xp.float64)}


def rows_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"y": xp.cumsum(inputs["x"].astype(xp.float64), axis=1)}


# Values in [-1, 1) add up to about sqrt(k / 3) after k of them, and every rounding of such a sum is
# by up to half an ulp of it: 32 sqrt(n) is the random walk of a thousand roundings of the last sum.
# The classic look-back, CUB's too, adds tile after tile, one rounding every few thousand elements;
# that walk grows like n / 200, as measured at 2^28, and several times that is allowed. At the
# ragged sizes all of it is far less than one element.
WANDERING = Tolerance(
    relative=0.0,
    absolute=2.0**-24,
    scale=lambda s: 16.0 + 32.0 * sqrt(float(s["n"])) + float(s["n"]) / 64,
)


# ---- rows: one block a row --------------------------------------------------------------------


def row_scan(
    name: str, title: Text, source: str, threads: int, macros: Mapping[str, int] | None = None,
    counter_example: bool = False,
) -> Kernel:  # fmt: skip
    return Kernel(
        name=name,
        source=f"{source}.cu",
        entry=source,
        args=("x", "y", "rows", "n"),
        grid=lambda s, t: (s["rows"], 1, 1),
        block=lambda s, t: (threads, 1, 1),
        title=title,
        macros=macros or {},
        counter_example=counter_example,
    )


kogge_stone = row_scan(
    "kogge_stone_scan", Text("Kogge-Stone，双缓冲", "Kogge-Stone, two buffers"),
    "kogge_stone_scan", 1024,
)  # fmt: skip
kogge_stone_one = row_scan(
    "kogge_stone_one_buffer", Text("Kogge-Stone，去掉双缓冲", "Kogge-Stone, one buffer"),
    "kogge_stone_scan", 1024, {"BUFFERS": 1}, counter_example=True,
)  # fmt: skip
LADDER = (
    kogge_stone,
    row_scan("brent_kung_scan", Text("Brent-Kung", "Brent-Kung"), "brent_kung_scan", 512),
    row_scan(
        "brent_kung_padded", Text("Brent-Kung，填充", "Brent-Kung, padded"),
        "brent_kung_scan", 512, {"PADDED": 1},
    ),
    row_scan(
        "coarse_scan", Text("每线程 4 个元素", "4 elements a thread"), "coarse_scan", 256,
    ),
    row_scan(
        "coarse_scan_padded", Text("每线程 4 个元素，填充", "4 elements a thread, padded"),
        "coarse_scan", 256, {"PADDED": 1},
    ),
    row_scan(
        "warp_shuffle_scan", Text("warp 洗牌", "warp shuffles"), "warp_shuffle_scan", 256,
    ),
)  # fmt: skip


COPY = device_copy(
    lambda s: 4 * s["n"] * s.get("rows", 1),
    Text("读写的字节数与扫描相同", "reads and writes as many bytes as the scan"),
)


ROWS = Experiment(
    name="scan_rows",
    title=Text("65536 行、每行 1024 个元素的前缀和", "Prefix sums of 65536 rows of 1024"),
    shape={"rows": 2**16, "n": 2**10},
    emulator_shape={"rows": 4, "n": 2**10},
    ragged=(
        {"rows": 1, "n": 1},
        {"rows": 2, "n": 33},
        {"rows": 3, "n": 1025},
        {"rows": 2, "n": 5000},
    ),
    buffers=(
        Buffer("x", "in", lambda s: (s["rows"], s["n"])),
        Buffer("y", "out", lambda s: (s["rows"], s["n"])),
    ),
    reference=rows_reference,
    flops=lambda s: s["rows"] * max(s["n"] - 1, 0),
    tolerance=WANDERING,
    variants=(*LADDER, COPY),
)

BUFFERS = replace(
    ROWS,
    name="scan_buffers",
    title=Text("Kogge-Stone 的双缓冲", "The two buffers of Kogge-Stone"),
    shape={"rows": 2**12, "n": 2**10},
    variants=(kogge_stone_one,),
)


# ---- any length, in three launches ------------------------------------------------------------

PASS_TILE = 256 * 4 * 4


def sections(s: Shape, t: Target) -> Dim:
    return max(1, ceil_div(s["n"], PASS_TILE)), 1, 1


segmented = Kernel(
    name="segmented_scan",
    source="segmented_scan.cu",
    entry="segmented_scan",
    args=("x", "y", "n"),
    grid=sections,
    block=lambda s, t: (256, 1, 1),
    title=Text("三次启动", "three launches"),
)
segmented = replace(
    segmented,
    then=(
        replace(segmented, entry="scan_block_sums", args=("n",), grid=lambda s, t: (1, 1, 1)),
        replace(segmented, entry="add_block_sums", args=("y", "n")),
    ),
)


# ---- any length, in one pass ------------------------------------------------------------------


def lookback(
    name: str, title: Text, threads: int, vectors: int, blocks: int, **macros: int
) -> Kernel:
    """One tile a block; ``blocks`` of them an SM."""
    tile = threads * vectors * 4
    return Kernel(
        name=name,
        source="lookback_scan.cu",
        entry="lookback_scan",
        args=("x", "y", "n"),
        grid=lambda s, t: (max(1, ceil_div(s["n"], tile)), 1, 1),
        block=lambda s, t: (threads, 1, 1),
        title=title,
        macros={"THREADS": threads, "VECTORS": vectors, "MIN_BLOCKS": blocks, **macros},
    )


def pipelined(
    name: str, title: Text, consumers: int, vectors: int, stages: int, lag: int, **macros: int
) -> Kernel:
    """A ring of ``stages`` tiles, one block an SM."""
    tile = consumers * vectors * 4
    shared = stages * tile * 4

    def grid(s: Shape, t: Target) -> Dim:
        return min(max(1, ceil_div(s["n"], tile)), t.sms), 1, 1

    return Kernel(
        name=name,
        source="pipelined_scan.cu",
        entry="pipelined_scan",
        args=("x", "y", "n"),
        grid=grid,
        block=lambda s, t: (consumers + 32, 1, 1),
        title=title,
        macros={
            "CONSUMERS": consumers, "VECTORS": vectors, "STAGES": stages, "LAG": lag, **macros,
        },
        dynamic_shared=lambda s: shared,
        min_cc=(8, 0),
    )  # fmt: skip


CLASSIC = Text("单遍，回看到最近的前缀", "one pass, look-back to the nearest prefix")
FIXED = Text("单遍，次序固定的回看", "one pass, look-back in a fixed order")
LARGE_TILES = Text("… 更大的 tile", "… with larger tiles")
LAST = Text("单遍，流水线", "one pass, pipelined")
LOCKSTEP = Text("… 求和之后立刻回看", "… looking back right after summing up")
TICKETS = Text("… 按领到的号分 tile", "… tiles by ticket")
NEAREST = Text("… 回看到最近的前缀", "… look-back to the nearest prefix")

classic = lookback("lookback_scan", CLASSIC, 256, 4, 5, FIXED=0, WINDOW=1)
fixed = lookback("lookback_scan_fixed", FIXED, 256, 4, 5, FIXED=1, WINDOW=4)
large = lookback("lookback_scan_large", LARGE_TILES, 512, 10, 2, FIXED=1, WINDOW=2)
last = pipelined("pipelined_scan", LAST, 320, 9, 5, 3, FIXED=1, WINDOW=4)
lockstep = pipelined("pipelined_scan_lockstep", LOCKSTEP, 320, 9, 5, 1, FIXED=1, WINDOW=4)
nearest = pipelined("pipelined_scan_nearest", NEAREST, 320, 9, 5, 3, FIXED=0, WINDOW=4)
tickets = pipelined("pipelined_scan_tickets", TICKETS, 320, 9, 5, 3, FIXED=1, WINDOW=4, TICKETS=1)

cub = Library(
    "cub_scan",
    "cub_scan",
    Text("CUB `InclusiveSum`", "CUB `InclusiveSum`"),
    source="baselines/cub_scan.cu",
)
cupy = Library("cupy_cumsum", "cupy_cumsum", Text("CuPy `cumsum`", "CuPy `cumsum`"))


def scan(name: str, title: Text, n: int, variants: tuple[Variant, ...]) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape={"n": n},
        # A whole number of tiles of every kernel, so that none takes the path of the last tile.
        emulator_shape={"n": 9 * 20_480},
        ragged=RAGGED,
        buffers=(
            Buffer("x", "in", lambda s: (s["n"],)),
            Buffer("y", "out", lambda s: (s["n"],)),
        ),
        reference=scan_reference,
        flops=lambda s: max(s["n"] - 1, 0),
        tolerance=WANDERING,
        variants=variants,
    )


def integers(kernel: Kernel) -> Kernel:
    return replace(kernel, macros={**kernel.macros, "INTEGER": 1})


MIDDLE = scan(
    "scan_256m",
    Text("前缀和，256 MiB", "Prefix sums of 256 MiB"),
    2**26,
    (
        segmented,
        classic,
        large,
        last,
        tickets,
        cub,
        cupy,
        COPY,
    ),
)
LARGE = scan(
    "scan_1g",
    Text("前缀和，1 GiB", "Prefix sums of 1 GiB"),
    2**28,
    (segmented, classic, fixed, large, last, lockstep, nearest, tickets, cub, COPY),
)
INTEGERS = replace(
    MIDDLE,
    name="scan_int_256m",
    title=Text("int32 前缀和，256 MiB", "Prefix sums of 256 MiB of int32"),
    buffers=(
        Buffer("x", "in", lambda s: (s["n"],), "int32", -1000, 1000),
        Buffer("y", "out", lambda s: (s["n"],), "int32"),
    ),
    reference=int_reference,
    tolerance=EXACT,
    dtype="int32",
    variants=(
        integers(large),
        integers(last),
        replace(cub, name="cub_scan_int", routine="cub_scan_int"),
    ),
)


# ---- by size ----------------------------------------------------------------------------------

BY_SIZE = Sweep(
    "scan_by_size",
    Text("前缀和，按大小", "Prefix sums by size"),
    Text("输入从 1 KiB 到 1 GiB", "inputs from 1 KiB to 1 GiB"),
)


def best_for(n: int) -> Kernel:
    """Smaller tiles for fewer elements; the limits were found by trying on an H200."""
    chosen = (
        lookback("", Text("", ""), 256, 4, 5, FIXED=1, WINDOW=4, STREAMING=0)
        if n <= 2**18
        else lookback("", Text("", ""), 512, 8, 2, FIXED=1, WINDOW=2, STREAMING=0)
        if n <= 2**22
        else last
    )
    tile = "THREADS" if "THREADS" in chosen.macros else "CONSUMERS"
    return replace(
        chosen,
        name="best_scan",
        title=Text("单遍，按大小选择", "one pass, chosen by size"),
        configuration=f"{chosen.entry} {chosen.macros[tile]}×{chosen.macros['VECTORS']}",
    )


def sized(exponent: int) -> Experiment:
    power, unit = exponent % 10, "KMG"[exponent // 10 - 1]
    title = f"{2**power} {unit}iB"
    n = 2 ** (exponent - 2)
    variants = (best_for(n), cub, COPY)
    member = scan(f"scan_size_{2**power}{unit.lower()}", Text(title, title), n, variants)
    return replace(member, sweep=BY_SIZE, ragged=({"n": 0}, {"n": 1003}))


SIZES = tuple(sized(e) for e in (10, 14, 18, 20, 22, 24, 26, 28, 30))

EXPERIMENTS = [ROWS, BUFFERS, MIDDLE, LARGE, INTEGERS, *SIZES]

CHARTS = [
    Chart(
        name="scan_rows_bandwidth",
        title=Text("块内扫描的几种写法", "Ways to scan within a block"),
        kind="bars",
        experiments=("scan_rows",),
        variants=(*(k.name for k in LADDER), "device_copy"),
        metric="bandwidth",
        roof="bandwidth",
    ),
    Chart(
        name="scan_bandwidth",
        title=Text("任意长度的前缀和", "Prefix sums of any length"),
        kind="bars",
        experiments=("scan_256m", "scan_1g"),
        variants=tuple(v.name for v in LARGE.variants),
        metric="bandwidth",
        roof="bandwidth",
    ),
    Chart(
        name="scan_by_size",
        title=Text("有效带宽随大小的变化", "Effective bandwidth by size"),
        kind="sweep",
        experiments=tuple(e.name for e in SIZES),
        variants=tuple(v.name for v in SIZES[0].variants),
        metric="bandwidth",
        x="bytes",
        x_title=Text("读写的字节", "bytes read and written"),
        roof="bandwidth",
        regions=(
            Region(0, 2**21, Text("启动开销", "launch floor")),
            Region(2**21, "l2", Text("L2", "L2")),
            Region("l2", inf, Text("显存", "DRAM")),
        ),
    ),
]
