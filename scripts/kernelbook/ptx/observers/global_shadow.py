"""What is remembered of every word of global memory: who wrote it last, who has read it since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event, Launch
from ..module import Instruction
from .order import Order

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LANE_BITS = 10  # of a block
_FLAT_BITS = 40  # block and lane
_BLOCK_MASK = ((1 << _FLAT_BITS) - 1) ^ ((1 << _LANE_BITS) - 1)
_STRONG = 1 << _FLAT_BITS
_ATOMIC = 1 << (_FLAT_BITS + 1)
_PC_SHIFT = _FLAT_BITS + 2
_LARGEST = 1 << 30  # bytes of arrays; the tables take up to seven times as much
ONE, LANES, BLOCKS = 1, 2, 3  # how many have accessed a granule since it was last written

_STRONG_WORDS = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")


def is_strong(instruction: Instruction) -> bool:
    """Whether an access is one that synchronises: atomic, volatile, relaxed or stronger."""
    return instruction.opcode in ("atom", "red") or any(
        instruction.has(word) for word in _STRONG_WORDS
    )


def flat_of(code: Integers) -> Integers:
    """Block and lane of an access, as one number: block * 1024 + lane."""
    return code & ((1 << _FLAT_BITS) - 1)


def block_of(code: Integers) -> Integers:
    return flat_of(code) >> _LANE_BITS


def lane_of(code: Integers) -> Integers:
    return code & ((1 << _LANE_BITS) - 1)


def pc_of(code: Integers) -> Integers:
    return code >> _PC_SHIFT


def strong_of(code: Integers) -> Mask:
    return np.asarray(code & _STRONG != 0)


def atomic_of(code: Integers) -> Mask:
    return np.asarray(code & _ATOMIC != 0)


@dataclass(frozen=True)
class Touch:
    """Accesses of one event, flat over granules."""

    instruction: Instruction
    access: str  # "read", "write" or "atomic"
    strong: bool
    tick: int
    block: Integers  # linear id in the grid
    lane: Integers  # linear id in the block
    granule: Integers
    code: Integers
    low: int  # smallest granule
    high: int  # largest granule


class GlobalShadow:
    """Dense tables over the address range of the launch's arrays; untouched pages cost nothing.

    ``written``/``writer``/``writers`` are tick, code and number class (ONE, LANES, BLOCKS) of the
    last write, or of the atomic updates since it; ``read``/``reader``/``readers`` the same of the
    reads since the last write.
    """

    def __init__(self, launch: Launch) -> None:
        self.granule = _smallest_access(launch)
        self._shift = self.granule.bit_length() - 1
        self.base = min((a.base for a in launch.arrays), default=0)
        end = max((a.base + a.size for a in launch.arrays), default=0)
        self.too_large = end - self.base > _LARGEST
        if self.too_large:
            end = self.base
        count = -(-(end - self.base) // self.granule)
        self.written = np.zeros(count, dtype=np.int32)
        self.writer = np.zeros(count, dtype=np.int64)
        self.writers = np.zeros(count, dtype=np.uint8)
        self.read = np.zeros(count, dtype=np.int32)
        self.reader = np.zeros(count, dtype=np.int64)
        self.readers = np.zeros(count, dtype=np.uint8)
        self._low, self._high = count, -1  # range of what has been written

    def begin_batch(self, batch: Batch) -> None:
        width = batch.warps_per_block * WARP
        self._lane = np.tile(np.arange(width), batch.blocks)
        self._block = np.repeat(np.arange(batch.blocks) + batch.first_block, width)
        self._flat = (self._block << _LANE_BITS) | self._lane

    def address(self, granule: int) -> int:
        return self.base + granule * self.granule

    def touch(self, event: Event, tick: int, strong: bool) -> Touch:
        assert event.address is not None
        address, block, lane, flat = event.address, self._block, self._lane, self._flat
        if not event.active.all():
            at = np.flatnonzero(event.active)
            address, block, lane, flat = address[at], block[at], lane[at], flat[at]
        granule = (address - self.base) >> self._shift
        count = max(event.size >> self._shift, 1)
        if count > 1:
            granule = (granule[:, None] + np.arange(count)).reshape(-1)
            block, lane, flat = (np.repeat(a, count) for a in (block, lane, flat))
        low, high = (int(granule.min()), int(granule.max())) if granule.size else (0, 0)
        if low < 0 or high >= self.written.size:  # out of bounds: the machine's finding
            inside = (granule >= 0) & (granule < self.written.size)
            granule, block, lane, flat = (a[inside] for a in (granule, block, lane, flat))
        head = event.instruction.pc << _PC_SHIFT
        head |= (_STRONG if strong else 0) | (_ATOMIC if event.access == "atomic" else 0)
        code = flat | head
        return Touch(
            event.instruction, event.access, strong, tick, block, lane, granule, code, low, high
        )

    def may_be_written(self, touch: Touch) -> bool:
        """Whether any write so far can have hit what an event touches."""
        return touch.low <= self._high and touch.high >= self._low

    def note_read(self, touch: Touch, first_block: int, order: Order) -> None:
        """Reads: of several since the last write the latest is kept, and that there were several.

        Reads of one block before a full barrier are forgotten when the block reads again.
        """
        known = self.readers[touch.granule]
        if (known == BLOCKS).all():
            self.read[touch.granule] = touch.tick
            return
        number = np.full(known.size, ONE, dtype=np.uint8)
        if known.any():
            number = self._readers_now(touch, known, first_block, order)
        self.reader[touch.granule] = touch.code
        self.read[touch.granule] = touch.tick
        self.readers[touch.granule] = number
        self._several(touch, self.reader, self.readers)

    def _readers_now(
        self, touch: Touch, known: NDArray[np.uint8], first_block: int, order: Order
    ) -> NDArray[np.uint8]:
        old, tick = self.reader[touch.granule], self.read[touch.granule]
        same_block = block_of(old) == touch.block
        done = same_block & (tick <= order.full[touch.block - first_block]) & (known < BLOCKS)
        same = flat_of(old) == flat_of(touch.code)
        number = np.where(same_block, np.where(same, known, np.maximum(known, LANES)), BLOCKS)
        return np.where((known == 0) | done, ONE, number).astype(np.uint8)

    def note_write(self, touch: Touch) -> tuple[Integers, Integers] | None:
        """Writes and atomic updates. Returns (positions, codes) where a lane's write was hit by
        another lane's of the same instruction, None where there is none."""
        granule = touch.granule
        self._low, self._high = min(self._low, touch.low), max(self._high, touch.high)
        if touch.access == "atomic":
            old, known = self.writer[granule], self.writers[granule]
            fresh = ~atomic_of(old) | (known == 0)
            same = flat_of(old) == flat_of(touch.code)
            inside = block_of(old) == touch.block
            number = np.where(inside, np.where(same, known, np.maximum(known, LANES)), BLOCKS)
            number = np.where(fresh, ONE, number).astype(np.uint8)
        else:
            number = np.full(granule.size, ONE, dtype=np.uint8)
        self.writer[granule] = touch.code
        self.written[granule] = touch.tick
        self.writers[granule] = number
        self.readers[granule] = 0
        if touch.access == "atomic":
            self._several(touch, self.writer, self.writers)
            return None
        stored = self.writer[granule]
        clash = np.flatnonzero(stored != touch.code)
        return (clash, stored[clash]) if clash.size else None

    def _several(self, touch: Touch, codes: Integers, numbers: NDArray[np.uint8]) -> None:
        """Lanes of one event at one granule: only one code was stored, mark that there are more."""
        differs = codes[touch.granule] ^ touch.code
        if not differs.any():
            return
        granule = touch.granule[differs != 0]
        numbers[granule] = np.maximum(numbers[granule], LANES)
        across = differs & _BLOCK_MASK != 0
        if across.any():
            numbers[touch.granule[across]] = BLOCKS


def _smallest_access(launch: Launch) -> int:
    """Bytes of the smallest access the kernel can make to global memory, at most 4."""
    sizes = [
        i.element_bytes * i.vector
        for i in launch.kernel.instructions
        if i.opcode in ("ld", "ldu", "st", "atom", "red") and i.space in ("global", None)
    ]
    return min([4, *(s for s in sizes if s)])
