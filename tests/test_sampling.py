"""Stop rules and statistics on synthetic series, with values worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelbook import sampling
from kernelbook.sampling import (
    Peaks,
    SampleRefused,
    Series,
    StopRule,
    WarmUp,
    drifts,
    floor_us,
    interleave,
    median_interval,
    quantile,
    rule_for,
    statistics,
    warm_up,
)

# ---- statistics ----------------------------------------------------------------------------


def test_quartiles_interpolate_between_neighbours() -> None:
    # Positions 0.75, 1.5 and 2.25 of 10, 20, 30, 50.
    found = statistics([50.0, 10.0, 30.0, 20.0])
    assert (found.q1, found.median, found.q3) == (17.5, 25.0, 35.0)
    assert found.minimum == 10.0


def test_one_sample_is_its_own_everything() -> None:
    found = statistics([7.0])
    assert (found.median, found.q1, found.q3, found.minimum) == (7.0, 7.0, 7.0, 7.0)
    assert (found.ci_low, found.ci_high, found.outliers) == (7.0, 7.0, 0)


def test_the_interval_of_ten_samples_runs_from_the_second_to_the_ninth() -> None:
    # P(Bin(10, 1/2) <= 1) = 11/1024 = 1.1 % and P(<= 2) = 56/1024 = 5.5 %.
    assert median_interval([float(i) for i in range(1, 11)]) == (2.0, 9.0)


def test_the_interval_of_thirty_samples_runs_from_the_tenth_to_the_twenty_first() -> None:
    # P(Bin(30, 1/2) <= 9) = 2.14 %, P(<= 10) = 4.94 %: the tables' 95.7 % interval.
    assert median_interval([float(i) for i in range(1, 31)]) == (10.0, 21.0)


def test_six_samples_are_the_fewest_with_an_interval_short_of_nothing() -> None:
    # 2 / 2^6 = 3.1 % lie outside the range of six; five leave 6.3 % and get their range, too.
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (1.0, 5.0)


def test_outliers_are_counted_by_tukeys_fences_and_kept() -> None:
    # q1 = 10, q3 = 12, so the fences are 7 and 15.
    samples = [10.0, 10.0, 10.0, 11.0, 12.0, 12.0, 12.0, 15.5, 6.9]
    found = statistics(samples)
    assert (found.q1, found.q3) == (10.0, 12.0)
    assert found.outliers == 2
    assert found.minimum == 6.9


def test_a_sample_on_the_fence_is_no_outlier() -> None:
    assert statistics([10.0, 10.0, 10.0, 11.0, 12.0, 12.0, 12.0, 15.0, 7.0]).outliers == 0


def test_quantile_agrees_with_the_ends() -> None:
    assert quantile([1.0, 2.0, 9.0], 0.0) == 1.0
    assert quantile([1.0, 2.0, 9.0], 1.0) == 9.0


# ---- synthetic series ----------------------------------------------------------------------

Shape = Callable[[int], float]


def steady(i: int) -> float:
    return 100.0 + 0.1 * (i % 3)  # 100.0, 100.1, 100.2


def noisy(i: int) -> float:
    return 100.0 + (i * 7 % 11)  # 0 to 10 in a fixed order: spread 5 to 6 %


def bimodal(i: int) -> float:
    return 100.0 if i % 2 else 110.0


def spiky(i: int) -> float:
    return 200.0 if i % 10 == 9 else 100.0


def drifting(i: int) -> float:
    return 100.0 + 0.1 * i


def run(shape: Shape, rule: StopRule, cost_s: float = 0.001) -> Series:
    series = Series("x", rule)
    for i in range(100_000):
        series.add(shape(i), cost_s)
        if not series.open:
            return series
    raise AssertionError("the series never ended")


def test_a_steady_series_stops_at_the_least_number_of_samples() -> None:
    found = run(steady, StopRule())
    assert len(found.samples) == 30
    assert found.stop == "95 % interval of the median under 0.5%"


def test_a_noisy_series_goes_on_until_its_noise_has_settled() -> None:
    found = run(noisy, StopRule())
    assert 100 <= len(found.samples) < 200
    assert found.stop.startswith("noise settled at ")


def test_a_bimodal_series_never_gets_a_narrow_interval() -> None:
    found = run(bimodal, StopRule())
    assert found.stop == "noise settled at 9.5%"  # quartiles 100 and 110, median 105
    stats = statistics(found.samples)
    assert (stats.ci_low, stats.ci_high) == (100.0, 110.0)


def test_spikes_do_not_move_the_median_and_are_flagged() -> None:
    found = run(spiky, StopRule())
    stats = statistics(found.samples)
    assert found.stop == "95 % interval of the median under 0.5%"
    assert stats.median == 100.0
    assert stats.outliers == 3  # of thirty
    assert len(found.samples) == 30


def test_a_drifting_series_runs_to_the_time_out_and_says_so() -> None:
    found = run(drifting, StopRule(timeout_s=0.2))
    assert found.stop == "time-out after 0.2 s, drifting"
    assert len(found.samples) == 200


def test_a_series_that_is_never_slow_enough_for_the_time_out_ends_at_the_limit() -> None:
    found = run(drifting, StopRule(max_samples=150), cost_s=1e-9)
    assert found.stop == "150 samples, drifting"


def test_no_series_stops_before_the_least_number_of_samples_even_when_late() -> None:
    found = run(steady, StopRule(timeout_s=0.001), cost_s=1.0)
    assert len(found.samples) == 30


def test_halves_that_differ_within_their_noise_do_not_drift() -> None:
    assert not drifts([noisy(i) for i in range(60)])
    assert drifts([100.0] * 20 + [101.0] * 20)
    assert not drifts([100.0] * 20 + [100.4] * 20)  # 0.4 % is under the limit


def test_the_time_out_grows_with_the_time_of_a_sample() -> None:
    assert rule_for(0.0002).timeout_s == 1.5
    slow = rule_for(0.5)  # thirty take 15 s
    assert slow.min_samples == 30
    assert slow.timeout_s == pytest.approx(16.5)


def test_what_would_take_too_long_gets_fewer_samples_but_never_under_three() -> None:
    assert rule_for(6.0).min_samples == 10  # 60 s
    assert rule_for(100.0).min_samples == 3


def test_a_quick_run_takes_fewer_samples() -> None:
    assert rule_for(0.001, quick=True).min_samples == 5
    assert rule_for(0.001, quick=True).timeout_s == pytest.approx(0.2)


# ---- interleaving --------------------------------------------------------------------------


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rows_are_sampled_in_turn_and_not_always_in_the_same_order() -> None:
    clock, taken = Clock(), []

    def take(name: str) -> float:
        clock.now += 0.001
        taken.append(name)
        return steady(len(taken))

    series = [Series(n, StopRule()) for n in "abc"]
    interleave(series, take, clock, seed=1)
    rounds = [taken[i : i + 3] for i in range(0, 90, 3)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert len({tuple(r) for r in rounds}) > 3
    assert [len(s.samples) for s in series] == [30, 30, 30]


def test_the_order_is_the_same_for_the_same_seed() -> None:
    def order(seed: int) -> list[str]:
        taken: list[str] = []

        def take(name: str) -> float:
            taken.append(name)
            return 1.0

        interleave([Series(n, StopRule()) for n in "abcd"], take, Clock(), seed)
        return taken

    assert order(5) == order(5)
    assert order(5) != order(6)


def test_a_slow_phase_of_the_machine_falls_on_all_rows_alike() -> None:
    clock, calls = Clock(), [0]

    def take(name: str) -> float:
        calls[0] += 1
        return 100.0 if calls[0] <= 90 else 130.0  # the card slows down half-way

    series = [Series(n, StopRule(min_samples=60, max_samples=60)) for n in "abc"]
    interleave(series, take, clock)
    medians = [statistics(s.samples).median for s in series]
    assert medians == [115.0, 115.0, 115.0]


def test_a_refused_sample_ends_its_own_row_only() -> None:
    def take(name: str) -> float:
        if name == "b":
            raise SampleRefused("it faulted")
        return 1.0

    series = [Series(n, StopRule()) for n in "abc"]
    interleave(series, take, Clock())
    assert [s.failure for s in series] == ["", "it faulted", ""]
    assert [len(s.samples) for s in series] == [30, 0, 30]


def test_a_sample_under_the_floor_ends_its_row_with_both_times() -> None:
    series = [Series("a", StopRule(), floor_us=10.0), Series("b", StopRule(), floor_us=10.0)]
    interleave(series, lambda name: 9.99 if name == "a" else 10.0, Clock())
    assert "9.99 µs is under the floor of 10.00 µs" in series[0].failure
    assert series[1].failure == ""


# ---- warm-up -------------------------------------------------------------------------------


def warm(mhz: Callable[[float], float | None], cost_s: float) -> tuple[str, int]:
    clock, runs = Clock(), [0]

    def run_once() -> None:
        runs[0] += 1
        clock.now += cost_s

    said = warm_up(run_once, clock, lambda: mhz(clock.now), WarmUp())
    return said, runs[0]


def test_warming_up_takes_half_a_second_even_at_a_steady_clock() -> None:
    said, runs = warm(lambda now: 1980.0, cost_s=0.1)
    assert runs == 5
    assert said == "5 rounds, 0.5 s, clock steady at 1980 MHz"


def test_warming_up_takes_three_rounds_however_long_one_is() -> None:
    assert warm(lambda now: 1980.0, cost_s=2.0)[1] == 3


def test_warming_up_waits_for_a_rising_clock() -> None:
    # 345 MHz idle, 1000 until 1.0 s, then full: three equal readings at 1.0, 1.1 and 1.2 s.
    said, runs = warm(lambda now: 1980.0 if now > 0.95 else 300 + 1000 * now, cost_s=0.1)
    assert runs == 12
    assert "steady at 1980" in said


def test_warming_up_gives_up_on_a_clock_that_never_settles() -> None:
    said, _ = warm(lambda now: 1000.0 + 100 * (round(now * 10) % 2), cost_s=0.1)
    assert said.endswith("4.0 s, clock not steady")


def test_a_card_without_a_readable_clock_is_warm_after_the_least_time() -> None:
    assert warm(lambda now: None, cost_s=0.1)[0] == "5 rounds, 0.5 s, clock unknown"


# ---- the floor -----------------------------------------------------------------------------

PEAKS = Peaks(fp32_flops=1e12, bandwidth=1e12, l2_bytes=1_000_000)


def test_a_memory_bound_floor_is_bytes_over_bandwidth_less_what_l2_may_keep() -> None:
    # 8 MB read and 4 MB written, of which 1 MB may stay in L2: 11 MB at 1 TB/s.
    assert floor_us(PEAKS, 1000, 8_000_000, 4_000_000, cold=True) == pytest.approx(11.0)


def test_writes_that_fit_into_l2_cost_nothing() -> None:
    assert floor_us(PEAKS, 0, 2_000_000, 1_000_000, cold=True) == pytest.approx(2.0)


def test_an_arithmetic_bound_floor_is_flops_over_the_peak() -> None:
    assert floor_us(PEAKS, 50_000_000, 8_000_000, 0, cold=True) == pytest.approx(50.0)


def test_warm_caches_leave_only_the_arithmetic_floor() -> None:
    assert floor_us(PEAKS, 3_000_000, 8_000_000, 0, cold=False) == pytest.approx(3.0)


def test_statistics_of_many_samples_do_not_overflow() -> None:
    low, high = sampling.median_interval([float(i) for i in range(2000)])
    # Normal approximation: 1000 -+ 1.96 * sqrt(2000) / 2 = 1000 -+ 43.8.
    assert (low, high) == (955.0, 1044.0)
