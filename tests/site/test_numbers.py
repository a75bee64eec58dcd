"""Numbers and claims in a page: what is shown, where it leads, what stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from site_project import convert

from kernelbook.errors import PageError


def text_of(html: str) -> str:
    """What a reader sees: without tips and tags."""
    html = re.sub(r'<span class="kb-tip".*?</span>', "", html, flags=re.S)
    return re.sub(r"<[^>]+>", "", html).replace("\u00a0", " ")


def tip_of(html: str) -> str:
    match = re.search(r'<span class="kb-tip"[^>]*>(.*?)</span>', html, re.S)
    assert match is not None
    return re.sub(r"<[^>]+>", " ", match[1])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("{= measured.scale_1k.scale.time =}", "2.0 µs实测"),
        ("{= measured.scale_1k.scale.time | .3f =}", "2.000 µs实测"),
        ("{= measured.scale_1k.scale.time | ns =}", "2,000 ns实测"),
        ("{= measured.scale_1k.scale.time | .1e ms =}", "2.0e-03 ms实测"),
        (
            "{= measured.scale_1k.scale_by_4.time / measured.scale_1k.scale.time | .1f × =}",
            "2.0×实测",
        ),
        ("{= cited.scale_1k.scale.time =}", "3.0 µs引用"),
        ("{= compiled.scale_1k.scale.occupancy | .0f % =}", "100%编译"),
        ("{= counted.scale_1k.scale.global_load_sectors =}", "32计数"),
        ("{= 12*B / FLOP =}", "12 B/FLOP理论"),
        ("{= shape.scale_1k.n * 4*B | KiB =}", "4 KiB理论"),
        ("{= 3/2 | .2f =}", "1.50理论"),
    ],
)
def test_a_number_is_shown_in_its_unit_with_its_grade(tiny: Path, token: str, shown: str) -> None:
    assert text_of(convert(f"前 {token} 后", tiny)) == f"前 {shown} 后"


def test_a_measured_number_leads_to_its_row_and_says_where_it_came_from(tiny: Path) -> None:
    html = convert("{= measured.scale_1k.scale.time =}", tiny, language="en")
    link = re.search(
        r'<a class="kb-number kb-measured" href="([^"]+)" aria-describedby="([^"]+)"', html
    )
    assert link is not None
    assert link[1] == "../results/01_tiny/#scale-1k--scale"
    assert f'role="tooltip" id="{link[2]}"' in html
    tip = tip_of(html)
    for part in (
        "measured", "scale_1k / scale / time, nvidia-h200",
            "as recorded: 2 µs ± 1 % (q1–q3 1.98–2.02)",
            "device: NVIDIA H200", "samples: 41, cold L2", "SM clock: 1,980 MHz", "shape: n=1024",
            "date: 2026-11-29", "commit: 0123456789", "press Enter for its row",
    ):  # fmt: skip
        assert part in tip


def test_a_derived_number_shows_its_expression(tiny: Path) -> None:
    html = convert("{= 2 * shape.scale_1k.n | d =}".replace(" | d", ""), tiny)
    assert "2 * shape.scale_1k.n" in tip_of(html)
    assert '<span class="kb-number kb-theory" tabindex="0"' in html  # reachable by keyboard


def test_the_row_a_number_leads_to_is_on_the_results_page(tiny: Path) -> None:
    page = convert("/// results-page | 01_tiny\n///\n", tiny, uri="results/01_tiny.md")
    assert 'id="scale-1k--scale"' in page


def test_tokens_survive_tables_lists_and_emphasis(tiny: Path) -> None:
    html = convert(
        "| a | b |\n|---|---|\n| {= 6*B / FLOP | .1f =} | x |\n\n"
        "- **{= 2 * 3 =}** and *{= 2 * 4 =}*\n\n!!! note\n\n    {= 7 =}[^1]\n\n[^1]: {= 9 =}\n",
        tiny,
    )
    cells = [text_of(cell) for cell in re.findall(r"<td>(.*?)</td>", html, re.S)]
    assert cells == ["6.0 B/FLOP理论", "x"]
    for shown in ("6理论", "8理论", "7理论", "9理论"):
        assert shown in text_of(html)


@pytest.mark.parametrize(
    "text",
    [
        "`{= measured.nothing.at.all =}`",
        "`` a ` {= nothing.at =} ``",
        "```cuda\nint a[] = {= nothing.at =};\n{? 1 > 2 ?}\n```",
        "~~~\n{= nothing.at =}\n~~~",
        "- item\n\n    ```\n    {= nothing.at =}\n    ```",
        "    {= nothing.at =}\n",
        "a code span over\n`two {= nothing.at =}\nlines`",
    ],
)
def test_code_keeps_what_looks_like_a_number(tiny: Path, text: str) -> None:
    html = convert(text, tiny)
    assert "kb-number" not in html
    assert "{= nothing.at =}" in text_of(html) or "{= measured.nothing.at.all =}" in text_of(html)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("if (a) { b = c; } else {=d}", "{ b = c; } else {=d}"),
        (r"\{= 1 =}", "{= 1 =}"),
        ("{{= 1 =}}", "{{= 1 =}}"),
        ("## Title {#the-id}", "Title"),
    ],
)
def test_other_braces_stay(tiny: Path, text: str, kept: str) -> None:
    assert kept in text_of(convert(text, tiny))


def test_latex_braces_and_heading_ids_survive(tiny: Path) -> None:
    html = convert("## T {#the-id}\n\n$\\frac{{a}}{b}$ and $\\{x\\}$\n", tiny)
    assert 'id="the-id"' in html
    assert html.count('class="kb-math') == 2


def test_a_number_between_formulas_is_a_number(tiny: Path) -> None:
    html = convert("从 $a$ 到 {= 2 * 3 =}，$b$ 与 \\$5 {= 4 =} $6", tiny)
    assert html.count("kb-number") == 2
    assert html.count('class="kb-math') == 2


def test_a_true_claim_leaves_nothing(tiny: Path) -> None:
    html = convert("慢一倍{? measured.scale_1k.scale_by_4.time > 1.5*s/10**6 ?}。", tiny)
    assert html == "<p>慢一倍。</p>"


def test_a_false_claim_quotes_its_sentence_with_file_and_line(tiny: Path) -> None:
    text = "# 标题\n\n开头。\n\n第一句没有问题。第二句说快一倍。{? 1 > 2 ?} 后面一句。\n"
    with pytest.raises(PageError) as error:
        convert(text, tiny, front_matter="---\ntitle: x\n---\n\n")
    said = str(error.value)
    assert re.match(r"\S*docs/zh/01-first\.md:9: ", said)  # four lines of front matter
    assert "第二句说快一倍。" in said
    assert "第一句" not in said
    assert "1 > 2" in said


def test_every_problem_of_a_page_is_said_at_once_in_order(tiny: Path) -> None:
    text = "a {= nothing.at =}\n\n| x | y |\n|---|---|\n| 1 | {= 1*B + 1*s =} |\n\n- b{? 1 > 2 ?}\n"
    with pytest.raises(PageError) as error:
        convert(text, tiny)
    places = re.findall(r"01-first\.md:(\d+): ", str(error.value))
    assert places == ["1", "5", "7"]


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("{= spec.sms | .2f GB =}", "cannot be shown in 'GB'"),
        ("{= spec.sms | .2f furlongs =}", "unknown unit"),
        ("{= spec.sms | abc =}", "no format"),
        ("{= spec.sms | .2f a b =}", "more than a format and a unit"),
        ("{= 1 < 2 =}", "write {? … ?}"),
        ("{= 1*B*B =}", "needs a unit"),
        ("{? 1 + 1 ?}", "compares nothing"),
        ("$N={= 2 =}$", "01-first.md:1: a number cannot stand in a formula: $N={= 2 =}$"),
    ],
)
def test_what_cannot_be_shown_says_why(tiny: Path, token: str, says: str) -> None:
    with pytest.raises(PageError, match=re.escape(says)):
        convert(f"x {token}", tiny)


def test_a_stale_number_is_marked_and_fails_the_strict_build(tiny: Path) -> None:
    site_project.measured(tiny, {"scale": 2.0}, stale=True)
    text = "x {= measured.scale_1k.scale.time =}"
    html = convert(text, tiny)
    assert "kb-stale" in html
    assert "已过期" in tip_of(html)
    with pytest.raises(PageError, match=r"01-first\.md:1: .*is stale.*run_all\.py --only scale_1k"):
        convert(text, tiny, strict=True)


@pytest.mark.parametrize("local", [False, True])
def test_another_cards_stale_number_is_only_marked(tiny: Path, local: bool) -> None:
    card = site_project.device("nvidia-b200", "NVIDIA B200")
    site_project.measured(tiny, {"scale": 2.0}, card=card, stale=True, local=local)
    html = convert('{= measured["nvidia-b200"].scale_1k.scale.time =}', tiny, strict=True)
    assert "kb-stale" in html


def test_a_changed_kernel_makes_counted_and_compiled_numbers_stale(tiny: Path) -> None:
    source = tiny / "kernels" / "01_tiny" / "scale.cu"
    text = "{= counted.scale_1k.scale.warp_instructions =} {= compiled.scale_1k.scale.registers =}"
    source.write_text(source.read_text(encoding="utf-8") + "// a comment\n", encoding="utf-8")
    assert "kb-stale" not in convert(text, tiny, strict=True)
    source.write_text(source.read_text(encoding="utf-8") + "int more;\n", encoding="utf-8")
    with pytest.raises(PageError) as error:
        convert(text, tiny, strict=True)
    assert str(error.value).count("is stale") == 2


def test_a_cited_number_names_its_device_as_its_spec_sheet_does(tiny: Path) -> None:
    html = convert("{= cited.scale_1k.scale.time =}", tiny, language="en")
    assert "<small>device: NVIDIA GeForce RTX 4090</small>" in html


def test_names_from_records_cannot_inject_markup(tiny: Path) -> None:
    site_project.cited(tiny, {"time": (3.0, "µs")}, "nvidia-geforce-rtx-4090", author="<b>x</b>\"'")
    html = convert("{= cited.scale_1k.scale.time =}", tiny)
    assert "<b>x</b>" not in html
    assert "&lt;b&gt;x" in html
