"""A last look at a row that has been timed: was that the time of its work?

Verification sees one launch at a time, on fresh outputs and after a pause. A kernel that can tell
the difference may work only then: where outputs are poisoned, where its last launch is long ago,
where inputs are not those it remembers. So, under the conditions of the timing,

- each launch of a batch must have written its own outputs, and
- samples on inputs that no launch has seen, with outputs full of wrong numbers, must be right, and
  must not take longer than those on the inputs it was timed with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from ..experiment import Experiment
from ..gpu.backend import Backend, Launch
from ..records import Verification
from ..sampling import median
from ..verify import LAST_SEED_OFFSET, POISON, Problem
from .rows import of_check
from .timed import Bind, Timed, restorer

KNOWN_SAMPLES = 3
FRESH_SAMPLES = 3
ATTEMPTS = 2  # the second one on a card that has been kept busy: it may have slowed its clocks
BUSY_S = 0.3
LAUNCHES_LOOKED_AT = 8  # of a batch: the first two, the last, and some between
LONGER = 1.25  # what a sample on fresh inputs may take of one on known inputs ...
LONGER_US = 2.0  # ... and this, for what is so short that little else is timed


def batch_check(backend: Backend, timed: Timed, problem: Problem) -> Verification | None:
    """Launch the cold batch once more and look at what each launch wrote; None without a batch.

    ``problem`` holds the timing data.
    """
    if not timed.sets:
        return None
    outputs = [b.name for b in problem.experiment.outputs if b.role == "out"]
    for arrays in timed.sets:
        for name in outputs:
            arrays[name].reshape(-1).view(backend.xp.uint8)[...] = POISON
    timed.sample(backend, cold=True)
    backend.synchronize()
    found = None
    last = len(timed.sets) - 1
    between = (last * i // LAUNCHES_LOOKED_AT for i in range(3, LAUNCHES_LOOKED_AT + 1))
    for at in sorted({0, 1, *between}):
        check = timed.checks[at]
        if check is None:
            found = problem.check_outputs(timed.sets[at])
        else:  # the row leaves nothing in the experiment's outputs
            found = of_check(problem.shape, check())
        if not found.passed:
            return replace(found, reason=f"launch {at + 1} of a batch: {found.reason}")
    return found


class Audit:
    """Samples of one row on known and on fresh inputs, in the order: `known`, then `fresh`."""

    def __init__(self, backend: Backend, timed: Timed, bind: Bind) -> None:
        self._backend = backend
        self._bind = bind
        self._known_us = 0.0
        self.row = timed.row

    def known(self, problem: Problem) -> None:
        """Take what the row takes on the timing data, one launch at a time."""
        launch, _ = self._bind(problem.arrays)
        sample = self._sampler(launch, problem)
        self._known_us = median([sample() for _ in range(KNOWN_SAMPLES)])
        cold = next((t for t in self.row.timings if t.cache == "cold"), None)
        if cold is not None and cold.method == "event":
            self._known_us = min(self._known_us, cold.median_us)

    def fresh(self, problem: Problem, seeds: Iterator[int]) -> Verification:
        """Sample on inputs of these seeds; leaves them in ``problem``."""
        launch, check = self._bind(problem.arrays)
        limit_us = self._known_us * LONGER + LONGER_US
        fastest = float("inf")
        for number in range(ATTEMPTS * FRESH_SAMPLES):
            if number == FRESH_SAMPLES:
                self._keep_busy()
            problem.reseed(next(seeds))
            problem.litter()
            fastest = min(fastest, self._sampler(launch, problem)())
            self._backend.synchronize()
            found = of_check(problem.shape, check()) if check else problem.check()
            if not found.passed:
                problem.restore()
                return found
            if fastest <= limit_us:
                return found
        reason = (
            f"a launch takes {fastest:.2f} µs there, and {self._known_us:.2f} µs on inputs it knows"
        )
        return replace(found, passed=False, reason=reason)

    def _keep_busy(self) -> None:
        until = time.perf_counter() + BUSY_S
        while time.perf_counter() < until:
            self._backend.sample(self._backend.empty(), cold=True)

    def _sampler(self, launch: Launch, problem: Problem) -> Callable[[], float]:
        before = restorer(problem, [problem.arrays])
        return lambda: self._backend.sample(launch, cold=True, before=before)


def fresh_seeds(experiment: Experiment) -> Iterator[int]:
    """Seeds that no launch has seen."""
    return count(experiment.seed + LAST_SEED_OFFSET)
