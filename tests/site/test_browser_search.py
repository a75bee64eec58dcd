"""The search, typed into as a reader would, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import opened

pytestmark = pytest.mark.browser

# Ten Chinese words that stand inside sentences, ten others.
WORDS = {
    "": ("带宽墙", "矩阵乘法", "屏障", "共享内存", "寄存器", "扇区", "模拟器", "算术强度", "线程块",
         "分歧", "__syncthreads", "shfl"),
    "en/": ("barrier", "coalesced", "bandwidth", "registers", "emulator", "intensity", "sectors",
            "divergence", "__syncthreads", "shfl"),
}  # fmt: skip


def test_there_are_twenty_words_ten_of_them_chinese() -> None:
    every = [word for words in WORDS.values() for word in words]
    assert len(set(every)) == 20
    assert sum(not word.isascii() for word in every) == 10
    assert not any("\u200b" in word for word in every)


@pytest.mark.parametrize("site", WORDS)
def test_the_search_finds_each_word(browser: Any, origin: str, site: str) -> None:
    with opened(browser, origin + site) as page:
        box = page.locator(".md-search__input")
        box.click()
        for query in WORDS[site]:
            box.fill("")
            box.type(query, delay=5)
            page.keyboard.press("End")  # Material listens to keys; typed Chinese makes none here
            word = query.strip("_").lower()
            page.wait_for_function(
                "word => [...document.querySelectorAll('.md-search-result__link mark')]"
                ".some(mark => mark.textContent.toLowerCase().includes(word.slice(0, 2)))",
                arg=word,
                timeout=20_000,
            )
            marks = page.locator(".md-search-result__link mark").all_inner_texts()
            assert set(word) <= set("".join(marks).lower()), (query, marks)
