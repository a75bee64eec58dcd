"""Records round-trip, and what is no record is refused by name."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelbook import codec
from kernelbook.errors import RecordError
from kernelbook.records import (
    SCHEMA,
    DeviceInfo,
    Record,
    Result,
    Timing,
    load,
    load_all,
    path_of,
    save,
)

DEVICE = DeviceInfo(
    "Card 9000", "card-9000", (9, 0), 132, 62914560, 10**11, 3201.0, 6016, 1980.0, 700.0, True,
    False, "580.1", "13.0", "14.2",
)  # fmt: skip
TIMING = Timing(
    "cold", "event", "write+read", 1, (10.0, 11.5, 12.25), 11.5, 10.75, 11.875, 10.0, 10.0, 12.25,
    0, "interval", sm_clock_mhz=1980.0,
)  # fmt: skip
RECORD = Record(
    SCHEMA, "measured", "01_tiny", "scale_1k", {"n": 1024}, "float32", 1,
    (Result("scale", "kernel", grid=(8, 1, 1), block=(128, 1, 1), timings=(TIMING,)),),
    commit="abc", date="2026-01-02T03:04:05Z", device=DEVICE,
)  # fmt: skip


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = save(tmp_path, RECORD)
    assert path == tmp_path / "data/measured/card-9000/scale_1k.json"
    assert load(path) == RECORD
    assert [s.record for s in load_all(tmp_path)] == [RECORD]


def test_a_readers_own_record_lies_apart(tmp_path: Path) -> None:
    path = save(tmp_path, RECORD, local=True)
    assert path == tmp_path / "local/card-9000/scale_1k.json"
    assert load_all(tmp_path)[0].local


def test_writing_the_same_twice_changes_nothing(tmp_path: Path) -> None:
    path = save(tmp_path, RECORD)
    before = path.read_bytes(), path.stat().st_mtime_ns
    save(tmp_path, RECORD)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def change(**fields: object) -> str:
    data = json.loads(codec.to_json(RECORD))
    data.update(fields)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "is not JSON"),
        ("[]", "should be an object"),
        ('{"a": NaN}', "holds NaN"),
        ('{"a": Infinity}', "holds Infinity"),
        ('{"a": 1e999}', "no finite number"),
        ('{"schema": 1, "schema": 2}', "'schema' twice"),
        ("[" * 40 + "]" * 40, "levels deep"),
        (change(schema=99), "schema 99"),
        (change(schema="1"), "schema should be int"),
        (change(surprise=1), "'surprise' that no record has"),
        (change(results=[{"kind": "kernel"}]), "lacks the field 'variant'"),
        (change(results=[{"variant": "x", "kind": "magic"}]), "kind should be"),
        (change(evidence="guessed"), "evidence should be"),
        (change(seed=True), "seed should be int"),
        (change(experiment="../../etc/passwd"), "no name"),
        (change(device=None), "names no device"),
    ],
)
def test_what_is_no_record_is_refused_by_file_and_field(
    tmp_path: Path, text: str, what: str
) -> None:
    path = tmp_path / "data/measured/card-9000/scale_1k.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=r"scale_1k\.json") as caught:
        load_all(tmp_path)
    assert what in str(caught.value)


def test_a_time_that_is_not_positive_is_refused() -> None:
    with pytest.raises(RecordError, match="not positive"):
        replace(
            RECORD,
            results=(replace(RECORD.results[0], timings=(replace(TIMING, median_us=-1.0),)),),
        )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"median_us": 11.6}, "statistics that its samples do not have"),
        ({"q1_us": 10.0}, "statistics that its samples do not have"),
        ({"q3_us": 12.25}, "statistics that its samples do not have"),
        ({"min_us": 9.99}, "statistics that its samples do not have"),
        ({"ci_low_us": 9.0}, "statistics that its samples do not have"),
        ({"ci_high_us": 13.0}, "statistics that its samples do not have"),
        ({"outliers": 4}, "statistics that its samples do not have"),
        ({"outliers": -1}, "statistics that its samples do not have"),
        ({"samples_us": (10.0, 11.5, 1e13)}, "a time that no kernel takes"),
        ({"floor_us": -1.0}, "a time that no kernel takes"),
        ({"samples_us": ()}, "has 0 samples, a series has 1 to 5000"),
        ({"samples_us": (1.0,) * 5001}, "has 5001 samples, a series has 1 to 5000"),
        ({"sm_clock_mhz": 0.0}, "a clock that cannot be"),
        ({"sm_clock_mhz": 1e308}, "a clock that cannot be"),
        ({"launches_per_sample": 0}, "a count of launches"),
    ],
)
def test_a_series_that_no_run_can_have_given_is_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(RecordError, match=what):
        replace(RECORD, results=(replace(RECORD.results[0], timings=(replace(TIMING, **change),)),))


def test_statistics_may_be_rounded_to_a_tenth_of_a_nanosecond() -> None:
    rounded = replace(TIMING, median_us=11.5001, q1_us=10.7499)
    replace(RECORD, results=(replace(RECORD.results[0], timings=(rounded,)),))


@pytest.mark.parametrize("linked", ["scale_1k.json", "."])
def test_a_link_among_records_is_named_and_not_followed(tmp_path: Path, linked: str) -> None:
    elsewhere = save(tmp_path / "elsewhere", RECORD)
    folder = tmp_path / "results/data/measured/card-9000"
    folder.parent.mkdir(parents=True)
    if linked == ".":
        folder.symlink_to(elsewhere.parent)
    else:
        folder.mkdir()
        (folder / linked).symlink_to(elsewhere)
    with pytest.raises(RecordError, match=r"card-9000.*: is a link, records are files in folders"):
        load_all(tmp_path / "results")


def test_neither_a_pipe_nor_a_link_is_written_to(tmp_path: Path) -> None:
    pipe, link, target = (tmp_path / name for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    link.symlink_to(target)
    target.write_text("mine")
    for path in (pipe, link):
        with pytest.raises(RecordError, match="is not a file, and is not written to"):
            codec.write_atomically(path, "theirs")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert target.read_text() == "mine"


def test_what_is_wrong_with_a_record_is_one_line_whatever_it_holds() -> None:
    text = change(shape={"\n# all is well\x1b[2J\u202e": None})
    with pytest.raises(RecordError) as caught:
        codec.from_text(Record, text, Path("x.json"))
    assert str(caught.value) == (
        r"x.json: shape.\n# all is well\x1b[2J\u202e should be int, not None"
    )


def test_a_slug_cannot_climb_out_of_the_results_folder() -> None:
    with pytest.raises(RecordError, match="slug"):
        replace(RECORD, device=replace(DEVICE, slug="../../x"))


def test_a_record_in_a_place_not_its_own_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "data/measured/card-9000/other.json"
    codec.write_atomically(wrong, codec.to_json(RECORD))
    with pytest.raises(RecordError, match="belongs elsewhere"):
        load_all(tmp_path)


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = path_of(tmp_path, RECORD)
    path.parent.mkdir(parents=True)
    path.write_text(" " * (codec.MAX_BYTES + 1), encoding="utf-8")
    with pytest.raises(RecordError, match="larger than"):
        load_all(tmp_path)


def test_nan_is_never_written() -> None:
    bad = replace(RECORD, results=(replace(RECORD.results[0], counts={"x": float("nan")}),))
    with pytest.raises(RecordError, match="cannot hold nan"):
        codec.to_json(bad)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot be written"):
        save(tmp_path, RECORD)
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('{"experiment": ' + "[" * 40 + "]" * 40 + "}", True),
        # The quote after a backslash does not end its string: what follows it is no text ...
        ('{"experiment": "\\"", "dtype": ' + "[" * 40 + "]" * 40 + "}", True),
        # ... and what it stands before is.
        ('{"experiment": "\\"' + "[" * 40 + '"}', False),
        ('{"experiment": "\\\\", "dtype": ' + "[" * 40 + "]" * 40 + "}", True),
    ],
)
def test_brackets_count_as_nesting_only_outside_strings(text: str, refused: bool) -> None:
    with pytest.raises(RecordError) as raised:
        codec.from_text(Record, text, Path("a.json"))
    assert ("nested more than" in str(raised.value)) is refused
