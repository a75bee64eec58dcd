"""Blocks: what they show of the records, and that a block never turns into text silently."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from site_project import convert

from kernelbook.errors import PageError


def rows(html: str) -> list[list[str]]:
    """The cells of a table's body, without tips."""
    html = re.sub(r'<span class="kb-tip".*?</span>', "", html, flags=re.S)
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr.*?</tr>", body, re.S)
    ]


def test_results_hold_measured_and_cited_rows_with_units_and_grades(tiny: Path) -> None:
    html = convert("/// results | scale_1k\n    columns: [time, time/scale]\n///\n", tiny)
    assert rows(html) == [
        ["乘以 2", "NVIDIA H200", "2.0", "1.00", "实测"],
        ["乘以 4", "NVIDIA H200", "4.0", "2.00", "实测"],
        ["拷贝", "NVIDIA H200", "1.0", "0.50", "实测"],
        ["乘以 2", "NVIDIA GeForce RTX 4090（引自 Li）", "3", "1.00", "引用"],
    ]
    assert "<small>µs</small>" in html


def test_the_best_of_our_kernels_is_marked(tiny: Path) -> None:
    html = convert("/// results | scale_1k\n    columns: [time]\n///\n", tiny)
    best = re.findall(r'class="kb-num kb-best"[^>]*><a[^>]*>([\d.]+)', html)
    assert best == ["2.0"]


def test_a_readers_own_card_appears_by_itself(tiny: Path) -> None:
    card = site_project.device("my-card", "My <Card>")
    site_project.measured(tiny, {"scale": 7.0}, card=card, local=True)
    html = convert(
        "/// results | scale_1k\n    columns: [time]\n    evidence: measured\n///\n", tiny
    )
    assert ["乘以 2", "My &lt;Card&gt;（本机）", "7.0", "实测"] in rows(html)
    assert 'data-device="my-card@local" class="kb-local"' in html
    boxes = convert("/// hardware |\n///\n", tiny)
    assert "My &lt;Card&gt;" in boxes


def test_options_choose_variants_columns_and_cache(tiny: Path) -> None:
    text = "/// results | scale_1k\n    columns: [time]\n    variants: [scale]\n    cache: warm\n"
    assert rows(convert(f"{text}    evidence: [measured]\n///\n", tiny)) == [
        ["乘以 2", "NVIDIA H200", "1.0", "实测"]
    ]


def test_counts_name_the_shape_the_emulator_ran(tiny: Path) -> None:
    html = convert("/// counts | scale_1k\n    columns: [global_load_sectors]\n///\n", tiny)
    assert rows(html) == [["乘以 2", "32", "计数"]]
    assert "n=256" in html


def test_compiled_takes_architectures(tiny: Path) -> None:
    text = "/// compiled | scale_1k\n    archs: [sm_89]\n    variants: [scale]\n///\n"
    (row,) = rows(convert(text, tiny, language="en"))
    assert row[:3] == ["times 2", "sm_89", "12"]
    assert row[-1] == "compiled"


def test_code_paths_lead_to_the_source_pages(tiny: Path) -> None:
    html = convert("/// kernels | 01_tiny\n///\n", tiny)
    assert html.count('href="../source/01_tiny/scale/"') == 2
    assert rows(html)[0] == ["scale.cu", "scale", "乘以 2", "(8) × (128)", "n = 1,024"]


def test_a_hardware_box_for_every_device_with_records(tiny: Path) -> None:
    html = convert("/// hardware |\n///\n", tiny, language="en")
    names = re.findall(r'kb-device--(\w+)" data-device="([^"]+)"', html)
    assert names == [("reference", "nvidia-h200"), ("cited", "nvidia-geforce-rtx-4090")]
    assert "4,814\u00a0GB/s" in html  # 6016 bit × 6.402 GHz / 8


def test_the_list_of_results_leads_to_every_experiment(tiny: Path) -> None:
    html = convert("/// chapters |\n///\n", tiny, uri="results/index.md")
    assert "第一篇 <code>01_tiny</code>" in html  # by the article of the same number
    assert 'href="../../results/01_tiny/#scale-1k">缩放</a>' in html
    assert re.findall(r'class="kb-grade kb-(\w+)"', html) == [
        "compiled", "counted", "measured", "cited",
    ]  # fmt: skip
    page = convert("/// results-page | 01_tiny\n///\n", tiny, uri="results/01_tiny.md")
    assert 'id="scale-1k"' in page


def test_a_table_without_records_says_so(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    assert "kb-empty" in convert("/// results | scale_1k\n///\n", root)


@pytest.mark.parametrize("evidence", ["measured", "counted", "compiled", "cited"])
def test_a_part_that_waits_for_records_appears_with_them(
    tiny: Path, tmp_path: Path, evidence: str
) -> None:
    text = (
        f"/// figure-if | {evidence} scale_1k\n    otherwise: 以后**补上**\n\n"
        "值是 {= EVIDENCE.scale_1k.scale.METRIC =}。"
        "{? EVIDENCE.scale_1k.scale.METRIC > 0 ?}\n\n"
        "//// results | scale_1k\n////\n\n///\n\n后文\n"
    )
    metric = {"counted": "warp_instructions", "compiled": "registers"}.get(evidence, "time")
    units = {"measured": "0*s", "cited": "0*s"}.get(evidence, "0")
    text = text.replace("EVIDENCE", evidence)
    text = text.replace("METRIC > 0", f"{metric} > {units}").replace("METRIC", metric)
    shown = convert(text, tiny)
    assert "kb-number" in shown
    assert "以后" not in shown
    hidden = convert(text, site_project.make(tmp_path / "bare"))
    assert "以后<strong>补上</strong>" in hidden
    assert "值是" not in hidden
    assert "kb-table" not in hidden
    assert "kb-empty" not in hidden
    assert "后文" in hidden


def test_parts_wait_for_the_reference_device_not_for_a_readers_card(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    card = site_project.device("my-card", "My Card")
    site_project.measured(root, {"scale": 7.0}, card=card, local=True)
    assert "里面" not in convert("/// figure-if | measured scale_1k\n\n里面\n\n///\n", root)


def test_navigation_links_what_exists_and_names_what_is_planned(tiny: Path) -> None:
    html = convert("/// navigation |\n///\n", tiny)
    assert "第二篇" in html
    assert "计划中" in html
    assert 'href="../02-second/"' not in html
    (tiny / "docs" / "zh" / "02-second.md").write_text("# 第二篇\n", encoding="utf-8")
    html = convert("/// navigation |\n///\n", tiny)
    assert html.count('href="../02-second/"') == 2  # as follow-up and as next
    assert "计划中" not in html
    assert "因为" in html


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("/// resluts | scale_1k\n///", 1, "no block is called 'resluts'"),
        ("字\n\n/// results |\n///", 3, "needs an experiment after the |"),
        ("/// results | scale_2k\n///", 1, "no experiment 'scale_2k'"),
        ("/// results | scale_1k\n    colums: [time]\n///", 1, "no option 'colums'"),
        ("/// results | scale_1k\n    columns: 3\n///", 1, "option columns of results"),
        ("/// results | scale_1k\n    columns: [tme]\n///", 1, "no metric 'tme'"),
        ("/// results | scale_1k\n    variants: [scael]\n///", 1, "no variant 'scael'"),
        ("/// results | scale_1k\n    cache: hot\n///", 1, "cold or warm"),
        ("/// results | scale_1k\n    evidence: [counted]\n///", 1, "measured or cited"),
        ("/// results | scale_1k\n    columns: [time\n///", 1, "cannot be read"),
        ("/// results | scale_1k\n\n正文不见了\n", 1, "never closed"),
        ("/// results | scale_1k\n\n正文不见了\n\n///", 1, "holds no text"),
        ("/// figure-if | measured scale_1k\n\n正文\n", 1, "never closed"),
        ("/// kernels | 02_none\n///", 1, "no chapter '02_none'"),
        ("/// chart | nothing\n\n说明\n///", 1, "no chart 'nothing'"),
        ("/// chart | nothing\n///", 1, "needs a caption"),
        ("/// figure-if | timed scale_1k\n\nx\n\n///", 1, "is no condition"),
        ("/// figure-if | measured scale_2k\n\nx\n\n///", 1, "no experiment 'scale_2k'"),
        ("字\n\n///\n", 3, "ends no block"),
        ("/// results-page | 02_none\n///", 1, "no chapter '02_none'"),
        ("/// counts | scale_1k\n    columns: [nope]\n///", 1, "no metric 'nope'"),
    ],
)
def test_a_wrong_block_fails_with_file_and_line(
    tiny: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(PageError) as error:
        convert(text, tiny)
    assert re.match(rf"\S*docs/zh/01-first\.md:{line}: ", str(error.value)), str(error.value)
    assert says in str(error.value)


def test_an_article_outside_the_series_has_no_navigation(tiny: Path) -> None:
    with pytest.raises(PageError, match="has no article '05-lost'"):
        convert("/// navigation |\n///\n", tiny, uri="05-lost.md")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('slug = "02-second"\nzh = "第二篇"', 'slug = "03-third"\nzh = "第二篇"'), "not listed"),
        (('zh = "第一篇"\n', ""), "lacks 'zh'"),
        (("[[article]]", "[[article"), "cannot be read"),
    ],
)
def test_a_broken_series_file_is_named(tiny: Path, change: tuple[str, str], says: str) -> None:
    file = tiny / "docs" / "series.toml"
    file.write_text(file.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    with pytest.raises(PageError, match=r"series\.toml") as error:
        convert("/// navigation |\n///\n", tiny)
    assert says in str(error.value)


@pytest.mark.parametrize(
    "marked", ["**1,234**", "`n`", "a &lt; b", '<a id="x"></a>y', "\\*", "a/b ⚠"]
)
def test_cells_of_results_are_converted_as_any_other(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, marked: str
) -> None:
    table = f"| a | b |\n|---|---|\n| {marked} | 2.5–3.5 µs |\n| 1e-05 × | 中文（L2 热）：3 |\n"
    monkeypatch.setattr(
        "kernelbook.site.results_page.results_markdown", lambda book, chapter, language: table
    )
    shown = convert("/// results-page | 01_tiny\n///\n", tiny, uri="results/01_tiny.md")
    assert shown.replace("\u2060", "") == convert(table, tiny)
