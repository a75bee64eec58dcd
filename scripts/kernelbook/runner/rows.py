"""One row while it is being measured, and what a record stores of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from ..compiler import Compiled
from ..experiment import Experiment, Kernel, Library, Shape, Target, Variant, model
from ..gpu.backend import ClockReading
from ..records import Compilation, Result, Timing, Verification
from ..resources import compilation_of
from ..sampling import Series, statistics
from ..staleness import launch_of, variant_key


@dataclass
class Row:
    """A variant on its way through verification and timing. The first failure stands."""

    experiment: Experiment
    variant: Variant
    status: Literal["ok", "failed", "skipped"] = "ok"
    reason: str = ""
    compiled: Compiled | None = None
    verifications: list[Verification] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def counter_example(self) -> bool:
        """Wrong on purpose: looked at, never timed, and no failure where it is wrong."""
        return isinstance(self.variant, Kernel) and self.variant.counter_example

    @property
    def name(self) -> str:
        return self.variant.name

    @property
    def alive(self) -> bool:
        return self.status == "ok"

    def fail(self, reason: str) -> None:
        if self.alive:
            self.status, self.reason = "failed", reason

    def skip(self, reason: str) -> None:
        if self.alive:
            self.status, self.reason = "skipped", reason

    def add(self, verification: Verification, when: str = "") -> None:
        """Take in a verification; one that did not pass fails the row."""
        self.verifications.append(verification)
        if not verification.passed and not self.counter_example:
            shape = " ".join(f"{k}={v}" for k, v in verification.shape.items())
            self.fail(f"wrong {when}at {shape}: {verification.reason}")

    def result(self, shape: Shape, target: Target) -> Result:
        """The row as it is stored. A row that is not ok keeps no timings."""
        variant = self.variant
        flops, read, written = model(self.experiment, variant, shape)
        arch = self.compiled.arch if self.compiled else ""
        grid = block = None
        shared = 0
        compilations: tuple[Compilation, ...] = ()
        if isinstance(variant, Kernel):
            grid, block, shared = launch_of(variant, shape, target)
            if self.compiled is not None:
                compilations = (
                    compilation_of(self.experiment, variant, self.compiled, shape, target),
                )
        note = {} if variant.kind in ("kernel", "transfer") else _note(variant)
        return Result(
            variant=variant.name,
            kind=variant.kind,
            status=self.status,
            reason=self.reason,
            key=variant_key(self.experiment, variant, arch, shape, target),
            grid=grid,
            block=block,
            dynamic_shared=shared,
            flops=flops,
            bytes_read=read,
            bytes_written=written,
            compilations=compilations,
            verifications=tuple(self.verifications),
            timings=tuple(self.timings) if self.alive else (),
            counters=dict(self.counters),
            note=note,
        )


def _note(variant: Variant) -> dict[str, str]:
    note = variant.note if isinstance(variant, Library) else getattr(variant, "note", None)
    return {"zh": note.zh, "en": note.en} if note is not None and note.en else {}


def of_check(shape: Shape, said: str) -> Verification:
    """The verdict of a row that checks itself (`gpu.backend.Routine`): ``said`` is what is wrong,
    "" for nothing. No errors are measured."""
    return Verification(shape, not said, 0.0, 0.0, 0.0, said)


def timing_of(
    series: Series,
    *,
    cache: Literal["cold", "warm"],
    method: Literal["event", "graph", "host"],
    flush: str = "",
    launches: int = 1,
    readings: Sequence[ClockReading] = (),
) -> Timing:
    """A finished series as it is stored."""
    found = statistics(series.samples)
    reasons = sorted({reason for reading in readings for reason in reading.throttle})
    return Timing(
        cache=cache,
        method=method,
        flush=flush,
        launches_per_sample=launches,
        samples_us=tuple(round(s, 4) for s in series.samples),
        median_us=round(found.median, 4),
        q1_us=round(found.q1, 4),
        q3_us=round(found.q3, 4),
        min_us=round(found.minimum, 4),
        ci_low_us=round(found.ci_low, 4),
        ci_high_us=round(found.ci_high, 4),
        outliers=found.outliers,
        stop=series.stop,
        sm_clock_mhz=_median([r.sm_mhz for r in readings]),
        memory_clock_mhz=_median([r.memory_mhz for r in readings]),
        power_w=_median([r.power_w for r in readings]),
        temperature_c=_median([r.temperature_c for r in readings]),
        throttle=", ".join(reasons),
        floor_us=round(series.floor_us, 4),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(median(known), 2) if known else None
