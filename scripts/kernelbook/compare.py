"""Do two runs differ? The rule, and which rows of two sets of records it is applied to.

A series of samples is described by the interval from the smallest to the third quartile: noise on
a GPU mostly adds time, so the low end is where the kernel itself is, and a few slow samples do not
move the upper end. Two runs differ

- where these intervals are apart by more than a gap, or
- where they overlap, but the samples of one still rank above those of the other made longer by
  the gap (the rank test of Mann and Whitney). Some kernels have two speeds a few percent apart,
  or now and then a fast sample: their intervals are wide, and would hide any change.

In either case the slow end (the ninth decile) must have moved, too: a kernel that merely took the
faster of its speeds more often is not another kernel.

They are the same only where a change worth knowing (`Rule.change`) cannot hide between them: what
their medians are apart, and how far equal runs of such series may lie apart, are together no more
than that. How far that is, a series says itself: from its smallest sample to its ninth decile.

Both in time and in clock cycles (time × the SM clock recorded with the series): a card that clocked
lower is slower in time only, and that is not the kernel's doing. Whatever the evidence does not
carry is ambiguous; nothing is forced into a verdict.

Rows are compared only where they are the same measurement: same card, experiment, shape, type,
seed, method and state of the caches. Anything else is refused by name.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from .errors import KernelbookError
from .records import DeviceInfo, Record, Result, Timing
from .sampling import median, quantile

Verdict = Literal["same", "faster", "slower", "ambiguous", "broken", "unpaired", "refused"]

# What of a device is the card itself; the rest are settings and software, which may differ.
# The size of the memory is left out: drivers keep different amounts of it for themselves.
_CARD = ("name", "slug", "cc", "sms", "l2_bytes", "memory_bus_bits", "mig")
_SETTINGS = ("driver", "cuda", "cupy", "power_limit_w", "ecc", "sm_clock_max_mhz")


class CompareError(KernelbookError):
    """Two sets of records that have nothing to compare."""


# ---- the rule ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """The constants of the rule; shares, not percent.

    ``change``: what must be caught where it can be, and never called the same. ``gap``: what is
    apart by less is not called different. Two runs of one kernel lie in different places of memory,
    which moves whole series by more than their own samples show: on an H200 by 0.09 % at the median
    of 764 pairs, by 0.7 % or more in one of twenty, by 2.8 % at most (tests/golden/aa_pairs.json),
    and as much within one process at one clock (aa_places.json). Half of the change would be the
    best there is: where a run is faster by s for no reason, 3 % - s are left of a slowdown, and
    with s above that half it is less than what equal runs differ by. With that half, one of the
    pairs was called different; from 2 % on, twice as many slowdowns were missed. ``rank_z``: how
    many standard deviations the ranks lie above those of equal series; 3 is one in 700.
    ``slow_end``: by how much the ninth decile must have moved; with 1 %, 8 of 3,360 further pairs
    in other places of memory were called different. ``unseen``: how far apart equal runs may lie
    however steady each of them is; 1.6 % was seen. ``least_samples``: fewer say too little of the
    low end.
    """

    change: float = 0.03
    gap: float = 0.0175
    rank_z: float = 3.0
    slow_end: float = 0.0125
    unseen: float = 0.02
    least_samples: int = 20


RULE = Rule()


@dataclass(frozen=True)
class Interval:
    """A series: smallest sample, median, third quartile, ninth decile."""

    low: float
    center: float
    high: float
    slow_end: float

    @property
    def reach(self) -> float:
        """How far the median of another run may lie from this one's, as a share of it.

        No law, but what was found: where two equal runs of an H200 differed by more than
        `Rule.unseen`, they differed by less than the wider of the two series does from its smallest
        sample to its ninth decile. A kernel with several speeds shows them within a run, too.
        """
        return (self.slow_end - self.low) / self.center


def interval(samples: Sequence[float]) -> Interval:
    """The interval of at least one sample."""
    ordered = sorted(samples)
    return Interval(ordered[0], *(quantile(ordered, share) for share in (0.5, 0.75, 0.9)))


def relation(before: Sequence[float], after: Sequence[float], rule: Rule = RULE) -> Verdict:
    """What two series say in one unit: faster, slower, same or ambiguous."""
    if _above(before, after, rule):
        return "slower"
    if _above(after, before, rule):
        return "faster"
    return "same" if _room(before, after, rule) >= 0 else "ambiguous"


def _room(before: Sequence[float], after: Sequence[float], rule: Rule) -> float:
    """What is left of ``rule.change`` once noise has its share; negative where it could hide."""
    old, new = interval(before), interval(after)
    apart = abs(new.center - old.center) / min(new.center, old.center)
    return rule.change - apart - max(old.reach, new.reach, rule.unseen)


def _above(low: Sequence[float], high: Sequence[float], rule: Rule) -> bool:
    """Whether ``high`` is clearly above ``low`` made longer by the gap."""
    below, above = interval(low), interval(high)
    if above.slow_end <= below.slow_end * (1 + rule.slow_end):
        return False
    if above.low > below.high * (1 + rule.gap):
        return True
    return rank_z([sample * (1 + rule.gap) for sample in low], high) >= rule.rank_z


def rank_z(first: Sequence[float], second: Sequence[float]) -> float:
    """By how many standard deviations the second series ranks above the first (Mann and Whitney).

    Equal samples share their rank. Their effect on the deviation is left out, which makes the
    result smaller, never larger.
    """
    ordered = sorted((*first, *second))
    rank_sum = sum((bisect_left(ordered, s) + bisect_right(ordered, s) + 1) / 2 for s in second)
    n, m = len(first), len(second)
    above = rank_sum - m * (m + 1) / 2  # pairs in which the second is larger
    return (above - n * m / 2) / sqrt(n * m * (n + m + 1) / 12)


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason, and the change of the medians, in time and in cycles.

    Changes are shares: +0.03 is 3 % more. ``cycle_change`` is None where no clock is recorded.
    """

    verdict: Verdict
    reason: str
    time_change: float
    cycle_change: float | None


def judge(before: Timing, after: Timing, rule: Rule = RULE) -> Judgement:
    """Hold one series against an earlier one of the same measurement."""
    old, new = before.samples_us, after.samples_us
    in_time = relation(old, new, rule)
    change = median(new) / median(old) - 1
    fewest = min(len(before.samples_us), len(after.samples_us))
    if fewest < rule.least_samples:
        reason = f"{fewest} samples are fewer than {rule.least_samples}"
        return Judgement("ambiguous", reason, change, None)
    if before.method == "host":  # copies and CPU code: the SM clock has no part in them
        return Judgement(in_time, _words(in_time, rule), change, None)
    clocks = before.sm_clock_mhz, after.sm_clock_mhz
    if clocks[0] is None or clocks[1] is None or min(clocks[0], clocks[1]) <= 0:
        if in_time in ("faster", "slower"):
            reason = f"{in_time} in time, but no clock is recorded"
            return Judgement("ambiguous", reason, change, None)
        return Judgement(in_time, _words(in_time, rule), change, None)
    old = tuple(sample * clocks[0] for sample in old)  # µs * MHz
    new = tuple(sample * clocks[1] for sample in new)
    in_cycles = relation(old, new, rule)
    cycle_change = median(new) / median(old) - 1
    if in_time == in_cycles:
        return Judgement(in_time, _words(in_time, rule), change, cycle_change)
    reason = (
        f"{in_time} in time, {in_cycles} in cycles: the clock was {clocks[0]:.0f}, "
        f"then {clocks[1]:.0f} MHz"
    )
    return Judgement("ambiguous", reason, change, cycle_change)


def _words(verdict: Verdict, rule: Rule) -> str:
    if verdict == "same":
        return f"a change of {rule.change:.0%} would show"
    if verdict == "ambiguous":
        return f"not apart, but {rule.change:.0%} could hide in their noise"
    return f"apart by more than {rule.gap:.2%}"


# ---- rows of two runs ----------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One variant in one state of the caches on one card, in two runs. Times in µs."""

    device: str
    experiment: str
    variant: str
    cache: str
    verdict: Verdict
    reason: str
    before_us: float | None = None
    after_us: float | None = None
    time_change: float | None = None
    cycle_change: float | None = None


@dataclass(frozen=True)
class Comparison:
    """All rows, and what differs in the settings of the cards, one sentence each."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def count(self, *verdicts: Verdict) -> int:
        return sum(row.verdict in verdicts for row in self.rows)

    @property
    def exit_code(self) -> int:
        """1 where something got slower or broke, 2 where something was refused, else 0."""
        if self.count("slower", "broken"):
            return 1
        return 2 if self.count("refused") else 0


Asked = Callable[[Record, str], bool]  # whether a variant of a record is asked for


def compare(
    before: Sequence[Record],
    after: Sequence[Record],
    rule: Rule = RULE,
    asked: Asked = lambda record, variant: True,
) -> Comparison:
    """Hold measured records against earlier ones.

    Raises CompareError where the two have no card or no row in common.
    """
    old, new = _by_place(before), _by_place(after)
    cards = [{slug for slug, _ in side} for side in (old, new)]
    if not cards[0] & cards[1]:
        said = [", ".join(sorted(side)) or "no card" for side in cards]
        raise CompareError(
            f"the first has measurements on {said[0]}, the second on {said[1]}: "
            "different devices are not compared"
        )
    common = [place for place in {**old, **new} if place[0] in cards[0] & cards[1]]
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for place in common:
        first, second = old.get(place), new.get(place)
        rows += _record_rows(first, second, rule, asked)
        if first is not None and second is not None:
            notes.update(dict.fromkeys(_differences(first, second)))
    if all(row.verdict == "unpaired" for row in rows):
        raise CompareError("no row that is asked for is in both")
    return Comparison(tuple(rows), tuple(notes))


def _by_place(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    return {(r.slug, r.experiment): r for r in records if r.evidence == "measured"}


def _record_rows(
    first: Record | None, second: Record | None, rule: Rule, asked: Asked
) -> Iterator[Row]:
    known = first or second
    assert known is not None
    reason = _refusal(first, second) if first is not None and second is not None else ""
    names = {r.variant: None for record in (first, second) if record for r in record.results}
    for name in names:
        if not asked(known, name):
            continue
        old = first.result(name) if first else None
        new = second.result(name) if second else None
        if reason:
            yield Row(known.slug, known.experiment, name, "", "refused", reason)
        else:
            yield from _result_rows(known, name, old, new, rule)


def _result_rows(
    record: Record, name: str, old: Result | None, new: Result | None, rule: Rule
) -> Iterator[Row]:
    def row(cache: str, verdict: Verdict, reason: str) -> Row:
        return Row(record.slug, record.experiment, name, cache, verdict, reason)

    for result, which in ((old, "first"), (new, "second")):
        if result is None:
            yield row("", "unpaired", f"not in the {which}")
            return
    assert old is not None
    assert new is not None
    if old.status == "ok" and new.status == "failed":
        yield row("", "broken", new.reason)
        return
    if old.status != "ok" or new.status != "ok":
        if old.status == new.status:
            return  # there is no number on either side
        which, result = ("first", old) if old.status != "ok" else ("second", new)
        yield row("", "unpaired", f"{result.status} in the {which}: {result.reason}")
        return
    befores, afters = ({t.cache: t for t in r.timings} for r in (old, new))
    for cache in sorted({*befores, *afters}):
        before, after = befores.get(cache), afters.get(cache)
        if before is None or after is None:
            which = "first" if before is None else "second"
            yield row(cache, "unpaired", f"not timed in the {which}")
        elif reason := _other_method(before, after):
            yield row(cache, "refused", reason)
        else:
            found = judge(before, after, rule)
            yield Row(
                record.slug, record.experiment, name, cache, found.verdict, found.reason,
                median(before.samples_us), median(after.samples_us),
                found.time_change, found.cycle_change,
            )  # fmt: skip


def _refusal(first: Record, second: Record) -> str:
    """Why two records of one experiment are not one measurement, "" where they are."""
    assert first.device is not None
    assert second.device is not None
    for name in _CARD:
        a, b = getattr(first.device, name), getattr(second.device, name)
        if a != b:
            return f"different devices: {name} is {a}, then {b}"
    for name in ("shape", "dtype", "seed"):
        a, b = getattr(first, name), getattr(second, name)
        if a != b:
            return (
                f"different {'sizes' if name == 'shape' else name}: {_shown(a)}, then {_shown(b)}"
            )
    if first.method_version != second.method_version:
        return f"different methods: version {first.method_version}, then {second.method_version}"
    return ""


def _other_method(before: Timing, after: Timing) -> str:
    for name in ("method", "flush"):
        a, b = getattr(before, name), getattr(after, name)
        if a != b:
            return f"different methods: {name} is {a or 'none'!r}, then {b or 'none'!r}"
    return ""


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={v}" for k, v in value.items())
    return str(value)


def _differences(first: Record, second: Record) -> Iterator[str]:
    assert first.device is not None
    assert second.device is not None
    yield from device_differences(first.device, second.device)


def device_differences(first: DeviceInfo, second: DeviceInfo) -> Iterator[str]:
    """What differs in the settings and software of one card between two runs."""
    for name in _SETTINGS:
        a, b = getattr(first, name), getattr(second, name)
        if a != b:
            yield f"{first.slug}: {name} was {a}, then {b}"
