"""Whole pages put together from pieces of ours: HTML, or errors of ours that name the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernelbook.errors import PageError
from kernelbook.site.block_types import BLOCKS

ARGUMENTS = (
    "scale_1k", "01_tiny/scale.cu", "01_tiny/scale.cu#scale", "01_tiny/scale.cu#L5-L10", "01_tiny",
    "01_tiny/scale.cu#L0", "../x.cu#a", "sampling", "measured scale_1k", "nvidia-h200", "01-first",
    "", "*", "<b>", "a|b", "{= 1 =}",
)  # fmt: skip
OPTIONS = (
    "columns: [time]", "columns: [throughput/scale]", "columns: x", "columns: [time, [a]]",
    "columns: null", "columns: [time/scale/scale]", "columns: &a [*a]", "variants: [scale]",
    "variants: {a: b}", "evidence: measured", "cache: warm", "cache: 3", "archs: [sm_89]",
    "otherwise: x", "nonsense: 1", "attrs: {class: x}", "attrs: 3", "- a", "a: b: c",
    "columns: !!python/object/apply:os.system ['id']",
)  # fmt: skip
TOKENS = (
    "{= measured.scale_1k.scale.time =}", "{= measured.scale_1k.scale.time | .2f µs =}",
    "{= 1 + =}", "{? measured.scale_1k.scale.time < 1*s ?}", "{? 1 ?}", "{= 1 ?}", "{= x", "=}",
    "{= shape.scale_1k.n | <b> =}", "{= 1/0 =}", "{= 1 | | =}", "{=   =}",
)  # fmt: skip
MARKUP = (
    "# H\n\n", "- a\n", "> q ", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "`c`", "```\n", "~~~\n", "$",
    "$$", "$x^2$",
    "\n\n", "    code\n", "<div markdown>\n", "</div>\n", "<!-- ", "-->", "///\n",
    "//// ", "/// x\n", "\t", "\ue0f0", "\ue0f1", "\x02", "\u2028", "!!! note\n    a\n", "\\",
    " w ",
)  # fmt: skip


def block(name: str, argument: str, options: list[str], body: str, before: str) -> str:
    lines = "".join(f"    {option}\n" for option in options)
    return f"{before}/// {name} | {argument}\n{lines}\n{body}\n///\n\n"


NAMES = st.sampled_from([*(b.NAME for b in BLOCKS), "nope"])
BLOCK = st.builds(
    block,
    NAMES.filter(lambda name: name != "series-graph"),  # needs the diagrams' extension
    st.sampled_from(ARGUMENTS),
    st.lists(st.sampled_from(OPTIONS), max_size=2),
    st.sampled_from(("", *TOKENS, *MARKUP)),
    st.sampled_from(("\n\n", "\n\n", "\n\n> ", "\n\n- ", "")),
)
PAGE = st.lists(st.one_of(BLOCK, st.sampled_from(TOKENS), st.sampled_from(MARKUP)), max_size=6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = site_project.make(tmp_path_factory.mktemp("fuzzed") / "project")
    site_project.measured(root, {"scale": 2.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    site_project.compiled(root)
    site_project.counted(root, {"global_load_sectors": 32.0})
    return root


@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(PAGE.map("".join), st.sampled_from(["zh", "en"]), st.booleans())
@example("- /// results | nothing\n///\n", "en", True)
@example("> /// hardware | x\n\ntext\n\n///\n", "zh", False)
@example("1. /// figure-if | {= 1 =}\n\n///\n", "en", False)
def test_a_page_is_html_or_errors_that_name_it(
    whole: Path, text: str, language: str, strict: bool
) -> None:
    try:
        html = site_project.convert(text, whole, language=language, strict=strict)
    except PageError as error:
        for line in str(error).splitlines():
            assert re.match(rf"\S*docs/{language}/01-first\.md(:\d+)?: \S", line), line
    else:
        assert "<script>" not in html


@pytest.mark.parametrize("before", ["", "- ", "> ", "1. ", "> - "])
def test_an_error_in_a_list_or_quotation_has_its_line(whole: Path, before: str) -> None:
    with pytest.raises(PageError, match=r"01-first\.md:3: no method table 'magic'"):
        site_project.convert(f"text\n\n{before}/// method | magic\n///\n", whole)


def test_a_number_as_an_argument_is_quoted_as_it_was_written(whole: Path) -> None:
    with pytest.raises(PageError, match=r"01-first\.md:1: no method table '\{= 1 =\}'"):
        site_project.convert("/// method | {= 1 =}\n///\n", whole)


def test_a_diagram_without_its_extension_is_one_sentence(whole: Path) -> None:
    with pytest.raises(PageError, match=r"kernelbook\.site\.mermaid is not among"):
        site_project.convert("/// series-graph |\n///\n", whole)
