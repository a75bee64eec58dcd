"""An observer that remembers what one warp did: its accesses, and which lanes were active when."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..ptx import Event
from ..ptx.events import WARP, Allocation, Batch

MAX_STEPS = 4096  # of the timeline; a picture shows fewer


@dataclass(frozen=True)
class Access:
    """A memory instruction the first time the warp executes it.

    ``address``: (32,) bytes, meaningless where ``active`` is False; ``size``: bytes a lane.
    """

    line: int
    space: str  # "global" or "shared"
    access: str  # "read", "write" or "atomic"
    size: int
    address: NDArray[np.int64]
    active: NDArray[np.bool_]
    allocation: Allocation | None
    alike: int = 0  # other instructions of this line that do the same elsewhere


@dataclass(frozen=True)
class Step:
    """Consecutive instructions of one source line with the same active lanes."""

    line: int
    active: NDArray[np.bool_]  # (32,)


@dataclass
class Recorder:
    """Watches warp ``warp`` of block 0; an `Observer`."""

    warp: int = 0
    accesses: dict[int, Access] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    instructions: int = 0
    lane_instructions: int = 0

    def begin_batch(self, batch: Batch) -> None:
        first = batch.first_block == 0 and self.warp < batch.warps_per_block
        self._lanes = slice(self.warp * WARP, (self.warp + 1) * WARP) if first else None

    def on_event(self, event: Event) -> None:
        if self._lanes is None:
            return
        line = event.instruction.line
        reached = event.reached[self._lanes]
        if event.part == 0 and reached.any():
            self.instructions += 1
            self.lane_instructions += int(reached.sum())
            if line and len(self.steps) < MAX_STEPS:
                self._step(line, reached)
        active = event.active[self._lanes]
        pc = event.instruction.pc
        if event.address is None or pc in self.accesses or not active.any():
            return
        if event.space in ("global", "shared"):
            address = event.address[self._lanes].copy()
            found = _allocation(event, int(address[active][0]))
            self.accesses[pc] = Access(
                line, event.space, event.access, event.size, address, active.copy(), found
            )

    def _step(self, line: int, reached: NDArray[np.bool_]) -> None:
        last = self.steps[-1] if self.steps else None
        if last is None or last.line != line or not np.array_equal(last.active, reached):
            self.steps.append(Step(line, reached.copy()))

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Nothing: a barrier shows in the timeline as its line."""

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish."""


def _allocation(event: Event, address: int) -> Allocation | None:
    launch = event.batch.launch
    ranges = launch.arrays if event.space == "global" else launch.shared
    return next((a for a in ranges if a.base <= address < a.base + a.size), None)
