"""Counts shared-memory traffic: instructions, wavefronts, bank conflicts, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..counts import SharedCounts, SharedTraffic
from ..events import WARP, Batch, Event
from .lanes import MaskCounts
from .wavefronts import WORD, passes_and_groups

_KINDS = {"read": "load", "write": "store", "atomic": "atomic"}
_REMEMBERED = 64  # patterns; more would keep many copies of masks


@dataclass(frozen=True)
class _Pattern:
    """One access pattern of the batch with its cost, remembered under the address key."""

    active: NDArray[np.bool_] | None  # None: every existing lane
    wavefronts: int
    ideal: int
    worst: int


class SharedObserver:
    """Wavefronts and bytes of every instruction that touches shared memory."""

    def __init__(self) -> None:
        self._rows: dict[str, NDArray[np.int64]] = {}  # kind -> (instructions, 5)
        self._instructions = 0
        self._patterns: dict[tuple[object, ...], _Pattern] = {}

    def begin_batch(self, batch: Batch) -> None:
        self._instructions = len(batch.launch.kernel.instructions)
        self._masks = MaskCounts(batch.exists)
        self._patterns = {}

    def on_event(self, event: Event) -> None:
        if event.space != "shared" or event.address is None:
            return
        lanes, warps = self._masks.of(event.active)
        if not lanes:
            return
        pattern = self._pattern(event)
        row = self._row(_KINDS[event.access])[event.instruction.pc]
        row[:4] += (warps, pattern.wavefronts, pattern.ideal, lanes * event.size)
        row[4] = max(row[4], pattern.worst)

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Nothing: barriers move no data."""

    def end_batch(self, batch: Batch) -> None:
        self._patterns = {}

    def counts(self, pcs: Sequence[int]) -> SharedCounts:
        """Counts of the given instructions together."""
        rows = list(pcs)
        out = {}
        for kind, table in self._rows.items():
            warps, wavefronts, ideal, asked = (int(n) for n in table[rows, :4].sum(axis=0))
            worst = int(table[rows, 4].max(initial=0))
            out[kind] = SharedTraffic(warps, wavefronts, ideal, asked, worst)
        return SharedCounts(**out)

    def _row(self, kind: str) -> NDArray[np.int64]:
        if kind not in self._rows:
            self._rows[kind] = np.zeros((self._instructions, 5), dtype=np.int64)
        return self._rows[kind]

    def _pattern(self, event: Event) -> _Pattern:
        """The event's cost. A common shift by whole words changes nothing (see wavefronts.py), so
        one entry serves every immediate offset from the same base register."""
        if event.address_key is None:
            return _cost(event)
        key = (event.address_key, event.access, event.size, event.offset % WORD)
        found = self._patterns.get(key)
        if found is not None and _same(found.active, event):
            return found
        found = _cost(event)
        if len(self._patterns) >= _REMEMBERED:
            self._patterns.clear()
        self._patterns[key] = found
        return found


def _same(active: NDArray[np.bool_] | None, event: Event) -> bool:
    if active is None or event.active is event.batch.exists:
        return active is None and event.active is event.batch.exists
    return bool((active == event.active).all())


def _cost(event: Event) -> _Pattern:
    assert event.address is not None
    batch = event.batch
    by_block = (batch.blocks, batch.warps_per_block * WARP)
    address, active = event.address.reshape(by_block), event.active.reshape(by_block)
    copies = 1
    # Shared addresses seldom depend on the block: count one block, then multiply.
    if (active == active[0]).all() and ((address == address[0]) | ~active).all():
        address, active, copies = address[:1], active[:1], batch.blocks
    by_warp = (-1, WARP)
    rows, mask = address.reshape(by_warp), active.reshape(by_warp)
    store = event.access != "read"
    passes, groups = passes_and_groups(rows, mask, event.size, store=store)
    kept = None if event.active is batch.exists else event.active.copy()
    return _Pattern(
        kept, int(passes.sum()) * copies, int(groups.sum()) * copies, int(passes.max(initial=0))
    )
