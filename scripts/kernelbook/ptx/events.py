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
class Allocation:
    """A named range of addresses: an argument array, a module variable or a shared variable."""

    name: str
    base: int  # first byte: global position, or offset in the block's shared window
    size: int  # bytes
    element_bytes: int

    def element(self, address: int) -> str:
        """``name[index]`` of the element that holds a byte address."""
        return f"{self.name}[{(address - self.base) // self.element_bytes}]"


@dataclass(frozen=True)
class Launch:
    """One kernel launch: shapes are (x, y, z)."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int  # static + dynamic shared memory of a block
    arrays: tuple[Allocation, ...] = ()  # global memory: arguments and module variables
    shared: tuple[Allocation, ...] = ()  # shared variables; dynamic shared memory comes last


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

    ``address`` (memory instructions only): (lanes,) int64 byte addresses; for shared memory they
    are offsets from the start of the block's own shared window, for global memory positions in the
    emulator's address space. Values at inactive lanes are meaningless.

    ``address_key``: equal keys (not None) with equal ``active`` arrays promise that the base
    register still held the very same values, so per-warp address patterns can be cached;
    ``offset`` is the instruction's immediate offset, already included in ``address``.

    ``space`` is where the addresses lie: "global", "shared", "local", "const" or "param", also for
    generic instructions; one that touches two spaces gives one event for each, with ``active``
    restricted to its lanes. ``cp.async`` gives a "global" read, then a "shared" write, both when it
    is issued (the bytes land at the wait). Such further events of one executed instruction have
    ``part`` 1, 2, ...: count the instruction itself at ``part`` 0 only.

    ``access`` is "read", "write" or "atomic" for memory instructions (``red`` is "atomic").

    Barriers: the event of ``bar``/``barrier`` comes when lanes arrive, with the number of the
    ``barrier``; ``on_barrier`` when the barrier completes. ``bar.warp.sync`` and other
    warp-synchronous instructions give their event when all the lanes of their mask have come;
    ``active`` is those lanes, and ``members`` the (lanes,) uint32 masks of ``bar.warp.sync``.
    """

    batch: Batch
    instruction: Instruction
    reached: NDArray[np.bool_]
    active: NDArray[np.bool_]
    address: NDArray[np.int64] | None = None
    size: int = 0  # bytes one lane accesses: element size times vector length
    address_key: tuple[int, int] | None = None
    offset: int = 0
    space: str | None = None
    part: int = 0
    access: str = ""
    barrier: int | None = None
    members: NDArray[np.uint32] | None = None


class Observer(Protocol):
    """Counts or checks. Observers never change what the machine computes."""

    def begin_batch(self, batch: Batch) -> None: ...

    def on_event(self, event: Event) -> None: ...

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Barrier ``barrier`` completed in these blocks (indices within the batch)."""

    def end_batch(self, batch: Batch) -> None: ...
