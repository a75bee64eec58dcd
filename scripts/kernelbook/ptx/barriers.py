"""Barriers of a block: who has arrived, who waits, what completes.

Threads that have exited are not waited for, as on hardware since Volta. A warp arrives lane by
lane; for a barrier with a thread count, lanes that do not exist or have exited count with their
warp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import WARP
from .lanes import Lanes
from .module import Instruction
from .state import Destination, State

Array = NDArray[Any]


@dataclass(frozen=True)
class Reduction:
    """``barrier.red``: combine a predicate of all arriving threads."""

    operation: str  # "popc", "and", "or"
    target: Destination


@dataclass
class Waiter:
    """Lanes that wait at one barrier instruction."""

    barrier: int
    instruction: Instruction
    mask: NDArray[np.bool_]
    predicate: Array | None
    reduction: Reduction | None


@dataclass(frozen=True)
class Release:
    """Lanes that go on after ``instruction``."""

    instruction: Instruction
    mask: NDArray[np.bool_]


class Barriers:
    """All barriers of the blocks of a batch."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.waiters: list[Waiter] = []
        self._arrived: dict[int, Array] = {}  # barrier: threads arrived, a block each
        self._expected: dict[int, Array] = {}  # barrier: thread count asked for, 0 for all
        self._votes: dict[int, Array] = {}  # barrier: predicates of arrived threads, (blocks, 2)

    def begin(self) -> None:
        self.waiters.clear()
        self._arrived.clear()
        self._expected.clear()
        self._votes.clear()

    def idle(self, barrier: int) -> bool:
        """Nobody has arrived at this barrier in any block."""
        arrived = self._arrived.get(barrier)
        return arrived is None or not arrived.any()

    def arrive(
        self,
        barrier: int,
        instruction: Instruction,
        lanes: Lanes,
        count: int,
        alive: Array,
        *,
        wait: bool,
        predicate: Array | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        """Note the arrival of ``lanes``; with ``wait`` they stay until the barrier completes."""
        blocks = self.state.blocks
        arrived = self._arrived.setdefault(barrier, np.zeros(blocks, np.int64))
        if count:
            expected = self._expected.setdefault(barrier, np.zeros(blocks, np.int64))
            here = lanes.mask.reshape(-1, WARP).sum(axis=1)
            living = alive.reshape(-1, WARP).sum(axis=1)
            here += np.where((here > 0) & (here == living), WARP - living, 0)
            arrived += here.reshape(blocks, -1).sum(axis=1)
            expected[lanes.mask.reshape(blocks, -1).any(axis=1)] = count
        else:
            arrived += lanes.mask.reshape(blocks, -1).sum(axis=1)
        if predicate is not None:
            votes = self._votes.setdefault(barrier, np.zeros((blocks, 2), np.int64))
            votes[:, 1] += (predicate & lanes.mask).reshape(blocks, -1).sum(axis=1)
            votes[:, 0] += (~predicate & lanes.mask).reshape(blocks, -1).sum(axis=1)
        if wait:
            self.waiters.append(
                Waiter(barrier, instruction, lanes.mask.copy(), predicate, reduction)
            )

    def complete(self, alive: Array) -> list[Release]:
        """Complete every barrier that can; returns the lanes that go on."""
        released: list[Release] = []
        blocks = self.state.blocks
        living = alive.reshape(blocks, -1).sum(axis=1)
        for barrier, arrived in self._arrived.items():
            expected = living
            if barrier in self._expected:
                asked = self._expected[barrier]
                expected = np.where(asked > 0, asked, living)
            done = (arrived > 0) & (arrived >= expected)
            if not done.any():
                continue
            self._release(barrier, done, released)
            arrived[done] = 0
            if barrier in self._expected:
                self._expected[barrier][done] = 0
            if barrier in self._votes:
                self._votes[barrier][done] = 0
            for observer in self.state.observers:
                observer.on_barrier(self.state.batch, np.flatnonzero(done), barrier)
        self.waiters = [w for w in self.waiters if w.mask.any()]
        return released

    def _release(self, barrier: int, done: Array, released: list[Release]) -> None:
        of_block = np.repeat(done, self.state.lanes_per_block)
        for waiter in self.waiters:
            if waiter.barrier != barrier:
                continue
            going = waiter.mask & of_block
            if not going.any():
                continue
            if waiter.reduction is not None:
                self._reduce(barrier, waiter.reduction, going)
            waiter.mask = waiter.mask & ~of_block
            released.append(Release(waiter.instruction, going))

    def _reduce(self, barrier: int, reduction: Reduction, going: Array) -> None:
        against, favour = self._votes[barrier].T
        per_block: Array
        if reduction.operation == "popc":
            per_block = favour.astype(np.uint32)
        elif reduction.operation == "and":
            per_block = against == 0
        else:
            per_block = favour > 0
        lanes = np.flatnonzero(going)
        reduction.target.bits[lanes] = per_block[self.state.block_of_lane[lanes]]
        if reduction.target.register is not None:
            self.state.versions[reduction.target.register] += 1
