"""Flags: which locations of global memory carry knowledge, and what a flag's reader has seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch
from .global_shadow import GlobalShadow, Touch
from .knowledge import BlockKnowledge, Join, Knowledge
from .order import Order

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Flags are read and written by few lanes at a time; a larger event is data, and not followed.
_FEW = 1024


class Releases:
    """Fences of the current batch's lanes, and the flags written after them in the whole launch.

    ``flagged`` marks granules that carry a release.
    """

    def __init__(self, shadow: GlobalShadow) -> None:
        self.flagged = np.zeros(shadow.written.size, dtype=np.bool_)
        self.join = Join()
        self._records: dict[int, Knowledge] = {}
        # By granule: who wrote it strongly (all who updated it atomically), and in which tick.
        self._writers: dict[int, dict[int, int]] = {}
        # By block, then by other block: tick of the latest flag write of the other it has read.
        self._saw: dict[int, dict[int, int]] = {}

    def begin_batch(self, batch: Batch, order: Order) -> None:
        self._order = order
        self._first = batch.first_block
        shape = (batch.blocks, batch.warps_per_block * WARP)
        self._fenced = np.zeros(shape, dtype=np.int64)  # tick before a lane's last fence
        # What the lane knew of its block's warps at that fence; made when there is a fence.
        self._known = np.zeros((0, 0, 0), dtype=np.int32)

    def fence(self, lanes: Mask) -> None:
        """Lanes (blocks, lanes a block) have fenced: accesses before the present tick are out."""
        if not self._known.size:
            self._known = np.zeros((*self._fenced.shape, self._order.known.shape[2]), np.int32)
        block, lane = np.nonzero(lanes)
        self._fenced[block, lane] = self._order.tick - 1
        self._known[block, lane] = self._order.known[block, lane // WARP]

    def note_read(self, touch: Touch, known: dict[int, BlockKnowledge]) -> None:
        """A strong read: of flags it learns what they carry."""
        acquires = touch.instruction.has("acquire")
        for at in np.flatnonzero(self.flagged[touch.granule]).tolist():
            self._acquire(touch, at, known, acquires)
        if touch.granule.size <= _FEW:
            for at in range(touch.granule.size):
                self._see(touch, at)

    def note_write(self, touch: Touch, known: dict[int, BlockKnowledge]) -> None:
        """A plain write unmakes a flag, a strong one after a fence makes one."""
        self.flagged[touch.granule] = False
        if not touch.strong:
            return
        if touch.instruction.has("release"):
            self._fence_now(touch)
        for at in np.flatnonzero(self._may_release(touch)).tolist():
            self._release(touch, at, known)
        if touch.granule.size <= _FEW:
            for block, granule in zip(touch.block.tolist(), touch.granule.tolist(), strict=True):
                self._writers[granule] = {block: touch.tick}

    def note_atomic(self, touch: Touch, known: dict[int, BlockKnowledge]) -> None:
        """Atomic updates, lane after lane: each reads what the one before left, then adds to it."""
        both = touch.instruction.has("acq_rel")
        reads = touch.instruction.opcode == "atom"
        acquires = both or touch.instruction.has("acquire")
        if both or touch.instruction.has("release"):
            self._fence_now(touch)
        releases = self._may_release(touch)
        chained = self.flagged[touch.granule] | np.isin(touch.granule, touch.granule[releases])
        for at in np.flatnonzero(chained).tolist():
            if reads and self.flagged[touch.granule[at]]:
                self._acquire(touch, at, known, acquires)
            if releases[at]:
                self._release(touch, at, known)
        if touch.granule.size <= _FEW:
            for at in range(touch.granule.size):
                if reads:
                    self._see(touch, at)
                writers = self._writers.setdefault(int(touch.granule[at]), {})
                writers[int(touch.block[at])] = touch.tick

    def saw_flag_after(self, block: Integers, other: Integers, tick: Integers) -> Mask:
        """Whether a block has read a flag that another wrote after ``tick``: (n,) bool."""
        pairs = zip(block.tolist(), other.tolist(), tick.tolist(), strict=True)
        return np.array([self._saw.get(b, {}).get(o, 0) > t for b, o, t in pairs], dtype=np.bool_)

    def _may_release(self, touch: Touch) -> Mask:
        """Which lanes belong to a block in which somebody has fenced."""
        fenced = np.asarray(self._fenced.any(axis=1))
        return np.asarray(fenced[touch.block - self._first])

    def _fence_now(self, touch: Touch) -> None:
        lanes = np.zeros(self._fenced.shape, dtype=np.bool_)
        lanes[touch.block - self._first, touch.lane] = True
        self.fence(lanes)

    def _acquire(
        self, touch: Touch, at: int, known: dict[int, BlockKnowledge], fenced: bool
    ) -> None:
        knows = known.setdefault(int(touch.block[at]), BlockKnowledge(self.join))
        knows.see(int(touch.lane[at]), self._records[int(touch.granule[at])], fenced)

    def _see(self, touch: Touch, at: int) -> None:
        writers = self._writers.get(int(touch.granule[at]))
        if not writers:
            return
        saw = self._saw.setdefault(int(touch.block[at]), {})
        for block, tick in writers.items():
            if saw.get(block, 0) < tick:
                saw[block] = tick

    def _release(self, touch: Touch, at: int, known: dict[int, BlockKnowledge]) -> None:
        block, lane, granule = int(touch.block[at]), int(touch.lane[at]), int(touch.granule[at])
        local = block - self._first
        fences = self._fenced[local]
        now = np.repeat(self._order.known[local, lane // WARP], WARP)
        # Lanes that fenced by themselves before a barrier this lane has passed ...
        out = np.where(fences <= now, fences, 0)
        if fences[lane]:  # ... and all that was ordered before this lane's own fence.
            out = np.maximum(out, np.repeat(self._known[local, lane], WARP))
            out[lane] = max(out[lane], fences[lane])
        if not out.any():
            return
        record = Knowledge({block: out}, {granule: touch.tick})
        if block in known:
            record = self.join(known[block].passed_on(lane), record)
        if touch.access == "atomic" and self.flagged[granule]:
            record = self.join(self._records[granule], record)
        self._records[granule] = record
        self.flagged[granule] = True
