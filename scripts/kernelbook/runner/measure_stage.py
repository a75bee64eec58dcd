"""The measure stage: which records to take on this GPU, and where they go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..catalog import Catalog, Selection
from ..experiment import Experiment
from ..records import DeviceInfo, Record, load, save
from ..report.rows import is_stale
from .context import Context
from .measuring import MeasureSettings, measure
from .options import Options
from .outcome import Outcome
from .process import Crew
from .progress import Stage


def measure_all(
    context: Context,
    catalog: Catalog,
    selections: Sequence[Selection],
    options: Options,
    device: DeviceInfo,
    stage: Stage,
) -> Iterator[Outcome]:
    """Measure what has no current record on this card and write each record when it is done."""
    settings = MeasureSettings(
        root=context.root,
        device_index=options.device,
        quick=options.quick,
        profile=options.profile,
        cache_dir=context.cache,
    )
    with Crew(settings) as crew:
        for selection in selections:
            experiment = selection.experiment
            old = _old(context, experiment, device, options)
            wanted = _wanted(selection, old)
            if (
                old
                and not context.again
                and _is_current(old, wanted, context, catalog)
                and has_what_is_asked(old, experiment, options)
            ):
                yield Outcome("measure", experiment.name, old, False)
            else:
                tell = stage.note if experiment.sweep is None else stage.glance
                record = measure(experiment, wanted, settings, tell, crew)
                save(context.results, record, local=not options.publish)
                said = failures(record, options)
                yield Outcome("measure", experiment.name, record, True, said)
            stage.step(experiment.name)


def _old(
    context: Context, experiment: Experiment, device: DeviceInfo, options: Options
) -> Record | None:
    place = "data/measured" if options.publish else "local"
    path = context.results / place / device.slug / f"{experiment.name}.json"
    return load(path) if path.is_file() else None


def _wanted(selection: Selection, old: Record | None) -> tuple[str, ...]:
    """What is asked for, its baselines, and what the record already holds: a record is one run,
    so that a ratio within it is always of one run, and it is replaced whole."""
    held = {r.variant for r in old.results} if old else set()
    return tuple(
        v.name
        for v in selection.experiment.variants
        if v.name in selection.variants or v.kind != "kernel" or v.name in held
    )


def _is_current(old: Record, wanted: Sequence[str], context: Context, catalog: Catalog) -> bool:
    rows = {r.variant: r for r in old.results}
    return all(
        name in rows
        and rows[name].status != "failed"
        and not is_stale(old, rows[name], catalog, context.sheets)
        for name in wanted
    )


def has_what_is_asked(old: Record, experiment: Experiment, options: Options) -> bool:
    """Whether a current record will do: a quick one is a look, and no result; and a card's
    counters are read where ``--profile`` asks for them."""
    if "quick" in old.notes and not options.quick:
        return False
    profiled = {k.name for k in experiment.kernels if not k.counter_example}
    return (
        not options.profile
        or experiment.sweep is not None
        or all(r.counters for r in old.results if r.variant in profiled and r.status == "ok")
    )


def failures(record: Record, options: Options) -> tuple[str, ...]:
    """What was asked for and is not in the record, a sentence each."""
    rows = tuple(
        f"{record.experiment}/{r.variant}: {r.reason}"
        for r in record.results
        if r.status == "failed"
    )
    unread = options.profile and "ncu" in record.notes
    return (*rows, f"{record.experiment}: ncu: {record.notes['ncu']}") if unread else rows
