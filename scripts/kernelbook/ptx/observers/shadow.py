"""What is remembered of every word of shared memory: who wrote it last, who has read it since.

One row for each class of blocks (classes.py), one column for each granule of the block's shared
window. A granule is 4 bytes, or 2 or 1 once an access that small has been seen. Ticks are those of
order.py; 0 means never. A code packs the instruction and the lane of an access.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..events import WARP

PENDING = np.iinfo(np.int32).max  # a cp.async write whose bytes may land at any time
_LANE_BITS = 10
_SECOND_SHIFT = _LANE_BITS
_SEVERAL_SHIFT = _SECOND_SHIFT + 5
_PC_SHIFT = _SEVERAL_SHIFT + 1

Integers = NDArray[np.int64]
Ticks = NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)


def code_of(pc: int, lanes: Integers) -> Integers:
    """Codes of one instruction executed by lanes (linear ids in the block)."""
    return lanes | (pc << _PC_SHIFT)


Code = TypeVar("Code", int, Integers)


def lane_of(code: Code) -> Code:
    return code & ((1 << _LANE_BITS) - 1)


def pc_of(code: Code) -> Code:
    return code >> _PC_SHIFT


def code_with_lane(code: Integers, lane: Integers) -> Integers:
    """The same instructions, executed by other lanes."""
    return (code >> _PC_SHIFT << _PC_SHIFT) | lane


def several(code: Integers) -> NDArray[np.bool_]:
    """Whether more than one lane of the warp made the access."""
    return np.asarray(code >> _SEVERAL_SHIFT & 1, dtype=np.bool_)


def lane_other_than(code: Integers, lane: Integers) -> Integers:
    """A lane that made the access and is not ``lane`` (its own lane where there is no other)."""
    first = lane_of(code)
    second = first & ~(WARP - 1) | (code >> _SECOND_SHIFT & (WARP - 1))
    return np.asarray(np.where((first == lane) & several(code), second, first))


class Accesses:
    """The latest access by each agent (a warp, or a lane) to each granule.

    A warp's earlier accesses need not be kept: they are ordered before its latest, or as recent
    and covered by the mark "several lanes".
    """

    def __init__(self, rows: int, granules: int, agents: int) -> None:
        self.any: Ticks = np.zeros((rows, granules), dtype=np.int32)  # latest of all agents
        self.tick: Ticks = np.zeros((rows, granules, agents), dtype=np.int32)
        self.code: Integers = np.zeros((rows, granules, agents), dtype=np.int64)

    def note(self, index: Integers, agent: Integers, code: Integers, tick: int, own: Ticks) -> None:
        """Accesses at flat granule indices; ``own`` is each lane's horizon of its own agent."""
        agents = self.tick.shape[2]
        place = index * agents + agent
        ticks, codes = self.tick.reshape(-1), self.code.reshape(-1)
        old, before = codes[place], ticks[place]
        self.any.reshape(-1)[index] = tick
        ticks[place] = tick
        codes[place] = code
        if agents and code.size:
            stored = codes[place]
            # Another lane now, or one in the same interval of the warp before.
            clash = lane_of(stored) != lane_of(code)
            earlier = (before > own) & ((lane_of(old) != lane_of(stored)) | several(old))
            if clash.any():
                _mark(codes, place[clash], lane_of(code[clash]))
            if earlier.any():
                _mark(
                    codes, place[earlier], lane_other_than(old[earlier], lane_of(stored[earlier]))
                )

    def resize(self, rows: int) -> None:
        self.any = _grown(self.any, rows)
        self.tick = _grown(self.tick, rows)
        self.code = _grown(self.code, rows)

    def copy_row(self, old: int, new: int) -> None:
        for table in (self.any, self.tick, self.code):
            table[new] = table[old]

    def refine(self, factor: int) -> None:
        self.any = np.repeat(self.any, factor, axis=1)
        self.tick = np.repeat(self.tick, factor, axis=1)
        self.code = np.repeat(self.code, factor, axis=1)

    @property
    def nbytes(self) -> int:
        return self.any.nbytes + self.tick.nbytes + self.code.nbytes


def _mark(codes: Integers, place: Integers, second: Integers) -> None:
    """Mark accesses as made by several lanes, ``second`` being one of the others."""
    keep = ~np.int64(((WARP - 1) << _SECOND_SHIFT) | (1 << _SEVERAL_SHIFT))
    mark = ((second & (WARP - 1)) << _SECOND_SHIFT) | (1 << _SEVERAL_SHIFT)
    codes[place] = (codes[place] & keep) | mark


class Shadow:
    """Last write, reads and atomic updates of every granule, for each class of blocks."""

    def __init__(self, shared_bytes: int, agents: int) -> None:
        self.granule = 4
        self._agents = agents
        granules = -(-shared_bytes // self.granule)
        self.written: Ticks = np.zeros((1, granules), dtype=np.int32)
        self.writer: Integers = np.zeros((1, granules), dtype=np.int64)
        self.reads = Accesses(1, granules, agents)
        self.atomics: Accesses | None = None  # made when the first atomic update comes

    @property
    def rows(self) -> int:
        return int(self.written.shape[0])

    @property
    def granules(self) -> int:
        return int(self.written.shape[1])

    @property
    def nbytes(self) -> int:
        tables = self.reads.nbytes + (self.atomics.nbytes if self.atomics else 0)
        return self.written.nbytes + self.writer.nbytes + tables

    def need_atomics(self) -> Accesses:
        if self.atomics is None:
            self.atomics = Accesses(self.rows, self.granules, self._agents)
        return self.atomics

    def initialised(self, row: int) -> NDArray[np.bool_]:
        """Which granules of a class hold a value: (granules,) bool."""
        done = self.written[row] > 0
        if self.atomics is not None:
            done = done | (self.atomics.any[row] > 0)
        return np.asarray(done)

    def copy_row(self, old: int, new: int) -> None:
        if new >= self.rows:
            rows = max(new + 1, 2 * self.rows)
            self.written, self.writer = _grown(self.written, rows), _grown(self.writer, rows)
            self.reads.resize(rows)
            if self.atomics is not None:
                self.atomics.resize(rows)
        self.written[new], self.writer[new] = self.written[old], self.writer[old]
        self.reads.copy_row(old, new)
        if self.atomics is not None:
            self.atomics.copy_row(old, new)

    def refine(self, granule: int) -> None:
        """Make granules smaller; each part inherits what was known of the whole."""
        factor = self.granule // granule
        self.granule = granule
        self.written = np.repeat(self.written, factor, axis=1)
        self.writer = np.repeat(self.writer, factor, axis=1)
        self.reads.refine(factor)
        if self.atomics is not None:
            self.atomics.refine(factor)


def _grown(table: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    wider = np.zeros((rows, *table.shape[1:]), dtype=table.dtype)
    wider[: table.shape[0]] = table
    return wider
