"""Global memory by stride, offset, index and layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernelbook.experiment import (
    EXACT,
    Arrays,
    Buffer,
    Experiment,
    Kernel,
    Shape,
    Sweep,
    Text,
    Tolerance,
    text,
)

from .common import COPY_OF_N, copy_of, elementwise

USEFUL = 2**24  # elements that are touched: 64 MiB, whatever the stride or the offset


def negated(xp: Any, values: Any) -> Any:
    return -values.astype(xp.float64)


def touched(s: Shape) -> int:
    return s["n"]


STRIDES = (1, 2, 4, 8, 16, 32)
STRIDE_NOTE = Text(
    "每个线程访问一个元素，相邻线程相隔 stride 个元素；有用字节数不变",
    "one element a thread, neighbouring threads `stride` elements apart; equal useful bytes",
)
ACCESS = Sweep("access_strides", Text("原地跨步访问", "Strided access in place"), STRIDE_NOTE)
READS = Sweep("read_strides", Text("跨步读，连续写", "Strided reads, dense writes"), STRIDE_NOTE)
WRITES = Sweep("write_strides", Text("连续读，跨步写", "Dense reads, strided writes"), STRIDE_NOTE)


def spread(s: Shape) -> tuple[int, ...]:
    return (s["n"] * s["stride"],)


def strided(
    sweep: Sweep,
    stride: int,
    buffers: tuple[Buffer, ...],
    reference: Callable[[Any, Arrays, Shape], Arrays],
    kernels: tuple[Kernel, ...],
) -> Experiment:
    return Experiment(
        name=f"{sweep.name.removesuffix('s')}_{stride}",
        title=text(f"stride {stride}"),
        shape={"n": USEFUL, "stride": stride},
        emulator_shape={"n": 2**12, "stride": stride},
        ragged=({"n": 1, "stride": stride}, {"n": 1003, "stride": stride}, {"n": 77, "stride": 5}),
        buffers=buffers,
        reference=reference,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(*kernels, COPY_OF_N),
        sweep=sweep,
    )


def negated_in_place(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    data = inputs["data"].astype(xp.float64)
    data[:: shape["stride"]] *= -1.0
    return {"data": data}


def negated_reads(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"dense": negated(xp, inputs["data"][:: shape["stride"]])}


def negated_writes(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    data = inputs["data"].astype(xp.float64)
    data[:: shape["stride"]] = negated(xp, inputs["dense"])
    return {"data": data}


IN_PLACE = (Buffer("data", "inout", spread, used=touched),)


def access(stride: int) -> Experiment:
    kernel = elementwise(
        "bad_access", "strided_access.cu", ("data", "n", "stride"),
        text("`data[i * stride]`"),
    )  # fmt: skip
    return strided(ACCESS, stride, IN_PLACE, negated_in_place, (kernel,))


GOOD = replace(
    access(1),
    name="good_access_16m",
    title=Text("原地连续访问", "Dense access in place"),
    shape={"n": USEFUL},
    emulator_shape={"n": 2**12},
    ragged=({"n": 1}, {"n": 1003}),
    buffers=(Buffer("data", "inout", lambda s: (s["n"],)),),
    reference=lambda xp, inputs, shape: {"data": negated(xp, inputs["data"])},
    variants=(
        elementwise("good_access", "strided_access.cu", ("data", "n"), text("`data[i]`")),
        COPY_OF_N,
    ),
    sweep=None,
)


def read(stride: int) -> Experiment:
    kernel = elementwise(
        "strided_read", "strided_access.cu", ("data", "dense", "n", "stride"),
        Text("跨步读", "strided reads"),
    )  # fmt: skip
    buffers = (
        Buffer("data", "in", spread, used=touched),
        Buffer("dense", "out", lambda s: (s["n"],)),
    )
    return strided(READS, stride, buffers, negated_reads, (kernel,))


def write(stride: int) -> Experiment:
    kernel = elementwise(
        "strided_write", "strided_access.cu", ("dense", "data", "n", "stride"),
        Text("跨步写", "strided writes"),
    )  # fmt: skip
    buffers = (
        Buffer("dense", "in", lambda s: (s["n"],)),
        Buffer("data", "inout", spread, used=touched, kept=True),
    )
    return strided(WRITES, stride, buffers, negated_writes, (kernel,))


# Members of a sweep are not profiled; these two of them are, as problems of their own.
PROFILED = (
    replace(
        read(16),
        name="dram_of_strided_reads",
        title=Text("步长 16 的读：显存搬多少", "Reads at stride 16: what DRAM moves"),
        sweep=None,
    ),
    replace(
        write(8),
        name="dram_of_strided_writes",
        title=Text("步长 8 的写：显存搬多少", "Writes at stride 8: what DRAM moves"),
        sweep=None,
    ),
)

OFFSET_NOTE = Text(
    "第一个元素偏离 128 字节边界 offset 个元素",
    "the first element lies `offset` elements past a boundary of 128 bytes",
)
READ_OFFSETS = Sweep("read_offsets", Text("错位读", "Misaligned reads"), OFFSET_NOTE)
WRITE_OFFSETS = Sweep("write_offsets", Text("错位写", "Misaligned writes"), OFFSET_NOTE)
OFFSETS = tuple(range(1, 33))  # a record has no size of 0; 32 elements are a boundary again


def shifted(s: Shape) -> tuple[int, ...]:
    return (s["n"] + s["offset"],)


def read_at(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"dense": negated(xp, inputs["data"][shape["offset"] :])}


def write_at(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    data = inputs["data"].astype(xp.float64)
    data[shape["offset"] :] = negated(xp, inputs["dense"])
    return {"data": data}


def offset(sweep: Sweep, at: int) -> Experiment:
    reads = sweep is READ_OFFSETS
    name, args = (
        ("offset_read", ("data", "dense")) if reads else ("offset_write", ("dense", "data"))
    )
    title = Text("错位读", "misaligned reads") if reads else Text("错位写", "misaligned writes")
    buffers = (
        Buffer("data", "in" if reads else "inout", shifted, used=touched, kept=not reads),
        Buffer("dense", "out" if reads else "in", lambda s: (s["n"],)),
    )
    return Experiment(
        name=f"{sweep.name.removesuffix('s')}_{at}",
        title=text(f"offset {at}"),
        shape={"n": USEFUL, "offset": at},
        emulator_shape={"n": 2**12, "offset": at},
        ragged=({"n": 1, "offset": at}, {"n": 1003, "offset": at}),
        buffers=buffers,
        reference=read_at if reads else write_at,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(
            elementwise(name, "offset_access.cu", (*args, "n", "offset"), title),
            COPY_OF_N,
        ),
        sweep=sweep,
    )


def gathered(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    at = inputs["index"].astype(xp.int64) * shape["size"] >> 31
    return {"out": inputs["table"][at].astype(xp.float64)}


def gather(name: str, title: Text, size: int) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        shape={"n": USEFUL, "size": size},
        emulator_shape={"n": 2**14, "size": 2**20},
        ragged=({"n": 1, "size": 1}, {"n": 1003, "size": 77}, {"n": 257, "size": 100_003}),
        buffers=(
            Buffer("index", "in", lambda s: (s["n"],), "int32", 0, 2**31 - 1),
            Buffer("table", "in", lambda s: (s["size"],), used=touched),
            Buffer("out", "out", lambda s: (s["n"],)),
        ),
        reference=gathered,
        flops=lambda s: 0,
        tolerance=EXACT,
        variants=(
            elementwise(
                "gather", "gather.cu", ("index", "table", "out", "n", "size"),
                Text("随机读", "random gather"),
            ),
            copy_of(lambda s: 6 * s["n"]),
        ),
    )  # fmt: skip


# Three roundings of products and three of sums of positive numbers.
SQUARES = Tolerance(relative=6 * 2.0**-24, absolute=1e-30)


def points(
    name: str, title: Text, layout: str, one: bool, kernels: tuple[tuple[str, Text], ...]
) -> Experiment:
    """Points of four floats, all of which are read, or one."""
    aos = layout == "points"

    def dims(s: Shape) -> tuple[int, ...]:
        return (s["n"], 4) if aos else (4, s["n"])

    def reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
        x = inputs[layout].astype(xp.float64)
        fields = x.T if aos else x
        return {"out": fields[0] ** 2 if one else (fields**2).sum(axis=0)}

    return Experiment(
        name=name,
        title=title,
        shape={"n": USEFUL},
        emulator_shape={"n": 2**12},
        ragged=({"n": 1}, {"n": 33}, {"n": 1003}),
        buffers=(
            Buffer(layout, "in", dims, used=lambda s: s["n"] * (1 if one else 4)),
            Buffer("out", "out", lambda s: (s["n"],)),
        ),
        reference=reference,
        flops=lambda s: s["n"] * (1 if one else 7),
        tolerance=SQUARES,
        variants=(
            *(elementwise(k, "layouts.cu", (layout, "out", "n"), t) for k, t in kernels),
            copy_of((lambda s: 4 * s["n"]) if one else (lambda s: 10 * s["n"])),
        ),
    )


POINTS = (
    points(
        "aos_all", Text("结构体数组，读全部字段", "Array of structures, all fields read"),
        "points", False,
        (
            ("aos_fields", Text("逐字段读", "field by field")),
            ("aos_whole", Text("整个结构体一次读", "the structure in one load")),
        ),
    ),
    points(
        "soa_all", Text("数组结构体，读全部字段", "Structure of arrays, all fields read"),
        "fields", False, (("soa_all", Text("逐数组读", "array by array")),),
    ),
    points(
        "aos_one", Text("结构体数组，只读一个字段", "Array of structures, one field read"),
        "points", True, (("aos_one", Text("只读一个字段", "one field")),),
    ),
    points(
        "soa_one", Text("数组结构体，只读一个字段", "Structure of arrays, one field read"),
        "fields", True, (("soa_one", Text("只读一个数组", "one array")),),
    ),
)  # fmt: skip
