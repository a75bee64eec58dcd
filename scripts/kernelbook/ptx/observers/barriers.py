"""Checks block barriers: the lanes of a warp must come to one and the same barrier instruction.

``bar.sync`` and its kin are for whole warps. When only some lanes of a warp reach one, because the
barrier stands in a branch that the others did not take, hardware hangs or worse. Lanes that have
returned do not count.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event
from .findings import Finding, FindingLog, place
from .order import sync_kind

NOWHERE = -1


class BarrierObserver:
    """Reports divergent barriers."""

    def __init__(self) -> None:
        self.log = FindingLog()

    def begin_batch(self, batch: Batch) -> None:
        self._batch = batch
        shape = (batch.blocks, batch.warps_per_block * WARP)
        self._kinds = tuple(sync_kind(i) for i in batch.launch.kernel.instructions)
        self._live = batch.exists.reshape(shape).copy()
        self._at = np.full(shape, NOWHERE, dtype=np.int32)  # pc of the barrier a lane waits at
        self._number = np.full(shape, NOWHERE, dtype=np.int16)  # and which barrier that is

    def on_event(self, event: Event) -> None:
        kind = self._kinds[event.instruction.pc]
        if kind == "exit":
            self._live &= ~event.active.reshape(self._live.shape)
        elif kind == "sync":
            active = event.active.reshape(self._at.shape)
            self._at[active] = event.instruction.pc
            self._number[active] = event.barrier or 0

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        at = self._at[blocks].reshape(blocks.size, -1, WARP)
        live = self._live[blocks].reshape(at.shape)
        waiting = (self._number[blocks].reshape(at.shape) == barrier) & (at != NOWHERE)
        here = waiting.any(axis=2) & live.any(axis=2)
        highest = np.where(waiting, at, -1).max(axis=2, keepdims=True)
        apart = live & (at != highest) & here[:, :, None]
        if apart.any():
            self._report(blocks, at, apart, highest)
        at[waiting] = NOWHERE
        self._at[blocks] = at.reshape(blocks.size, -1)

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish: a barrier that never completes is the machine's to report."""

    def findings(self, files: Mapping[int, str]) -> tuple[Finding, ...]:
        return self.log.findings(files)

    def _report(
        self,
        blocks: NDArray[np.int64],
        at: NDArray[np.int32],
        apart: NDArray[np.bool_],
        highest: NDArray[np.int32],
    ) -> None:
        instructions = self._batch.launch.kernel.instructions
        for index, warp in zip(*np.nonzero(apart.any(axis=2)), strict=True):
            pc = int(highest[index, warp, 0])
            others = np.unique(at[index, warp][apart[index, warp]])
            key = ("divergent-barrier", pc, tuple(int(o) for o in others))
            finding = None
            if not self.log.knows(key):
                block = self._batch.first_block + int(blocks[index])
                came = warp * WARP + int(np.argmax(at[index, warp] == pc))
                missing = warp * WARP + int(np.argmax(apart[index, warp]))
                other = int(at[index, warp, missing % WARP])
                where = instructions[pc if other == NOWHERE else other]
                verb = "does not come to the barrier" if other == NOWHERE else "waits"
                finding = Finding(
                    "divergent-barrier",
                    "",
                    "lanes of one warp do not wait together",
                    place(self._batch, block, came, instructions[pc], "waits"),
                    place(self._batch, block, missing, where, verb),
                )
            self.log.add(key, 1, finding)
