"""Writes of ``cp.async`` that have been issued but not waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import Event
from ..module import Immediate
from .classes import BlockClasses
from .shadow import PENDING, Shadow, lane_of

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Writes:
    """Pending granules of one instruction, flat."""

    row: Integers
    lane: Integers
    granule: Integers
    group: Integers


class AsyncCopies:
    """The groups of every lane, for each class of blocks, and the granules still in flight."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._groups = np.zeros((1, lanes), dtype=np.int64)  # groups committed so far
        self._writes: list[_Writes] = []

    def __bool__(self) -> bool:
        return bool(self._writes)

    def issue(self, row: Integers, lane: Integers, granule: Integers) -> None:
        self._writes.append(_Writes(row, lane, granule, self._groups[row, lane]))

    def copy_row(self, old: int, new: int) -> None:
        if new >= self._groups.shape[0]:
            wider = np.zeros((2 * new + 1, self._lanes), dtype=np.int64)
            wider[: self._groups.shape[0]] = self._groups
            self._groups = wider
        self._groups[new] = self._groups[old]
        for writes in list(self._writes):
            mine = writes.row == old
            if mine.any():
                row = np.full(int(mine.sum()), new)
                self._writes.append(
                    _Writes(row, writes.lane[mine], writes.granule[mine], writes.group[mine])
                )

    def refine(self, factor: int) -> None:
        """Granules have become ``factor`` times smaller."""
        parts = np.arange(factor)
        self._writes = [
            _Writes(
                np.repeat(w.row, factor),
                np.repeat(w.lane, factor),
                (w.granule[:, None] * factor + parts).reshape(-1),
                np.repeat(w.group, factor),
            )
            for w in self._writes
        ]

    def control(self, event: Event, classes: BlockClasses, shadow: Shadow, tick: int) -> None:
        """commit_group, wait_group or wait_all; classes must already be split by active lanes."""
        instruction = event.instruction
        rows = classes.rows
        active = event.active.reshape(-1, self._lanes)[classes.first[rows]]
        if instruction.has("commit_group"):
            self._groups[rows] += active
            return
        left = instruction.operands[0] if instruction.operands else None
        outstanding = int(left.value) if isinstance(left, Immediate) else 0
        waits = np.zeros(self._groups.shape, dtype=np.bool_)
        waits[rows] = active
        # Groups before this one have landed; wait_all also covers what is not committed yet.
        last = self._groups + 1 if instruction.has("wait_all") else self._groups - outstanding
        self._land(waits, last, shadow, tick)

    def _land(self, waits: NDArray[np.bool_], last: Integers, shadow: Shadow, tick: int) -> None:
        left = []
        for w in self._writes:
            done = waits[w.row, w.lane] & (w.group < last[w.row, w.lane])
            row, granule, lane = w.row[done], w.granule[done], w.lane[done]
            pending = shadow.written[row, granule] == PENDING
            mine = pending & (lane_of(shadow.writer[row, granule]) == lane)
            shadow.written[row[mine], granule[mine]] = tick
            keep = ~done
            if keep.any():
                left.append(_Writes(w.row[keep], w.lane[keep], w.granule[keep], w.group[keep]))
        self._writes = left
