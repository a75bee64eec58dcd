"""Which lanes run next: groups of lanes by program counter, the lowest first.

Running the lowest program counter first makes diverged lanes meet again at the end of an ``if`` or
a loop. It would also run a spinning lane forever, while the lane that it waits for stands further
down. So lanes that poll memory (a strong load or an atomic in a loop) without storing anything
yield: first their whole warp, to other warps; and when every warp has yielded in vain, the lanes of
a warp take turns, those furthest ahead first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import WARP
from .lanes import Lanes
from .state import State

Array = NDArray[Any]

# Polls of a group before it yields, and rounds in which everyone yielded in vain before lanes of a
# warp take turns. A kernel that needed turns once (a lock within a warp) gets them sooner.
_PATIENCE = 16
_LEAST_PATIENCE = 2
_FRUITLESS_ROUNDS = 2
NEVER = 1 << 62


class Scheduler:
    """The runnable and the yielded groups of one batch."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.alive: NDArray[np.bool_] = state.exists.copy()
        self.living = 0
        self.groups: dict[int, Lanes] = {}
        self.limit = NEVER  # the running group must stop here and join another
        self._yielded: dict[int, NDArray[np.bool_]] = {}
        self.idle = 0  # polls in a row, of anyone, while nobody got anywhere
        self._polls = 0
        self._fruitless = 0
        self._progress = 0
        self._idle_since = 0
        self._furthest_first = False
        self._patience = _PATIENCE

    def begin(self) -> None:
        """Start all lanes that exist at the first instruction."""
        self.alive = self.state.exists.copy()
        self.living = int(np.count_nonzero(self.alive))
        self._yielded.clear()
        self._polls = self._fruitless = self.idle = 0
        self._furthest_first = False
        self._progress = self.state.progress
        self.groups = {0: Lanes(self.state.exists, self.living)}

    @property
    def polling(self) -> bool:
        """Whether the lanes that run have been seen to poll memory since they last got anywhere."""
        return self._polls > 0 or self._fruitless > 0

    def make(self, mask: NDArray[np.bool_]) -> Lanes:
        return Lanes(mask, self.living)

    def select(self, lanes: Lanes, predicate: Array, negated: bool) -> Lanes | None:
        """The lanes whose predicate holds: all of them as the same object, or None."""
        mask = lanes.mask & ~predicate if negated else lanes.mask & predicate
        count = int(np.count_nonzero(mask))
        if count == lanes.count:
            return lanes
        return Lanes(mask, self.living, count) if count else None

    def push(self, pc: int, lanes: Lanes) -> None:
        """Make lanes runnable, together with those already waiting to run there."""
        other = self.groups.get(pc)
        self.groups[pc] = lanes if other is None else self.make(lanes.mask | other.mask)

    def push_mask(self, pc: int, mask: NDArray[np.bool_]) -> None:
        self.push(pc, self.make(mask))

    def pick(self) -> tuple[int, Lanes] | None:
        """The next group to run; None when nobody can."""
        if not self.groups and self._yielded:
            self._resume()
        if not self.groups:
            return None
        if self._furthest_first and self.state.progress != self._progress:
            self._furthest_first = False
        pc = max(self.groups) if self._furthest_first else min(self.groups)
        lanes = self.groups.pop(pc)
        self.limit = NEVER
        if self.groups and not self._furthest_first:
            self.limit = min(self.groups)
        return pc, lanes

    def _resume(self) -> None:
        """Everyone has yielded: let them look again."""
        if self.state.progress == self._progress:
            self._fruitless += 1
            if self._fruitless > _FRUITLESS_ROUNDS or self._patience < _PATIENCE:
                self._furthest_first = True
                self._patience = max(_LEAST_PATIENCE, self._patience // 2)
        else:
            self._fruitless = 0
            self._furthest_first = False
        self._progress = self.state.progress
        for pc, mask in self._yielded.items():
            self.push_mask(pc, mask)
        self._yielded.clear()

    def backward(self, target: int, lanes: Lanes) -> bool:
        """A backward branch was taken; True if the lanes have yielded and stop running here."""
        state = self.state
        if not state.polled:
            return False
        state.polled = False
        self._polls += 1
        if state.progress + state.changes != self._idle_since:
            self.idle, self._idle_since = 0, state.progress + state.changes
        self.idle += 1
        if self._polls < self._patience or not (self.groups or self._yielded):
            return False
        self._polls = 0
        if self._furthest_first:
            self._set_aside(target, lanes.mask)
            return True
        warps = np.repeat(lanes.mask.reshape(-1, WARP).any(axis=1), WARP)
        self._set_aside(target, lanes.mask)
        for pc, group in list(self.groups.items()):
            part = group.mask & warps
            if part.any():
                del self.groups[pc]
                self._set_aside(pc, part)
                rest = group.mask & ~warps
                if rest.any():
                    self.push_mask(pc, rest)
        return True

    def _set_aside(self, pc: int, mask: NDArray[np.bool_]) -> None:
        other = self._yielded.get(pc)
        self._yielded[pc] = mask if other is None else mask | other

    def exit(self, lanes: Lanes) -> None:
        """These lanes have finished."""
        self.alive = self.alive & ~lanes.mask
        self.living -= lanes.count
        self.state.progress += 1
        for group in self.groups.values():
            group.whole = group.count == self.living
