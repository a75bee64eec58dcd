"""Flags: which locations of global memory carry knowledge, and what a flag's reader has seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch
from .global_shadow import GlobalShadow, Touch, block_of, strong_of
from .knowledge import BlockKnowledge, Knowledge
from .order import Order

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Releases:
    """Fences of the current batch's lanes, and the flags written after them in the whole launch.

    ``flagged`` marks granules that carry a release.
    """

    def __init__(self, shadow: GlobalShadow) -> None:
        self._shadow = shadow
        self.flagged = np.zeros(shadow.written.size, dtype=np.bool_)
        self._records: dict[int, Knowledge] = {}
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

    def note_write(self, touch: Touch, known: dict[int, BlockKnowledge]) -> None:
        """A write: a strong one after a fence makes its location a flag, others unmake it."""
        if not touch.strong:
            self.flagged[touch.granule] = False
            return
        releases = touch.instruction.has("release") or touch.instruction.has("acq_rel")
        if releases:
            lanes = np.zeros(self._fenced.shape, dtype=np.bool_)
            lanes[touch.block - self._first, touch.lane] = True
            self.fence(lanes)
        if touch.access != "atomic":
            self.flagged[touch.granule] = False
        fenced = np.asarray(self._fenced.any(axis=1))[touch.block - self._first]
        for at in np.flatnonzero(fenced).tolist():
            self._release(touch, at, known)

    def record(self, granule: int) -> Knowledge:
        """What a flag carries."""
        return self._records[granule]

    def note_seen(self, touch: Touch) -> None:
        """Strong reads: remember how far into another block's writes its flags have been seen."""
        code = self._shadow.writer[touch.granule]
        tick = self._shadow.written[touch.granule]
        other = block_of(code)
        flags = (tick > 0) & strong_of(code) & (other != touch.block)
        for block, found, last in _latest(touch.block[flags], other[flags], tick[flags]):
            saw = self._saw.setdefault(block, {})
            saw[found] = max(saw.get(found, 0), last)

    def saw_flag_after(self, block: Integers, other: Integers, tick: Integers) -> Mask:
        """Whether a block has read a flag that another wrote after ``tick``: (n,) bool."""
        pairs = zip(block.tolist(), other.tolist(), tick.tolist(), strict=True)
        return np.array([self._saw.get(b, {}).get(o, 0) > t for b, o, t in pairs], dtype=np.bool_)

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
            record.learn(known[block].passed_on(lane))
        if touch.access == "atomic" and self.flagged[granule]:
            record.learn(self._records[granule])
        self._records[granule] = record
        self.flagged[granule] = True


def _latest(
    block: Integers, other: Integers, tick: NDArray[np.int32]
) -> list[tuple[int, int, int]]:
    """The largest tick of each (block, other) pair."""
    if not block.size:
        return []
    order = np.lexsort((tick, other, block))
    block, other, tick = block[order], other[order], tick[order]
    last = np.ones(block.size, dtype=np.bool_)
    last[:-1] = (block[1:] != block[:-1]) | (other[1:] != other[:-1])
    rows = zip(block[last].tolist(), other[last].tolist(), tick[last].tolist(), strict=True)
    return list(rows)
