"""Choosing a kernel's configuration by size: what ``--tune`` does on the device.

A chapter whose kernel has a table declares a `Tuning` as ``TUNING`` in its experiments.py. At each
shape every configuration is looked at once; those that are near the fastest and right are timed
further, in rounds with the library baseline. Tuned times are few samples of one run: the table
keeps them beside its choices, and no article cites them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..compiler import Compiled
from ..errors import KernelbookError
from ..experiment import Experiment, Kernel, Shape, Tuning
from ..gpu.backend import Backend, Launch, sm_mhz
from ..gpu.device_info import target_of
from ..resources import compile_kernel
from ..sampling import median, warm_up
from ..verify import TIMING_SEED_OFFSET, Problem, verify_run
from .request import Teller, TuneRequest
from .session import ContextLost, memory_needed
from .tuning_table import Choice, shape_key

BASELINE = ""  # its name among those of configurations
CONTENDERS_WITHIN, CONTENDERS = 1.2, 8  # of the fastest right one at first sight; at most so many
FINALISTS_WITHIN = 1.04  # of the fastest contender
SEMIFINAL, FINAL = 2, 9  # further samples a configuration
SHORT_US, SECOND_LOOK = 50.0, 2  # of a short run one sample may be far off; two more cost nothing
LONG_US, LONG_FINAL = 5_000.0, 3  # a long run says enough in few samples


def tune(backend: Backend, tuning: Tuning, request: TuneRequest, tell: Teller) -> Iterator[Choice]:
    """The fastest right configuration at each shape asked for, cold.

    A shape that needs more memory than there is gets no choice. Raises KernelbookError where a
    shape has no configuration that runs on this device, ContextLost where one lost the device.
    """
    compiled: dict[str, Compiled] = {}
    loaded: set[str] = set()
    for shape in tuning.shapes:
        key = shape_key(shape)
        if key not in request.shapes:
            continue
        experiment = tuning.experiment(shape)
        kernels = [
            k
            for k in experiment.kernels
            if k.min_cc <= backend.info.cc and k.name not in request.without
        ]
        if not kernels:
            raise KernelbookError(f"no configuration of {experiment.name} runs on this device")
        if memory_needed(experiment, shape) > backend.free_bytes():
            tell.say(f"{key} needs more GPU memory than is free: its choice stays")
            continue
        if missing := [k for k in kernels if k.name not in compiled]:
            tell.at("", f"compile {len(missing)} configurations")
            compiled |= _compile(experiment, missing, backend.arch, request)
        trial = _trial(backend, experiment, kernels, compiled, tell, loaded)
        if not loaded:
            trial.warm_up()
        yield trial.choice()
        del trial
        backend.release()


def _compile(
    experiment: Experiment, kernels: Sequence[Kernel], arch: str, request: TuneRequest
) -> dict[str, Compiled]:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = pool.map(lambda k: compile_kernel(experiment, k, arch, request.cache), kernels)
        return {k.name: c for k, c in zip(kernels, done, strict=True)}


@dataclass
class _Trial:
    """All configurations at one shape. ``taken`` are their cold times in µs."""

    backend: Backend
    key: str
    problem: Problem
    launches: Mapping[str, Launch]
    tell: Teller
    loaded: set[str]  # whose first launch, which also loads code, is over
    taken: dict[str, list[float]] = field(default_factory=dict)

    def warm_up(self) -> None:
        """Bring the card's clocks up; no time of it is kept."""

        def one_round() -> None:
            self._take(BASELINE)

        warm_up(one_round, time.perf_counter, lambda: sm_mhz(self.backend))
        self.taken.clear()

    def choice(self) -> Choice:
        """The fastest configuration that is right; raises KernelbookError where none is."""
        seen = self.sample([n for n in self.launches if n], 1)
        if seen and min(map(self.time, seen)) < SHORT_US:
            self.sample(seen, SECOND_LOOK)
        contenders = self.sample(self._right(), SEMIFINAL)
        if not contenders:
            raise KernelbookError(f"no configuration is right at {self.key}")
        best = min(map(self.time, contenders))
        finalists = [n for n in contenders if self.time(n) <= FINALISTS_WITHIN * best]
        finalists = self.sample(finalists, LONG_FINAL if best > LONG_US else FINAL)
        if not finalists:
            raise KernelbookError(f"every configuration faults at {self.key}")
        fastest = min(finalists, key=self.time)
        return Choice(self.key, fastest, self.time(fastest), self.time(BASELINE))

    def time(self, name: str) -> float:
        return median(self.taken[name])

    def sample(self, names: Sequence[str], rounds: int) -> list[str]:
        """Time these and the baseline in turn; returns those that did not fault."""
        left = list(names)
        for _ in range(rounds):
            self._take(BASELINE)
            left = [name for name in left if self._take(name)]
        return left

    def _take(self, name: str) -> bool:
        """One cold sample; False where the configuration faulted and is out at this shape."""
        self.tell.at(name, f"time at {self.key}")
        try:
            if name not in self.loaded:  # the first launch also loads the code
                self.launches[name]()
                self.backend.synchronize()
                self.loaded.add(name)
            sample = self.backend.sample(self.launches[name], cold=True)
        except Exception as error:
            self._fault(name, error)
            return False
        self.taken.setdefault(name, []).append(sample)
        return True

    def _fault(self, name: str, error: Exception) -> None:
        """Leave a configuration out at this shape; raises the error where that is not enough."""
        fault = self.backend.fault_of(error)
        if fault is None or name == BASELINE:
            raise error
        if fault.fatal:
            raise ContextLost(name, f"at {self.key}: {fault.reason}") from error
        self.taken.pop(name, None)
        self.tell.wrong(name, f"at {self.key}: {fault.reason}")

    def _right(self) -> list[str]:
        """Configurations whose output is right, fastest first, near the fastest of them."""
        found: list[str] = []
        for name in sorted((n for n in self.taken if n != BASELINE), key=self.time):
            near = not found or self.time(name) <= CONTENDERS_WITHIN * self.time(found[0])
            if not near or len(found) == CONTENDERS:
                break
            self.tell.at(name, f"verify at {self.key}")
            if reason := self._wrong(name):
                self.tell.wrong(name, f"at {self.key}: {reason}")
            else:
                found.append(name)
        return found

    def _wrong(self, name: str) -> str:
        def run(arrays: object) -> None:
            self.launches[name]()
            self.backend.synchronize()

        return verify_run(self.problem, run, 1).reason


def _trial(
    backend: Backend,
    experiment: Experiment,
    kernels: Sequence[Kernel],
    compiled: Mapping[str, Compiled],
    tell: Teller,
    loaded: set[str],
) -> _Trial:
    shape: Shape = experiment.shape
    key = shape_key(shape)
    tell.at("", f"data at {key}")
    seed = experiment.seed + TIMING_SEED_OFFSET
    problem = Problem(backend.xp, experiment, shape, seed)
    target = target_of(backend.info)
    baseline = next((v for v in experiment.variants if v.kind == "library"), None)
    if baseline is None:
        raise KernelbookError(f"{experiment.name} has no library baseline to tune against")
    launches: dict[str, Launch] = {
        BASELINE: backend.routine(baseline, experiment, shape, problem.arrays).launch
    }
    for kernel in kernels:
        bind = backend.bind(experiment, kernel, compiled[kernel.name], shape, target)
        launches[kernel.name] = bind(problem.arrays)
    return _Trial(backend, key, problem, launches, tell, loaded)
