"""Whether two runs differ: the rule on synthetic series, which rows it holds, what it refuses."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelbook import records
from kernelbook.compare import (
    CompareError,
    Rule,
    compare,
    interval,
    judge,
    rank_z,
    relation,
)
from kernelbook.records import SCHEMA, DeviceInfo, Record, Result, Timing
from kernelbook.runner.cli import main
from kernelbook.runner.synthetic import KINDS, Noise, series
from noisy import timing
from tiny import ROOT

CARD = DeviceInfo(
    "Card 9000", "card-9000", (9, 0), 132, 62914560, 10**11, 3201.0, 6016, 1980.0, 700.0, True,
    False, "580.1", "13.0", "14.2",
)  # fmt: skip


def steady(time_us: float, **changes: Any) -> Timing:
    """Forty samples from ``time_us`` to 0.5 % above it."""
    return timing([time_us * (1 + 0.005 * i / 39) for i in range(40)], **changes)


def record(*rows: Result, **changes: Any) -> Record:
    whole = Record(
        SCHEMA, "measured", "01_tiny", "scale_1k", {"n": 1024}, "float32", 1, rows, device=CARD
    )
    return replace(whole, **changes)


def row(*timings: Timing, name: str = "scale", **changes: Any) -> Result:
    return replace(Result(name, "kernel", timings=timings), **changes)


# ---- the rule ------------------------------------------------------------------------------


def spread_over(low: float, high: float, count: int = 40) -> list[float]:
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def test_intervals_apart_by_more_than_the_gap_are_slower_or_faster() -> None:
    never = Rule(gap=0.01, rank_z=1e9)  # by the intervals alone
    one = spread_over(100.0, 104.0)  # third quartile 103, with the gap 104.03
    assert relation(one, spread_over(104.04, 106.0), never) == "slower"
    assert relation(one, spread_over(104.02, 106.0), never) == "ambiguous"
    assert relation(spread_over(104.04, 106.0), one, never) == "faster"


def test_a_series_whose_slow_end_stays_is_not_slower() -> None:
    """Apart by rank, but the ninth decile is 104 in both: the slow speed is the same."""
    mostly_fast = [100.0] * 34 + [104.0] * 6
    mostly_slow = [100.0] * 2 + [104.0] * 38
    assert relation(mostly_fast, mostly_slow) == "ambiguous"
    assert relation(mostly_slow, mostly_fast) == "ambiguous"


def test_ranks_tell_apart_what_wide_intervals_hide() -> None:
    """Two speeds 4 % apart, half of the samples each; then everything 3 % slower."""
    two_speeds = [100.0 + 0.01 * i for i in range(15)] + [104.0 + 0.01 * i for i in range(15)]
    slower = [s * 1.03 for s in two_speeds]
    assert interval(slower).low < interval(two_speeds).high
    assert relation(two_speeds, slower) == "slower"
    assert relation(slower, two_speeds) == "faster"


def test_one_fast_sample_does_not_hide_that_all_others_are_slower() -> None:
    before, after = spread_over(100.0, 100.5), [100.1, *spread_over(103.0, 103.5)]
    assert relation(before, after) == "slower"


def test_another_share_of_two_speeds_is_not_slower() -> None:
    mostly_fast = [100.0 + 0.01 * i for i in range(40)] + [104.0] * 20
    mostly_slow = [100.0 + 0.01 * i for i in range(20)] + [104.0] * 40
    assert relation(mostly_fast, mostly_slow) == "ambiguous"


def test_the_rank_statistic_is_that_of_the_textbook() -> None:
    # Of 3 * 4 pairs the second is larger in 11: (11 - 6) / sqrt(12 * 8 / 12).
    assert rank_z([1.0, 2.0, 5.0], [3.0, 6.0, 7.0, 8.0]) == pytest.approx(5 / 8**0.5)
    assert rank_z([1.0, 2.0], [1.0, 2.0]) == 0.0  # equal samples count half


def test_the_same_is_what_a_change_of_three_percent_cannot_hide_in() -> None:
    wide = spread_over(100.0, 102.8)  # from the smallest to the ninth decile: 2.52, median 101.4
    assert interval(wide).reach == pytest.approx(2.52 / 101.4)
    assert relation(wide, spread_over(100.4, 103.2)) == "same"  # 0.39 % apart, 2.49 % of reach
    assert relation(wide, spread_over(100.6, 103.4)) == "ambiguous"  # 0.59 % apart
    # 0.99 % apart, and the wider series decides, in either order
    assert relation(wide, spread_over(102.35, 102.45)) == "ambiguous"
    assert relation(spread_over(102.35, 102.45), wide) == "ambiguous"


def test_however_steady_two_runs_are_two_percent_may_lie_between_them() -> None:
    rule = Rule()
    assert (rule.change, rule.unseen) == (0.03, 0.02)
    assert relation([100.0] * 30, [100.99] * 30) == "same"
    assert relation([100.0] * 30, [101.01] * 30) == "ambiguous"


def test_two_speeds_four_percent_apart_are_never_called_the_same() -> None:
    """Their shares may change from run to run, and then so does the median."""
    two_speeds = [100.0] * 20 + [104.0] * 20
    assert relation(two_speeds, two_speeds) == "ambiguous"


def test_a_slower_clock_is_not_a_slower_kernel() -> None:
    found = judge(steady(100.0, sm_clock_mhz=1980.0), steady(110.0, sm_clock_mhz=1800.0))
    assert found.verdict == "ambiguous"
    assert found.reason == "slower in time, same in cycles: the clock was 1980, then 1800 MHz"
    assert found.time_change == pytest.approx(0.1)
    assert found.cycle_change == pytest.approx(0.0)


def test_a_faster_clock_does_not_hide_a_slower_kernel() -> None:
    found = judge(steady(100.0, sm_clock_mhz=1800.0), steady(100.0, sm_clock_mhz=1980.0))
    assert found.verdict == "ambiguous"
    assert "same in time, slower in cycles" in found.reason


def test_without_a_clock_nothing_of_the_card_is_called_slower() -> None:
    found = judge(steady(100.0), steady(120.0, sm_clock_mhz=None))
    assert (found.verdict, found.reason) == (
        "ambiguous",
        "slower in time, but no clock is recorded",
    )
    assert judge(steady(100.0), steady(100.0, sm_clock_mhz=None)).verdict == "same"


def test_what_the_host_times_needs_no_clock() -> None:
    before, after = (steady(t, sm_clock_mhz=None, method="host") for t in (100.0, 110.0))
    assert judge(before, after).verdict == "slower"
    assert judge(after, before).verdict == "faster"


def test_few_samples_decide_nothing() -> None:
    few = timing([110.0] * 19)
    assert judge(steady(100.0), few).verdict == "ambiguous"
    assert judge(steady(100.0), timing([110.0] * 20)).verdict == "slower"


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("time_us", [12.0, 240.0])
def test_two_runs_of_one_kernel_are_never_called_slower(kind: str, time_us: float) -> None:
    rng = random.Random(7)
    pairs = [[timing(series(rng, time_us, KINDS[kind])) for _ in "ab"] for _ in range(200)]
    found = Counter(judge(*pair).verdict for pair in pairs)
    assert not found["slower"]
    assert not found["faster"]
    assert found["same"] >= 150


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("time_us", [12.0, 240.0])
def test_three_percent_are_always_caught(kind: str, time_us: float) -> None:
    rng = random.Random(8)
    for _ in range(200):
        before, after = (series(rng, time_us * f, KINDS[kind]) for f in (1.0, 1.03))
        assert judge(timing(before), timing(after)).verdict == "slower"


def test_two_equal_runs_with_a_lot_of_noise_are_ambiguous() -> None:
    rng = random.Random(9)
    loud = Noise(jitter=0.1)
    found = Counter(
        judge(*(timing(series(rng, 100.0, loud)) for _ in "ab")).verdict for _ in range(50)
    )
    assert set(found) == {"ambiguous"}


def published_series() -> list[Timing]:
    """Every series that the reference card gave by its events, as published."""
    stored = records.load_all(ROOT / "results")
    return [
        t
        for s in stored
        if s.record.evidence == "measured" and s.record.slug == "nvidia-h200" and not s.local
        for r in s.record.results
        for t in r.timings
        if t.method != "host" and len(t.samples_us) >= Rule().least_samples
    ]


def drawn(rng: random.Random, one: Timing, factor: float = 1.0) -> Timing:
    """Another run of the same kernel: its samples drawn anew, in another place of memory."""
    placed = factor * (1 + 0.002 * max(-2.0, min(2.0, rng.gauss(0, 1))))
    samples = [s * placed for s in rng.choices(one.samples_us, k=len(one.samples_us))]
    return timing(samples, sm_clock_mhz=one.sm_clock_mhz)


def test_at_the_noise_of_the_published_series_equal_is_not_slower_and_3_percent_are() -> None:
    found = published_series()
    if not found:
        pytest.skip("nothing is published of the reference card")
    rng = random.Random(10)
    repeats = range(max(1, 600 // len(found)))
    pairs = [(drawn(rng, t), drawn(rng, t), drawn(rng, t, 1.03)) for t in found for _ in repeats]
    equal = Counter(judge(a, b).verdict for a, b, _ in pairs)
    assert not equal["slower"], equal
    assert not equal["faster"], equal
    slow = Counter(judge(a, c).verdict for a, _, c in pairs)
    assert not slow["same"], slow
    # Some kernels run at two speeds a percent or two apart. Samples drawn anew can leave out one
    # of them, and then the change is ambiguous; of steady kernels nearly every one is caught.
    assert slow["slower"] >= 0.95 * len(pairs), slow
    steady_ones = [(a, c) for a, _, c in pairs if interval(a.samples_us).reach <= 0.01]
    caught = Counter(judge(a, c).verdict for a, c in steady_ones)
    assert caught["slower"] >= 0.99 * len(steady_ones) > 0.3 * len(pairs), caught


# ---- rows ----------------------------------------------------------------------------------


def test_rows_are_held_against_each_other_by_variant_and_cache() -> None:
    before = record(row(steady(100.0), steady(50.0, cache="warm")), row(steady(9.0), name="b"))
    after = record(row(steady(104.0), steady(50.0, cache="warm")), row(steady(8.0), name="b"))
    found = compare([before], [after])
    assert [(r.variant, r.cache, r.verdict) for r in found.rows] == [
        ("scale", "cold", "slower"),
        ("scale", "warm", "same"),
        ("b", "cold", "faster"),
    ]
    assert found.rows[0].time_change == pytest.approx(0.04)
    assert found.exit_code == 1
    assert compare([after], [before]).exit_code == 1  # b is slower there
    assert compare([before], [before]).exit_code == 0


def test_what_is_ambiguous_does_not_fail() -> None:
    wide = [row(timing(spread_over(low, low + 2.8))) for low in (100.0, 100.6)]
    found = compare([record(wide[0])], [record(wide[1])])
    assert [r.verdict for r in found.rows] == ["ambiguous"]
    assert found.exit_code == 0


def test_a_row_that_was_right_and_fails_now_is_broken() -> None:
    after = record(row(status="failed", reason="wrong at n=33"))
    found = compare([record(row(steady(100.0)))], [after])
    assert [(r.verdict, r.reason) for r in found.rows] == [("broken", "wrong at n=33")]
    assert found.exit_code == 1


def test_rows_of_one_side_are_named_and_fail_nothing() -> None:
    both = row(steady(100.0))
    before = record(both, row(steady(9.0), name="gone"), row(name="bad", status="failed"))
    after = record(both, row(steady(9.0), name="new"), row(name="bad", status="failed"))
    found = compare([before], [after])
    assert [(r.variant, r.verdict) for r in found.rows] == [
        ("scale", "same"),
        ("gone", "unpaired"),
        ("new", "unpaired"),
    ]
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shape": {"n": 2048}}, "different sizes: n=1024, then n=2048"),
        ({"dtype": "float16"}, "different dtype: float32, then float16"),
        ({"seed": 2}, "different seed: 1, then 2"),
        ({"method_version": 99}, "different methods: version 1, then 99"),
        ({"device": replace(CARD, sms=66)}, "different devices: sms is 132, then 66"),
    ],
)
def test_another_measurement_is_refused(changes: dict[str, Any], reason: str) -> None:
    found = compare([record(row(steady(100.0)))], [record(row(steady(100.0)), **changes)])
    assert [(r.verdict, r.reason) for r in found.rows] == [("refused", reason)]
    assert found.exit_code == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"method": "graph"}, "method is 'event'"),
        ({"flush": "write only"}, "flush is 'write, then"),
    ],
)
def test_another_method_of_one_row_is_refused(change: dict[str, str], reason: str) -> None:
    found = compare([record(row(steady(100.0)))], [record(row(steady(100.0, **change)))])
    assert found.rows[0].verdict == "refused"
    assert reason in found.rows[0].reason


def test_different_cards_are_refused_as_a_whole() -> None:
    other = replace(CARD, name="Card 1", slug="card-1")
    with pytest.raises(CompareError, match="on card-9000, the second on card-1: different devices"):
        compare([record(row(steady(1.0)))], [record(row(steady(1.0)), device=other)])


def test_other_settings_of_one_card_are_said() -> None:
    after = record(row(steady(100.0)), device=replace(CARD, driver="590.2", power_limit_w=600.0))
    found = compare([record(row(steady(100.0)))], [after])
    assert found.rows[0].verdict == "same"
    assert found.notes == (
        "card-9000: driver was 580.1, then 590.2",
        "card-9000: power_limit_w was 700.0, then 600.0",
    )


# ---- the command ---------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    a, b = tmp_path / "a", tmp_path / "b"
    records.save(a, record(row(steady(100.0)), row(steady(9.0), name="other")))
    records.save(b, record(row(steady(110.0)), row(steady(9.0), name="other")), local=True)
    return a, b


def test_the_command_exits_with_1_where_something_is_slower(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = map(str, folders)
    assert main(["--compare", a, b]) == 1
    out = capsys.readouterr().out
    assert "scale_1k/scale cold" in out
    assert "+10.0%" in out
    assert "1 same, 1 slower" in out
    assert main(["--compare", b, a]) == 0
    assert main(["--compare", a, b, "--only", "other"]) == 0


def test_published_and_own_records_of_one_folder_are_compared_by_two_words(
    tmp_path: Path,
) -> None:
    records.save(tmp_path, record(row(steady(100.0))))
    records.save(tmp_path, record(row(steady(90.0))), local=True)
    assert main(["--compare", "local", "data", "--results", str(tmp_path)]) == 1
    assert main(["--compare", "data", "local", "--results", str(tmp_path)]) == 0
    assert main(["--compare", str(tmp_path / "local"), str(tmp_path)]) == 1


def test_scripts_get_json(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out" / "found.json"
    assert main(["--compare", *map(str, folders), "--json", str(file)]) == 1
    capsys.readouterr()
    assert main(["--compare", *map(str, folders), "--json", "-"]) == 1
    out = capsys.readouterr().out
    assert out == file.read_text(encoding="utf-8")
    found = json.loads(out)
    assert found["counts"] == {"same": 1, "slower": 1}
    assert found["exit_code"] == 1
    assert found["rows"][0]["verdict"] == "slower"
    assert found["rule"]["gap"] == Rule().gap


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--compare", "{a}", "nowhere"], "there is no results folder 'nowhere'"),
        (["--compare", "{a}", "{empty}"], "there are no measurements in"),
        (["--compare", "{a}", "{b}", "--only", "nothing"], "no row"),
        (["--compare", "{a}", "{b}", "--list"], "exclude each other"),
        (["--json", "x.json"], "--json goes with"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    folders: tuple[Path, Path],
    tmp_path: Path,
    arguments: list[str],
    what: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    names = {"a": folders[0], "b": folders[1], "empty": tmp_path / "empty"}
    assert main([a.format(**names) for a in arguments]) == 2
    error = capsys.readouterr().err
    assert what in error
    assert len(error.strip().splitlines()) == 1


def test_json_that_cannot_be_written_is_one_sentence(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--compare", *map(str, folders), "--json", "/proc/no/such.json"]) == 2
    assert "such.json: cannot be written" in capsys.readouterr().err


def test_what_a_stranger_wrote_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "\x1b[2J\nall is well\u202e"
    before, after = tmp_path / "a", tmp_path / "b"
    records.save(before, record(row(steady(100.0), name=f"v{nasty}"), row(steady(1.0), name="w")))
    card = replace(CARD, driver=nasty)
    failed = row(status="failed", reason=nasty, name="w")
    second = record(row(steady(100.0), name=f"v{nasty}"), failed, device=card)
    records.save(after, second)
    assert main(["--compare", str(before), str(after)]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not any(line.startswith("all is well") for line in shown.splitlines())
    assert r"card-9000: driver was 580.1, then \x1b[2J\nall is well\u202e" in shown
