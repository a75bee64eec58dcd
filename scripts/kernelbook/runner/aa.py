"""Series of the same kernels from several runs: what the rule of comparing is tuned on.

``python -m kernelbook.runner.aa --pairs 200 --out FILE`` measures the tree's kernels in several
processes, each with a context, buffers and a warm-up of its own as two runs of run_all.py have
them. Any two series of one kernel differ by nothing but noise, so a rule that calls one of them
slower is wrong.

``--places N --only EXPERIMENT`` takes N runs within each process instead, each with its buffers in
another place of memory: most of what two runs differ by is that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal, cast

from .. import catalog, codec
from ..compare import RULE, Verdict, judge
from ..errors import DeviceError, KernelbookError
from ..experiment import Experiment, Kernel, Library
from ..gpu.backend import CUPY, Backend, ClockReading, backend_class, sm_mhz
from ..records import DeviceInfo
from ..resources import compile_kernel
from ..sampling import FULL, Series, StopRule, WarmUp, interleave, rule_for, warm_up
from ..verify import TIMING_SEED_OFFSET, Problem
from .lock import gpu_lock
from .process import child_environment
from .request import Request, Teller
from .rows import timing_of
from .session import Session
from .timed import Timed, prepare

ROOT = Path(__file__).resolve().parents[3]
LONGEST_US = 3000.0  # slower rows would take the time of many others
MOST_BYTES = 4 << 30
MOST_SAMPLES = 120
WARM = WarmUp(min_s=0.2, give_up_s=1.0)  # experiments follow each other closely: the card is warm


@dataclass(frozen=True)
class Sampled:
    """One series of one run. Times in µs."""

    experiment: str
    variant: str
    cache: str
    method: str
    sm_clock_mhz: float | None
    samples_us: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """All series of one process."""

    series: tuple[Sampled, ...]


@dataclass(frozen=True)
class Pair:
    """Two series of one kernel from two runs; never stored, since runs say it all."""

    experiment: str
    variant: str
    cache: str
    method: str
    clocks_mhz: tuple[float | None, ...]
    first_us: tuple[float, ...]
    second_us: tuple[float, ...]


@dataclass(frozen=True)
class Runs:
    """The file that the test of the rule reads."""

    device: DeviceInfo
    runs: tuple[Run, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pairs; returns the exit code."""
    parser = argparse.ArgumentParser(prog="aa", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="at least so many")
    parser.add_argument("--seconds", type=float, default=80.0, help="stop starting runs after this")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--backend", default=CUPY)
    parser.add_argument("--places", type=int, default=1, help="runs within a process")
    parser.add_argument("--only", nargs="+", default=[], help="experiments, by name")
    parser.add_argument("--one-run", action="store_true", help="be one of the processes")
    options = parser.parse_args(arguments)
    try:
        if options.one_run:
            backend = backend_class(options.backend)(options.device)
            found = in_places(options.root, backend, options.only, options.places)
            codec.write_atomically(options.out, codec.to_json(Runs(backend.info, found)))
        else:
            _take(options)
    except KernelbookError as error:
        print(f"aa: {error}", file=sys.stderr)
        return 2
    return 0


def _take(options: argparse.Namespace) -> None:
    kind = backend_class(options.backend)
    device = kind.probe(options.device)
    if isinstance(device, str):
        raise DeviceError(device)
    started = time.monotonic()
    runs: list[Run] = []
    with (
        gpu_lock(kind.identity(options.device)),
        tempfile.TemporaryDirectory(prefix="kernelbook-") as folder,
    ):
        while _count(runs) < options.pairs and time.monotonic() - started < options.seconds:
            answer = Path(folder) / f"run-{len(runs)}.json"
            done = subprocess.run(
                [sys.executable, "-m", "kernelbook.runner.aa", "--one-run", "--out", str(answer),
                 "--root", str(options.root), "--device", str(options.device),
                 "--backend", options.backend, "--places", str(options.places),
                 *(("--only", *options.only) if options.only else ())],
                env=child_environment(),
            )  # fmt: skip
            if done.returncode != 0:
                raise DeviceError(f"a run failed (exit {done.returncode})")
            runs += codec.from_file(Runs, answer).runs
            print(f"aa: {len(runs)} runs, {_count(runs)} pairs, {time.monotonic() - started:.0f} s")
    codec.write_atomically(options.out, codec.to_json(Runs(device, tuple(runs))))


def _count(runs: Sequence[Run]) -> int:
    return sum(1 for _ in paired(runs))


def paired(runs: Sequence[Run]) -> Iterator[Pair]:
    """Each series with the same one of every later run."""
    for first, second in combinations(runs, 2):
        others = {(s.experiment, s.variant, s.cache): s for s in second.series}
        for one in first.series:
            other = others.get((one.experiment, one.variant, one.cache))
            if other is not None and other.method == one.method:
                yield Pair(
                    one.experiment, one.variant, one.cache, one.method,
                    (one.sm_clock_mhz, other.sm_clock_mhz), one.samples_us, other.samples_us,
                )  # fmt: skip


def verdict(pair: Pair, factor: float = 1.0) -> Verdict:
    """What the rule of comparing says of a pair whose second run is made longer by ``factor``."""
    series = (pair.first_us, tuple(s * factor for s in pair.second_us))
    before, after = (
        timing_of(
            Series(pair.variant, FULL, samples=list(samples)),
            cache=cast("Literal['cold', 'warm']", pair.cache),
            method=cast("Literal['event', 'graph', 'host']", pair.method),
            readings=[ClockReading(clock, None, None, None)],
        )
        for samples, clock in zip(series, pair.clocks_mhz, strict=True)
    )
    return judge(before, after).verdict


@dataclass(frozen=True)
class Tally:
    """What the rule says of pairs of equal runs, and where the second one is made slower."""

    pairs: int  # in both orders
    different: int  # called faster or slower, for no reason
    same: int
    caught: int  # of those made slower
    hidden: int  # made slower, and called the same
    missed: Mapping[str, int]  # of those made slower, by "EXPERIMENT/VARIANT, cold"


def tally(runs: Sequence[Run], change: float = RULE.change) -> Tally:
    """Hold every pair of equal runs to the rule, in both orders, as it is and with a slowdown."""
    pairs = [p for one in paired(runs) for p in (one, turned(one))]
    equal = [verdict(p) for p in pairs]
    slowed = [verdict(p, 1 + change) for p in pairs]
    missed = Counter(
        f"{p.experiment}/{p.variant}, {p.cache}"
        for p, said in zip(pairs, slowed, strict=True)
        if said != "slower"
    )
    return Tally(
        pairs=len(pairs),
        different=sum(said in ("faster", "slower") for said in equal),
        same=equal.count("same"),
        caught=slowed.count("slower"),
        hidden=slowed.count("same"),
        missed=dict(sorted(missed.items())),
    )


def turned(pair: Pair) -> Pair:
    """The same two runs, the second one first."""
    return replace(
        pair, first_us=pair.second_us, second_us=pair.first_us, clocks_mhz=pair.clocks_mhz[::-1]
    )


# ---- one process ---------------------------------------------------------------------------


def in_places(
    root: Path, backend: Backend, names: Sequence[str] = (), places: int = 1
) -> tuple[Run, ...]:
    """A run for each place: every kernel and library row of the experiments of these names (or of
    all) that is short enough, sampled as a run samples it.

    Nothing is verified: that is no business of noise.
    """
    found: list[list[Sampled]] = [[] for _ in range(places)]
    for experiment in catalog.load(root).experiments:
        if names and experiment.name not in names:
            continue
        sizes = experiment.bytes_read(experiment.shape) + experiment.bytes_written(experiment.shape)
        if sizes > MOST_BYTES:
            continue
        kept = []  # what lies in memory still is a place that is taken
        for run in found:
            seed = experiment.seed + TIMING_SEED_OFFSET
            kept.append(Problem(backend.xp, experiment, experiment.shape, seed))
            run += _sample(root, experiment, backend, kept[-1])
        del kept
        backend.release()
    return tuple(Run(tuple(run)) for run in found)


def _sample(
    root: Path, experiment: Experiment, backend: Backend, problem: Problem
) -> Iterator[Sampled]:
    timed = [t for t in _ready(root, experiment, backend, problem) if t.estimate_us <= LONGEST_US]
    by_name = {t.row.name: t for t in timed}

    def one_round() -> None:
        for each in timed:
            each.sample(backend, cold=True)

    if timed:
        warm_up(one_round, time.perf_counter, lambda: sm_mhz(backend), WARM)
    for cold in (True, False):
        cache: Literal["cold", "warm"] = "cold" if cold else "warm"
        series = [Series(t.row.name, _rule(t)) for t in timed]

        def take(name: str, cold: bool = cold) -> float:
            return by_name[name].checked_sample(backend, cold, lambda row, error: str(error))

        interleave(series, take, time.perf_counter, experiment.seed)
        for one in series:
            each = by_name[one.name]
            readings = each.take_readings()
            if one.failure:
                continue
            timing = timing_of(one, cache=cache, method=each.method, readings=readings)
            yield Sampled(
                experiment.name, one.name, cache, each.method, timing.sm_clock_mhz,
                tuple(round(s, 3) for s in one.samples),
            )  # fmt: skip


def _rule(timed: Timed) -> StopRule:
    rule = rule_for(timed.estimate_us * timed.launches * 1e-6)
    return replace(rule, max_samples=MOST_SAMPLES)


def _ready(
    root: Path, experiment: Experiment, backend: Backend, problem: Problem
) -> Iterator[Timed]:
    """Rows bound to the timing data; those that cannot run on this card are left out."""
    names = tuple(v.name for v in experiment.variants)
    request = Request(str(root), experiment.name, names, 0, False, "", "")
    session = Session(experiment, request, backend, Teller())
    for row in session.rows:
        variant = row.variant
        try:
            if isinstance(variant, Kernel):
                if variant.counter_example or backend.info.cc < variant.min_cc:
                    continue
                cache = root / ".cache" / "kernelbook" / "compile"
                row.compiled = compile_kernel(experiment, variant, backend.arch, cache)
            elif not isinstance(variant, Library):
                continue
            yield prepare(backend, row, session.bind(row, experiment.shape), problem)
        except DeviceError:
            continue


if __name__ == "__main__":
    sys.exit(main())
