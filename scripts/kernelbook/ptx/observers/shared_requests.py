"""Remembers which words of shared memory one warp asks for, line by line: what a bank map shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event
from .wavefronts import WORD

# Neither the first warp nor a power of two: there a rotation of rows and an exclusive or of row and
# column cannot be told apart.
FOLLOWED = 5


@dataclass(frozen=True)
class Request:
    """A shared-memory instruction the first time the followed warp executes it.

    ``words``: the first word each of the 32 lanes accesses, -1 of an inactive lane. Words count
    from the start of the block's shared memory. ``size``: bytes a lane.
    """

    access: str  # "read", "write" or "atomic"
    size: int
    words: tuple[int, ...]


class RequestObserver:
    """Follows warp `FOLLOWED` of block 0, or the last one where a block has fewer."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, str], Request] = {}
        self._lanes: slice | None = None

    def begin_batch(self, batch: Batch) -> None:
        warp = min(FOLLOWED, batch.warps_per_block - 1)
        self._lanes = slice(warp * WARP, (warp + 1) * WARP) if batch.first_block == 0 else None

    def on_event(self, event: Event) -> None:
        if self._lanes is None or event.space != "shared" or event.address is None:
            return
        place = (event.instruction.file, event.instruction.line, event.access)
        active = event.active[self._lanes]
        if place in self._found or not place[1] or not active.any():
            return
        words = np.where(active, event.address[self._lanes] // WORD, -1)
        self._found[place] = Request(event.access, event.size, tuple(int(w) for w in words))

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        """Nothing: barriers move no data."""

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish."""

    def by_line(self, files: Mapping[int, str]) -> dict[str, tuple[Request, ...]]:
        """By "file:line" in order, one request a kind of access; ``files`` as `Module.files`."""
        found: dict[str, tuple[Request, ...]] = {}
        for (file, line, _), request in sorted(self._found.items(), key=lambda item: item[0]):
            place = f"{files.get(file, '')}:{line}"
            found[place] = (*found.get(place, ()), request)
        return found
