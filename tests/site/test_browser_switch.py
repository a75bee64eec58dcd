"""The switches of a page: hardware, with a card made up for the test, and language."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_project
from browsing import opened, served
from test_switch import with_chart

from kernelbook.site.build import build

pytestmark = pytest.mark.browser

FIRST = """\
# 第一篇

/// hardware |
///

/// results | scale_1k
    columns: [time]
///

/// chart | scale_chart

说明
///
"""
SECOND = "# 第二篇\n\n/// results | scale_1k\n    columns: [time]\n///\n"
OWN = "my-card@local"


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site over a results folder with the reference, a cited card and a reader's own."""
    folder = tmp_path_factory.mktemp("switch")
    root = site_project.make(folder / "project")
    site_project.measured(root, {"scale": 2.0, "scale_by_4": 4.0})
    site_project.cited(root, {"time": (3.0, "µs")}, "nvidia-geforce-rtx-4090")
    card = site_project.device("my-card", "My <Card> 9000")
    site_project.measured(root, {"scale": 5.0, "scale_by_4": 9.0}, card=card, local=True)
    with_chart(root)
    site_project.with_site(root)
    (root / "results").rename(folder / "elsewhere")  # a results folder of one's own
    (root / "results").mkdir()
    for language in ("zh", "en"):
        docs = root / "docs" / language
        (docs / "01-first.md").write_text(FIRST, encoding="utf-8")
        (docs / "02-second.md").write_text(SECOND, encoding="utf-8")
    outcome = build(root, folder / "site", results=str(folder / "elsewhere"))
    assert outcome.whole, outcome.said
    with served(folder / "site") as origin:
        yield origin


def rows(page: Any) -> list[str]:
    """Devices of the rows that are shown, once each."""
    found = page.evaluate(
        "[...document.querySelectorAll('tr[data-device]')].filter(row => row.offsetParent)"
        ".map(row => row.dataset.device)"
    )
    return sorted(set(found))


def charts(page: Any) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('.kb-figure__drawing')].filter(d => d.offsetParent)"
        ".map(d => d.dataset.devices)"
    )


def only(page: Any, name: str) -> None:
    page.locator(".kb-switch summary").click()
    row = page.locator(".kb-switch__list > div", has_text=name)
    row.locator("button").click()
    page.keyboard.press("Escape")


def test_a_readers_card_is_there_with_no_edit(browser: Any, switched: str) -> None:
    with opened(browser, switched + "01-first/") as page:
        assert rows(page) == [OWN, "nvidia-geforce-rtx-4090", "nvidia-h200"]
        assert page.locator(".kb-device").count() == 3
        every = {OWN, "nvidia-geforce-rtx-4090", "nvidia-h200"}
        assert [set(chart.split()) for chart in charts(page)] == [every]
        page.locator(".kb-switch summary").click()
        offered = page.locator(".kb-switch__list label").all_inner_texts()
        assert any("My <Card> 9000" in label for label in offered)


def test_tables_charts_and_boxes_show_the_devices_chosen(browser: Any, switched: str) -> None:
    with opened(browser, switched + "01-first/") as page:
        only(page, "My <Card> 9000")
        assert rows(page) == [OWN]
        assert charts(page) == [OWN]
        assert page.locator(".kb-device:visible").count() == 1
        assert (
            page.locator(".kb-switch-note").first.inner_text().startswith("已按所选设备隐藏 3 行")
        )
        page.locator(".kb-switch summary").click()
        page.locator(".kb-switch__list label", has_text="NVIDIA H200").click()
        assert rows(page) == [OWN, "nvidia-h200"]  # side by side
        assert [set(chart.split()) for chart in charts(page)] == [{OWN, "nvidia-h200"}]
        page.locator(".kb-switch__all").click()
        assert len(rows(page)) == 3
        assert page.locator(".kb-switch-note").count() == 0


def test_a_chart_whose_devices_are_all_hidden_says_so(browser: Any, switched: str) -> None:
    with opened(browser, switched + "en/01-first/") as page:
        page.locator(".kb-switch summary").click()
        for box in page.locator(".kb-switch__list input").all():
            box.uncheck()
        page.keyboard.press("Escape")
        assert rows(page) == []
        assert charts(page) == []
        note = page.locator(".kb-figure .kb-switch-note")
        assert note.inner_text().startswith("All devices of this chart are hidden")
        note.locator("button").click()
        assert len(charts(page)) == 1
        assert page.locator(".kb-switch-note").count() == 0


def test_the_choice_is_remembered_over_pages_and_languages(browser: Any, switched: str) -> None:
    with opened(browser, switched + "01-first/") as page:
        only(page, "NVIDIA H200")
        for path in ("02-second/", "en/01-first/", "01-first/"):
            page.goto(switched + path)
            assert rows(page) == ["nvidia-h200"], path
        page.locator(".kb-switch-note button").first.click()
        page.goto(switched + "en/02-second/")
        assert len(rows(page)) == 3


def test_the_switch_says_that_the_text_is_about_the_reference(browser: Any, switched: str) -> None:
    with opened(browser, switched + "en/01-first/") as page:
        page.locator(".kb-switch summary").click()
        said = page.locator(".kb-switch__panel").inner_text()
        assert "always about the reference device" in said
        assert "reference device" in page.locator(".kb-switch__list label").first.inner_text()


def test_the_switch_works_by_keyboard(browser: Any, switched: str) -> None:
    with opened(browser, switched + "02-second/") as page:
        page.locator(".kb-switch summary").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")  # the first device is the reference
        assert "nvidia-h200" not in rows(page)
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_without_a_script_every_device_is_shown(browser: Any, switched: str) -> None:
    with opened(browser, switched + "01-first/", java_script_enabled=False) as page:
        assert page.locator("tr[data-device]:visible").count() == 5
        assert page.locator(".kb-figure__drawing:visible").count() == 1
        assert not page.locator(".kb-switch").is_visible()


def test_a_browser_that_keeps_nothing_still_switches(browser: Any, switched: str) -> None:
    with opened(browser, "about:blank") as page:
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
        )
        page.goto(switched + "02-second/")
        only(page, "NVIDIA H200")
        assert rows(page) == ["nvidia-h200"]


def test_the_readers_own_page_has_the_card(browser: Any, switched: str) -> None:
    with opened(browser, switched + "devices/own/") as page:
        assert "My <Card> 9000" in page.locator("h2").first.inner_text()


def test_the_language_switch_keeps_the_page_both_ways(browser: Any, switched: str) -> None:
    for path in ("", "01-first/", "source/01_tiny/scale/"):
        with opened(browser, switched + path) as page:
            for language, prefix in (("en", "en/"), ("zh", "")):
                page.locator(".md-select").hover()
                page.locator(f".md-select__link[hreflang={language}]").click()
                page.wait_for_url(switched + prefix + path)
                assert page.locator("html").get_attribute("lang") == language


def test_the_fixture_is_not_the_repositorys_results() -> None:
    assert not os.environ.get("KERNELBOOK_RESULTS")
    assert not (Path(site_project.ROOT) / "results" / "local" / "measured" / "my-card").exists()
