"""Measuring one experiment in one process: compile, verify, time, verify again.

The order of things is that of the method: nothing wrong is timed, everything on the device is timed
interleaved, and what was timed is verified once more on the data it was timed with.
"""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import KernelbookError, NotBuilt
from ..experiment import (
    ITEM_BYTES,
    Cpu,
    Experiment,
    Kernel,
    Library,
    Shape,
    Transfer,
    buffer_bytes,
)
from ..gpu.backend import Backend, Launch, sm_mhz
from ..gpu.device_info import peaks_of, target_of
from ..records import Record, Verification
from ..resources import compile_kernel
from ..sampling import (
    QUICK_WARM_UP,
    Series,
    WarmUp,
    floor_us,
    interleave,
    rule_for,
    statistics,
    warm_up,
)
from ..verify import (
    TIMING_SEED_OFFSET,
    VERIFY_SEED_OFFSET,
    Problem,
    check_launch,
    verify_run,
)
from .audit import Audit, batch_check, fresh_seeds
from .hostrows import HostRows
from .provenance import provenance, record_of
from .request import Request, Teller
from .rows import Row, of_check, timing_of
from .timed import Timed, prepare

EMPTY_SAMPLES = 41
EMPTY_BATCH = 20
# Where the process has just measured another experiment, the card's clocks are up already.
STILL_WARM = WarmUp(min_s=0.2)
COUNTER_EXAMPLE_LAUNCHES = 100  # of a kernel that is wrong on purpose


class ContextLost(Exception):
    """A row's fault took the device's context with it: this process can do no more."""

    def __init__(self, variant: str, reason: str) -> None:
        super().__init__(reason)
        self.variant = variant
        self.reason = reason


class Session:
    """One run of one experiment. ``run`` returns the record; rows that fail say why."""

    def __init__(
        self, experiment: Experiment, request: Request, backend: Backend, tell: Teller
    ) -> None:
        self.experiment = experiment
        self.request = request
        self.backend = backend
        self.tell = tell
        self.shape = dict(experiment.shape)
        self.target = target_of(backend.info)
        self.peaks = peaks_of(backend.info)
        chosen = [v for v in experiment.variants if v.name in request.variants]
        self.rows = [Row(experiment, v) for v in chosen]
        self.notes = {
            "host": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        }
        if request.quick:
            self.notes["quick"] = "fewer samples than a result needs"

    def run(self) -> Record:
        """Measure everything; raises ContextLost where a row lost the context."""
        origin = provenance(Path(self.request.root))
        self._check_memory()
        self._compile()
        self._verify()
        if self._alive():
            self._time()
        return record_of(
            self.experiment,
            "measured",
            self.shape,
            origin,
            results=tuple(r.result(self.shape, self.target) for r in self.rows),
            device=self.backend.info,
            # Only now: a baseline says with what it was built when it is bound.
            notes={**self.backend.notes, **self.notes},
        )

    # ---- before timing ---------------------------------------------------------------------

    def _alive(self, *kinds: type) -> list[Row]:
        return [r for r in self.rows if r.alive and (not kinds or isinstance(r.variant, kinds))]

    @contextmanager
    def _step(self, row: Row, doing: str) -> Iterator[None]:
        """Something that may fail a row: says so beforehand, and keeps the failure to the row."""
        self.tell.at(row.name, doing)
        try:
            yield
        except NotBuilt as error:
            row.skip(_sentence(error))
        except KernelbookError as error:
            row.fail(_sentence(error))
        except Exception as error:
            fault = self.backend.fault_of(error)
            if fault is None:
                raise
            if fault.fatal:
                raise ContextLost(row.name, f"{doing}: {fault.reason}") from error
            row.fail(f"{doing}: {fault.reason}")

    def _check_memory(self) -> None:
        needed, free = memory_needed(self.experiment, self.shape), self.backend.free_bytes()
        if needed > free:
            for row in self.rows:
                row.skip(
                    f"needs about {needed / 2**30:.1f} GiB of GPU memory, "
                    f"{free / 2**30:.1f} GiB are free"
                )

    def _compile(self) -> None:
        cc = self.backend.info.cc
        for row in self._alive(Kernel):
            kernel = row.variant
            assert isinstance(kernel, Kernel)
            if cc < kernel.min_cc:
                row.skip(
                    f"needs compute capability {kernel.min_cc[0]}.{kernel.min_cc[1]}, "
                    f"the card has {cc[0]}.{cc[1]}"
                )
                continue
            with self._step(row, "compile"):
                row.compiled = compile_kernel(
                    self.experiment, kernel, self.backend.arch, self.request.cache
                )

    def _verify(self) -> None:
        shapes = [dict(s) for s in self.experiment.ragged] + [self.shape]
        seed = self.experiment.seed + VERIFY_SEED_OFFSET
        for shape in shapes:
            full = shape is self.shape
            rows = self._alive(Kernel, Library) if full else self._alive(Kernel)
            if not rows:
                continue
            self.tell.at("", f"verification data at {shape}")
            problem = Problem(self.backend.xp, self.experiment, shape, seed)
            self.tell.say(f"{self.experiment.name}: verify at {_words(shape)}")
            for row in rows:
                with self._step(row, f"verify at {_words(shape)}"):
                    row.add(self._verification(row, problem))
                    if full and row.counter_example:
                        self._count_wrong(row, problem)
            del problem
            self.backend.release()

    def _verification(self, row: Row, problem: Problem, launches: int = 2) -> Verification:
        launch, check = self.bind(row, problem.shape)(problem.arrays)

        def run(arrays: Any) -> None:
            launch()
            self.backend.synchronize()

        if check is None:
            return verify_run(problem, run, launches)
        run(None)
        return of_check(problem.shape, check())

    def _count_wrong(self, row: Row, problem: Problem) -> None:
        """How often a kernel that is wrong on purpose really prints something wrong."""
        launch, _ = self.bind(row, problem.shape)(problem.arrays)
        wrong = 0
        for _ in range(COUNTER_EXAMPLE_LAUNCHES):
            problem.reset_outputs()
            launch()
            self.backend.synchronize()
            wrong += not problem.check().passed
        problem.restore()
        row.counters |= {"launches": COUNTER_EXAMPLE_LAUNCHES, "launches_wrong": wrong}

    def bind(
        self, row: Row, shape: Shape
    ) -> Callable[[Any], tuple[Launch, Callable[[], str] | None]]:
        """How to bind a device row to buffers; see `gpu.backend.Routine` for the second value."""
        variant = row.variant
        if isinstance(variant, Kernel):
            assert row.compiled is not None
            check_launch(self.experiment, variant, shape, self.target)
            bound = self.backend.bind(self.experiment, variant, row.compiled, shape, self.target)
            return lambda arrays: (bound(arrays), None)
        assert isinstance(variant, Library)

        def bind_routine(arrays: Any) -> tuple[Launch, Callable[[], str] | None]:
            routine = self.backend.routine(variant, self.experiment, shape, arrays)
            return routine.launch, routine.check

        return bind_routine

    # ---- timing ----------------------------------------------------------------------------

    def _time(self) -> None:
        self.tell.at("", "timing data")
        seed = self.experiment.seed + TIMING_SEED_OFFSET
        problem = Problem(self.backend.xp, self.experiment, self.shape, seed)
        gc.collect()
        gc.disable()  # a collection between two events would be measured
        try:
            timed = self._prepare(problem)
            if timed:
                self._warm_up(timed)
                self._empty_kernel()
                for cold in (True, False):
                    self._sample([t for t in timed if t.row.alive], cold)
        finally:
            gc.enable()
        self._verify_again([t for t in timed if t.row.alive], problem)
        host = HostRows(self.experiment, self.backend, self.tell, self.request.quick, self._step)
        self.notes |= host.measure(self._alive(Transfer, Cpu), problem)

    def _prepare(self, problem: Problem) -> list[Timed]:
        timed = []
        for row in self._alive(Kernel, Library):
            if row.counter_example:
                continue  # nothing wrong is timed
            with self._step(row, "calibrate"):
                timed.append(prepare(self.backend, row, self.bind(row, self.shape), problem))
        return [t for t in timed if t.row.alive]

    def _warm_up(self, timed: Sequence[Timed]) -> None:
        def one_round() -> None:
            for t in timed:
                if t.row.alive:
                    with self._step(t.row, "warm up"):
                        t.sample(self.backend, cold=True)

        self.tell.say(f"{self.experiment.name}: warm up {len(timed)} rows")
        usual = STILL_WARM if self.request.warm else WarmUp()
        policy = QUICK_WARM_UP if self.request.quick else usual
        self.notes["warm_up"] = warm_up(
            one_round, time.perf_counter, lambda: sm_mhz(self.backend), policy
        )

    def _empty_kernel(self) -> None:
        """The floor of the method: what an empty kernel seems to take."""
        self.tell.at("", "empty kernel")
        backend, empty = self.backend, self.backend.empty()
        single = [backend.sample(empty, cold=True) for _ in range(EMPTY_SAMPLES)]
        graph = backend.batch([empty] * EMPTY_BATCH)
        many = [backend.sample(graph, cold=True) / EMPTY_BATCH for _ in range(EMPTY_SAMPLES)]
        self.notes["empty_kernel_us"] = f"{statistics(single).median:.2f}"
        self.notes["empty_kernel_in_graph_us"] = f"{statistics(many).median:.2f}"

    def _sample(self, timed: Sequence[Timed], cold: bool) -> None:
        state = "cold" if cold else "warm"
        self.tell.say(f"{self.experiment.name}: time {len(timed)} rows, {state} L2")
        by_name = {t.row.name: t for t in timed}

        def take(name: str) -> float:
            one = by_name[name]
            self.tell.at(name, f"time, {state} L2")
            return one.checked_sample(self.backend, cold, self._lost)

        series = [
            Series(
                t.row.name,
                rule_for(t.estimate_us * t.launches * 1e-6, self.request.quick),
                self._floor_us(t.row, cold),
            )
            for t in timed
        ]
        interleave(series, take, time.perf_counter, self.experiment.seed)
        for one in series:
            found = by_name[one.name]
            if one.failure:
                found.row.fail(one.failure)
                continue
            found.row.timings.append(
                timing_of(
                    one,
                    cache="cold" if cold else "warm",
                    method=found.method,
                    flush=self.backend.flush if cold else "",
                    launches=found.launches,
                    readings=found.take_readings(),
                )
            )
        self.notes["order"] = f"rows sampled in rounds, shuffled with seed {self.experiment.seed}"

    def _floor_us(self, row: Row, cold: bool) -> float:
        result = row.result(self.shape, self.target)
        # The FP32 peak bounds FP32 work only: tensor cores do more of what is narrower.
        flops = result.flops if self.experiment.dtype == "float32" else 0
        return floor_us(self.peaks, flops, result.bytes_read, result.bytes_written, cold=cold)

    def _lost(self, row: Row, error: Exception) -> str:
        """The reason of a fault while sampling; raises ContextLost or the bug itself."""
        fault = self.backend.fault_of(error)
        if fault is None:
            raise error
        if fault.fatal:
            raise ContextLost(row.name, f"timing: {fault.reason}") from error
        return f"timing: {fault.reason}"

    def _verify_again(self, timed: Sequence[Timed], problem: Problem) -> None:
        """On the data of the timing, then on data no kernel has seen: one that answers from memory
        has the timed answer ready, and only that. And whether all of it stayed in its bounds."""
        self.tell.say(f"{self.experiment.name}: verify again")
        self.tell.at("", "bounds after timing")
        damage = problem.damage()
        if damage:
            problem.restore()
        audits = []
        for t in timed:
            with self._step(t.row, "verify after timing"):
                t.row.add(self._verification(t.row, problem, 1), "after timing ")
                if (batch := batch_check(self.backend, t, problem)) is not None:
                    t.row.add(batch, "as timed ")
                audits.append(Audit(self.backend, t, self.bind(t.row, self.shape)))
                audits[-1].known(problem)
        seeds = fresh_seeds(self.experiment)
        for audit in audits:
            if audit.row.alive:
                with self._step(audit.row, "verify on fresh inputs"):
                    audit.row.add(audit.fresh(problem, seeds), "on fresh inputs ")
        if damage and all(t.row.alive for t in timed):
            for t in timed:
                t.row.fail(f"while rows of this run were timed, one of them {damage}")


def memory_needed(experiment: Experiment, shape: Shape) -> int:
    """Bytes of device memory that verifying and timing at a shape take, roughly.

    The buffers, as much again for a copy baseline, and the fp64 reference with the inputs it casts.
    """
    sizes = [buffer_bytes(b, shape) for b in experiment.buffers]
    items = [ITEM_BYTES[b.dtype] for b in experiment.buffers]
    wide = sum(size // item * 8 for size, item in zip(sizes, items, strict=True))
    return 2 * sum(sizes) + wide


def _sentence(error: KernelbookError) -> str:
    """The error without this machine's paths: records are published."""
    place = f"{Path(error.file).name}:{error.line or 1}: " if error.file else ""
    return place + error.what + (f" ({error.hint})" if error.hint else "")


def _words(shape: Shape) -> str:
    return " ".join(f"{k}={v}" for k, v in shape.items())
