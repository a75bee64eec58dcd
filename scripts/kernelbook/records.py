"""What is stored: one record is one experiment at one shape from one run, baselines included.

    results/data/compiled/EXPERIMENT.json
    results/data/counted/EXPERIMENT.json
    results/data/measured/DEVICE/EXPERIMENT.json
    results/data/cited/DEVICE/EXPERIMENT.json
    results/local/DEVICE/EXPERIMENT.json        a reader's own measurements, not committed

Rates and ratios are never stored: they are computed when rendered (report/rows.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from . import codec
from .errors import RecordError
from .sampling import quantile

SCHEMA = 1
MAX_SAMPLES = 5000  # of a series: many more than the method takes, few enough to sort
MAX_TIME_US = 1e12  # eleven days
MAX_CLOCK_MHZ = 1e6
LANES = 32
MAX_SHARED_WORDS = 2**16  # of 4 bytes: 256 KiB, more than any SM has
ROUNDING_US, ROUNDING = 2e-4, 1e-6  # what is stored is rounded: to 0.1 ns, and as a share
METHOD_VERSION = 1  # raise only when a measured number's meaning changes
Evidence = Literal["compiled", "counted", "measured", "cited"]
Status = Literal["ok", "failed", "skipped", "not built"]
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,79}")


@dataclass(frozen=True)
class DeviceInfo:
    """The card a record was measured on, as the driver names it."""

    name: str
    slug: str
    cc: tuple[int, int]
    sms: int
    l2_bytes: int
    memory_bytes: int
    memory_clock_mhz: float
    memory_bus_bits: int
    sm_clock_max_mhz: float
    power_limit_w: float | None
    ecc: bool | None
    mig: bool | None
    driver: str
    cuda: str
    cupy: str


@dataclass(frozen=True)
class Compilation:
    """One kernel compiled for one architecture. Bytes a thread; shared memory a block."""

    arch: str
    options: tuple[str, ...]
    nvrtc: str
    ptx_hash: str
    registers: int
    shared_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    blocks_per_sm: int
    occupancy: float  # theoretical, 0 to 1
    occupancy_limit: str
    key: str  # staleness key under which this was compiled


@dataclass(frozen=True)
class Verification:
    """One comparison with the fp64 reference."""

    shape: Mapping[str, int]
    passed: bool
    max_error: float  # largest |out - ref|
    worst_ratio: float  # largest |out - ref| / allowed; passes up to 1
    rms_error: float
    reason: str = ""  # what is wrong, "" where passed


@dataclass(frozen=True)
class Timing:
    """Raw samples with their statistics, times in µs."""

    cache: Literal["cold", "warm"]
    method: Literal["event", "graph", "host"]
    flush: str  # how L2 was flushed between samples, "" where it was not
    launches_per_sample: int
    samples_us: tuple[float, ...]
    median_us: float
    q1_us: float
    q3_us: float
    min_us: float
    ci_low_us: float  # 95 % interval of the median, by order statistics
    ci_high_us: float
    outliers: int
    stop: str  # why sampling stopped
    sm_clock_mhz: float | None = None  # median over the run
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: str = ""  # reasons seen, "" for none
    floor_us: float = 0.0  # the time below which a sample would have been refused


@dataclass(frozen=True)
class CitedValue:
    """A figure as its author printed it."""

    value: float
    unit: str


@dataclass(frozen=True)
class SharedRequest:
    """What one warp asked of shared memory in one instruction, when it first executed it.

    ``words``: for each lane the first word of 4 bytes from the start of the block's shared memory,
    -1 of an inactive lane.
    """

    access: Literal["read", "write", "atomic"]
    size: int  # bytes a lane
    words: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """One row: a variant of the experiment."""

    variant: str
    kind: Literal["kernel", "library", "cpu", "transfer"]
    status: Status = "ok"
    reason: str = ""  # why it failed, was skipped or not built
    key: str = ""  # staleness key of this row
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    dynamic_shared: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    compilations: tuple[Compilation, ...] = ()
    verifications: tuple[Verification, ...] = ()
    timings: tuple[Timing, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)  # by the emulator
    lines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # counts by source line
    requests: Mapping[str, tuple[SharedRequest, ...]] = field(default_factory=dict)  # as `lines`
    layout: str = ""  # of the source whose lines those are (`sources.layout`), "" if not known
    findings: tuple[str, ...] = ()  # what the emulator's checks say, one sentence each
    counters: Mapping[str, float] = field(default_factory=dict)  # by ncu
    cited: Mapping[str, CitedValue] = field(default_factory=dict)
    note: Mapping[str, str] = field(default_factory=dict)  # by language


@dataclass(frozen=True)
class Citation:
    """Who reported the figures of a cited record."""

    author: str
    title: str
    place: str  # URL or bibliographic place
    revision: str = ""
    note: Mapping[str, str] = field(default_factory=dict)  # by language


@dataclass(frozen=True)
class Record:
    """One experiment at one shape, from one run."""

    schema: int
    evidence: Evidence
    chapter: str
    experiment: str
    shape: Mapping[str, int]
    dtype: str
    seed: int
    results: tuple[Result, ...]
    commit: str = ""
    dirty: bool = False
    date: str = ""  # ISO 8601, UTC
    method_version: int = METHOD_VERSION
    device: DeviceInfo | None = None
    device_slug: str = ""  # cited records: the card the figures speak of
    citation: Citation | None = None
    notes: Mapping[str, str] = field(default_factory=dict)  # facts of the run: threads, floor, host

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise RecordError(
                f"has schema {self.schema}, this version reads schema {SCHEMA}",
            )
        if not _NAME.fullmatch(self.experiment) or not _NAME.fullmatch(self.chapter):
            raise RecordError("has an experiment or chapter name that is no name")
        if not self.shape or min(self.shape.values()) < 1:
            raise RecordError("has no size, or one below 1")
        if self.evidence == "measured" and self.device is None:
            raise RecordError("is measured but names no device")
        if self.evidence == "cited" and self.citation is None:
            raise RecordError("is cited but names no author")
        if self.slug and not _SLUG.fullmatch(self.slug):
            raise RecordError(f"has a device slug {self.slug[:40]!r} that is no slug")
        if self.device is not None and min(self.device.sms, self.device.l2_bytes) <= 0:
            raise RecordError("has a device without SMs or L2")
        variants = [result.variant for result in self.results]
        if len(set(variants)) != len(variants):
            raise RecordError("has two rows of one variant")
        for result in self.results:
            _check_result(result)

    @property
    def slug(self) -> str:
        return self.device.slug if self.device is not None else self.device_slug

    def result(self, variant: str) -> Result | None:
        return next((r for r in self.results if r.variant == variant), None)


def _check_result(result: Result) -> None:
    """Raise RecordError for what no run can have given; whoever renders may divide by it."""
    if min(result.flops, result.bytes_read, result.bytes_written) < 0:
        raise RecordError(f"{result.variant} has a negative number of FLOP or bytes")
    states = [timing.cache for timing in result.timings]
    if len(set(states)) != len(states):
        raise RecordError(f"{result.variant} has two series of one state of the caches")
    for timing in result.timings:
        _check_timing(result.variant, timing)
    for request in (r for found in result.requests.values() for r in found):
        few = len(request.words) != LANES or request.size not in (1, 2, 4, 8, 16)
        if few or not -1 <= min(request.words) <= max(request.words) < MAX_SHARED_WORDS:
            raise RecordError(f"{result.variant} has a request of shared memory that no warp makes")


def _check_timing(variant: str, t: Timing) -> None:
    """As `_check_result`, for one series."""
    if not 1 <= len(t.samples_us) <= MAX_SAMPLES:
        raise RecordError(
            f"{variant} has {len(t.samples_us)} samples, a series has 1 to {MAX_SAMPLES}"
        )
    ordered = sorted(t.samples_us)
    stated = (t.median_us, t.q1_us, t.q3_us, t.min_us, t.ci_low_us, t.ci_high_us)
    if min(*stated, ordered[0]) <= 0:
        raise RecordError(f"{variant} has a time that is not positive")
    if max(*stated, ordered[-1], t.floor_us) > MAX_TIME_US or t.floor_us < 0:
        raise RecordError(f"{variant} has a time that no kernel takes")
    found = [quantile(ordered, share) for share in (0.5, 0.25, 0.75, 0.0)]
    slack = ROUNDING_US + ROUNDING * ordered[-1]
    right = all(abs(a - b) <= slack for a, b in zip(stated, found, strict=False))
    inside = ordered[0] - slack <= t.ci_low_us <= t.ci_high_us <= ordered[-1] + slack
    if not (right and inside and 0 <= t.outliers <= len(ordered)):
        raise RecordError(f"{variant} has statistics that its samples do not have")
    clock = 1.0 if t.sm_clock_mhz is None else t.sm_clock_mhz
    if t.launches_per_sample < 1 or not 0 < clock <= MAX_CLOCK_MHZ:
        raise RecordError(f"{variant} has a count of launches or a clock that cannot be")


@dataclass(frozen=True)
class Stored:
    """A record and the file it lies in; ``local`` for a reader's own."""

    record: Record
    path: Path
    local: bool


def path_of(results: Path, record: Record, *, local: bool = False) -> Path:
    """Where a record belongs under a results folder."""
    name = f"{record.experiment}.json"
    if local:
        return results / "local" / (record.slug or record.evidence) / name
    folder = results / "data" / record.evidence
    return folder / record.slug / name if record.slug else folder / name


def save(results: Path, record: Record, *, local: bool = False) -> Path:
    """Write a record whole; raises RecordError where that is not possible."""
    path = path_of(results, record, local=local)
    codec.write_atomically(path, codec.to_json(record))
    return path


def load(path: Path) -> Record:
    """Read one record; raises RecordError naming the file and what is wrong with it."""
    return codec.from_file(Record, path)


def load_all(results: Path, read: Callable[[Path], Record] = load) -> tuple[Stored, ...]:
    """All records under a results folder, published first, in a fixed order.

    ``read`` is `load`, or what stands for it where most files have been read before. Raises
    RecordError for the first file that is not a record or lies in a place not its own.
    """
    return tuple(_walk(results, read))


def _walk(results: Path, read: Callable[[Path], Record]) -> Iterator[Stored]:
    for local, folder in ((False, results / "data"), (True, results / "local")):
        for path in sorted(_paths(folder)):
            if path.is_symlink():  # it may lead anywhere, or change between two looks
                raise RecordError("is a link, records are files in folders", file=path)
            if path.suffix != ".json":
                continue
            if not local and path.relative_to(folder).parts[0] not in (
                "compiled", "counted", "measured", "cited",
            ):  # fmt: skip
                continue  # other committed data, e.g. counter comparisons
            record = read(path)
            if path != path_of(results, record, local=local):
                what = " ".join(filter(None, (record.evidence, record.slug, record.experiment)))
                raise RecordError(f"holds the record {what}, which belongs elsewhere", file=path)
            yield Stored(record, path, local)


def _paths(folder: Path) -> Iterator[Path]:
    """Everything below a folder, links named but not followed; a folder that cannot be read is an
    error, since what is in it would only seem to be missing."""

    def refuse(error: OSError) -> None:
        raise RecordError(f"cannot be read: {error.strerror}", file=error.filename)

    if not folder.is_dir():
        return
    for place, folders, files in os.walk(folder, onerror=refuse):
        yield from (Path(place) / name for name in (*folders, *files))
