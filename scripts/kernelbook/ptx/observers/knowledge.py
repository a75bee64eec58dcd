"""What a thread knows of other blocks: which of their accesses are ordered before its next one.

Knowledge is a vector clock kept sparsely: for each block known about, the last ordered tick of each
of its lanes; and for each location that was synchronised through, the tick up to which accesses to
that location itself are ordered. It never changes once made, so that all lanes that have learnt the
same share one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_REMEMBERED = 1 << 14


@dataclass(frozen=True, eq=False)
class Knowledge:
    """``blocks``: linear block id to (lanes a block,) ticks. ``places``: granule to tick."""

    blocks: Mapping[int, Integers] = field(default_factory=dict)
    places: Mapping[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.blocks) or bool(self.places)

    def floor(self, own: int, blocks: int) -> int:
        """Tick up to which every access of every block but ``own`` is ordered, of so many."""
        others = [int(t.min()) for block, t in self.blocks.items() if block != own]
        return min(others) if others and len(others) == blocks - 1 else 0


NOTHING = Knowledge()


class Join:
    """Joins clocks and remembers the results: many lanes ask for the same join."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Knowledge, Knowledge, Knowledge]] = {}

    def __call__(self, a: Knowledge, b: Knowledge) -> Knowledge:
        """The clock that knows what either knows; ``a`` itself where ``b`` adds nothing."""
        if a is b or not b:
            return a
        if not a:
            return b
        key = (id(a), id(b))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            # The entry keeps both alive, so that their ids stay theirs.
            found = self._known[key] = (a, b, _joined(a, b))
        return found[2]


def _joined(a: Knowledge, b: Knowledge) -> Knowledge:
    blocks, places = dict(a.blocks), dict(a.places)
    changed = False
    for block, ticks in b.blocks.items():
        mine = blocks.get(block)
        if mine is ticks or (mine is not None and (mine >= ticks).all()):
            continue
        blocks[block] = ticks if mine is None else np.maximum(mine, ticks)
        changed = True
    for place, tick in b.places.items():
        if places.get(place, -1) < tick:
            places[place] = tick
            changed = True
    return Knowledge(blocks, places) if changed else a


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

    def __init__(self, join: Join) -> None:
        self._join = join
        self.fenced = NOTHING
        self.seen = NOTHING
        self.lane_fenced: dict[int, Knowledge] = {}
        self.lane_seen: dict[int, Knowledge] = {}

    def see(self, lane: int, released: Knowledge, acquire: bool) -> None:
        """A lane has read a flag that carries ``released``."""
        self._learn(self.lane_seen, lane, released)
        if acquire:
            self._learn(self.lane_fenced, lane, released)

    def fence(self, lanes: Integers, everyone: bool) -> None:
        """Lanes execute a fence: what they have seen orders everything from here on."""
        if everyone:
            self.fenced = self._join(self.fenced, self.seen)
        for lane in lanes.tolist():
            if lane in self.lane_seen:
                self._learn(self.lane_fenced, lane, self.lane_seen[lane])
            if not everyone and self.seen:
                self._learn(self.lane_fenced, lane, self.seen)

    def spread(self, lanes: Integers, everyone: bool) -> None:
        """Lanes have synchronised with each other: each now knows what any of them knew."""
        if everyone:
            for known in self.lane_fenced.values():
                self.fenced = self._join(self.fenced, known)
            for known in self.lane_seen.values():
                self.seen = self._join(self.seen, known)
            self.lane_fenced.clear()
            self.lane_seen.clear()
            return
        for store in (self.lane_fenced, self.lane_seen):
            joined = NOTHING
            for lane in lanes.tolist():
                joined = self._join(joined, store.get(lane, NOTHING))
            if joined:
                store.update(dict.fromkeys(lanes.tolist(), joined))

    def passed_on(self, lane: int) -> Knowledge:
        """What a lane passes on of other blocks when it releases."""
        return self._join(self.fenced, self.lane_fenced.get(lane, NOTHING))

    def covers(self, other_block: int, asked: Question, strong: bool) -> Mask:
        """Whether accesses of lanes of another block are ordered before these lanes' next ones."""
        result = self._through_places(asked)
        for known, at in self._clocks(asked.lanes, strong):
            ticks = known.blocks.get(other_block)
            if ticks is not None:
                result[at] |= ticks[asked.other_lanes[at]] >= asked.ticks[at]
        return result

    def covers_all(self, own: int, blocks: int, asked: Question, strong: bool) -> Mask:
        """Whether what any lane of any other block did up to these ticks is ordered before."""
        result = self._through_places(asked)
        for known, at in self._clocks(asked.lanes, strong):
            result[at] |= asked.ticks[at] <= known.floor(own, blocks)
        return result

    def _through_places(self, asked: Question) -> Mask:
        """Accesses to a flag itself that a lane has read: memory keeps the order of one location,
        fence or not."""
        result = np.zeros(asked.lanes.size, dtype=np.bool_)
        for known, at in self._clocks(asked.lanes, True):
            if known.places:
                last = [known.places.get(p, -1) for p in asked.places[at].tolist()]
                result[at] |= asked.ticks[at] <= np.array(last, dtype=np.int64)
        return result

    def _clocks(self, lanes: Integers, strong: bool) -> Iterator[tuple[Knowledge, Integers]]:
        """The clocks that count, each with the positions in ``lanes`` it counts for."""
        everyone = np.arange(lanes.size)
        for known in (self.fenced, self.seen) if strong else (self.fenced,):
            if known:
                yield known, everyone
        for store in (self.lane_fenced, self.lane_seen) if strong else (self.lane_fenced,):
            if not store:
                continue
            sharing: dict[int, tuple[Knowledge, list[int]]] = {}
            for position, lane in enumerate(lanes.tolist()):
                own = store.get(lane)
                if own is not None:
                    sharing.setdefault(id(own), (own, []))[1].append(position)
            for own, positions in sharing.values():
                yield own, np.array(positions)

    def _learn(self, store: dict[int, Knowledge], lane: int, more: Knowledge) -> None:
        store[lane] = self._join(store.get(lane, NOTHING), more)
