"""Blocks that have done exactly the same so far are looked at once.

In most kernels shared-memory addresses depend on the thread only, so every block of a batch makes
the same accesses in the same events. A class is a set of blocks that did; it splits when an event
treats its members differently. Each class owns a row of its checker's state.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class BlockClasses:
    """A partition of the blocks of a batch.

    ``row[block]`` is the class of a block, ``first[row]`` the first block of a class (-1: no such
    class) and ``members[row]`` how many blocks it has.
    """

    def __init__(self, blocks: int) -> None:
        self.row = np.zeros(blocks, dtype=np.int64)
        self.first = np.zeros(1, dtype=np.int64)
        self.members = np.array([blocks], dtype=np.int64)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The classes there are."""
        return np.nonzero(self.first >= 0)[0]

    @property
    def single(self) -> bool:
        return int(self.members.max()) == self.row.size

    def split(self, pattern: NDArray[np.generic]) -> list[tuple[int, int]]:
        """Split classes whose members differ in their row of ``pattern``, (blocks, anything).

        Returns (old row, new row) for each class made; the new one starts as a copy of the old.
        """
        if self.rows.size == self.row.size:
            return []
        expected = pattern[self.first[self.row]]
        differs = (pattern != expected).reshape(self.row.size, -1).any(axis=1)
        made: dict[tuple[int, bytes], int] = {}
        for block in np.nonzero(differs)[0]:
            key = (int(self.row[block]), pattern[block].tobytes())
            if key not in made:
                made[key] = self._new(int(block))
            self._move(int(block), made[key])
        return [(old, new) for (old, _), new in made.items()]

    def merge(self, rows: Iterable[int], target: int) -> None:
        """Put the blocks of these classes into ``target``."""
        for row in rows:
            if row == target:
                continue
            inside = self.row == row
            self.row[inside] = target
            self.members[target] += self.members[row]
            self.members[row] = 0
            self.first[row] = -1
        self.first[target] = int(np.nonzero(self.row == target)[0][0])

    def _new(self, block: int) -> int:
        free = np.nonzero(self.first < 0)[0]
        if not free.size:
            self.first = np.concatenate([self.first, np.full(self.first.size, -1)])
            self.members = np.concatenate([self.members, np.zeros_like(self.members)])
            free = np.nonzero(self.first < 0)[0]
        self.first[free[0]] = block
        return int(free[0])

    def _move(self, block: int, row: int) -> None:
        self.members[self.row[block]] -= 1
        self.members[row] += 1
        self.row[block] = row
