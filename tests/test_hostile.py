"""Records and pages from strangers: refused by name or shown as text, never run, never a traceback.

What a search of this kind found stays below as an example.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernelbook import catalog, codec
from kernelbook.compare import CompareError, compare
from kernelbook.devices import sheets
from kernelbook.errors import KernelbookError, RecordError
from kernelbook.quantities import Quantity
from kernelbook.records import Compilation, Record, Verification, load, load_all, path_of
from kernelbook.report.book import Book
from kernelbook.report.render import contents
from kernelbook.report.summary import COLUMNS
from kernelbook.runner.compare_stage import as_json
from kernelbook.site import excerpt, expressions, tokens
from kernelbook.site.expressions import Resolved
from kernelbook.site.numbers import shown
from test_records import RECORD
from tiny import ROOT

DETERMINISTIC = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NASTY = (
    "<script>alert(1)</script>", "a|b`c`", "../../etc/passwd", "\x00", "\n# head", "{= 1 =}",
    "/// excerpt | x", "\u202e", "${x}", "é" * 500, "\ud800",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, -1, 2**63, 2**70, -(2**63)]),
    st.sampled_from([0.0, -1.5, 1e308, 5e-324, float("nan"), float("inf")]), st.sampled_from(NASTY),
)  # fmt: skip
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from(NASTY), SCALARS)
)


@contextmanager
def one_sentence(kind: type[KernelbookError] = KernelbookError) -> Iterator[list[str]]:
    """Lets through nothing but an error of ours, of one line; the list then holds it."""
    said: list[str] = []
    try:
        yield said
    except kind as error:
        said.append(str(error))
    assert all(len(text.splitlines()) == 1 for text in said), said


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything in a JSON value."""
    found = [path] if path else []
    items: Sequence[tuple[Any, Any]] = ()
    if isinstance(data, dict):
        items = tuple(data.items())
    elif isinstance(data, list):
        items = tuple(enumerate(data))
    for key, value in items:
        found += places(value, (*path, key))
    return found


RICH = replace(
    RECORD,
    results=(
        replace(
            RECORD.results[0],
            compilations=(
                Compilation("sm_90", ("-O3",), "12.9", "0" * 16, 16, 0, 0, 0, 0, 8, 1.0, "b", "k"),
            ),
            verifications=(Verification({"n": 1024}, True, 1e-7, 0.5, 1e-8),),
            counts={"global_load_sectors": 32.0, "flops": 1024.0},
            lines={"5": {"global_load_sectors": 32.0}},
            layout="l",
            findings=("f",),
            counters={"launches": 1.0, "dram__bytes_read.sum": 4096.0},
            note={"en": "n", "zh": "n"},
        ),
    ),
    notes={"cpu": "c"},
)
WHOLE: Mapping[str, Any] = json.loads(codec.to_json(RICH))
PLACES = places(WHOLE)
Change = tuple[tuple[Any, ...], Any]


def changed(changes: Sequence[Change]) -> str:
    data = json.loads(json.dumps(WHOLE))
    for path, value in changes:
        inner = data
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has taken the place away
    return json.dumps(data)


def timings(**fields: Any) -> list[Change]:
    return [(("results", 0, "timings", 0, name), value) for name, value in fields.items()]


# ---- records -------------------------------------------------------------------------------


@DETERMINISTIC
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
# Found: a divisor of zero, numbers no float holds, half a character, a name with a line's end.
@example(timings(q1_us=0.0))
@example(timings(q1_us=-1.0))
@example(timings(samples_us=[]))
@example(timings(sm_clock_mhz=0.0))
@example([(("results", 0, "flops"), 10**400)])
@example([(("device", "name"), "\ud800")])
@example([(("experiment",), "scale_1k\n")])
@example([(("device", "slug"), "card-9000\n")])
@example([(("device", "sms"), 0)])
@example([(("results",), [])])
@example([(("shape",), {})])
@example([(("shape",), {"m": 4})])
@example([(("shape", "n"), 0)])
@example([(("results", 0, "variant"), NASTY[0])])
@example([(("results", 0, "reason"), NASTY[0]), (("results", 0, "status"), "failed")])
@example([(("shape",), {"\ud800": 1})])
@example([(("shape",), {"\n# head": None})])
@example(timings(sm_clock_mhz=1e308))
@example(timings(samples_us=[1e308] * 3))
@example([(("device", "cc"), [9, 9]), (("device", "name"), NASTY[0])])
def test_a_changed_record_is_refused_or_shown_as_text(
    project: Path, changes: Sequence[Change]
) -> None:
    text = changed(changes)
    results = project / "results"
    for old in results.rglob("*.json"):
        old.unlink()
    with one_sentence(RecordError) as refused:
        record = codec.from_text(Record, text, Path("x.json"))
        path = path_of(results, record)
        codec.write_atomically(path, text)
        load_all(results)
    if refused:
        return
    assert path.resolve().is_relative_to(results.resolve())
    pages = contents(Book.load(results, catalog.load(project), sheets()), charts=False)
    assert not any("<script" in text for name, text in pages.items() if name.endswith(".md"))
    for row in csv.reader(pages["summary.csv"].splitlines()):
        assert len(row) == len(COLUMNS)  # no line end got into a cell
        assert not any(cell[:1] in ("=", "@", "\t") for cell in row)
    try:
        as_json(compare([RECORD], [record]), ("a", "b"))
    except CompareError:
        return


@DETERMINISTIC
@given(st.one_of(st.text(max_size=200), st.from_regex(r'[\[\]{}:,"0-9eE.+\-ntrfalsu \\]{0,80}')))
@example("[" * 100_000)
@example('{"a":' * 30_000)
@example('"' + "\\" * 9)
@example("9" * 5000)
@example("-" + "9" * 5000)
@example("1e999")
@example("\ufeff{}")
def test_text_that_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        codec.from_text(Record, text, Path("x.json"))


@DETERMINISTIC
@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(RecordError, match=r"x\.json"):
        load(file)


def test_a_hundred_megabytes_are_not_read(tmp_path: Path) -> None:
    file = tmp_path / "data/measured/card-9000/scale_1k.json"
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        out.truncate(100 * 2**20)  # a hole: no disk is used
    with pytest.raises(RecordError, match="larger than"):
        load_all(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "dangling"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "data/measured/card-9000/scale_1k.json"
    file.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "endless":
        file.symlink_to("/dev/zero")
    elif kind == "dangling":
        file.symlink_to(tmp_path / "nowhere")
    else:
        file.mkdir()
    with pytest.raises(RecordError, match=r"scale_1k\.json"):
        load_all(tmp_path)


# ---- pages ---------------------------------------------------------------------------------


class Numbers:
    """A scope in which every name is a number."""

    def unit(self, name: str) -> Quantity:
        return Quantity.of(1.0)

    def path(self, root: str, subscript: str | None, parts: Sequence[str]) -> Resolved:
        return Resolved(Quantity.of(float(len(parts))))


PIECES = st.sampled_from(
    ["1", "2.5", "0", "9", "1e308", "a", "x.y", 'm["s"].t', "(", ")", "+", "-", "*", "/", "**",
     "<", "<=", "==", "and", "or", "not", "min", "sqrt", "round", ",", "[", "]", "lambda", ":",
     "if", "__import__", "'x'", "None", "True", "1j", "@", "\x00", "|", "{", "}"]
)  # fmt: skip


@DETERMINISTIC
@given(st.lists(PIECES, max_size=12).map(" ".join))
@example("1" + " + 1" * 5000)
@example("-" * 5000 + "1")
@example("(" * 5000 + "1" + ")" * 5000)
@example("not " * 3000 + "1 < 2")
@example("a" + ".b" * 5000)
@example("9**9**9**9")
@example("(-8)**0.5")
@example("1e999 - 1e999")
@example("1e999 - 1e999 < 1")
@example("0 ** -1")
@example("2 ** 1e308")
@example("2 ** (1e308 * 10)")
@example("round(1e308 * 10)")
@example("9" * 5000)
@example("x[1].y")
@example("f''")
@example("().__class__.__bases__")
def test_an_expression_gives_a_number_or_one_sentence(text: str) -> None:
    with one_sentence():
        expressions.holds(text, Numbers())
    with one_sentence():
        number = shown(expressions.number(text, Numbers()), "")
        assert "nan" not in number
        assert "inf" not in number


@DETERMINISTIC
@given(st.text(alphabet="0123456789.,+-<>=^ _%fFgGeEdnsxX🂡", max_size=10))
@example(".999999999f")
@example("999999999")
@example("999999999999999999f")
def test_a_format_gives_a_short_text_or_one_sentence(spec: str) -> None:
    with one_sentence():
        assert len(shown(Resolved(Quantity.of(1.5)), spec)) < 200


MARKUP = (
    "{=", "=}", "{?", "?}", "`", "``", "```\n", "\n", "~~~", " x ", "<", "\\", "|", "    ", "$",
)  # fmt: skip


@DETERMINISTIC
@given(st.lists(st.sampled_from(MARKUP), max_size=20).map("".join))
def test_taking_numbers_out_of_a_page_and_putting_them_back_loses_nothing(text: str) -> None:
    left, found = tokens.extract(text, 1)
    assert tokens.restore(left, found) == text
    assert all(t.line <= text.count("\n") + 1 for t in found)


@DETERMINISTIC
@given(st.lists(st.sampled_from((*MARKUP, "\ue0f0", "\ue0f1", "7")), max_size=20).map("".join))
def test_a_page_that_holds_our_placeholders_is_read_all_the_same(text: str) -> None:
    left, found = tokens.extract(text, 1)
    tokens.restore(left, found)


@pytest.mark.parametrize(
    "argument",
    [
        "../README.cu",
        "01_basics/../../secret.cu",
        "/etc/secret.h",
        "//etc/secret.h",
        "01_basics/link.cu",
        "linked/secret.h",
        "01_basics\\..\\secret.cu",
        "01_basics/secret.txt",
        "01_basics/%2e%2e/secret.cu",
        "",
        "#region",
        "01_basics/\x00.cu",
    ],
)
def test_an_excerpt_cannot_climb_out_of_the_kernels(tmp_path: Path, argument: str) -> None:
    kernels = tmp_path / "kernels" / "01_basics"
    kernels.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret.cu", "secret.h"):
        (outside / name).write_text("secret\n", encoding="utf-8")
        (tmp_path / name).write_text("secret\n", encoding="utf-8")
    (kernels / "link.cu").symlink_to(outside / "secret.cu")
    (tmp_path / "kernels" / "linked").symlink_to(outside)
    absolute = argument.replace("/etc", str(outside)) if argument.startswith("/") else argument
    with pytest.raises(KernelbookError):
        excerpt.read(tmp_path, excerpt.quote_of(absolute))
    with pytest.raises(KernelbookError):
        excerpt.whole_file(tmp_path, excerpt.quote_of(absolute).path)


@DETERMINISTIC
@given(st.text(alphabet="./abL0123456789-#~\\ \x00é", max_size=30))
@example("a.cu#L0")
@example("a.cu#L99999999999999999999")
@example("a.cu#L5-L1")
@example("x" * 5000 + ".cu")
def test_an_excerpt_argument_is_lines_of_a_kernel_or_one_sentence(argument: str) -> None:
    with one_sentence():
        excerpt.read(ROOT, excerpt.quote_of(argument))
