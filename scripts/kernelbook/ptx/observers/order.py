"""Which accesses of a block are ordered before which: a clock per warp.

Time is counted in ticks; every synchronisation ends one. An access carries the tick in which it was
made. ``known[block, w, v]`` is the last tick of warp ``v`` whose accesses are ordered before what
warp ``w`` does next, so an access of ``v`` with a later tick may still be under way. Lanes of a
warp run in no order either until the warp itself synchronises: ``known[block, w, w]``.

What orders: ``bar.sync`` and its kin among all warps that meet there (and warps that only arrived),
``bar.warp.sync`` among the lanes of a warp. Lockstep, shuffles and votes order nothing.

A kernel that synchronises parts of a warp (a mask other than all lanes) is tracked lane by lane
within the warp (``fine``): ``lanes[block, w, i, j]`` says the same of lane ``j`` for lane ``i``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event
from ..module import Immediate, Instruction, Kernel

NOT_WAITING = -1
_ALL_LANES = 0xFFFFFFFF

Mask = NDArray[np.bool_]


def sync_kind(instruction: Instruction) -> str:
    """ "" or "exit", "sync", "arrive" (block barriers) or "warp"."""
    if instruction.opcode in ("ret", "exit"):
        return "exit"
    if instruction.opcode not in ("bar", "barrier"):
        return ""
    if instruction.has("warp"):
        return "warp"
    return "arrive" if instruction.has("arrive") else "sync"


def splits_warps(kernel: Kernel) -> bool:
    """Whether a kernel may synchronise only some lanes of a warp."""
    for instruction in kernel.instructions:
        if sync_kind(instruction) != "warp":
            continue
        mask = instruction.operands[0] if instruction.operands else None
        if not isinstance(mask, Immediate) or int(mask.value) & _ALL_LANES != _ALL_LANES:
            return True
    return False


@dataclass(frozen=True)
class Synced:
    """A synchronisation that just happened.

    ``lanes`` (blocks, lanes a block) took part; ``full`` (blocks,) says in which blocks every live
    lane did, so that everything before is ordered before everything after.
    """

    lanes: Mask
    full: Mask
    by_warp: bool = False  # lanes met within their warps, not across them


class Order:
    """The clocks of a batch's blocks."""

    def __init__(self, batch: Batch) -> None:
        blocks, warps = batch.blocks, batch.warps_per_block
        self.tick = 1
        self.fine = splits_warps(batch.launch.kernel)
        self.known = np.zeros((blocks, warps, warps), dtype=np.int32)
        self.full = np.zeros(blocks, dtype=np.int32)  # tick of the last full barrier
        self.lanes = (
            np.zeros((blocks, warps, WARP, WARP), dtype=np.int32)
            if self.fine
            else np.zeros((0, 0, 0, 0), dtype=np.int32)
        )
        self._shape = (blocks, warps * WARP)
        self._kinds = tuple(sync_kind(i) for i in batch.launch.kernel.instructions)
        self.live = batch.exists.reshape(self._shape).copy()
        self._waiting = np.full(self._shape, NOT_WAITING, dtype=np.int16)
        self._arrived: dict[int, NDArray[np.int32]] = {}  # barrier -> tick (blocks, warps), 0: no
        self._snapshot: dict[int, NDArray[np.int32]] = {}  # barrier -> known at arrival

    def on_event(self, event: Event) -> Synced | None:
        """Take note of an event; a warp synchronisation is returned."""
        kind = self._kinds[event.instruction.pc]
        if not kind:
            return None
        active = event.active.reshape(self._shape)
        if kind == "exit":
            self.live &= ~active
        elif kind == "sync":
            self._waiting[active] = event.barrier or 0
        elif kind == "arrive":
            self._arrive(event.barrier or 0, active)
        else:
            return self._warp_sync(active, event.members)
        return None

    def on_barrier(self, blocks: NDArray[np.int64], barrier: int) -> Synced:
        """A barrier completed in these blocks of the batch."""
        waiting = self._waiting[blocks]
        met = waiting == barrier
        full = (met | ~self.live[blocks]).all(axis=1)
        whole = blocks[full]
        self.known[whole] = self.tick
        self.full[whole] = self.tick
        if self.fine:
            self.lanes[whole] = self.tick
        for index in np.nonzero(~full)[0]:
            self._meet(int(blocks[index]), barrier, met[index])
        if barrier in self._arrived:
            self._arrived[barrier][blocks] = 0
        waiting[met] = NOT_WAITING
        self._waiting[blocks] = waiting
        self.tick += 1
        lanes = np.zeros(self._shape, dtype=np.bool_)
        lanes[blocks] = met
        everywhere = np.zeros(self._shape[0], dtype=np.bool_)
        everywhere[whole] = True
        return Synced(lanes, everywhere)

    def ordered(
        self,
        block: NDArray[np.int64],
        lane: NDArray[np.int64],
        other: NDArray[np.int64],
        tick: NDArray[np.int32],
    ) -> Mask:
        """Whether ``other``'s accesses at ``tick`` are ordered before ``lane``: (n,) bool."""
        warp, before = lane >> 5, other >> 5
        known = self.known[block, warp, before]
        if self.fine:
            own = self.lanes[block, warp, lane & 31, other & 31]
            known = np.where(warp == before, own, known)
        return np.asarray(tick <= known)

    def horizon(self, block: NDArray[np.int64], lane: NDArray[np.int64]) -> NDArray[np.int32]:
        """Last ordered tick of every agent (a warp; a lane if ``fine``), for lanes: (n, agents)."""
        warp = lane >> 5
        known = self.known[block, warp]
        if not self.fine:
            return np.asarray(known)
        known = np.repeat(known, WARP, axis=1).reshape(lane.size, -1, WARP)
        known[np.arange(lane.size), warp] = self.lanes[block, warp, lane & 31]
        return np.asarray(known.reshape(lane.size, -1))

    def _warp_sync(self, active: Mask, members: NDArray[np.uint32] | None) -> Synced:
        blocks, width = self._shape
        by_warp = active.reshape(blocks, -1, WARP)
        if self.fine:
            masks = np.uint32(_ALL_LANES) if members is None else members
            asked = np.broadcast_to(masks, active.size).reshape(by_warp.shape)
            # Lanes of one warp may name different masks: each set meets by itself.
            for mask in np.unique(asked[by_warp]):
                self._join(by_warp & (asked == mask))
        else:
            block, warp = np.nonzero(by_warp.any(axis=2))
            self.known[block, warp, warp] = self.tick
        live = self.live.reshape(blocks, -1, WARP)
        whole = np.asarray((by_warp | ~live).all(axis=(1, 2)) & (width == WARP))
        if self.fine:  # a block of one warp, but perhaps not all of it together
            whole &= (self.lanes == self.tick).all(axis=(1, 2, 3))
            self.known[whole] = self.tick
        self.full[whole] = self.tick
        self.tick += 1
        return Synced(active, whole, by_warp=True)

    def _join(self, met: Mask) -> None:
        """Lanes (blocks, warps, 32) that met within their warps learn what any of them knew."""
        block, warp = np.nonzero(met.any(axis=2))
        lanes = met[block, warp]
        known = self.lanes[block, warp]
        joined = np.where(lanes[:, :, None], known, 0).max(axis=1)
        joined = np.where(lanes, self.tick, joined)
        self.lanes[block, warp] = np.where(lanes[:, :, None], joined[:, None, :], known)

    def _arrive(self, number: int, active: Mask) -> None:
        blocks = self._shape[0]
        warps = active.reshape(blocks, -1, WARP).any(axis=2)
        if number not in self._arrived:
            self._arrived[number] = np.zeros(warps.shape, dtype=np.int32)
            self._snapshot[number] = np.zeros_like(self.known)
        self._arrived[number][warps] = self.tick
        self._snapshot[number][warps] = self.known[warps]
        self.tick += 1

    def _meet(self, block: int, barrier: int, met: Mask) -> None:
        """Some warps of a block met at a named barrier; others may have arrived there before."""
        warps = met.reshape(-1, WARP).any(axis=1)
        if not warps.any():
            return
        joined = self.known[block, warps].max(axis=0)
        if barrier in self._arrived:
            ticks = self._arrived[barrier][block]
            came = ticks > 0
            if came.any():
                joined = np.maximum(joined, self._snapshot[barrier][block, came].max(axis=0))
                joined[came] = np.maximum(joined[came], ticks[came])
        joined[warps] = self.tick
        self.known[block, warps] = joined
        if self.fine:
            self.lanes[block, warps] = self.tick
