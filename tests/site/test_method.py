"""The page on measuring says what the code does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import site_project

from kernelbook.compare import RULE
from kernelbook.errors import PageError
from kernelbook.runner.options import parse
from kernelbook.sampling import FULL
from kernelbook.site import method_block

PAGES = [site_project.ROOT / "docs" / language / "how-we-measure.md" for language in ("zh", "en")]


def cells(html: str) -> dict[str, str]:
    return dict(re.findall(r'<th scope="row">(.*?)</th><td class="kb-num">(.*?)</td>', html))


def test_a_table_shows_the_constants_of_the_code(tiny: Path) -> None:
    found = cells(site_project.convert("/// method | sampling\n///\n", tiny, language="en"))
    assert found["samples"] == f"{FULL.min_samples}–{FULL.max_samples}"
    assert found["stop: 95 % interval of the median under"] == "0.5%"
    chinese = cells(site_project.convert("/// method | sampling\n///\n", tiny))
    assert list(chinese.values()) == list(found.values())


def test_another_constant_gives_another_table(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "/// method | compare\n///\n"
    assert cells(site_project.convert(page, tiny, language="en"))["gap"] == f"{RULE.gap:.2%}"
    monkeypatch.setattr(method_block, "RULE", replace(RULE, gap=0.05))
    assert cells(site_project.convert(page, tiny, language="en"))["gap"] == "5.00%"


def test_a_table_that_does_not_exist_is_named_with_its_line(tiny: Path) -> None:
    with pytest.raises(PageError, match=r"01-first\.md:3: no method table 'magic'.*sampling"):
        site_project.convert("text\n\n/// method | magic\n///\n", tiny)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_command_on_the_page_can_be_typed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    commands = re.findall(r"^    python scripts/run_all\.py (.+)$", text, re.M)
    assert len(commands) == 3
    for command in commands:
        parse(site_project.ROOT, command.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_page_shows_all_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^/// method \| (\w+)$", text, re.M)) == set(method_block.TABLES)
