"""Tokens, includes, regions and line ranges of .cu files."""

from pathlib import Path

import pytest

from kernelbook.errors import PageError
from kernelbook.sources import includes_of, layout, line_range, region, tokens

SOURCE = """// [outer]
int a = 1;
    // [inner]
    int b = 2;  // two
    // [/inner]
int c = 3;
// [/outer]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_comments_and_white_space_are_no_tokens() -> None:
    assert tokens("int a /* x */ = 1; // y\n") == tokens("int a=1;")


def test_a_changed_token_is_seen() -> None:
    assert tokens("a + b") != tokens("a - b")


@pytest.mark.parametrize(
    ("one", "other"), [("a - -b", "a--b"), ("a < <b", "a<<b"), ("a = = b", "a == b")]
)
def test_white_space_that_parts_an_operator_is_seen(one: str, other: str) -> None:
    assert tokens(one) != tokens(other)


@pytest.mark.parametrize(
    ("one", "other"), [("x = -1;", "x=-1;"), ("f( a ) ;", "f(a);"), ("a  ==  b", "a==b")]
)
def test_white_space_that_parts_nothing_is_not(one: str, other: str) -> None:
    assert tokens(one) == tokens(other)


def test_a_layout_changes_where_a_token_stands_on_another_line(tmp_path: Path) -> None:
    def of(text: str) -> str:
        file = tmp_path / "k.cu"
        file.write_text(text, encoding="utf-8")
        return layout(file)

    plain = of("int a;\n\nint b;\n")
    assert of("int a; // one\n// two\nint b; /* three\n*/") == plain
    assert of("int c;\n\nint b;\n") == plain, "the key is for that"
    assert of("// one\nint a;\n\nint b;\n") != plain
    assert of("int a;\nint b;\n") != plain


def test_slashes_inside_a_string_are_no_comment() -> None:
    assert tokens('f("http://x"); // y') == ["f", "(", '"http://x"', ")", ";"]


def test_a_region_has_the_files_own_line_numbers_and_no_marks(file: Path) -> None:
    found = region(file, "outer")
    assert found.lines == ("int a = 1;", "    int b = 2;  // two", "int c = 3;")
    assert found.numbers == (2, 4, 6)
    assert (found.first, found.last) == (2, 6)


def test_a_nested_region_loses_its_common_indent(file: Path) -> None:
    assert region(file, "inner").lines == ("int b = 2;  // two",)


def test_a_line_range_takes_both_ends(file: Path) -> None:
    assert line_range(file, 2, 4).numbers == (2, 4)


@pytest.mark.parametrize(
    ("text", "name", "what", "line"),
    [
        ("int a;\n", "x", "no region [x]", None),
        ("// [x]\nint a;\n", "x", "never closed", 1),
        ("// [x]\nint a;\n// [/x]\n// [x]\nint b;\n// [/x]\n", "x", "opened twice", 4),
        ("// [x]\nint a;\n// [/x]\n// [/x]\n", "x", "closed twice", 4),
        ("// [/x]\nint a;\n// [x]\n", "x", "never closed", 3),
        ("// [x]\n\n// [/x]\n", "x", "empty", 2),
    ],
)
def test_a_broken_region_names_file_and_line(
    tmp_path: Path, text: str, name: str, what: str, line: int | None
) -> None:
    path = tmp_path / "bad.cu"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PageError, match=r"bad\.cu") as caught:
        region(path, name)
    assert what in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(("first", "last"), [(1, 99), (5, 3), (0, 2)])
def test_a_range_outside_the_file_is_refused(file: Path, first: int, last: int) -> None:
    with pytest.raises(PageError):
        line_range(file, first, last)


def test_includes_are_followed_and_toolkit_headers_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.cuh").write_text('#include "b.cuh"\n', encoding="utf-8")
    (tmp_path / "b.cuh").write_text('#include "a.cuh"\n#include <cuda_fp16.h>\n', encoding="utf-8")
    main = tmp_path / "k.cu"
    main.write_text('#include "a.cuh"\n#include "cuda_fp16.h"\n', encoding="utf-8")
    assert [p.name for p in includes_of(main)] == ["a.cuh", "b.cuh"]
