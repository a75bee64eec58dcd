"""What the machine tells its observers: one event per instruction executed by a batch of lanes.

The machine executes a batch of whole blocks in lockstep. Lanes are laid out densely: block after
block, each block padded to whole warps, so lane ``i`` of the batch is lane ``i % 32`` of batch warp
``i // 32``. Arrays in an event have one entry a lane of the batch and must not be modified or kept
after the call (the machine reuses them); copy what you need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .module import Instruction, Kernel

WARP = 32


@dataclass(frozen=True)
class Launch:
    """One kernel launch: shapes are (x, y, z)."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  # static + dynamic shared memory of a block


@dataclass(frozen=True)
class Batch:
    """The blocks being executed together."""

    launch: Launch
    first_block: int  # linear id (x fastest) of the first block of the batch
    blocks: int
    warps_per_block: int
    exists: NDArray[np.bool_]  # (lanes,) False for the padding lanes of a partial last warp

    @property
    def lanes(self) -> int:
        return self.blocks * self.warps_per_block * WARP

    @property
    def warps(self) -> int:
        return self.blocks * self.warps_per_block


@dataclass(frozen=True)
class Event:
    """One instruction executed once by some lanes of the batch.

    ``active`` is the guard-true lanes that reached the instruction: (lanes,) bool. A lane that
    reached it with a false guard predicate is in ``reached`` but not in ``active``. When every
    existing lane is active the machine passes the batch's own ``exists`` array, so
    ``event.active is batch.exists`` is a cheap test for "all".

    ``address`` (memory instructions only): (lanes,) int64 byte addresses; for shared memory they are
    offsets from the start of the block's own shared window, for global memory they are positions in
    the emulator's address space. Values at inactive lanes are meaningless.

    ``address_key``: equal keys (not None) with equal ``active`` arrays promise that the base
    register still held the very same values, so per-warp address patterns can be cached;
    ``offset`` is the instruction's immediate offset, already included in ``address``.
    """

    batch: Batch
    instruction: Instruction
    reached: NDArray[np.bool_]
    active: NDArray[np.bool_]
    address: NDArray[np.int64] | None = None
    size: int = 0  # bytes one lane accesses: element size times vector length
    address_key: tuple[int, int] | None = None
    offset: int = 0


class Observer(Protocol):
    """Counts or checks. Observers never change what the machine computes."""

    def begin_batch(self, batch: Batch) -> None: ...

    def on_event(self, event: Event) -> None: ...

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Barrier ``barrier`` completed in these blocks (indices within the batch)."""

    def end_batch(self, batch: Batch) -> None: ...
