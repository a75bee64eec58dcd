"""Formulas rendered at build time, and dollars that are none."""

from __future__ import annotations

import re
from pathlib import Path

import markdown
import pytest
from diagrams import build_site, write_site

from kernelbook.errors import PageError
from kernelbook.site import katex


def convert(article: str) -> str:
    return markdown.markdown(
        article, extensions=["pymdownx.superfences", "tables", "kernelbook.site.math"]
    )


def formulas(html: str) -> list[str]:
    """The TeX of every formula on the page, as KaTeX repeats it for those who copy it."""
    found = re.findall(r'<annotation encoding="application/x-tex">(.*?)</annotation>', html, re.S)
    return [" ".join(tex.split()) for tex in found]


def test_an_inline_formula_stays_in_its_sentence() -> None:
    html = convert("由 $C = AB$ 可知，共 $n$个。")
    assert formulas(html) == ["C = AB", "n"]
    assert html.startswith('<p>由 <span class="kb-math kb-math--inline"')
    assert html.endswith("个。</p>")
    assert "<script" not in html


def test_tex_is_not_read_as_markdown() -> None:
    html = convert(r"$a_i * b_i * c_i$ 与 $\lceil N/T \rceil$，`*x*`")
    assert formulas(html) == ["a_i * b_i * c_i", r"\lceil N/T \rceil"]
    assert "<em>" not in html


@pytest.mark.parametrize(
    "prose",
    [
        "一块 $5，两块 $6。",
        "It costs US$5 and 6$ more.",
        "在 $HOME/$USER 之下",
        "$ x $ is no formula, nor is $ y$",
        r"\$a\$ 是转义",
        "C++ 里的 {{x}} 和 std::array<int, 2>{{1, 2}}",
    ],
)
def test_dollars_and_braces_of_prose_are_left_alone(prose: str) -> None:
    html = convert(prose)
    assert formulas(html) == []
    assert html.replace("&lt;", "<").replace("&gt;", ">")[3:-4] == prose.replace("\\", "")


def test_code_is_never_looked_at() -> None:
    html = convert("`$HOME$` 和\n\n```sh\necho $A$B $$\n```\n\n    indented $x$\n")
    assert formulas(html) == []
    assert "<code>$HOME$</code>" in html
    assert "indented $x$" in html


def test_a_display_formula_stands_alone_whatever_is_around_it() -> None:
    html = convert("前文\n$$\na\n= b\n- c\n+ d\n$$\n后文\n\n$$x^2$$\n")
    assert formulas(html) == ["a = b - c + d", "x^2"]
    assert html.count('<div class="kb-math kb-math--display"') == 2
    assert "<p>前文</p>" in html
    assert "<p>后文</p>" in html
    assert "<li>" not in html
    assert "<h1>" not in html


def test_a_display_formula_cut_by_a_blank_line_is_refused() -> None:
    with pytest.raises(PageError, match="does not end in its paragraph"):
        convert("$$\na = b\n\n+ c\n$$\n")


def test_a_display_formula_in_a_list_item_or_a_quotation_stays_there() -> None:
    html = convert("- 一\n  $$x$$\n- 二\n\n> 引 $$y$$\n")
    assert formulas(html) == ["x", "y"]
    assert html.count("<li>") == 2
    assert html.index("kb-math--display") < html.index("二")
    assert html.index("<blockquote>") < html.rindex("kb-math--display") < html.index("</blockquote")


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\text{总访存量} = 8\ \text{GB}", "总访存量"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "mtable"),
        (r"f = \begin{cases} 1 & x > 0 \\ 0 & \text{否则} \end{cases}", "否则"),
        (r"\operatorname*{argmin}_{x} f", "argmin"),
        (r"\underbrace{a + b}_{\text{两项}}", "munder"),
        (r"67{,}108{,}864", "864"),
    ],
)
def test_what_the_articles_use_is_understood(tex: str, shown: str) -> None:
    assert shown in katex.render(tex, display=True)


def test_limits_of_a_named_operator_go_below_it_in_display() -> None:
    below = katex.render(r"\operatorname*{argmin}_{x}", display=True)
    beside = katex.render(r"\operatorname{argmin}_{x}", display=True)
    assert "<munder>" in below
    assert "<msub>" in beside


def test_a_formula_is_both_for_the_eye_and_for_a_screen_reader() -> None:
    html = katex.render(r"\frac{a}{b}", display=False)
    assert "<mfrac>" in html
    assert '<span class="katex-html" aria-hidden="true">' in html


def test_katexs_complaint_names_the_formula() -> None:
    with pytest.raises(PageError, match=r"\$\\frac\{1\$: Expected '\}'"):
        convert(r"这里 $\frac{1$ 错了")
    with pytest.raises(PageError, match=r"Undefined control sequence: \\foo"):
        convert("$$\nx = \\foo\n$$")


def test_tex_cannot_bring_a_link_or_a_picture_in() -> None:
    assert "javascript" not in re.sub(
        r"<annotation.*?</annotation>", "", katex.render(r"\href{javascript:a()}{x}", display=False)
    )
    assert "<img" not in katex.render(r"\includegraphics{http://a.example/b.png}", display=False)


def test_the_style_sheet_asks_nobody_else_for_fonts() -> None:
    files = katex.static_files()
    sheet = files[katex.STYLESHEET_URI].decode()
    urls = re.findall(r"url\(([^)]+)\)", sheet)
    assert len(urls) == len(set(urls)) == 20
    for url in urls:
        assert files[f"{katex.FOLDER}/{url}"][:4] == b"wOF2"
    assert "//" not in sheet


def test_mkdocs_stops_with_the_line_of_the_article(tmp_path: Path) -> None:
    write_site(tmp_path, "---\ntitle: t\n---\n# T\n\n好的 $x$\n\n第一行\n第二行 $\\frac{1$ 错\n")
    build = build_site(tmp_path)
    assert build.returncode == 1
    assert "docs/index.md:9: KaTeX cannot read $\\frac{1$" in build.stderr
    assert "Traceback" not in build.stderr
