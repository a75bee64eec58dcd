"""Counts instructions: by class, floating-point operations, divergence, barriers, atomics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..counts import InstructionCounts
from ..events import Batch, Event
from ..module import Kernel
from .lanes import MaskCounts, busy_warps
from .traits import traits


class InstructionObserver:
    """Thread and warp instructions of every instruction of a kernel."""

    def __init__(self) -> None:
        self._kernel: Kernel | None = None

    def begin_batch(self, batch: Batch) -> None:
        kernel = batch.launch.kernel
        if self._kernel is not kernel:
            self._kernel = kernel
            count = len(kernel.instructions)
            # Rows of int64, one entry an instruction.
            self._reached = np.zeros(count, dtype=np.int64)  # threads, guard true or not
            self._threads = np.zeros(count, dtype=np.int64)  # threads, guard true
            self._warps = np.zeros(count, dtype=np.int64)  # warps reaching it
            self._busy = np.zeros(count, dtype=np.int64)  # warps with a guard-true lane
            self._divergent = np.zeros(count, dtype=np.int64)
            self._branch = np.array([i.opcode == "bra" for i in kernel.instructions])
        self._masks = MaskCounts(batch.exists)

    def on_event(self, event: Event) -> None:
        if event.part:
            return
        pc = event.instruction.pc
        reached, warps = self._masks.of(event.reached)
        self._reached[pc] += reached
        self._warps[pc] += warps
        if event.active is not event.reached:
            threads, busy = self._masks.of(event.active)
            if self._branch[pc] and 0 < threads < reached:
                both = busy_warps(event.active) & busy_warps(event.reached & ~event.active)
                self._divergent[pc] += int(np.count_nonzero(both))
        else:
            threads, busy = reached, warps
        self._threads[pc] += threads
        self._busy[pc] += busy

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Nothing: a barrier is counted where lanes arrive."""

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish."""

    def counts(self, pcs: Sequence[int]) -> InstructionCounts:
        """Counts of the given instructions together."""
        if self._kernel is None:
            return InstructionCounts()
        classes: Counter[str] = Counter()
        arithmetic: Counter[str] = Counter()
        flops: Counter[str] = Counter()
        barriers = atomics = branches = 0
        for pc in pcs:
            if not self._warps[pc]:
                continue
            instruction = self._kernel.instructions[pc]
            what = traits(instruction)
            classes[what.category] += int(self._reached[pc])
            if what.operation:
                arithmetic[f"{what.kind}.{what.operation}"] += int(self._threads[pc])
                flops[what.kind] += int(self._threads[pc]) * what.flops
            if instruction.opcode in ("bar", "barrier") and not instruction.has("warp"):
                barriers += int(self._busy[pc])
            elif what.category == "atomic":
                atomics += int(self._busy[pc])
            elif self._branch[pc]:
                branches += int(self._warps[pc])
        rows = list(pcs)
        return InstructionCounts(
            threads=int(self._reached[rows].sum()),
            warps=int(self._warps[rows].sum()),
            classes=dict(classes),
            arithmetic=dict(arithmetic),
            flops=dict(flops),
            barriers=barriers,
            atomics=atomics,
            branches=branches,
            divergent_branches=int(self._divergent[rows].sum()),
        )
