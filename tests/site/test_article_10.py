"""Article 10: nothing typed, the same in both languages, and the arithmetic of its text holds."""

from __future__ import annotations

import re
from collections import Counter
from math import gcd
from pathlib import Path

import pytest
from articles import pages, tokens, typed_results

from kernelbook.pictures.bank_map import BankMap

PAGES = pages("10-memory-optimization")
# What the original or a misconception says, the unit of a rate, and a shape of blocks.
QUOTED = {
    "60 %", "90 %", "130 %", "1 GB/s", "32 ×", "32 倍", "10 倍", "4 倍", "2 倍", "1.5 倍",
}  # fmt: skip


def column(row_words: int) -> BankMap:
    """A warp reads a column of 4-byte words, one a lane, in rows of so many words."""
    return BankMap.of([lane * row_words for lane in range(32)], 4, store=False)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_result_comes_from_records_or_is_quoted(page: Path) -> None:
    assert typed_results(page) <= QUOTED


def test_both_languages_show_the_same_numbers_and_claims() -> None:
    chinese, english = (Counter(tokens(page)) for page in PAGES.values())
    assert chinese == english
    assert sum(kind == "?" for kind, _ in chinese) >= 80


def test_judgements_of_measurements_carry_claims() -> None:
    claims = " ".join(body for kind, body in tokens(PAGES["en"]) if kind == "?")
    numbers = {body for kind, body in tokens(PAGES["en"]) if kind == "="}
    measured = {e for body in numbers for e in re.findall(r"measured\.(\w+)", body)}
    assert {e for e in measured if f"measured.{e}." not in claims} <= {"latency_dram"}


@pytest.mark.parametrize("row_words", [32, 33, 34, 36, 40])
def test_a_column_conflicts_by_the_common_divisor_of_its_row_and_the_banks(row_words: int) -> None:
    assert column(row_words).degree == gcd(row_words, 32)


def test_the_padding_that_is_bad_for_4_bytes_and_right_for_16() -> None:
    quads = BankMap.of([36 * (lane % 8) + 4 * (lane // 8) for lane in range(32)], 16, store=False)
    assert (column(36).degree, quads.degree) == (4, 1)


@pytest.mark.parametrize("swizzle", [lambda c, r: c ^ r, lambda c, r: (c + r) % 32])
def test_rows_and_columns_of_both_swizzles_are_free_of_conflicts(swizzle: object) -> None:
    assert callable(swizzle)
    for at in range(32):
        row = [32 * at + swizzle(c, at) for c in range(32)]
        down = [32 * r + swizzle(at, r) for r in range(32)]
        assert BankMap.of(row, 4, store=True).degree == 1
        assert BankMap.of(down, 4, store=False).degree == 1
