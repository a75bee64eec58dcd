"""Excerpts: true line numbers, marks left out, and every way of naming what is not there."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from site_project import SCALE_CU, convert, counted

from kernelbook.errors import PageError
from kernelbook.site.quotes import quoted_in, quoting, title_of


def block(argument: str) -> str:
    return f"文字。\n\n/// excerpt | {argument}\n///\n\n后文。\n"


def numbers(html: str) -> list[int]:
    return [int(n) for n in re.findall(r'data-n=" *(\d+)"', html)]


def code(html: str) -> str:
    body = re.search(r"<pre[^>]*>(.*?)</pre>", html, re.S)
    assert body is not None
    return unescape(re.sub(r"<[^>]+>", "", body[1]))


def test_a_region_is_shown_with_its_true_line_numbers_and_without_marks(tiny: Path) -> None:
    html = convert(block("01_tiny/scale.cu#scale"), tiny)
    # Lines 9 to 14 of the file; 11 and 13 hold the marks of the inner region.
    assert numbers(html) == [9, 10, 12, 14]
    lines = SCALE_CU.splitlines()
    assert code(html).splitlines() == [lines[n - 1] for n in (9, 10, 12, 14)]
    assert ": L9–L14" in html
    assert "[store]" not in html


def test_an_inner_region_loses_its_common_indentation(tiny: Path) -> None:
    html = convert(block("01_tiny/scale.cu#store"), tiny)
    assert numbers(html) == [12]
    assert code(html).startswith("if (i < n)")


def test_a_range_of_lines_works_too(tiny: Path) -> None:
    assert numbers(convert(block("01_tiny/scale.cu#L5-L7"), tiny)) == [5, 6, 7]
    assert numbers(convert(block("01_tiny/scale.cu#L5"), tiny)) == [5]


def test_without_a_part_the_whole_file_is_shown(tiny: Path) -> None:
    shown = numbers(convert(block("01_tiny/scale.cu"), tiny))
    assert shown[0] == 1
    assert shown[-1] == 14  # line 15 is a mark


def test_the_heading_leads_to_the_line_on_the_source_page(tiny: Path) -> None:
    html = convert(block("01_tiny/scale.cu#store"), tiny)
    assert '<a href="../source/01_tiny/scale/#L12">' in html
    page = convert("/// source | 01_tiny/scale.cu\n///\n", tiny, uri="source/01_tiny/scale.md")
    assert 'id="L12"' in page


def test_braces_in_code_are_neither_numbers_nor_attributes(tiny: Path) -> None:
    html = convert(block("01_tiny/scale.cu#store"), tiny)
    assert "a { brace } and {= no number =}" in code(html)


def test_an_excerpt_stands_in_lists_and_admonitions(tiny: Path) -> None:
    html = convert(
        "1. one\n\n    /// excerpt | 01_tiny/scale.cu#store\n    ///\n\n"
        "!!! note\n\n    /// excerpt | 01_tiny/scale.cu#L5\n    ///\n",
        tiny,
    )
    assert html.count("kb-excerpt") == 2
    assert re.search(r"<li>.*kb-excerpt.*</li>", html, re.S)


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("01_tiny/scale.cu#nothing", "no region [nothing] (it has: scale, store)"),
        ("01_tiny/scale.cu#L14-L99", "outside the file, which has 15 lines"),
        ("01_tiny/scale.cu#L7-L5", "is not a range of lines"),
        ("01_tiny/scael.cu#scale", "no file kernels/01_tiny/scael.cu (there are: scale.cu)"),
        ("09_none/scale.cu", "no such folder"),
        ("../secrets.cu", "names no source file"),
        ("01_tiny/experiments.py", "names no source file"),
    ],
)
def test_a_wrong_excerpt_fails_with_file_and_line(tiny: Path, argument: str, says: str) -> None:
    with pytest.raises(PageError) as error:
        convert(block(argument), tiny)
    assert re.match(r"\S*docs/zh/01-first\.md:3: ", str(error.value))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("// [/store]", "// gone"), "scale.cu:11: region [store] is never closed"),
        (("// [/scale]", "// [/scale]\n// [store]\n// [/store]"), "region [store] is opened twice"),
    ],
)
def test_a_broken_region_names_the_source_line(
    tiny: Path, change: tuple[str, str], says: str
) -> None:
    source = tiny / "kernels" / "01_tiny" / "scale.cu"
    source.write_text(SCALE_CU.replace(*change), encoding="utf-8")
    with pytest.raises(PageError) as error:
        convert(block("01_tiny/scale.cu#store"), tiny)
    assert says in str(error.value)


def test_articles_that_quote_a_file_are_found(tiny: Path) -> None:
    docs = tiny / "docs" / "zh"
    (docs / "01-first.md").write_text("# 甲 {#a}\n\n" + block("01_tiny/scale.cu#scale"), "utf-8")
    (docs / "02-second.md").write_text("```\n/// excerpt | 01_tiny/scale.cu\n```\n", "utf-8")
    found = quoting(docs, "01_tiny/scale.cu")
    assert [(article.uri, article.title) for article in found] == [("01-first.md", "甲")]
    page = convert("/// source | 01_tiny/scale.cu\n///\n", tiny, uri="source/01_tiny/scale.md")
    assert '<a href="../../../01-first/">甲</a>' in page


def test_quotes_in_fences_are_examples(tiny: Path) -> None:
    assert quoted_in("/// excerpt | a/b.cu#c\n///\n\n~~~\n/// excerpt | d/e.cu\n~~~\n") == {
        "a/b.cu"
    }


def test_a_title_is_the_front_matters_else_the_headings(tmp_path: Path) -> None:
    file = tmp_path / "a-page.md"
    for text, title in (
        ('---\ntitle: "T"\n---\n# H\n', "T"),
        ("text\n\n# H `c` {#x}\n", "H `c`"),
        ("text\n", "a-page"),
    ):
        file.write_text(text, encoding="utf-8")
        assert title_of(file) == title


def test_a_source_page_shows_every_line_and_the_kernels_resources(tiny: Path) -> None:
    page = convert("/// source | 01_tiny/scale.cu\n///\n", tiny, uri="source/01_tiny/scale.md")
    assert re.findall(r'id="L(\d+)"', page) == [str(n) for n in range(1, 16)]
    resources = page.partition("kb-table--compiled")[2]
    assert "sm_90" in resources
    assert "sm_89" in resources
    assert re.search(r">12<", resources)  # registers on sm_89


def test_a_source_page_shows_which_line_costs_what(tiny: Path) -> None:
    lines = {
        "scale.cu:12": {"warp_instructions": 60.0, "global_load_sectors": 32.0, "barriers": 0.0},
        "scale.cu:10": {"warp_instructions": 20.0},
        "cuda_fp16.h:3": {"warp_instructions": 7.0},
    }
    counted(tiny, {"warp_instructions": 80.0}, lines=lines)
    page = convert("/// source | 01_tiny/scale.cu\n///\n", tiny, uri="source/01_tiny/scale.md")
    table = page.partition('<details class="kb-lines" open>')[2].partition("</details>")[0]
    assert re.findall(r'href="#(L\d+)"', table) == ["L10", "L12"]
    cells = re.findall(r'<td class="kb-num[^>]*>([^<]*)<', table)
    assert cells == ["20", "·", "60", "32"]  # warp instructions, sectors read; no barrier column
    assert "--kb-share:75%" in table  # 60 of 80
    assert "n=256" in table


def test_counts_of_lines_that_are_gone_lead_nowhere(tiny: Path) -> None:
    lines = {"scale.cu:12": {"warp_instructions": 40.0}, "scale.cu:99": {"warp_instructions": 40.0}}
    counted(tiny, {"warp_instructions": 80.0}, lines=lines)
    html = convert("/// source | 01_tiny/scale.cu\n///\n", tiny, uri="source/01_tiny/scale.md")
    assert '<a href="#L12">L12</a>' in html
    assert '<th scope="row">L99</th><td></td>' in html
    assert 'href="../../../results/01_tiny/#scale-1k--scale"' in html  # the whole kernel's counts
