"""The count stage: every kernel executed, verified and counted by the emulator, in parallel.

Each kernel runs in a worker process, so that one that exhausts memory costs its own row.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from .. import catalog as catalogs
from .. import ptx
from ..catalog import Catalog, Selection
from ..devices import Sheets, sheets
from ..errors import KernelbookError, UnsupportedPtx
from ..experiment import SCALAR_TYPES, Arrays, Experiment, Kernel, Shape, Target
from ..records import Record, Result, SharedRequest, Verification, load, path_of, save
from ..resources import compilation_of, compile_kernel
from ..sources import layout
from ..staleness import kernel_key, launch_of, variant_key
from ..verify import verify_kernel
from .compiling import existing, merge, portable
from .context import Context
from .orphans import die_with_parent
from .outcome import Outcome
from .progress import Stage
from .provenance import Provenance, record_of

Question = tuple[object, ...]
Jobs = dict[Question, Future[Result]]
Known = dict[tuple[str, str], Result]  # by experiment and variant


def count_all(context: Context, selections: Sequence[Selection], stage: Stage) -> Iterator[Outcome]:
    """Count what has no current record and write the records, one experiment after another.

    What two experiments ask in the same words (the same kernel, sizes, bounds and model) is
    executed once. A row that stands is the experiment's own: another one verifies otherwise.
    """
    known = {} if context.again else _current(context, selections)
    spawn = get_context("spawn")
    with ProcessPoolExecutor(
        os.cpu_count() or 1, spawn, initializer=die_with_parent, initargs=(os.getpid(),)
    ) as pool:
        try:
            with _uninterrupted():
                jobs = _submit(pool, context, selections, known)
            for selection in selections:
                yield _finish(context, selection, jobs, known)
                stage.step(selection.experiment.name)
        except KeyboardInterrupt:
            _stop(pool)
            raise


def _submit(
    pool: ProcessPoolExecutor,
    context: Context,
    selections: Sequence[Selection],
    known: Known,
) -> Jobs:
    jobs: Jobs = {}
    for selection in selections:
        for kernel in _kernels(selection):
            name = selection.experiment.name
            question = _question(selection.experiment, kernel, context.sheets)
            if (name, kernel.name) not in known and question not in jobs:
                jobs[question] = pool.submit(
                    _count_in_worker, context.root, name, kernel.name, context.cache
                )
    return jobs


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds signals back while workers are started: one that is started by half dies with a
    traceback. Workers inherit the mask, so nothing but the parent ends them."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def count_kernel(
    experiment: Experiment, kernel: Kernel, cache: Path, target: Target, arch: str
) -> Result:
    """Execute one kernel on the emulator: counts at its emulator shape, verified there and on
    every ragged shape. Never raises for what the kernel does wrong: the row says it."""
    compiled = compile_kernel(experiment, kernel, arch, cache / "compile")
    shape = experiment.emulator_shape
    grid, block, dynamic = launch_of(kernel, shape, target)
    row = Result(
        variant=kernel.name,
        kind="kernel",
        key=kernel_key(experiment, kernel, arch, shape, target),
        grid=grid,
        block=block,
        dynamic_shared=dynamic,
        flops=experiment.flops(shape),
        bytes_read=experiment.bytes_read(shape),
        bytes_written=experiment.bytes_written(shape),
        compilations=(compilation_of(experiment, kernel, compiled, shape, target),),
    )
    module = ptx.parse(compiled.ptx)
    state = device_state(module)
    runs: list[ptx.Run] = []

    def launch(kernel: Kernel, shape: Shape, arrays: Arrays) -> None:
        for each in kernel.launches:
            grid, block, dynamic = launch_of(each, shape, target)
            arguments = [_argument(each, name, shape, arrays) for name in each.args]
            done = ptx.run(
                module, each.entry, grid, block, arguments,
                shared=dynamic, names=each.args, variables=state,
            )  # fmt: skip
            runs.append(done)

    verifications: list[Verification] = []
    counted: ptx.KernelCounts | None = None
    requests: dict[str, tuple[SharedRequest, ...]] = {}
    findings: dict[object, ptx.Finding] = {}
    try:
        for number, each in enumerate(_verified_at(experiment)):
            runs.clear()
            found = verify_kernel(
                experiment, kernel, each, target, launch, np, launches=2 if number else 1
            )
            verifications.append(found)
            first = runs[: len(kernel.launches)]
            if counted is None:
                counted = ptx.together([run.counts for run in first])
                requests = _requests(first)
            for run in first:
                findings = {**by_line(run.findings), **findings}
    except UnsupportedPtx as error:
        return replace(row, status="skipped", reason=f"GPU only: {error.what}")
    except KernelbookError as error:
        return replace(row, status="failed", reason=error.what)
    assert counted is not None
    row = replace(
        row,
        verifications=tuple(verifications),
        counts=counted.to_dict(),
        lines=counted.lines_dict(),
        requests=requests,
        layout=layout(experiment.folder / kernel.source),
        findings=tuple(map(str, findings.values())),
    )
    # What the checks could not judge is said in the row, but it is no fault.
    return _judge(kernel, row, [str(f) for f in findings.values() if f.kind != "not-judged"])


def _requests(runs: Sequence[ptx.Run]) -> dict[str, tuple[SharedRequest, ...]]:
    """Of several launches, the first that reaches a line."""
    found: dict[str, tuple[SharedRequest, ...]] = {}
    for run in runs:
        for place, requests in run.requests.items():
            made = tuple(SharedRequest(**vars(r)) for r in requests)
            found.setdefault(place, made)
    return found


def device_state(module: ptx.Module) -> dict[str, Any]:
    """Bytes of the module's ``__device__`` variables: they outlive a launch, as on a card.

    A variable that holds an address is left out; it gets a new one with each launch.
    """
    return {
        v.name: np.frombuffer(v.initial.ljust(v.size, b"\0"), np.uint8).copy()
        for v in module.variables
        if v.space == "global" and v.size and not v.relocations
    }


def by_line(findings: Sequence[ptx.Finding]) -> dict[object, ptx.Finding]:
    """One finding a pair of source lines and array: an unrolled loop is one fault, not thirty.

    Each is the first example seen; its count is the sum over all of them.
    """
    merged: dict[object, ptx.Finding] = {}
    for found in findings:
        key = (
            found.kind,
            found.detail,
            found.what.split("[")[0],
            found.first and (found.first.file, found.first.line, found.first.access),
            found.second and (found.second.file, found.second.line, found.second.access),
        )
        old = merged.get(key)
        merged[key] = replace(old, count=old.count + found.count) if old else found
    return merged


def _judge(kernel: Kernel, row: Result, faults: Sequence[str]) -> Result:
    wrong = [*(v.reason for v in row.verifications if not v.passed), *faults]
    if kernel.counter_example:
        if wrong:
            return row
        return replace(
            row, status="failed", reason="is wrong on purpose, but nothing wrong was found"
        )
    return replace(row, status="failed", reason=wrong[0]) if wrong else row


def _argument(kernel: Kernel, name: str, shape: Shape, arrays: Arrays) -> Any:
    if name in arrays:
        return arrays[name]
    scalar = kernel.scalars.get(name, "int32")
    if scalar not in SCALAR_TYPES:
        raise KernelbookError(f"{kernel.name}: {name} has the unknown type {scalar!r}")
    return np.dtype(scalar).type(shape[name])


def _kernels(selection: Selection) -> tuple[Kernel, ...]:
    return tuple(
        k for k in selection.experiment.kernels if k.name in selection.variants and not k.gpu_only
    )


def _key(experiment: Experiment, kernel: Kernel, sheets: Sheets) -> str:
    reference = sheets.device(sheets.reference)
    shape = experiment.emulator_shape
    return kernel_key(experiment, kernel, reference.arch.name, shape, reference.target)


def _question(experiment: Experiment, kernel: Kernel, sheets: Sheets) -> Question:
    """All that a counted row answers: two kernels with equal ones get equal rows.

    The key alone is not enough, since it leaves out how a kernel is verified and what it is
    said to move: neither changes what the hardware does.
    """
    bounds, shape = experiment.tolerance, experiment.emulator_shape
    return (
        _key(experiment, kernel, sheets),
        kernel.counter_example,
        experiment.reference,
        tuple((b.name, b.role, b.dtype, b.low, b.high) for b in experiment.buffers),
        tuple(
            (*sorted(s.items()), bounds.relative, bounds.absolute, bounds.scale(s))
            for s in _verified_at(experiment)
        ),
        (experiment.flops(shape), experiment.bytes_read(shape), experiment.bytes_written(shape)),
    )


def _verified_at(experiment: Experiment) -> tuple[Shape, ...]:
    return (experiment.emulator_shape, *experiment.ragged)


def _current(context: Context, selections: Sequence[Selection]) -> Known:
    """Rows that stand: taken under the tree's key, verified at the tree's sizes, and by lines
    that are still the source's (a comment changes no number, but may move what it stands at)."""
    found: Known = {}
    for selection in selections:
        experiment = selection.experiment
        path = path_of(context.results, _empty(experiment, Provenance("", False, "")))
        if not path.is_file():
            continue
        record = load(path)
        sizes = [dict(s) for s in _verified_at(experiment)]
        for kernel in _kernels(selection):
            row = record.result(kernel.name)
            if (
                row is not None
                and row.status == "ok"
                and row.key == _key(experiment, kernel, context.sheets)
                and row.layout in ("", layout(experiment.folder / kernel.source))
                and [dict(v.shape) for v in row.verifications] == sizes
            ):
                found[experiment.name, kernel.name] = row
    return found


def _empty(experiment: Experiment, provenance: Provenance) -> Record:
    return record_of(experiment, "counted", experiment.emulator_shape, provenance)


def _finish(
    context: Context,
    selection: Selection,
    jobs: Jobs,
    known: Known,
) -> Outcome:
    experiment = selection.experiment
    rows: dict[str, Result] = {}
    target = context.sheets.device(context.sheets.reference).target
    for kernel in experiment.kernels:
        if kernel.gpu_only:
            rows[kernel.name] = Result(
                kernel.name,
                "kernel",
                status="skipped",
                reason=f"GPU only: {kernel.gpu_only}",
                key=variant_key(experiment, kernel, "", experiment.emulator_shape, target),
            )
        elif kernel.name in selection.variants:
            row = known.get((experiment.name, kernel.name)) or _result_of(
                jobs[_question(experiment, kernel, context.sheets)], kernel
            )
            # The same kernel may have been counted under another experiment's variant name.
            rows[kernel.name] = replace(row, variant=kernel.name)
    record = _empty(experiment, context.provenance)
    old = existing(context.results, record)
    merged = merge(experiment, rows, old)
    failures = tuple(
        f"{experiment.name}/{r.variant}: {r.reason}" for r in rows.values() if r.status == "failed"
    )
    if old and not context.again and old.results == merged:
        return Outcome("count", experiment.name, old, False, failures)
    record = replace(record, results=merged)
    if merged:
        save(context.results, record)
    return Outcome("count", experiment.name, record, True, failures)


def _result_of(job: Future[Result], kernel: Kernel) -> Result:
    try:
        return job.result()
    except KernelbookError as error:
        reason = portable(error)
    except BrokenProcessPool:
        reason = "its process died, most likely for lack of memory"
    return Result(kernel.name, "kernel", status="failed", reason=reason)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the workers at once: a Ctrl-C does not wait for a kernel to finish."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


@cache
def _tree(root: Path) -> Catalog:
    """The experiments, read once by each worker."""
    return catalogs.load(root)


def _count_in_worker(root: Path, experiment_name: str, kernel_name: str, cache: Path) -> Result:
    experiment = _tree(root).experiment(experiment_name)
    reference = sheets().device(sheets().reference)
    kernel = next(k for k in experiment.kernels if k.name == kernel_name)
    return count_kernel(experiment, kernel, cache, reference.target, reference.arch.name)
