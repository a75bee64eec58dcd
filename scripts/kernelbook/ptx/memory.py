"""Address spaces as flat bytes, and the checks that every access passes.

Global memory, constants and parameters lie in one arena whose positions are the addresses; between
allocations lie gaps, so that an access outside names the array it missed. Shared and local memory
are windows: one per block and one per lane. Generic addresses place the shared window at
``SHARED_WINDOW`` and the local window at ``LOCAL_WINDOW``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Allocation

Array = NDArray[Any]

SHARED_WINDOW = 1 << 44
LOCAL_WINDOW = 1 << 45
_FIRST = 1 << 16  # addresses below are null pointers with an offset
_GAP = 1 << 20
ALIGNMENT = 256


class Arena:
    """Global memory: bytes, and the allocations in them by ascending base."""

    def __init__(self, requests: list[tuple[str, int, int, int, bool]]) -> None:
        """``requests``: (name, bytes, base modulo 256, element bytes, writable) each."""
        self.allocations: list[Allocation] = []
        self.writable: list[bool] = []
        position = _FIRST
        for name, size, residue, element_bytes, writable in requests:
            base = -(-position // ALIGNMENT) * ALIGNMENT + residue
            self.allocations.append(Allocation(name, base, size, element_bytes))
            self.writable.append(writable)
            position = base + size + _GAP
        self.size = -(-position // ALIGNMENT) * ALIGNMENT
        self.data = np.zeros(self.size, np.uint8)
        self._bases = [a.base for a in self.allocations]
        self._last = 0

    def bytes_of(self, index: int) -> Array:
        """The bytes of one allocation, as a view."""
        allocation = self.allocations[index]
        return self.data[allocation.base : allocation.base + allocation.size]

    def holds(self, low: int, end: int, write: bool) -> bool:
        """Whether [low, end) lies inside one allocation (that may be written)."""
        allocations = self.allocations
        at = self._last
        if at < len(allocations):
            found = allocations[at]
            if found.base <= low and end <= found.base + found.size:
                return not write or self.writable[at]
        at = bisect_right(self._bases, low) - 1
        if at < 0:
            return False
        found = allocations[at]
        self._last = at
        return end <= found.base + found.size and (not write or self.writable[at])

    def first_fault(self, address: Array, size: int, write: bool) -> int | None:
        """Position in ``address`` of the first access that no single allocation holds."""
        at = np.searchsorted(np.array(self._bases, np.int64), address, side="right") - 1
        ends = np.array([a.base + a.size for a in self.allocations], np.int64)
        writable = np.array(self.writable, bool)
        good = (at >= 0) & (address + size <= ends[at]) & (writable[at] | (not write))
        bad = np.flatnonzero(~good)
        return int(bad[0]) if bad.size else None

    def describe(self, address: int) -> str:
        """Which array an address misses, and by how much."""
        if 0 <= address < _FIRST:
            return f"address {address:#x}, a null pointer"
        if not self.allocations:
            return f"address {address:#x}, and the kernel has no arrays"
        nearest = min(
            self.allocations,
            key=lambda a: max(a.base - address, address - (a.base + a.size) + 1, 0),
        )
        index = (address - nearest.base) // nearest.element_bytes
        length = nearest.size // nearest.element_bytes
        return f"{nearest.name}[{index}], of an array of {length} elements"


class Window:
    """Flat bytes addressed by element: ``base`` is what a lane adds to its address, or None."""

    def __init__(self, data: Array, base: Array | None, size: int) -> None:
        self.data = data
        self.base = base
        self.size = size
        self._views: dict[int, Array] = {}

    def view(self, element_bytes: int) -> Array:
        """The bytes as unsigned elements of 1, 2, 4 or 8 bytes."""
        view = self._views.get(element_bytes)
        if view is None:
            view = self.data.view(f"u{element_bytes}")
            self._views[element_bytes] = view
        return view
