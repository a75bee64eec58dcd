"""Article 10 and the guide to memory access: what an access costs, level by level.

The problems are in the modules beside this one; here they are listed, by size, and drawn.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from kernelbook.experiment import Chart, Experiment, Region, Rule, Sweep, Text, text

from .access import (
    ACCESS,
    GOOD,
    OFFSETS,
    POINTS,
    PROFILED,
    READ_OFFSETS,
    READS,
    STRIDES,
    WRITE_OFFSETS,
    WRITES,
    access,
    gather,
    offset,
    read,
    write,
)
from .banks import WAYS, conflict
from .common import COPY_OF_N
from .elementwise import (
    CUPY_RELU,
    GRID_SIZES,
    GRIDS,
    RELU,
    RELU_L2,
    RELU_SCALAR,
    SHORT,
    VIEWS,
    grid_of,
    relu,
    relu_wide,
)
from .staging import ASYNC
from .transposes import NAIVE, RAGGED, SHARED, SQUARE, WITHIN_L2, transpose, wide

RELU_SIZES = Sweep(
    "relu_by_size", Text("ReLU，按大小", "ReLU by size"),
    Text("热缓存一栏在 L2 以内不是显存带宽", "within L2 the warm column is not DRAM's bandwidth"),
)  # fmt: skip
TRANSPOSE_SIZES = Sweep(
    "transpose_by_size", Text("矩阵转置，按边长", "Transposes by size"),
    Text("边长 2048 及以下的两个矩阵在 H200 的 L2 以内",
         "both matrices of 2048 and less lie within the L2 of an H200"),
)  # fmt: skip


def relu_of(exponent: int) -> Experiment:
    power, unit = exponent % 10, "KMG"[exponent // 10 - 1]
    made = relu(
        f"relu_size_{2**power}{unit.lower()}", text(f"{2**power} {unit}iB"), 2 ** (exponent - 2),
        (RELU_SCALAR, relu_wide(1, 0), CUPY_RELU, COPY_OF_N),
    )  # fmt: skip
    return replace(made, sweep=RELU_SIZES, ragged=({"n": 0}, {"n": 1003}))


def square_of(size: int) -> Experiment:
    made = transpose(size, size, (NAIVE[0], SHARED[4], wide(64, 64, 256, band=0)))
    return replace(
        made, name=f"transpose_size_{size}", title=text(f"{size}×{size}"), sweep=TRANSPOSE_SIZES
    )


BY_SIZE = (
    *(relu_of(e) for e in (18, 20, 22, 24, 25, 26, 28, 30)),
    *(square_of(n) for n in (256, 512, 1024, 2048, 4096, 8192, 16_384)),
)

EXPERIMENTS = [
    GOOD,
    *(access(s) for s in STRIDES),
    *(read(s) for s in STRIDES),
    *(write(s) for s in STRIDES),
    *PROFILED,
    *(offset(READ_OFFSETS, at) for at in OFFSETS),
    *(offset(WRITE_OFFSETS, at) for at in OFFSETS),
    gather("gather_dram", Text("随机读，表 1 GiB", "Random gather from 1 GiB"), 2**28),
    gather("gather_l2", Text("随机读，表 8 MiB", "Random gather from 8 MiB"), 2**21),
    *POINTS,
    RELU,
    RELU_L2,
    SHORT,
    *VIEWS,
    *(grid_of(blocks) for blocks in GRID_SIZES),
    *(conflict(ways) for ways in range(1, 33)),
    SQUARE,
    RAGGED,
    WITHIN_L2,
    *ASYNC,
    *BY_SIZE,
]


# ---- pictures ------------------------------------------------------------------------------------

LEVELS = (
    Region(0, 2**21, Text("启动开销", "launch floor")),
    Region(2**21, "l2", Text("L2", "L2")),
    Region("l2", inf, Text("显存", "DRAM")),
)


def bars(name: str, title: Text, *experiments: Experiment) -> Chart:
    return Chart(
        name=name,
        title=title,
        kind="bars",
        experiments=tuple(e.name for e in experiments),
        variants=tuple({v.name: v for e in experiments for v in e.variants}),
        metric="bandwidth",
        roof="bandwidth",
    )


def curve(
    sweep: Sweep, x: str, x_title: Text, metric: str = "bandwidth", linear: bool = False,
    regions: tuple[Region, ...] = (), rules: tuple[Rule, ...] = (),
) -> Chart:  # fmt: skip
    members = tuple(e for e in EXPERIMENTS if e.sweep is sweep)
    return Chart(
        name=sweep.name,
        title=sweep.title,
        kind="sweep",
        experiments=tuple(e.name for e in members),
        variants=tuple(v.name for v in members[0].variants),
        metric=metric,
        roof="bandwidth" if metric == "bandwidth" else "",
        x=x,
        x_title=x_title,
        x_scale="linear" if linear else "log",
        regions=regions,
        rules=rules,
    )


STRIDE = Text("stride（元素）", "stride (elements)")
OFFSET = Text("偏移（元素）", "offset (elements)")
CHARTS = [
    bars("relu_bandwidth", Text("ReLU 的几种写法", "Ways to write a ReLU"), RELU),
    bars("transpose_bandwidth", Text("矩阵转置", "Transposes"), SQUARE, RAGGED),
    bars("async_copy_bandwidth", Text("分 tile 搬运", "Staged tiles"), *ASYNC),
    bars("layouts_bandwidth", Text("结构体数组与数组结构体", "AoS and SoA"), *POINTS),
    curve(ACCESS, "stride", STRIDE),
    curve(READS, "stride", STRIDE),
    curve(WRITES, "stride", STRIDE),
    curve(READ_OFFSETS, "offset", OFFSET, linear=True),
    curve(WRITE_OFFSETS, "offset", OFFSET, linear=True),
    curve(WAYS, "ways", Text("冲突路数", "ways of the conflict"), "time", linear=True),
    curve(
        GRIDS,
        "blocks",
        Text("块数", "blocks"),
        rules=(Rule("x", 1056, Text("132 × 8 块", "132 × 8 blocks")),),
    ),
    curve(RELU_SIZES, "bytes", Text("读写的字节", "bytes read and written"), regions=LEVELS),
    curve(TRANSPOSE_SIZES, "bytes", Text("读写的字节", "bytes read and written"), regions=LEVELS),
]
