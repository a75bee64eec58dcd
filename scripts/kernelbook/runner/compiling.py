"""The compile stage: every kernel for every architecture, in parallel, into compiled records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ..catalog import Catalog, Selection
from ..compiler import Compiled
from ..devices import Sheets
from ..errors import KernelbookError, RecordError
from ..experiment import Experiment, Kernel
from ..records import Compilation, Record, Result, load, path_of, save
from ..resources import compilation_of, compile_kernel
from ..staleness import kernel_key, launch_of
from .context import Context
from .outcome import Outcome
from .progress import Stage
from .provenance import record_of

# One architecture of each generation a reader may own, the reference device's among them.
ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_120")


def architectures(kernel: Kernel, sheets: Sheets) -> tuple[str, ...]:
    """The architectures a kernel is compiled for: all that have what it needs."""
    wanted = sorted({*ARCHITECTURES, sheets.device(sheets.reference).arch.name}, key=_number)
    return tuple(a for a in wanted if divmod(_number(a), 10) >= kernel.min_cc)


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def compile_all(
    context: Context, selections: Sequence[Selection], stage: Stage
) -> Iterator[Outcome]:
    """Compile what is selected and write the records whose key, or whose content, changed.

    Current records are left as they are unless ``context.again``. Every kernel is still compiled,
    from the cache where possible, so that a source that no longer compiles is always found.
    """
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        once = _Once(pool, context)
        jobs = {s.experiment.name: _submit(pool, s, context, once) for s in selections}
        for selection in selections:
            yield _finish(context, selection, jobs[selection.experiment.name])
            stage.step(selection.experiment.name)
    finally:  # a Ctrl-C waits for compilations under way, not for the hundreds that wait
        pool.shutdown(cancel_futures=True)


Jobs = dict[str, list[Future[Compilation]]]


class _Once:
    """Compilations under way: what several experiments launch is compiled for the first of them."""

    def __init__(self, pool: ThreadPoolExecutor, context: Context) -> None:
        self._pool = pool
        self._cache = context.cache / "compile"
        self._jobs: dict[tuple[object, ...], Future[Compiled]] = {}

    def submit(self, experiment: Experiment, kernel: Kernel, arch: str) -> Future[Compiled]:
        macros = tuple(sorted(kernel.macros.items()))
        source = experiment.folder / kernel.source
        question = (source, kernel.entry, macros, kernel.options, arch)
        if question not in self._jobs:
            self._jobs[question] = self._pool.submit(
                compile_kernel, experiment, kernel, arch, self._cache
            )
        return self._jobs[question]


def _submit(pool: ThreadPoolExecutor, selection: Selection, context: Context, once: _Once) -> Jobs:
    experiment, sheets = selection.experiment, context.sheets
    target = sheets.device(sheets.reference).target

    def describe(kernel: Kernel, compiled: Future[Compiled]) -> Compilation:
        # Its job was submitted before this one, so a pool of one thread does not wait for itself.
        return compilation_of(experiment, kernel, compiled.result(), experiment.shape, target)

    jobs: Jobs = {}
    for kernel in experiment.kernels:
        if kernel.name in selection.variants:
            compiled = [once.submit(experiment, kernel, a) for a in architectures(kernel, sheets)]
            jobs[kernel.name] = [pool.submit(describe, kernel, c) for c in compiled]
    return jobs


def _finish(context: Context, selection: Selection, jobs: Jobs) -> Outcome:
    experiment = selection.experiment
    failures: list[str] = []
    rows: dict[str, Result] = {}
    for name, futures in jobs.items():
        try:
            rows[name] = _row(experiment, name, tuple(f.result() for f in futures), context.sheets)
        except (KernelbookError, OSError) as error:
            failures.append(f"{experiment.name}/{name}: {error}")
            rows[name] = Result(name, "kernel", status="failed", reason=portable(error))
    record = record_of(experiment, "compiled", experiment.shape, context.provenance)
    old = existing(context.results, record)
    merged = merge(experiment, rows, old)
    if old and not context.again and same_code(old.results, merged):
        return Outcome("compile", experiment.name, old, False, tuple(failures))
    record = replace(record, results=merged)
    if merged:
        save(context.results, record)
    return Outcome("compile", experiment.name, record, True, tuple(failures))


def drop_stood_for(results: Path, catalog: Catalog) -> None:
    """Remove compiled and counted records of members of a sweep that another one stands for now.

    Their kernels were other ones before, say for a tuning table that has changed; such a record
    would be stale for ever. Raises RecordError where the folder cannot be written.
    """
    for experiment in catalog.experiments:
        if catalog.stands_for(experiment.name) == experiment.name:
            continue
        for evidence in ("compiled", "counted"):
            path = results / "data" / evidence / f"{experiment.name}.json"
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise RecordError(f"cannot be removed: {error.strerror}", file=path) from error


def merge(
    experiment: Experiment, rows: Mapping[str, Result], old: Record | None
) -> tuple[Result, ...]:
    """New rows, and the old ones of kernels not asked for this time, in the author's order."""
    kept = {r.variant: r for r in old.results} if old else {}
    every = {**kept, **rows}
    return tuple(every[k.name] for k in experiment.kernels if k.name in every)


def same_code(old: Sequence[Result], new: Sequence[Result]) -> bool:
    """Whether two sets of rows speak of the same code: variants, status and keys.

    Another compiler version may give other registers under the same key; that alone does not
    replace a published row.
    """
    return [_identity(r) for r in old] == [_identity(r) for r in new]


def _identity(result: Result) -> tuple[object, ...]:
    return result.variant, result.status, tuple((c.arch, c.key) for c in result.compilations)


def existing(results: Path, record: Record) -> Record | None:
    """The record that stands where this one would go, None where there is none.

    Raises RecordError for a broken one: it is somebody's, so it is not overwritten unasked.
    """
    path = path_of(results, record)
    return load(path) if path.is_file() else None


def _row(
    experiment: Experiment, name: str, compilations: tuple[Compilation, ...], sheets: Sheets
) -> Result:
    kernel = next(k for k in experiment.kernels if k.name == name)
    target = sheets.device(sheets.reference).target
    grid, block, dynamic = launch_of(kernel, experiment.shape, target)
    if not compilations:
        raise RecordError(f"{name} needs a newer architecture than any that is compiled for")
    return Result(
        variant=name,
        kind="kernel",
        key=kernel_key(experiment, kernel, compilations[-1].arch, experiment.shape, target),
        grid=grid,
        block=block,
        dynamic_shared=dynamic,
        compilations=compilations,
    )


def portable(error: Exception) -> str:
    """The sentence without this machine's paths, since records are published."""
    if isinstance(error, KernelbookError) and error.file:
        return f"{Path(error.file).name}:{error.line or 1}: {error.what}"
    return str(error)
