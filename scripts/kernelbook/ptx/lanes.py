"""Sets of lanes that execute together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import WARP

Array = NDArray[Any]

# Above this share of the batch, computing on all lanes and blending beats gathering some.
_DENSE = 0.5
# A step costs this many lanes at least: Python's and NumPy's overhead per instruction.
MINIMUM_COST = 1024


class Lanes:
    """An unchanging set of lanes of a batch.

    ``all`` : every lane of the batch, padding included, so memory needs no gathering.
    ``whole`` : every lane that still runs is here, so registers of others may be overwritten.
    """

    __slots__ = ("_index", "_warps", "all", "cost", "count", "dense", "mask", "whole")

    def __init__(self, mask: NDArray[np.bool_], alive: int, count: int | None = None) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask)) if count is None else count
        self.all = self.count == mask.size
        self.whole = self.count == alive
        self.dense = self.count > _DENSE * mask.size
        self.cost = max(self.count, MINIMUM_COST)
        self._index: Array | None = None
        self._warps: Array | None = None

    @property
    def index(self) -> Array:
        """Positions of the lanes in the batch, ascending."""
        if self._index is None:
            self._index = np.flatnonzero(self.mask)
        return self._index

    @property
    def ballots(self) -> Array:
        """One uint32 a warp of the batch: which of its lanes are here."""
        if self._warps is None:
            self._warps = pack_warps(self.mask)
        return self._warps


def pack_warps(bits: Array) -> Array:
    """(lanes,) bool to (warps,) uint32, lane 0 in bit 0."""
    packed = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little")
    return packed.view(np.uint32).reshape(-1)
