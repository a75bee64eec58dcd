"""Rows timed by the host's clock: copies between host and card, and CPU baselines.

They are not interleaved with the device's rows: a CPU baseline would leave the card idle between
two samples, and its clocks with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import numpy as np

from ..experiment import Cpu, Experiment, Transfer, buffer_bytes
from ..gpu.backend import Backend
from ..sampling import SampleRefused, Series, interleave, median, rule_for
from ..verify import POISON, Problem
from .request import Teller
from .rows import Row, of_check, timing_of

CPU_LEAST, CPU_LONGEST_S = 3, 20.0
CALIBRATION = 3

Step = Callable[[Row, str], AbstractContextManager[None]]


class HostRows:
    """Transfers and CPU baselines of an experiment."""

    def __init__(
        self, experiment: Experiment, backend: Backend, tell: Teller, quick: bool, step: Step
    ) -> None:
        self._experiment = experiment
        self._backend = backend
        self._tell = tell
        self._quick = quick
        self._step = step

    def measure(self, rows: Sequence[Row], problem: Problem) -> dict[str, str]:
        """Verify and time the rows on the timing data; returns facts of the host, for the record.

        A row that fails says why; CPU baselines get at least 3 samples or fail.
        """
        if not rows:
            return {}
        runs: dict[str, Callable[[], None]] = {}
        for row in rows:
            with self._step(row, "prepare"):
                runs[row.name] = self._prepare(row, problem)
        rows = [row for row in rows if row.alive]
        series = []
        for row in rows:
            if (one := self._series(row, runs[row.name])) is not None:
                series.append(one)
        self._tell.say(f"{self._experiment.name}: time {len(series)} rows of the host")
        by_name = {row.name: row for row in rows}

        def take(name: str) -> float:
            self._tell.at(name, "time")
            try:
                return _seconds(runs[name]) * 1e6
            except Exception as error:
                fault = self._backend.fault_of(error)
                if fault is None or fault.fatal:
                    raise
                raise SampleRefused(fault.reason) from error

        # Copies in turn with each other, then each CPU baseline by itself.
        copies = [s for s in series if isinstance(by_name[s.name].variant, Transfer)]
        for group in ([copies] if copies else []) + [[s] for s in series if s not in copies]:
            interleave(group, take, time.perf_counter, self._experiment.seed)
        for one in series:
            row = by_name[one.name]
            if one.failure:
                row.fail(one.failure)
            else:
                row.timings.append(timing_of(one, cache="warm", method="host"))
        return cpu_facts() if any(isinstance(r.variant, Cpu) for r in rows) else {}

    def _prepare(self, row: Row, problem: Problem) -> Callable[[], None]:
        """Something to time, run and verified once."""
        variant = row.variant
        if isinstance(variant, Transfer):
            buffers = (
                self._experiment.inputs if variant.direction == "h2d" else self._experiment.outputs
            )
            arrays = [problem.arrays[b.name] for b in buffers]
            copies = self._backend.copies(variant.direction, variant.pinned, arrays)
            copies.run()
            row.add(of_check(problem.shape, copies.check()))
            return copies.run
        assert isinstance(variant, Cpu)
        problem.reset_outputs()
        inputs = {
            b.name: self._backend.to_host(problem.arrays[b.name]) for b in self._experiment.inputs
        }
        outputs = {
            b.name: np.full(buffer_bytes(b, problem.shape), POISON, np.uint8)
            .view(b.dtype)
            .reshape(b.dims(problem.shape))
            for b in self._experiment.outputs
        }
        variant.run(inputs, outputs, problem.shape)
        xp = self._backend.xp
        row.add(problem.check_outputs({name: xp.asarray(a) for name, a in outputs.items()}))
        return partial(variant.run, inputs, outputs, problem.shape)

    def _series(self, row: Row, run: Callable[[], None]) -> Series | None:
        """An empty series with the right stop rule; None for a row that is too slow."""
        if not row.alive:
            return None
        is_cpu = isinstance(row.variant, Cpu)
        looks: list[float] = []
        with self._step(row, "calibrate"):
            looks.append(_seconds(run))
            while len(looks) < CALIBRATION and sum(looks) < 1.0:
                looks.append(_seconds(run))
        if not row.alive:
            return None
        estimate = median(looks)
        if is_cpu and CPU_LEAST * estimate > CPU_LONGEST_S:
            row.fail(
                f"one call takes {estimate:.1f} s: {CPU_LEAST} samples would take longer than "
                f"{CPU_LONGEST_S:.0f} s"
            )
            return None
        return Series(row.name, rule_for(estimate, self._quick, CPU_LONGEST_S))


def _seconds(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def cpu_facts() -> dict[str, str]:
    """The CPU, and how many threads its numerical libraries use."""
    facts = {"cpu": f"{_cpu_model()}, {len(os.sched_getaffinity(0))} logical CPUs usable"}
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        facts["cpu_threads"] = "unknown: threadpoolctl is not installed"
        return facts
    pools = {f"{p['internal_api']} {p['version']}: {p['num_threads']}" for p in threadpool_info()}
    facts["cpu_threads"] = "; ".join(sorted(pools)) or "no thread pool: one thread"
    return facts


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown CPU"
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return models[0] if models else "unknown CPU"
