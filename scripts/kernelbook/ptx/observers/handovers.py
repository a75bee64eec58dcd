"""Locks and flags between threads of one block: orders that the checks see but do not follow.

A thread that fences and then writes a flag (an atomic, volatile or release store, a lock given
back) may hand over what it has done; one that reads a flag so and then fences may have received it.
Which flag belongs to which data the checks do not know within a block, so accesses that such a pair
may order are neither called a race nor clean: they are not judged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event
from ..module import Instruction
from .global_shadow import is_strong
from .order import Order

Integers = NDArray[np.int64]
Ticks = NDArray[np.int32]
Mask = NDArray[np.bool_]

NOT_FOLLOWED = " is handed on within a block by a lock or flag, which the check does not follow"


class Handovers:
    """When each lane of a batch last gave and last received, in ticks of an ``Order``.

    ``possible`` is False for kernels without fences and flags: nothing need be noted then.
    """

    def __init__(self, batch: Batch) -> None:
        instructions = batch.launch.kernel.instructions
        self._fences = tuple(_is_fence(i) for i in instructions)
        self._strong = np.array([is_strong(i) for i in instructions], dtype=np.bool_)
        fencing = any(self._fences) or any(_acquires(i) or _releases(i) for i in instructions)
        self.possible = fencing and bool(self._strong.any())
        shape = (batch.blocks, batch.warps_per_block * WARP) if self.possible else (0, 0)
        self._fenced = np.zeros(shape, dtype=np.int32)
        self._given = np.zeros(shape, dtype=np.int32)  # accesses up to here may be handed over
        self._looked = np.zeros(shape, dtype=np.int32)
        self._received = np.zeros(shape, dtype=np.int32)  # whatever was given up to here

    def note(self, event: Event, order: Order) -> None:
        """Take note of an event, after it was checked; fences and flags end a tick."""
        pc = event.instruction.pc
        if not (self._fences[pc] or self._strong[pc]):
            return
        lanes = event.active.reshape(self._fenced.shape)
        if self._fences[pc]:
            self._fenced[lanes] = order.tick
            self._received[lanes] = self._looked[lanes]
        else:
            self._flag(event, lanes, order.tick)
        order.tick += 1

    def _flag(self, event: Event, lanes: Mask, tick: int) -> None:
        if event.access != "read":
            if _releases(event.instruction):
                self._fenced[lanes] = tick
            self._given[lanes] = self._fenced[lanes]
        if event.access != "write":
            self._looked[lanes] = tick
            if _acquires(event.instruction):
                self._received[lanes] = tick

    def may_order(
        self,
        block: Integers,
        lane: Integers,
        other: Integers,
        tick: Integers | Ticks,
        pc: int,
        other_pc: Integers,
    ) -> Mask:
        """Whether an access of ``other`` at ``tick`` may have been handed to ``lane``: (n,) bool.

        Parameters
        ----------
        block : within the batch. lane, other : within the block.
        pc, other_pc : the accesses; two volatile or atomic ones are a flag if there was a fence.
        """
        if not self.possible:
            return np.zeros(block.size, dtype=np.bool_)
        given = self._given[block, other] >= tick
        received = self._received[block, lane] > tick
        flags = self._strong[other_pc] & self._strong[pc]
        fenced = (self._fenced[block, other] > 0) | (self._fenced[block, lane] > 0)
        return np.asarray((given & received) | (flags & fenced))


def _is_fence(instruction: Instruction) -> bool:
    return instruction.opcode in ("fence", "membar") and not any(
        instruction.has(word) for word in ("proxy", "mbarrier_init")
    )


def _acquires(instruction: Instruction) -> bool:
    return instruction.has("acquire") or instruction.has("acq_rel")


def _releases(instruction: Instruction) -> bool:
    return instruction.has("release") or instruction.has("acq_rel")
