"""Results pages and summary.csv."""

import csv
import io
import re

import markdown as python_markdown
import pytest

from kernelbook.records import Result
from kernelbook.report.markdown import code, escape
from kernelbook.report.pages import page
from kernelbook.report.rows import anchor_of
from kernelbook.report.summary import COLUMNS, summary

from .made_up import Tree, measured

GRADES = {"zh": {"理论", "编译", "计数", "实测", "引用"}}
GRADES["en"] = {"theory", "compiled", "counted", "measured", "cited"}


def html_of(text: str) -> str:
    return python_markdown.markdown(text, extensions=["tables", "attr_list", "md_in_html"])


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_row_with_a_number_states_its_grade(full_tree: Tree, language: str) -> None:
    text = page(full_tree.book(), "01_basics", language)
    rows = [x for x in text.splitlines() if x.startswith("|") and "---" not in x]
    numbers = [x for x in rows if re.search(r"\| \*{0,2}[\d,.]+\*{0,2} \|", x)]
    assert len(numbers) > 20
    seen = {x.rstrip(" |").rpartition("| ")[2] for x in numbers}
    assert seen <= GRADES[language]
    assert len(seen) == 4  # all but theory, which stands in the model's line
    models = [x for x in text.splitlines() if "FLOP [" in x]
    with_work = [e for e in full_tree.catalog.experiments if e.flops(e.shape)]
    assert len(models) == len(with_work)


def test_pages_are_equal_when_rendered_twice(full_tree: Tree) -> None:
    first, again = full_tree.book(), full_tree.book()
    for language in ("zh", "en"):
        assert page(first, "01_basics", language) == page(again, "01_basics", language)
    assert summary(first) == summary(again)


def test_a_variant_has_one_anchor_on_the_page(full_tree: Tree) -> None:
    text = page(full_tree.book(), "01_basics", "en")
    ids = re.findall(r'<a id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    named = {anchor_of(r.experiment, r.variant) for r in full_tree.book().rows}
    assert named <= set(ids)
    assert anchor_of("gemm_1024", "matrix_mul_tiled_8") in ids  # it has only a reason


def test_a_strangers_strings_stay_text(full_tree: Tree) -> None:
    page_html = html_of(page(full_tree.book(), "01_basics", "en"))
    for opened in ("<script", "<b>1", 'href="javascript', "<60"):
        assert opened not in page_html
    assert "GTX &#60;script&#62;alert(1)" in page_html.replace("&lt;", "&#60;").replace(
        "&gt;", "&#62;"
    )
    tables = re.findall(r"<table>.*?</table>", page_html, re.S)
    for table in tables:  # a bar in a name must not add a cell
        widths = {
            len(re.findall(r"<t[dh][ >]", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.S)
        }
        assert len(widths) == 1


def test_a_hostile_variant_name_stays_in_its_cell(tree: Tree) -> None:
    bad = Result('"><img src=x onerror=y>|`a`', "kernel", status="failed", reason="no\n\n# head")
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", {}, others=(bad,)))
    text = page(tree.book(), "01_basics", "en")
    html = html_of(text)
    assert "<img" not in html
    assert "<h1>head" not in html
    assert "onerror=y" in html  # shown, not dropped


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("a_b n=4 driver: 580", "a_b n=4 driver: 580"),
        ("_a_ **b** `c`", "&#95;a&#95; &#42;&#42;b&#42;&#42; &#96;c&#96;"),
        ("<b>|x\n\ty", "&#60;b&#62;&#124;x y"),
        ("==m== ++k++ :smile:", "&#61;&#61;m&#61;&#61; &#43;&#43;k&#43;&#43; &#58;smile:"),
        ("{= measured.x =}", "&#123;= measured.x =&#125;"),
        ("\u202eevil\u0000", "evil"),
    ],
)
def test_escape(raw: str, escaped: str) -> None:
    assert escape(raw) == escaped


def test_code_type_never_ends_early() -> None:
    assert code("matrix_mul_naive") == "`matrix_mul_naive`"
    assert code("a`b<i>") == "<code>a&#96;b&#60;i&#62;</code>"


def test_long_strings_are_cut() -> None:
    assert len(escape("x" * 5000)) == 400


def test_summary_has_a_row_a_number(full_tree: Tree) -> None:
    rows = list(csv.DictReader(io.StringIO(summary(full_tree.book().published()))))
    assert tuple(rows[0]) == COLUMNS
    assert ",".join(COLUMNS) == (
        "chapter,experiment,variant,shape,dtype,cache,device,evidence,metric,value,unit,q1,q3,"
        "samples,stale"
    )
    assert len(rows) == len(full_tree.book().published().rows)
    assert all(r["device"] != "gtx-9000" for r in rows)  # a reader's own run is not published
    (naive,) = [
        r
        for r in rows
        if (r["experiment"], r["variant"], r["metric"], r["cache"], r["evidence"])
        == ("gemm_1024", "matrix_mul_naive", "throughput", "cold", "measured")
    ]
    # 2 * 1024^3 / 400 µs = 5.36870912 TFLOPS, spread from 408 and 396 µs
    assert (naive["value"], naive["unit"]) == ("5.36870912", "TFLOPS")
    assert (naive["q1"], naive["q3"]) == ("5.26344031373", "5.42293850505")
    assert (naive["samples"], naive["stale"]) == ("5", "false")
    (cited,) = [
        r for r in rows if r["variant"] == "h2d_pageable" and r["evidence"] == "cited"
    ]  # as printed
    assert (cited["value"], cited["unit"], cited["q1"], cited["samples"]) == (
        "49.48",
        "ms",
        "",
        "",
    )


def test_summary_is_no_spreadsheet_program(tree: Tree) -> None:
    record = measured(tree.catalog, tree.sheets, "gemm_1024", {"matrix_mul_naive": 400.0})
    bad = Result("=HYPERLINK(1)", "kernel", flops=1, timings=record.results[0].timings)
    tree.save(type(record)(**{**vars(record), "results": (*record.results, bad)}))
    rows = list(csv.reader(io.StringIO(summary(tree.book()))))
    assert {r[2] for r in rows[1:]} == {"matrix_mul_naive", "'=HYPERLINK(1)"}


def test_stale_rows_are_marked_on_page_and_in_summary(full_tree: Tree) -> None:
    source = full_tree.root / "kernels/01_basics/matrix_mul_naive.cu"
    source.write_text(source.read_text(encoding="utf-8") + "\n__device__ int x;\n", "utf-8")
    book = full_tree.book()
    assert "`matrix_mul_naive` ⚠ stale |" in page(book, "01_basics", "en")
    assert "`matrix_mul_naive` ⚠ 过期 |" in page(book, "01_basics", "zh")
    rows = list(csv.DictReader(io.StringIO(summary(book.published()))))
    stale = {(r["variant"], r["evidence"]) for r in rows if r["stale"] == "true"}
    assert ("matrix_mul_naive", "measured") in stale
    assert ("matrix_mul_naive", "compiled") in stale
    assert not any(v == "matrix_mul_tiled" or e == "cited" for v, e in stale)


def test_a_column_without_any_number_is_left_out(full_tree: Tree) -> None:
    text = page(full_tree.book(), "01_basics", "en")
    cited = text[text.index("### Cited") : text.index('<a id="gemm-1024">')]
    assert "effective bandwidth (GB/s)" in cited
    assert "throughput" not in cited  # the author printed none for vector addition
