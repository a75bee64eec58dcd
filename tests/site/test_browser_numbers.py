"""Where a number came from: by pointer, keyboard and finger, and without a script."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import opened

pytestmark = pytest.mark.browser

ARTICLE = "01-vector-add-to-tiled-gemm/"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_hovering_and_focusing_a_number_show_where_it_came_from(browser: Any, origin: str) -> None:
    with opened(browser, origin + "en/" + ARTICLE) as page:
        number = page.locator(".kb-number").first
        tip = number.locator(".kb-tip")
        assert not tip.is_visible()
        number.hover()
        assert tip.is_visible()
        assert "theory" in tip.inner_text()
        page.keyboard.press("Escape")
        assert not tip.is_visible()
        page.mouse.move(0, 0)
        number.focus()
        assert tip.is_visible()
        described = number.get_attribute("aria-describedby")
        assert page.locator(f"#{described}").get_attribute("role") == "tooltip"


def test_a_measured_number_tells_its_whole_story_also_in_a_table(browser: Any, origin: str) -> None:
    with opened(browser, origin + "en/" + ARTICLE) as page:
        alone = "p a.kb-measured:not(:has(.kb-tip code))"  # a row, not an expression over several
        for selector in (alone, ".kb-table--results td a.kb-measured"):
            number = page.locator(selector).first
            number.focus()
            told = number.locator(".kb-tip").inner_text()
            assert "NVIDIA H200" in told or "nvidia-h200" in told, told
            parts = ("±", "q1–q3", "samples: ", "SM clock: ", "date: 20", "commit: ", "Enter")
            assert [part for part in parts if part not in told] == [], (selector, told)


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_a_figure_of_a_hardware_box_says_where_it_is_from(
    browser: Any, origin: str, prefix: str
) -> None:
    with opened(browser, origin + prefix + ARTICLE) as page:
        box = page.locator(".kb-device--reference")
        figures = box.locator("dd .kb-number")
        assert figures.count() >= 8
        for figure in figures.all():
            figure.focus()
            assert figure.locator(".kb-tip").is_visible()
            told = figure.locator(".kb-tip small").inner_text()
            assert "cudaGetDeviceProperties" in told or "data sheet" in told or "sms" in told or (
                " / " in told
            ), told  # fmt: skip
        figures.first.press("Enter")
        page.wait_for_url(f"**/{prefix}devices/nvidia-h200/#spec")


def test_enter_on_a_number_leads_to_its_row(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE) as page:
        page.locator(".kb-table--results td a.kb-measured").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/results/01_basics/#*")
        assert page.evaluate("document.querySelector('tr:has(:target)') !== null")


def test_a_tap_shows_it_and_a_second_tap_follows_the_link(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE, **PHONE) as page:
        number = page.locator("p a.kb-number, li a.kb-number").first
        number.scroll_into_view_if_needed()
        number.tap()
        tip = number.locator(".kb-tip")
        assert tip.is_visible()
        assert ARTICLE in page.url
        box = tip.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        number.locator(".kb-value").tap()
        page.wait_for_url("**/results/01_basics/#*")
        assert page.evaluate("document.getElementById(location.hash.slice(1)) !== null")


@pytest.mark.parametrize("place", [200, 780])
def test_a_first_tap_never_follows_the_link_wherever_the_note_opens(
    browser: Any, origin: str, place: int
) -> None:
    # Low on the screen the note opens below the finger that is still on the number.
    with opened(browser, origin + ARTICLE, **PHONE) as page:
        number = page.locator("p a.kb-measured").nth(5)
        number.evaluate(f"it => scrollBy(0, it.getBoundingClientRect().top - {place})")
        box = number.bounding_box()
        assert box is not None
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        number.locator(".kb-tip").wait_for()
        page.wait_for_timeout(300)  # for a click that should not come
        assert ARTICLE in page.url
        assert page.locator(".kb-tip:visible").count() == 1


def test_a_long_note_fits_the_smallest_phone(browser: Any, origin: str) -> None:
    small = {**PHONE, "viewport": {"width": 360, "height": 480}}
    with opened(browser, origin + ARTICLE, **small) as page:
        outside = page.evaluate(
            """() => [...document.querySelectorAll(".kb-number")].filter(number => {
              if (number.closest("details:not([open])")) return false;
              number.classList.add("kb-open");
              const box = number.querySelector(".kb-tip").getBoundingClientRect();
              number.classList.remove("kb-open");
              return box.top < 0 || box.bottom > innerHeight;
            }).length"""
        )
        assert outside == 0


def test_one_note_is_open_at_a_time_and_it_goes_with_its_number(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE) as page:
        first, second = (page.locator("p a.kb-number").nth(n) for n in (0, 1))
        first.focus()
        second.hover()
        assert page.locator(".kb-tip:visible").count() == 1
        page.mouse.move(0, 0)
        number = page.locator(".kb-table--results td a.kb-measured").nth(3)
        number.focus()

        def distance() -> float:
            return float(
                number.evaluate(
                    "it => it.querySelector('.kb-tip').getBoundingClientRect().top"
                    " - it.getBoundingClientRect().bottom"
                )
            )

        before = distance()
        page.evaluate("scrollBy(0, -50)")
        page.wait_for_timeout(200)
        assert distance() == pytest.approx(before, abs=1)
        page.evaluate("scrollBy(0, 3000)")
        number.locator(".kb-tip").wait_for(state="hidden")


def test_without_a_script_a_note_of_a_table_is_not_cut_off(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE, java_script_enabled=False) as page:
        number = page.locator(".kb-table--results td a.kb-measured").last
        number.scroll_into_view_if_needed()
        number.hover()
        tip = number.locator(".kb-tip")
        assert tip.is_visible()
        box = tip.bounding_box()
        assert box is not None
        seen = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y)?.closest('.kb-tip') !== null",
            [box["x"] + box["width"] - 8, box["y"] + box["height"] - 8],
        )
        assert seen


def test_without_a_script_hovering_works_and_the_link_stays(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE, java_script_enabled=False) as page:
        number = page.locator("p a.kb-number, li a.kb-number").first
        number.hover()
        assert number.locator(".kb-tip").is_visible()
        assert "results/01_basics/#" in str(number.get_attribute("href"))


def test_notes_of_numbers_stay_inside_the_window(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE) as page:
        for number in page.locator(".kb-number").all()[:60]:
            number.focus()
            box = number.locator(".kb-tip").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 1280
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
