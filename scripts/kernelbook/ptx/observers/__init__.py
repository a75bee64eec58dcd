"""Observers: what counts and what checks while the machine executes, one file each.

``default_observers()`` makes a fresh set of all of them; ``counts_of`` and ``findings_of`` read the
results of whichever observers were on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..counts import Counts, KernelCounts, LineCounts
from ..events import Observer
from ..module import Kernel
from .barriers import BarrierObserver
from .findings import Finding, Place
from .global_memory import GlobalObserver
from .global_races import GlobalRaceObserver
from .instructions import InstructionObserver
from .shared_memory import SharedObserver
from .shared_races import SharedRaceObserver
from .shared_requests import Request, RequestObserver

__all__ = [
    "BarrierObserver",
    "Finding",
    "GlobalObserver",
    "GlobalRaceObserver",
    "InstructionObserver",
    "Place",
    "Request",
    "RequestObserver",
    "SharedObserver",
    "SharedRaceObserver",
    "check_observers",
    "count_observers",
    "counts_of",
    "default_observers",
    "findings_of",
    "requests_of",
]

Check = SharedRaceObserver | GlobalRaceObserver | BarrierObserver


def default_observers() -> tuple[Observer, ...]:
    """A fresh set of every observer: all counts, all checks, and what a bank map shows."""
    return (*count_observers(), *check_observers(), RequestObserver())


def count_observers() -> tuple[Observer, ...]:
    """A fresh set of those that count."""
    return InstructionObserver(), GlobalObserver(), SharedObserver()


def check_observers() -> tuple[Observer, ...]:
    """A fresh set of those that check."""
    return SharedRaceObserver(), GlobalRaceObserver(), BarrierObserver()


def counts_of(
    kernel: Kernel, observers: Iterable[Observer], files: Mapping[int, str]
) -> KernelCounts:
    """Counts for the whole kernel and for each source line that executed.

    Parameters
    ----------
    files : path by index, as in ``Module.files``.
    """
    every = tuple(observers)
    by_line: dict[tuple[int, int], list[int]] = defaultdict(list)
    for instruction in kernel.instructions:
        if instruction.line:
            by_line[instruction.file, instruction.line].append(instruction.pc)
    lines = [
        LineCounts(files.get(file, ""), line, _counts(every, pcs))
        for (file, line), pcs in sorted(by_line.items())
    ]
    total = _counts(every, range(len(kernel.instructions)))
    return KernelCounts(kernel.name, total, tuple(row for row in lines if any_counted(row.counts)))


def findings_of(observers: Iterable[Observer], files: Mapping[int, str]) -> tuple[Finding, ...]:
    """What the checks among the observers found, check by check."""
    found: list[Finding] = []
    for observer in observers:
        if isinstance(observer, Check):
            found += observer.findings(files)
    return tuple(found)


def requests_of(
    observers: Iterable[Observer], files: Mapping[int, str]
) -> dict[str, tuple[Request, ...]]:
    """By "file:line", what one warp asked of shared memory; empty where nobody remembered it."""
    followers = (o for o in observers if isinstance(o, RequestObserver))
    return next((o.by_line(files) for o in followers), {})


def any_counted(counts: Counts) -> bool:
    """Whether anything but ratios is above zero."""
    ratios = ("shared_conflict_degree", "threads_per_instruction")
    return any(value for name, value in counts.to_dict().items() if name not in ratios)


def _counts(observers: tuple[Observer, ...], pcs: Sequence[int]) -> Counts:
    instructions = global_memory = shared_memory = None
    for observer in observers:
        if isinstance(observer, InstructionObserver):
            instructions = observer.counts(pcs)
        elif isinstance(observer, GlobalObserver):
            global_memory = observer.counts(pcs)
        elif isinstance(observer, SharedObserver):
            shared_memory = observer.counts(pcs)
    return Counts(instructions, global_memory, shared_memory)
