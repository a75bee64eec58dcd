"""The author's vocabulary: what `kernels/NN_chapter/experiments.py` is written in.

An experiment is one problem; its variants (kernels, library, CPU and transfer baselines) are rows
of one table. Nothing here knows how anything is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .errors import ExperimentError

Shape = Mapping[str, int]
Dim = tuple[int, int, int]
Arrays = Mapping[str, Any]  # NumPy or CuPy arrays by buffer name
SCALAR_TYPES = {"int32": "int", "int64": "long long", "float32": "float"}


@dataclass(frozen=True)
class Text:
    """The same words in both languages of the site."""

    zh: str
    en: str

    def of(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


def text(both: str) -> Text:
    """Words that are the same in both languages."""
    return Text(both, both)


@dataclass(frozen=True)
class Target:
    """What a launch shape may depend on. The emulator uses the reference device's values."""

    sms: int
    max_threads_per_sm: int
    l2_bytes: int
    shared_bytes_per_sm: int
    reserved_shared_bytes_per_block: int  # what a block takes beside what it asks for


@dataclass(frozen=True)
class Buffer:
    """An array of the problem. ``dims`` gives its shape; inputs are uniform in [low, high).

    ``used`` says how many of its elements the work needs, where that is not all of them. With
    ``kept``, an "inout" buffer is one that is written in part: nothing of it has to be read, but
    what is not written has to stay.
    """

    name: str
    role: Literal["in", "out", "inout"]
    dims: Callable[[Shape], tuple[int, ...]]
    dtype: str = "float32"
    low: float = -1.0
    high: float = 1.0
    used: Callable[[Shape], int] | None = None
    kept: bool = False


@dataclass(frozen=True)
class Tolerance:
    """An element passes where |out - ref| <= absolute + relative * |ref|, NaN never.

    ``scale`` multiplies both for a given shape (e.g. sqrt of the reduction length).
    """

    relative: float
    absolute: float
    scale: Callable[[Shape], float] = lambda shape: 1.0


EXACT = Tolerance(relative=0.0, absolute=0.0)


@dataclass(frozen=True)
class Kernel:
    """A kernel of this project, one row.

    ``source`` is a file name in the chapter's folder; ``args`` names buffers and shape entries in
    the order of the parameters; shape entries are passed as int32 unless ``scalars`` says else.
    ``grid`` and ``block`` may depend on the shape and on the target. ``then`` are launched after
    it, in order, verified, timed and counted with it as one row: other entries of the same source
    with the same macros and options. What it hands on to them lies in ``__device__`` variables.
    """

    name: str
    source: str
    entry: str
    args: tuple[str, ...]
    grid: Callable[[Shape, Target], Dim]
    block: Callable[[Shape, Target], Dim]
    title: Text
    macros: Mapping[str, int | str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    dynamic_shared: Callable[[Shape], int] = lambda shape: 0
    scalars: Mapping[str, str] = field(default_factory=dict)
    min_cc: tuple[int, int] = (7, 5)
    configuration: str = ""  # what was chosen for this size, where a table of them is chosen from
    gpu_only: str = ""  # why the emulator does not run it, "" if it does
    counter_example: bool = False  # wrong on purpose: finding nothing wrong is the failure
    then: tuple[Kernel, ...] = ()
    kind: Literal["kernel"] = "kernel"

    @property
    def launches(self) -> tuple[Kernel, ...]:
        """All launches of the row, in order."""
        return self, *self.then


@dataclass(frozen=True)
class Library:
    """A vendor routine as baseline: ``routine`` names an entry of the gpu room's registry.

    With ``source``, a file below the chapter's folder, it names a function of that host code,
    which nvcc builds (see `gpu.baselines`); without nvcc the row says that it is not built.
    """

    name: str
    routine: str
    title: Text
    note: Text = Text("", "")
    source: str = ""
    flops: Callable[[Shape], int] | None = None  # None: the experiment's own model
    bytes_read: Callable[[Shape], int] | None = None
    bytes_written: Callable[[Shape], int] | None = None
    kind: Literal["library"] = "library"


def device_copy(size: Callable[[Shape], int], note: Text) -> Library:
    """The baseline of what memory bounds: a copy that reads ``size`` bytes and writes as many."""
    return Library(
        "device_copy",
        "device_copy",
        Text("显存内拷贝（cudaMemcpyAsync）", "device-to-device copy (cudaMemcpyAsync)"),
        note=note,
        flops=lambda s: 0,
        bytes_read=size,
        bytes_written=size,
    )


@dataclass(frozen=True)
class Cpu:
    """A CPU baseline: ``run(inputs, outputs, shape)`` writes into the arrays of ``outputs``.

    They exist beforehand, as a kernel's do: fresh memory would put its page faults into the time.
    """

    name: str
    run: Callable[[Arrays, Arrays, Shape], None]
    title: Text
    note: Text = Text("", "")
    kind: Literal["cpu"] = "cpu"


@dataclass(frozen=True)
class Transfer:
    """Host-device copies of the problem's inputs (h2d) or outputs (d2h)."""

    name: str
    direction: Literal["h2d", "d2h"]
    pinned: bool
    title: Text
    kind: Literal["transfer"] = "transfer"


Variant = Kernel | Library | Cpu | Transfer


@dataclass(frozen=True)
class Sweep:
    """One problem at many sizes: its experiments are lines of one table, points of one chart.

    Members are experiments like any other, with the same variants and entries of the shape, but
    one process measures them one after another, ncu does not read them, and kernels that differ in
    nothing but the measured size are compiled and counted once (`catalog.Catalog.stands_for`). The
    name is unique in the tree.
    """

    name: str
    title: Text
    note: Text = Text("", "")


@dataclass(frozen=True)
class Experiment:
    """One problem at one size, with everything that is compared on it.

    ``shape`` is measured on a GPU, ``emulator_shape`` executed by the emulator, ``ragged`` are
    further shapes every kernel is verified on. ``reference(xp, inputs, shape)`` returns fp64
    outputs by name, with ``xp`` NumPy or CuPy. The FLOP and byte model counts compulsory work:
    every input read once, every output written once.
    """

    name: str
    title: Text
    shape: Shape
    emulator_shape: Shape
    ragged: tuple[Shape, ...]
    buffers: tuple[Buffer, ...]
    reference: Callable[[Any, Arrays, Shape], Arrays]
    flops: Callable[[Shape], int]
    tolerance: Tolerance
    variants: tuple[Variant, ...]
    dtype: str = "float32"
    seed: int = 1
    bound: Literal["memory", "compute"] = "memory"  # which rate a table shows first
    sparse: bool = False  # touches only part of its buffers: no byte model, no bandwidth
    sweep: Sweep | None = None  # the family of sizes it belongs to
    chapter: str = ""  # set by the catalog: the folder's name
    folder: Path = Path()  # set by the catalog

    def __post_init__(self) -> None:
        names = [v.name for v in self.variants]
        buffers = {b.name for b in self.buffers}
        if len(set(names)) != len(names):
            raise ExperimentError(f"experiment {self.name!r} has two variants of one name")
        for kernel in (launch for k in self.kernels for launch in k.launches):
            for arg in kernel.args:
                if arg not in buffers and arg not in self.shape:
                    raise ExperimentError(
                        f"kernel {kernel.name!r} of {self.name!r} takes {arg!r}, which is neither "
                        "a buffer nor an entry of the shape"
                    )
        for first in self.kernels:
            of_one = (first.source, first.macros, first.options)
            if any((k.source, k.macros, k.options) != of_one or k.then for k in first.then):
                raise ExperimentError(
                    f"the launches of {first.name!r} of {self.name!r} are not of one source "
                    "compiled in one way"
                )
        for other in (self.emulator_shape, *self.ragged):
            if set(other) != set(self.shape):
                raise ExperimentError(f"experiment {self.name!r} has shapes of different entries")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(v for v in self.variants if isinstance(v, Kernel))

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.role != "out")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        return tuple(b for b in self.buffers if b.role != "in")

    def variant(self, name: str) -> Variant:
        """The variant of this name; raises ExperimentError."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise ExperimentError(f"experiment {self.name!r} has no variant {name!r}")

    def bytes_read(self, shape: Shape) -> int:
        """Compulsory bytes read: every input once; 0 for a sparse experiment."""
        read = (b for b in self.inputs if not b.kept)
        return 0 if self.sparse else sum(used_bytes(b, shape) for b in read)

    def bytes_written(self, shape: Shape) -> int:
        """Compulsory bytes written: every output once; 0 for a sparse experiment."""
        return 0 if self.sparse else sum(used_bytes(b, shape) for b in self.outputs)


BYTES = "bytes"  # as ``x`` of a chart: the bytes that the author's model says are moved


@dataclass(frozen=True)
class Rule:
    """A line across a sweep's picture at a value of an axis, with words.

    ``at`` is in the axis's unit, or names a figure of the reference device's spec sheet ("l2").
    """

    axis: Literal["x", "y"]
    at: float | str
    title: Text


@dataclass(frozen=True)
class Region:
    """A part of a sweep's x axis with words above it; the ends are as `Rule`'s, or infinite."""

    low: float | str
    high: float | str
    title: Text


@dataclass(frozen=True)
class Chart:
    """A picture of results, drawn from records, one file a language.

    ``bars``: a bar for each variant and device. ``sweep``: a line for each variant over ``x``, an
    entry of the shape or `BYTES`; of ``over``, where it is given, each number is a multiple: the
    same metric of that variant in the same record. ``roofline``: throughput over arithmetic
    intensity by the author's model, under the roofs of the spec sheets. ``roof`` names a figure of
    the spec sheets that bounds the metric ("bandwidth", "fp32_flops"), drawn as theory.
    ``evidence`` "counted" draws what the emulator counted, at its own shapes, in place of what
    cards have been measured or cited for.
    """

    name: str
    title: Text
    kind: Literal["bars", "sweep", "roofline"]
    experiments: tuple[str, ...]
    variants: tuple[str, ...]
    metric: str = "throughput"
    roof: str = ""
    x: str = ""
    x_title: Text = Text("", "")
    cache: Literal["cold", "warm"] = "cold"
    evidence: Literal["measured", "counted"] = "measured"
    x_scale: Literal["log", "linear"] = "log"
    y_scale: Literal["log", "linear"] = "linear"
    over: str = ""
    rules: tuple[Rule, ...] = ()
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """A kernel whose configuration is chosen by size, from a table that ``--tune`` writes.

    ``table`` is the JSON file with its configurations and choices; ``experiment(shape)`` is the
    problem, with one kernel a configuration and the library baseline to time beside them.
    """

    table: Path
    shapes: tuple[Shape, ...]
    experiment: Callable[[Shape], Experiment]


ITEM_BYTES = {
    "float64": 8, "int64": 8, "uint64": 8,
    "float32": 4, "int32": 4, "uint32": 4,
    "float16": 2, "int16": 2, "uint16": 2,
    "int8": 1, "uint8": 1,
}  # fmt: skip


def buffer_bytes(buffer: Buffer, shape: Shape) -> int:
    """Size of a buffer in bytes at this shape."""
    count = 1
    for n in buffer.dims(shape):
        count *= n
    return count * ITEM_BYTES[buffer.dtype]


def used_bytes(buffer: Buffer, shape: Shape) -> int:
    """Bytes of a buffer that the work needs at this shape."""
    if buffer.used is None:
        return buffer_bytes(buffer, shape)
    return buffer.used(shape) * ITEM_BYTES[buffer.dtype]


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def model(experiment: Experiment, variant: Variant, shape: Shape) -> tuple[int, int, int]:
    """(FLOP, bytes read, bytes written) of a variant at a shape, by the author's model."""
    if isinstance(variant, Transfer):
        moved = experiment.inputs if variant.direction == "h2d" else experiment.outputs
        # A byte that crosses the bus is counted once, as everyone states the rate of a bus.
        return 0, sum(buffer_bytes(b, shape) for b in moved), 0
    flops = experiment.flops(shape)
    read, written = experiment.bytes_read(shape), experiment.bytes_written(shape)
    if isinstance(variant, Library):
        flops = variant.flops(shape) if variant.flops else flops
        read = variant.bytes_read(shape) if variant.bytes_read else read
        written = variant.bytes_written(shape) if variant.bytes_written else written
    return flops, read, written
