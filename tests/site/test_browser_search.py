"""The search, typed into as a reader would, in both languages."""

from __future__ import annotations

import re
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


FOUND = """
word => [...document.querySelectorAll('.md-search-result__link')].some(link => {
  const text = link.textContent.replace(/[\\u200b\\u2060]/g, '').toLowerCase();
  const marks = [...link.querySelectorAll('mark')].map(mark => mark.textContent.toLowerCase());
  return text.includes(word) && marks.some(mark => word.includes(mark) || mark.includes(word));
})
"""


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
            # A result counts where the whole word stands in what is shown and is marked there.
            page.wait_for_function(FOUND, arg=query.strip("_").lower(), timeout=20_000)


@pytest.mark.parametrize(("site", "query"), [("", "合并访存"), ("en/", "coalescing")])
def test_what_explains_a_word_comes_before_the_tables_that_have_it(
    browser: Any, origin: str, site: str, query: str
) -> None:
    with opened(browser, origin + site) as page:
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").type(query, delay=5)
        page.keyboard.press("End")
        first = page.locator(".md-search-result__link").first
        first.wait_for(timeout=20_000)
        assert re.search(r"/\d\d-[\w-]+/", str(first.get_attribute("href")))
