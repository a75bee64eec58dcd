"""Records round-trip, and what is no record is refused by name."""

import json
from dataclasses import replace
from pathlib import Path

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
    "cold", "event", "write+read", 1, (10.0, 11.5, 12.25), 11.5, 10.0, 12.25, 10.0, 10.0, 12.25, 0,
    "interval", sm_clock_mhz=1980.0,
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
