"""The two tables of the command line: what there is, and how a run went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from ..catalog import Selection
from ..records import Record, Result
from ..report.rows import shape_text
from .outcome import Outcome
from .progress import Display


def list_everything(display: Display, selections: Sequence[Selection]) -> None:
    """Chapters, experiments or sweeps, and variants, one row each."""
    rows = []
    for _, group in groupby(selections, lambda s: s.experiment.sweep or s.experiment.name):
        members = [s.experiment for s in group]
        e, sweep = members[0], members[0].sweep
        if sweep is None:
            rows.append([e.chapter, e.name, "", shape_text(e.shape), e.title.en])
        else:
            ends = f"{e.name} to {members[-1].name}" if len(members) > 1 else e.name
            count = f"{len(members)} experiments"
            rows.append([e.chapter, sweep.name, "", count, f"{sweep.title.en}: {ends}"])
        asked = {name for s in selections if s.experiment is e for name in s.variants}
        for variant in (v for v in e.variants if v.name in asked):
            rows.append(["", "", variant.name, variant.kind, variant.title.en])
    display.table(
        "Experiments (--only takes any of the first three columns)",
        ("chapter", "experiment or sweep", "variant", "shape or kind", "what it is"),
        rows,
    )


def closing_table(
    display: Display, selections: Sequence[Selection], outcomes: Sequence[Outcome]
) -> None:
    """One row a variant: what each stage found."""
    records = {(o.stage, o.experiment): o.record for o in outcomes if o.record is not None}
    rows = []
    for s in selections:
        for name in s.variants:
            cells = [
                _cell(records.get((stage, s.experiment.name)), name, shown)
                for stage, shown in (
                    ("compile", _compiled),
                    ("count", _counted),
                    ("measure", _measured),
                )
            ]
            if any(cells):
                rows.append([s.experiment.name, name, *cells])
    if not rows:
        return
    display.table(
        "Results",
        ("experiment", "variant", "compiled (sm_90)", "verified and counted", "measured"),
        rows,
    )


def _cell(record: Record | None, variant: str, show: Callable[[Result], str]) -> str:
    result = record.result(variant) if record else None
    if result is None:
        return ""
    if result.status != "ok":
        return result.status
    return show(result)


def _compiled(result: Result) -> str:
    for c in result.compilations:
        if c.arch == "sm_90":
            return f"{c.registers} regs, {c.shared_bytes} B shared, {c.occupancy:.0%} occupancy"
    return "not for sm_90"


def _counted(result: Result) -> str:
    if not result.counts:
        return "not counted"
    loads = result.counts.get("global_load_sectors", 0.0)
    shapes = len(result.verifications)
    findings = f", {len(result.findings)} findings" if result.findings else ""
    return f"{shapes} shapes right, {loads:,.0f} sectors read{findings}"


def _measured(result: Result) -> str:
    cold = next((t for t in result.timings if t.cache == "cold"), None)
    timing = cold or next(iter(result.timings), None)
    if timing is None:
        return "not timed"
    spread = (timing.q3_us - timing.q1_us) / timing.median_us
    text = f"{timing.median_us:,.1f} µs ±{spread / 2:.1%}"
    moved = result.bytes_read + result.bytes_written
    if result.flops and result.kind != "transfer" and result.flops / max(moved, 1) > 1:
        return f"{text}, {result.flops / timing.median_us / 1e6:,.2f} TFLOPS"
    return f"{text}, {moved / timing.median_us / 1e3:,.0f} GB/s" if moved else text
