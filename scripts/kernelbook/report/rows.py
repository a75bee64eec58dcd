"""One row a number: what summary.csv lists and what an article's expressions look up.

Rates are computed here, from the stored samples and the author's FLOP and byte model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..catalog import Catalog
from ..devices import Sheets
from ..errors import KernelbookError, UsageError
from ..experiment import Experiment, Target
from ..metrics import metric
from ..quantities import Grade, Quantity, Source, unit_of
from ..records import Compilation, Record, Result, Stored, Timing
from ..staleness import Digest, kernel_key, source_digest, variant_key


@dataclass(frozen=True)
class Row:
    """One number with its provenance. ``value``, ``q1`` and ``q3`` are in ``unit``.

    ``device`` is a card's slug, for compiled rows an architecture, for counted rows "".
    ``cache`` is "cold", "warm" or "". ``current`` is False where the tree no longer has the key.
    """

    chapter: str
    experiment: str
    variant: str
    shape: str
    dtype: str
    cache: str
    device: str
    evidence: str
    metric: str
    value: float
    unit: str
    q1: float | None
    q3: float | None
    samples: int
    stale: bool
    local: bool
    path: Path
    record: Record
    result: Result

    @property
    def anchor(self) -> str:
        """Fragment of this row's line in the chapter's results page."""
        return anchor_of(self.experiment, self.variant)

    def quantity(self) -> Quantity:
        """The number with unit, grade and source, for an article's expression."""
        source = Source(
            Grade.parse(self.evidence),
            label=f"{self.experiment} / {self.variant} / {self.metric}"
            + (f", {self.device}" if self.device else ""),
            anchor=f"{self.chapter}#{self.anchor}",
            detail=self.detail,
            stale=self.stale,
        )
        factor = unit_of(self.unit)[1]
        return Quantity(
            self.value * factor,
            unit_of(self.unit)[0],
            Grade.parse(self.evidence),
            (source,),
            None if self.q1 is None else self.q1 * factor,
            None if self.q3 is None else self.q3 * factor,
        )

    @property
    def detail(self) -> str:
        """Where this number comes from, in one line."""
        parts = []
        if self.q1 is not None and self.q3 is not None:
            parts.append(f"q1–q3 {self.q1:,.4g}–{self.q3:,.4g} {self.unit}".rstrip())
        if self.samples:
            parts.append(f"{self.samples} samples")
        if self.cache:
            parts.append(f"{self.cache} L2")
        if self.record.citation is not None:
            parts += [self.record.citation.author, self.record.citation.title]
        if self.record.date:
            parts.append(self.record.date[:10])
        if self.record.commit:
            parts.append(self.record.commit[:10] + ("+" if self.record.dirty else ""))
        return " · ".join(parts)


def place_of(name: str) -> str:
    """The id of an experiment's or a sweep's section in a results page."""
    return name.lower().replace("_", "-")


def anchor_of(experiment: str, variant: str) -> str:
    """The id of a variant's line in a results page."""
    return place_of(f"{experiment}--{variant}").replace(".", "-")


def shape_text(shape: Mapping[str, int]) -> str:
    """A shape in one word: ``m=1024 n=1024 k=1024``."""
    return " ".join(f"{k}={v}" for k, v in shape.items())


def sizes_text(shape: Mapping[str, int]) -> str:
    """A shape for a reader: ``m = 1,024, n = 1,024, k = 1,024``."""
    return ", ".join(f"{name} = {size:,}" for name, size in shape.items())


def rows(
    stored: Iterable[Stored], catalog: Catalog, sheets: Sheets, digest: Digest = source_digest
) -> tuple[Row, ...]:
    """All numbers of these records, in the order of the records."""
    return tuple(row for item in stored for row in _rows_of(item, catalog, sheets, digest))


def is_stale(
    record: Record,
    result: Result,
    catalog: Catalog,
    sheets: Sheets,
    digest: Digest = source_digest,
) -> bool:
    """Whether the tree no longer has the key under which this result was taken."""
    if record.evidence in ("cited", "compiled"):
        return False  # citations do not age; each compilation carries its own key
    try:
        experiment = _experiment_of(record, catalog)
        variant = experiment.variant(result.variant)
        target = target_of(record, sheets)
        arch = result.compilations[0].arch if result.compilations else ""
        key = variant_key(experiment, variant, arch, record.shape, target, digest)
        return key != result.key
    except (KernelbookError, OSError):
        return True  # the experiment, variant or source is gone


def is_compilation_stale(
    record: Record,
    result: Result,
    compilation: Compilation,
    catalog: Catalog,
    sheets: Sheets,
    digest: Digest = source_digest,
) -> bool:
    """As `is_stale`, for one architecture of a compiled record."""
    try:
        experiment = _experiment_of(record, catalog)
        variant = experiment.variant(result.variant)
        if variant.kind != "kernel":
            return True
        target = target_of(record, sheets)
        key = kernel_key(experiment, variant, compilation.arch, record.shape, target, digest)
        return key != compilation.key
    except (KernelbookError, OSError):
        return True


def _experiment_of(record: Record, catalog: Catalog) -> Experiment:
    """The tree's experiment of a record; raises UsageError where it is gone or has other sizes."""
    experiment = catalog.experiment(record.experiment)
    if set(record.shape) != set(experiment.shape):  # what an author's functions would stumble over
        raise UsageError(f"{record.experiment} has other sizes than {shape_text(record.shape)}")
    return experiment


def target_of(record: Record, sheets: Sheets) -> Target:
    """What launch shapes of this record depended on: its own card, else the reference device."""
    if record.device is None:
        return sheets.device(sheets.reference).target
    arch = sheets.arch(f"sm_{record.device.cc[0]}{record.device.cc[1]}")
    return arch.target(record.device.sms, record.device.l2_bytes)


def _rows_of(item: Stored, catalog: Catalog, sheets: Sheets, digest: Digest) -> Iterator[Row]:
    record = item.record
    for result in record.results:
        stale = is_stale(record, result, catalog, sheets, digest)

        def row(
            name: str,
            value: float,
            *,
            unit: str | None = None,
            device: str = record.slug,
            timing: Timing | None = None,
            spread: tuple[float, float] | None = None,
            stale: bool = stale,
            result: Result = result,
        ) -> Row:
            return Row(
                chapter=record.chapter,
                experiment=record.experiment,
                variant=result.variant,
                shape=shape_text(record.shape),
                dtype=record.dtype,
                cache=timing.cache if timing else "",
                device=device,
                evidence=record.evidence,
                metric=name,
                value=value,
                unit=metric(name).unit if unit is None else unit,
                q1=spread[0] if spread else None,
                q3=spread[1] if spread else None,
                samples=len(timing.samples_us) if timing else 0,
                stale=stale,
                local=item.local,
                path=item.path,
                record=record,
                result=result,
            )

        if record.evidence == "compiled":
            for c in result.compilations:
                old = is_compilation_stale(record, result, c, catalog, sheets, digest)
                for name, value in compilation_values(c).items():
                    yield row(name, value, device=c.arch, stale=old)
        for timing in result.timings:
            spread = (timing.q1_us, timing.q3_us)
            yield row("time", timing.median_us, timing=timing, spread=spread)
            for name, amount, scale in (
                ("bandwidth", result.bytes_read + result.bytes_written, 1e3),
                ("throughput", result.flops, 1e6),
            ):
                if amount:
                    # amount / µs: bytes/µs / 1e3 = GB/s, FLOP/µs / 1e6 = TFLOPS; the slow
                    # quartile of the time is the low quartile of the rate.
                    low, high = amount / timing.q3_us / scale, amount / timing.q1_us / scale
                    yield row(
                        name, amount / timing.median_us / scale, timing=timing, spread=(low, high)
                    )
            if timing.sm_clock_mhz:
                yield row("sm_clock", timing.sm_clock_mhz, timing=timing)
        if errors := [v.max_error for v in result.verifications if v.shape == record.shape]:
            yield row("max_error", max(errors))
        for name, value in result.counts.items():
            yield row(name, value)
        for name, value in result.counters.items():
            yield row(name, value)
        for name, cited in result.cited.items():
            yield row(name, cited.value, unit=cited.unit)


def compilation_values(c: Compilation) -> dict[str, float]:
    """The numbers of a compilation by metric name; occupancy in percent."""
    return {
        "registers": c.registers,
        "shared_bytes": c.shared_bytes,
        "spill_store_bytes": c.spill_store_bytes,
        "spill_load_bytes": c.spill_load_bytes,
        "stack_bytes": c.stack_bytes,
        "blocks_per_sm": c.blocks_per_sm,
        "occupancy": c.occupancy * 100,
    }
