"""When to stop measuring and what the samples say: policies over a clock, without any kernel.

Everything here is a function of numbers, so that each rule can be checked by hand on a synthetic
series. Times of samples are in µs, times of a run in seconds.

How a series ends (`StopRule.decide`), after at least ``min_samples``:

    the 95 % interval of the median is narrow enough     -> "interval": the usual end
    the noise has settled: the interquartile range no
      longer changes and the series does not drift        -> more samples would not help
    the time is up                                        -> says so, and whether it drifts
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from math import comb, floor

DRIFT = 0.005  # halves of a series whose medians differ by more than this drift apart
FENCE = 1.5  # Tukey's: an outlier lies this many interquartile ranges outside the quartiles


# ---- statistics ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Statistics:
    """What a record stores of a series. Nothing is dropped: outliers are only counted."""

    median: float
    q1: float
    q3: float
    minimum: float
    ci_low: float
    ci_high: float
    outliers: int


def statistics(samples: Sequence[float]) -> Statistics:
    """Statistics of at least one sample."""
    ordered = sorted(samples)
    low, high = median_interval(ordered)
    q1, q3 = quantile(ordered, 0.25), quantile(ordered, 0.75)
    fence = FENCE * (q3 - q1)
    outside = sum(1 for s in ordered if s < q1 - fence or s > q3 + fence)
    return Statistics(quantile(ordered, 0.5), q1, q3, ordered[0], low, high, outside)


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """A quantile of sorted numbers, linear between neighbours (R's type 7, NumPy's default)."""
    at = (len(ordered) - 1) * fraction
    below = floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def median(samples: Sequence[float]) -> float:
    return quantile(sorted(samples), 0.5)


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """A 95 % confidence interval of the median of sorted numbers, by order statistics.

    Whatever the distribution, the number of samples below its median is binomial with p = 1/2.
    Below six samples no interval reaches 95 %; then it is the whole range.
    """
    rank = _interval_rank(len(ordered))
    return ordered[rank - 1], ordered[len(ordered) - rank]


@cache
def _interval_rank(n: int) -> int:
    """The largest rank l (from 1) with P(Binomial(n, 1/2) < l) <= 2.5 %; at least 1."""
    below = accumulate(comb(n, k) for k in range(n + 1))
    return max(1, sum(1 for count in below if count * 40 <= 2**n))  # in whole numbers: exact


def relative_interval(samples: Sequence[float]) -> float:
    """Width of the 95 % interval of the median over the median."""
    ordered = sorted(samples)
    low, high = median_interval(ordered)
    return (high - low) / quantile(ordered, 0.5)


def relative_spread(samples: Sequence[float]) -> float:
    """Interquartile range over the median."""
    ordered = sorted(samples)
    return (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / quantile(ordered, 0.5)


def drifts(samples: Sequence[float]) -> bool:
    """Whether the medians of a series' two halves (in time) differ by more than `DRIFT`.

    A difference within the halves' own intervals is noise, not drift.
    """
    half = len(samples) // 2
    early, late = sorted(samples[:half]), sorted(samples[half:])
    difference = abs(quantile(late, 0.5) - quantile(early, 0.5))
    if difference <= DRIFT * quantile(early, 0.5):
        return False
    (low_1, high_1), (low_2, high_2) = median_interval(early), median_interval(late)
    return high_1 < low_2 or high_2 < low_1


# ---- when to stop --------------------------------------------------------------------------


@dataclass(frozen=True)
class StopRule:
    """When a series has enough samples. ``timeout_s`` counts this series' own time only."""

    min_samples: int = 30
    max_samples: int = 600
    interval: float = 0.005
    check_every: int = 5
    settle_from: int = 100  # samples before noise can count as settled
    settle_within: float = 0.1  # the spread stayed within this share of its mean
    timeout_s: float = 1.5

    def decide(self, samples: Sequence[float], spent_s: float) -> str:
        """Why to stop now, "" to go on."""
        n = len(samples)
        if n < self.min_samples:
            return ""
        late = spent_s >= self.timeout_s
        if (n - self.min_samples) % self.check_every and not late and n < self.max_samples:
            return ""
        drifting = drifts(samples)
        width = relative_interval(samples)
        if width < self.interval and (late or not drifting):
            return f"95 % interval of the median under {self.interval:.1%}" + _drift(drifting)
        if n >= self.settle_from and not drifting and self._settled(samples):
            return f"noise settled at {relative_spread(samples):.1%}"
        if late:
            return f"time-out after {self.timeout_s:.2g} s" + _drift(drifting)
        if n >= self.max_samples:
            return f"{n} samples" + _drift(drifting)
        return ""

    def _settled(self, samples: Sequence[float]) -> bool:
        """The spread of the series at four points of its second half is the same."""
        n = len(samples)
        spreads = [relative_spread(samples[: n * share // 8]) for share in (5, 6, 7, 8)]
        mean = sum(spreads) / len(spreads)
        return all(abs(s - mean) <= self.settle_within * mean for s in spreads)


def _drift(drifting: bool) -> str:
    return ", drifting" if drifting else ""


FULL = StopRule()
QUICK = StopRule(min_samples=5, max_samples=60, timeout_s=0.2)
LONGEST_SERIES_S = 60.0  # a kernel so slow that 30 samples take longer gets fewer


def rule_for(
    estimate_s: float, quick: bool = False, longest_s: float = LONGEST_SERIES_S
) -> StopRule:
    """The stop rule for something that takes ``estimate_s`` a sample.

    The time-out is long enough for the least number of samples; only what would take longer than
    ``longest_s`` for them gets fewer, but never under 3.
    """
    base = QUICK if quick else FULL
    affordable = int(longest_s / max(estimate_s, 1e-9))
    least = max(3, min(base.min_samples, affordable))
    return StopRule(
        min_samples=least,
        max_samples=base.max_samples,
        timeout_s=max(base.timeout_s, 1.1 * least * estimate_s),
    )


# ---- interleaved series --------------------------------------------------------------------


class SampleRefused(Exception):
    """A sample that cannot be right, or could not be taken; the reason is a sentence."""


@dataclass
class Series:
    """The samples of one row, being taken."""

    name: str
    rule: StopRule
    floor_us: float = 0.0
    samples: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    stop: str = ""
    failure: str = ""

    @property
    def open(self) -> bool:
        return not self.stop and not self.failure

    def add(self, sample_us: float, spent_s: float) -> None:
        """Take in a sample; refuses the series where it is below the floor."""
        self.spent_s += spent_s
        if sample_us < self.floor_us:
            self.failure = (
                f"a sample of {sample_us:.2f} µs is under the floor of {self.floor_us:.2f} µs that "
                "the model of the work and the card's peak rates allow"
            )
            return
        self.samples.append(sample_us)
        self.stop = self.rule.decide(self.samples, self.spent_s)


def interleave(
    series: Sequence[Series],
    take: Callable[[str], float],
    clock: Callable[[], float],
    seed: int = 0,
) -> None:
    """Fill series in rounds: each round takes one sample of every open one, in shuffled order.

    A slow phase of the machine then falls on all rows alike, and no row always follows the same
    one. ``take(name)`` returns a sample in µs or raises SampleRefused; ``clock()`` is in seconds.
    """
    order = random.Random(seed)
    while pending := [s for s in series if s.open]:
        order.shuffle(pending)
        for one in pending:
            before = clock()
            try:
                sample = take(one.name)
            except SampleRefused as refused:
                one.failure = str(refused)
                continue
            one.add(sample, clock() - before)


# ---- warm-up -------------------------------------------------------------------------------


@dataclass(frozen=True)
class WarmUp:
    """Runs of the whole measured path before the first sample."""

    min_runs: int = 3
    min_s: float = 0.5
    steady_readings: int = 3
    steady_within: float = 0.015
    give_up_s: float = 4.0


QUICK_WARM_UP = WarmUp(min_s=0.1, give_up_s=1.0)


def warm_up(
    run: Callable[[], None],
    clock: Callable[[], float],
    read_mhz: Callable[[], float | None],
    policy: WarmUp = WarmUp(),
) -> str:
    """Run until the SM clock is steady; returns what happened, for the record.

    A card whose clock cannot be read (``read_mhz`` gives None) is warm after the least time.
    """
    started = clock()
    readings: list[float] = []
    runs = 0
    while True:
        run()
        runs += 1
        elapsed = clock() - started
        mhz = read_mhz()
        if mhz is not None:
            readings.append(mhz)
        if runs < policy.min_runs or elapsed < policy.min_s:
            continue
        if mhz is None:
            return f"{runs} rounds, {elapsed:.1f} s, clock unknown"
        if is_steady(readings, policy):
            return f"{runs} rounds, {elapsed:.1f} s, clock steady at {mhz:.0f} MHz"
        if elapsed >= policy.give_up_s:
            return f"{runs} rounds, {elapsed:.1f} s, clock not steady"


def is_steady(readings: Sequence[float], policy: WarmUp) -> bool:
    """Whether the last readings of a clock agree."""
    last = readings[-policy.steady_readings :]
    if len(last) < policy.steady_readings:
        return False
    return max(last) - min(last) <= policy.steady_within * max(last)


# ---- the floor -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Peaks:
    """What a card cannot exceed, by its spec sheet or its driver: FLOP/s, bytes/s, bytes."""

    fp32_flops: float
    bandwidth: float
    l2_bytes: int


def floor_us(peaks: Peaks, flops: int, bytes_read: int, bytes_written: int, *, cold: bool) -> float:
    """The time in µs that no correct measurement can be under.

    Cold: the larger of the arithmetic's and the memory's time, where what fits into L2 need not
    be written back within the measured time. Warm: the arithmetic's time alone.
    """
    arithmetic = flops / peaks.fp32_flops
    if not cold:
        return arithmetic * 1e6
    moved = bytes_read + max(0, bytes_written - peaks.l2_bytes)
    return max(arithmetic, moved / peaks.bandwidth) * 1e6
