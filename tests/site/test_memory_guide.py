"""The guide to memory access: nothing typed, the same in both languages, drawn from the records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from articles import pages, tokens, typed_results
from site_project import ROOT

from kernelbook import records
from kernelbook.pictures.bank_map import BankMap

PAGES = pages("memory-guide")
# What the original says, in the rows that hold it against what we found; and definitions.
QUOTED = {"60%", "90%", "100%", "60 %", "90 %", "100 %", "10×", "5×", "1.5×"}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_result_comes_from_records_or_is_quoted_from_the_original(page: Path) -> None:
    assert typed_results(page) <= QUOTED


def test_both_languages_show_the_same_numbers_and_hold_the_same_claims() -> None:
    chinese, english = (set(tokens(page)) for page in PAGES.values())
    assert chinese == english
    assert sum(kind == "?" for kind, _ in chinese) >= 25


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_seven_sections_and_a_table_of_gains(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (\d) ", text, re.M) == list("1234567")
    assert text.index("{#gains}") < text.index("/// gains |") < text.index("{#original}")


def test_the_maps_of_the_guide_have_the_degrees_of_their_layouts() -> None:
    record = records.load(ROOT / "results" / "data" / "counted" / "transpose_8192.json")
    (block,) = re.findall(r"^/// bank-map \| transpose_8192 (.*)$", PAGES["en"].read_text(), re.M)
    degrees = {}
    for name in block.split():
        result = record.result(name)
        assert result is not None
        found = [r for requests in result.requests.values() for r in requests]
        (read,) = (r for r in found if r.access == "read")
        degrees[name] = BankMap.of(read.words, read.size, store=False).degree
    assert degrees == {
        "transpose_conflicts": 32, "transpose_padded": 1, "transpose_swizzled": 1,
    }  # fmt: skip
