"""Counts traffic to global and local memory: requests, sectors, bytes asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..counts import GlobalCounts, Traffic
from ..events import WARP, Batch, Event
from .lanes import MaskCounts
from .sectors import sectors

_KINDS = {
    ("global", "read"): "load",
    ("global", "write"): "store",
    ("global", "atomic"): "atomic",
    ("local", "read"): "local_load",
    ("local", "write"): "local_store",
}
_LOCAL_WORD = 4  # local memory interleaves the lanes of a warp every 4 bytes


class GlobalObserver:
    """Requests, sectors and bytes of every instruction that touches global or local memory."""

    def __init__(self) -> None:
        self._rows: dict[str, NDArray[np.int64]] = {}  # kind -> (instructions, 3)
        self._instructions = 0

    def begin_batch(self, batch: Batch) -> None:
        self._instructions = len(batch.launch.kernel.instructions)
        self._masks = MaskCounts(batch.exists)

    def on_event(self, event: Event) -> None:
        if event.address is None:
            return
        kind = _KINDS.get((event.space or "", event.access))
        if kind is None:
            return
        lanes, warps = self._masks.of(event.active)
        if not lanes:
            return
        address = event.address
        touched = 0
        if event.space == "local":
            for word in range(max(event.size // _LOCAL_WORD, 1)):
                touched += sectors(_interleaved(address + word * _LOCAL_WORD), event.active)
        else:
            touched = sectors(address, event.active)
        row = self._row(kind)[event.instruction.pc]
        row += (warps, touched, lanes * event.size)

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Nothing: barriers move no data."""

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish."""

    def counts(self, pcs: Sequence[int]) -> GlobalCounts:
        """Counts of the given instructions together."""
        rows = list(pcs)
        return GlobalCounts(
            **{
                kind: Traffic(*(int(n) for n in table[rows].sum(axis=0)))
                for kind, table in self._rows.items()
            }
        )

    def _row(self, kind: str) -> NDArray[np.int64]:
        if kind not in self._rows:
            self._rows[kind] = np.zeros((self._instructions, 3), dtype=np.int64)
        return self._rows[kind]


def _interleaved(address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where a lane's local byte address lies when a warp's lanes alternate every 4 bytes."""
    lane = np.arange(address.size, dtype=np.int64) % WARP
    return (address // _LOCAL_WORD) * (WARP * _LOCAL_WORD) + lane * _LOCAL_WORD
