"""Measure one experiment, whatever its kernels do: a child a try, and a row for every variant.

A row that faults, hangs or kills its process is left out of a fresh child, which measures the rest
from the beginning: a ratio within a record is always of one run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from .. import codec
from ..errors import DeviceError
from ..experiment import Experiment, Kernel
from ..gpu import ncu
from ..gpu.backend import backend_class
from ..gpu.device_info import target_of
from ..records import DeviceInfo, Record
from .lock import gpu_lock
from .process import Crew, child_environment
from .provenance import provenance, record_of
from .request import MeasureSettings, Request
from .rows import Row

__all__ = ["MeasureSettings", "measure"]


def measure(
    experiment: Experiment,
    variants: tuple[str, ...] | None,
    settings: MeasureSettings,
    report: Callable[[str], None],
    crew: Crew | None = None,
) -> Record:
    """The record of an experiment (all its variants, or those named) on this machine's GPU.

    ``report`` is told one line now and then; a ``crew`` keeps a sweep's process from one member to
    the next. A sweep is timed, not profiled. Never raises for what a kernel does: a row that
    failed says why. Raises DeviceError where there is no GPU or another run holds it.
    """
    backend = backend_class(settings.backend)
    device = backend.probe(settings.device_index)
    if isinstance(device, str):
        raise DeviceError(device)
    wanted = tuple(v.name for v in experiment.variants if variants is None or v.name in variants)
    with (
        gpu_lock(backend.identity(settings.device_index)),
        nullcontext(crew) if crew else Crew(settings) as workers,
    ):
        record = _measure_what_can_be(experiment, wanted, settings, device, report, workers)
        if settings.profile and experiment.sweep is None:
            return _profiled(experiment, record, settings, report)
        return record


def _measure_what_can_be(
    experiment: Experiment,
    wanted: tuple[str, ...],
    settings: MeasureSettings,
    device: DeviceInfo,
    report: Callable[[str], None],
    crew: Crew,
) -> Record:
    """Children until one brings a record; each failure takes its row out."""
    lost: dict[str, str] = {}
    while left := tuple(name for name in wanted if name not in lost):
        request = Request.of(settings, experiment.name, left)
        sweep = f"{experiment.chapter}/{experiment.sweep.name}" if experiment.sweep else ""
        ended = crew.measure(request, sweep, report)
        if ended.record is not None:
            return _with_lost(experiment, wanted, ended.record, lost, device)
        report(f"{experiment.name}/{ended.at or 'all rows'}: {ended.reason}")
        # Nobody at fault by name: a fresh child would only end the same way.
        lost |= dict.fromkeys([ended.at] if ended.at in left else left, ended.reason)
    origin = provenance(settings.root)
    nothing = record_of(experiment, "measured", experiment.shape, origin, device=device)
    return _with_lost(experiment, wanted, nothing, lost, device)


def _with_lost(
    experiment: Experiment,
    wanted: tuple[str, ...],
    record: Record,
    lost: Mapping[str, str],
    device: DeviceInfo,
) -> Record:
    """The record with a failed row for everything that was lost, in the author's order."""
    rows = {r.variant: r for r in record.results}
    for name, reason in lost.items():
        row = Row(experiment, experiment.variant(name))
        row.fail(reason)
        rows[name] = row.result(dict(experiment.shape), target_of(device))
    return replace(record, results=tuple(rows[name] for name in wanted if name in rows))


def _profiled(
    experiment: Experiment,
    record: Record,
    settings: MeasureSettings,
    report: Callable[[str], None],
) -> Record:
    """The record with ncu's counters in every kernel row that is right and of one launch."""
    good = {r.variant for r in record.results if r.status == "ok"}
    kernels: list[Kernel] = [
        k for k in experiment.kernels if k.name in good and not (k.counter_example or k.then)
    ]
    if not kernels:
        return record
    report(f"{experiment.name}: read counters of {len(kernels)} kernels with ncu")
    with tempfile.TemporaryDirectory(prefix="kernelbook-") as folder:
        asked = Path(folder) / "request.json"
        request = Request.of(settings, experiment.name, tuple(k.name for k in kernels))
        codec.write_atomically(asked, codec.to_json(request))
        found = ncu.read(
            [sys.executable, "-m", "kernelbook.runner.child", "--profile-child", str(asked)],
            [(k.name, k.entry) for k in kernels],
            timeout_s=settings.profile_limit_s,
            env=child_environment(),
        )
    notes = dict(record.notes)
    if found.note:
        notes["ncu"] = found.note
        report(f"{experiment.name}: ncu: {found.note}")
    results = tuple(
        replace(r, counters={**r.counters, **found.counters.get(r.variant, {})})
        for r in record.results
    )
    return replace(record, results=results, notes=notes)
