"""One device row being timed: alone, or as a batch where one launch is too short to time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..experiment import Arrays
from ..gpu.backend import Backend, ClockReading, Launch
from ..sampling import SampleRefused, median
from ..verify import Problem
from .rows import Row

GRAPH_BELOW_US = 10.0  # shorter launches are timed in batches
BATCH_US = 200.0  # a batch is about this long
BATCH_LEAST, BATCH_MOST = 8, 64
CALIBRATION = 3
READ_CLOCKS_EVERY_S = 0.2

Check = Callable[[], str]
Bind = Callable[[Any], tuple[Launch, Check | None]]


@dataclass
class Timed:
    """A row ready to be timed. ``cold`` and ``warm`` are what one sample launches."""

    row: Row
    estimate_us: float  # of one launch
    cold: Launch
    warm: Launch
    before: Launch | None  # gives buffers that are read and written their input again
    method: Literal["event", "graph"] = "event"
    launches: int = 1
    sets: Sequence[Arrays] = ()  # of a batch: the buffers of each of its cold launches
    checks: Sequence[Check | None] = ()  # and each launch's own check, where the row has one
    _readings: list[ClockReading] = field(default_factory=list)
    _read_at: float = -math.inf

    def sample(
        self, backend: Backend, cold: bool, observe: Callable[[], None] | None = None
    ) -> float:
        """Time of one launch in µs: of a batch, its share."""
        launch = self.cold if cold else self.warm
        sample = backend.sample(launch, cold=cold, before=self.before, observe=observe)
        return sample / self.launches

    def checked_sample(
        self, backend: Backend, cold: bool, reason_of: Callable[[Row, Exception], str]
    ) -> float:
        """As `sample`, reading the clocks now and then; a device's fault refuses the sample."""
        due = time.perf_counter() - self._read_at >= READ_CLOCKS_EVERY_S

        def observe() -> None:
            self._read_at = time.perf_counter()
            if (reading := backend.read_clocks()) is not None:
                self._readings.append(reading)

        try:
            return self.sample(backend, cold, observe if due else None)
        except Exception as error:
            raise SampleRefused(reason_of(self.row, error)) from error

    def take_readings(self) -> Sequence[ClockReading]:
        """The clocks read since the last call."""
        taken, self._readings = self._readings, []
        self._read_at = -math.inf
        return taken


def prepare(backend: Backend, row: Row, bind: Bind, problem: Problem) -> Timed:
    """Bind a row to the timing data, and choose by a first look how it is to be timed."""
    problem.reset_outputs()
    launch, _ = bind(problem.arrays)
    before = restorer(problem, [problem.arrays])
    single = Timed(row, 0.0, launch, launch, before)
    single.estimate_us = median([single.sample(backend, True) for _ in range(CALIBRATION)])
    if single.estimate_us >= GRAPH_BELOW_US:
        return single
    footprint = sum(a.nbytes for a in problem.arrays.values())
    affordable = backend.free_bytes() // 2 // max(footprint, 1)
    wanted = math.ceil(BATCH_US / max(single.estimate_us, 1e-3))
    count = min(max(BATCH_LEAST, min(wanted, BATCH_MOST)), affordable)
    if count < BATCH_LEAST:
        return single
    problem.reset_outputs()
    # Cold: every launch of a batch has buffers of its own, none of which is in L2.
    sets = [{name: a.copy() for name, a in problem.arrays.items()} for _ in range(count)]
    bound = [bind(arrays) for arrays in sets]
    try:
        rotating = backend.batch([launch for launch, _ in bound])
    except NotImplementedError:  # CuPy's cuBLAS calls cannot be part of a graph
        return single
    return Timed(
        row=row,
        estimate_us=single.estimate_us,
        cold=rotating,
        warm=backend.batch([launch] * count),
        before=restorer(problem, [problem.arrays, *sets]),
        method="graph",
        launches=count,
        sets=sets,
        checks=[check for _, check in bound],
    )


def restorer(problem: Problem, sets: Sequence[Arrays]) -> Launch | None:
    """Copies the inputs back into buffers that a launch overwrites; None where it has none."""
    names = [b.name for b in problem.experiment.buffers if b.role == "inout"]
    if not names:
        return None
    pristine = {name: problem.arrays[name].copy() for name in names}

    def restore() -> None:
        for arrays in sets:
            for name in names:
                arrays[name][...] = pristine[name]

    return restore
