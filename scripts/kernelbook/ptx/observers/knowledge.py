"""What a thread knows of other blocks: which of their accesses are ordered before its next one.

Knowledge is a vector clock kept sparsely: for each block known about, the last ordered tick of each
of its lanes; and for each location that was synchronised through, the tick up to which accesses to
that location itself are ordered. Arrays in it are shared between clocks and never changed in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Knowledge:
    """``blocks``: linear block id to (lanes a block,) ticks. ``places``: granule to tick."""

    blocks: dict[int, Integers] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.blocks) or bool(self.places)

    def copy(self) -> Knowledge:
        return Knowledge(dict(self.blocks), dict(self.places))

    def learn(self, other: Knowledge) -> None:
        """Join another clock into this one."""
        for block, ticks in other.blocks.items():
            mine = self.blocks.get(block)
            if mine is None:
                self.blocks[block] = ticks
            elif mine is not ticks:
                self.blocks[block] = np.maximum(mine, ticks)
        for place, tick in other.places.items():
            if self.places.get(place, -1) < tick:
                self.places[place] = tick

    def floor(self, own: int, blocks: int) -> int:
        """Tick up to which every access of every block but ``own`` is ordered, of so many."""
        others = [int(t.min()) for block, t in self.blocks.items() if block != own]
        return min(others) if others and len(others) == blocks - 1 else 0


@dataclass(frozen=True)
class Question:
    """Accesses to be ordered before those of ``lanes``: flat arrays of one length."""

    lanes: Integers  # of the block that asks
    other_lanes: Integers
    ticks: Integers
    places: Integers  # granules


class BlockKnowledge:
    """What the lanes of one block know of other blocks.

    Every lane knows ``fenced``; ``lane_fenced[i]`` is what lane ``i`` alone knows further, until a
    barrier spreads it. These order any access. ``seen`` and ``lane_seen`` have been learnt through
    a flag with no fence after it yet: they order volatile and atomic accesses only.
    """

    def __init__(self) -> None:
        self.fenced = Knowledge()
        self.seen = Knowledge()
        self.lane_fenced: dict[int, Knowledge] = {}
        self.lane_seen: dict[int, Knowledge] = {}
        self._last: dict[int, tuple[Knowledge, bool]] = {}  # what a lane has seen last

    def see(self, lane: int, released: Knowledge, acquire: bool) -> None:
        """A lane has read a flag that carries ``released``, which must not change afterwards."""
        last = self._last.get(lane)
        if last is not None and last[0] is released and last[1] == acquire:
            return  # it polls: nothing new
        self._last[lane] = (released, acquire)
        self.lane_seen.setdefault(lane, Knowledge()).learn(released)
        if acquire:
            self.lane_fenced.setdefault(lane, Knowledge()).learn(released)

    def fence(self, lanes: Integers, everyone: bool) -> None:
        """Lanes execute a fence: what they have seen orders everything from here on."""
        if everyone:
            self.fenced.learn(self.seen)
        for lane in lanes.tolist():
            seen = self.lane_seen.get(lane)
            if seen is not None:
                self.lane_fenced.setdefault(lane, Knowledge()).learn(seen)
            if not everyone and self.seen:
                self.lane_fenced.setdefault(lane, Knowledge()).learn(self.seen)

    def spread(self, lanes: Integers, everyone: bool) -> None:
        """Lanes have synchronised with each other: each now knows what any of them knew."""
        for store, common in ((self.lane_fenced, self.fenced), (self.lane_seen, self.seen)):
            if everyone:
                for known in store.values():
                    common.learn(known)
                store.clear()
                continue
            joined = Knowledge()
            inside = set(lanes.tolist())
            for lane in inside & store.keys():
                joined.learn(store[lane])
            if joined:
                store.update({lane: joined.copy() for lane in inside})

    def passed_on(self, lane: int) -> Knowledge:
        """What a lane passes on of other blocks when it releases."""
        known = self.fenced.copy()
        if lane in self.lane_fenced:
            known.learn(self.lane_fenced[lane])
        return known

    def covers(self, other_block: int, asked: Question, strong: bool) -> Mask:
        """Whether accesses of lanes of another block are ordered before these lanes' next ones."""
        result = np.zeros(asked.lanes.size, dtype=np.bool_)
        for known, at in self._clocks(asked.lanes, strong):
            ticks = known.blocks.get(other_block)
            if ticks is not None:
                result[at] |= ticks[asked.other_lanes[at]] >= asked.ticks[at]
        return result | self._through_places(asked)

    def covers_all(self, own: int, blocks: int, asked: Question, strong: bool) -> Mask:
        """Whether what any lane of any other block did up to these ticks is ordered before."""
        result = np.zeros(asked.lanes.size, dtype=np.bool_)
        for known, at in self._clocks(asked.lanes, strong):
            result[at] |= asked.ticks[at] <= known.floor(own, blocks)
        return result | self._through_places(asked)

    def _through_places(self, asked: Question) -> Mask:
        """Accesses to a flag itself that a lane has read: memory keeps the order of one location,
        fence or not."""
        result = np.zeros(asked.lanes.size, dtype=np.bool_)
        for known, at in self._clocks(asked.lanes, True):
            if known.places:
                last = [known.places.get(p, -1) for p in asked.places[at].tolist()]
                result[at] |= asked.ticks[at] <= np.array(last, dtype=np.int64)
        return result

    def _clocks(self, lanes: Integers, strong: bool) -> Iterator[tuple[Knowledge, Mask]]:
        """The clocks that count, each with the positions in ``lanes`` it counts for."""
        everyone = np.ones(lanes.size, dtype=np.bool_)
        yield self.fenced, everyone
        if strong:
            yield self.seen, everyone
        for store in (self.lane_fenced, self.lane_seen) if strong else (self.lane_fenced,):
            for lane, known in store.items():
                at = lanes == lane
                if at.any():
                    yield known, at
