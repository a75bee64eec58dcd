"""The built pages in a real browser, as readers meet them."""

from __future__ import annotations

import functools
import gzip
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

ARTICLE = "01-vector-add-to-tiled-gemm/"
PAGES = (
    "", ARTICLE, "results/", "results/01_basics/", "source/", "source/01_basics/matrix_mul_tiled/",
    "how-we-measure/",
)  # fmt: skip
BOTH = tuple(f"{prefix}{page}" for prefix in ("", "en/") for page in PAGES)
ARTICLE_LIMIT_BYTES = 250 * 1000

# Every piece of text that is shown: its colour, size, weight, and the colours painted below it
# from the nearest opaque ancestor on. Charts and diagrams have tests of their own.
TEXTS = """
() => {
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim()) continue;
    if (element.closest("svg, script, style, .katex-mathml, noscript")) continue;
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (!box.width || !box.height || style.visibility === "hidden") continue;
    let opacity = 1;
    const beneath = [];
    for (let at = element; at; at = at.parentElement) {
      const its = getComputedStyle(at);
      opacity *= Number(its.opacity);
      if (its.backgroundColor !== "rgba(0, 0, 0, 0)") beneath.unshift(its.backgroundColor);
    }
    if (opacity < 0.05) continue;
    const key = [style.color, style.fontSize, style.fontWeight, opacity, beneath.join()].join("|");
    if (!found.has(key)) {
      found.set(key, {text: node.data.trim().slice(0, 40), colour: style.color, opacity, beneath,
                      size: parseFloat(style.fontSize), weight: Number(style.fontWeight),
                      where: element.className || element.tagName});
    }
  }
  return [...found.values()];
}
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def origin(built_site: Path) -> Iterator[str]:
    """The built site on a local server."""
    handler = functools.partial(_Handler, directory=str(built_site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update",
                  "--disable-sync"],
        )  # fmt: skip
        yield launched
        launched.close()


@contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page in a context of its own."""
    options.setdefault("viewport", {"width": 1280, "height": 900})
    context = browser.new_context(**options)
    page = context.new_page()
    try:
        page.goto(url)
        page.evaluate("() => document.fonts.ready")
        yield page
    finally:
        context.close()


# ---- every page ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", BOTH)
def test_a_page_loads_quietly_from_its_own_origin(browser: Any, origin: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "response", lambda r: trouble.append(f"{r.status} {r.url}") if r.status >= 400 else None
    )
    page.on(
        "request", lambda r: None if r.url.startswith((origin, "data:")) else trouble.append(r.url)
    )
    page.goto(origin + path)
    page.wait_for_load_state("networkidle")
    context.close()
    assert trouble == []


@pytest.mark.parametrize("path", BOTH)
def test_a_page_fits_a_phone(browser: Any, origin: str, path: str) -> None:
    with opened(browser, origin + path, viewport={"width": 390, "height": 844}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [*PAGES, "en/" + ARTICLE])
def test_text_can_be_read(browser: Any, origin: str, path: str, scheme: str) -> None:
    with opened(browser, origin + path, color_scheme=scheme) as page:
        texts = page.evaluate(TEXTS)
        dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert dark == (scheme == "dark")
    assert len(texts) > 5
    weak = []
    for text in texts:
        ground = (1.0, 1.0, 1.0)
        for colour in text["beneath"]:
            ground = over(rgba(colour), ground)
        red, green, blue, alpha = rgba(text["colour"])
        seen = over((red, green, blue, alpha * text["opacity"]), ground)
        large = text["size"] >= 24 or (text["size"] >= 18.66 and text["weight"] >= 700)
        if contrast(seen, ground) < (3.0 if large else 4.5):
            weak.append((text["text"], text["where"], round(contrast(seen, ground), 2)))
    assert weak == []


def rgba(css: str) -> tuple[float, float, float, float]:
    """A computed colour, components 0 to 1."""
    parts = [float(part) for part in re.findall(r"[\d.]+(?:e-?\d+)?", css.split("(")[1])]
    if css.startswith("color("):  # color(srgb r g b / a)
        return parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else 1.0
    return parts[0] / 255, parts[1] / 255, parts[2] / 255, parts[3] if len(parts) == 4 else 1.0


def over(
    top: tuple[float, float, float, float], below: tuple[float, float, float]
) -> tuple[float, float, float]:
    alpha = top[3]
    red, green, blue = (t * alpha + b * (1 - alpha) for t, b in zip(top[:3], below, strict=True))
    return red, green, blue


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """WCAG 2.1's contrast ratio."""

    def luminance(rgb: tuple[float, float, float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_defines_it() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21.0)
    grey = 119 / 255  # #777777 on white is the well-known near miss of 4.48
    assert contrast((grey, grey, grey), (1, 1, 1)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("path", [*PAGES, "en/" + ARTICLE])
def test_axe_finds_nothing_serious(browser: Any, origin: str, path: str) -> None:
    package = pytest.importorskip("axe_playwright_python")
    script = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    # Contrast is measured above, in both schemes and faster.
    options = "{resultTypes: ['violations'], rules: {'color-contrast': {enabled: false}}}"
    with opened(browser, origin + path) as page:
        page.wait_for_load_state("load")
        page.evaluate(script)
        found = page.evaluate(f"axe.run({options})")["violations"]
    assert [
        (violation["id"], violation["nodes"][0]["html"][:200])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ] == []


# ---- the article -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", [ARTICLE, "en/" + ARTICLE])
def test_diagrams_formulas_and_excerpts_are_there(browser: Any, origin: str, path: str) -> None:
    with opened(browser, origin + path) as page:
        kinds = page.evaluate(
            "() => [...document.querySelectorAll('.kb-diagram')].map(e => e.className)"
        )
        assert any("sequence" in kind for kind in kinds)
        assert any("flowchart" in kind for kind in kinds)
        for selector in (".kb-diagram svg text", ".kb-math .katex-html", ".kb-excerpt .kb-line",
                         ".kb-device", ".kb-table--kernels tbody tr"):  # fmt: skip
            shown = page.locator(selector)
            assert shown.count() > 0, selector
            assert shown.first.bounding_box() is not None, selector
        assert page.locator("script[src*=mermaid], script[src*=mathjax]").count() == 0


@pytest.mark.parametrize("path", [ARTICLE, "en/" + ARTICLE])
def test_an_article_weighs_little(browser: Any, origin: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    bodies: dict[str, bytes] = {}

    def keep(response: Any) -> None:
        if "/search/" not in response.url and response.status == 200:
            bodies[response.url] = response.body()

    page.on("response", keep)
    page.goto(origin + path)
    page.wait_for_load_state("networkidle")
    context.close()
    # Fonts and pictures come compressed; everything else is served as gzip.
    sizes = {
        url: len(body) if url.endswith((".woff2", ".png")) else len(gzip.compress(body))
        for url, body in bodies.items()
    }
    assert sum(sizes.values()) <= ARTICLE_LIMIT_BYTES, sizes


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


def test_a_tap_shows_it_and_a_second_tap_follows_the_link(browser: Any, origin: str) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with opened(browser, origin + ARTICLE, **phone) as page:
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


# ---- language and search ---------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_the_language_switch_keeps_the_page_both_ways(browser: Any, origin: str, path: str) -> None:
    with opened(browser, origin + path) as page:
        for language, prefix in (("en", "en/"), ("zh", "")):
            link = page.locator(f".md-select__link[hreflang={language}]")
            page.goto(str(link.evaluate("link => link.href")))
            assert page.url == origin + prefix + path
            assert page.locator("html").get_attribute("lang") == language


@pytest.mark.parametrize(
    ("site", "query"),
    [
        ("", "带宽墙"), ("", "矩阵乘法"), ("", "__syncthreads"), ("", "屏障"), ("", "共享内存"),
        ("en/", "__syncthreads"), ("en/", "barrier"), ("en/", "coalesced"),
    ],
)  # fmt: skip
def test_the_search_finds_words_inside_sentences(
    browser: Any, origin: str, site: str, query: str
) -> None:
    assert "\u200b" not in query
    with opened(browser, origin + site) as page:
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").type(query, delay=10)
        page.keyboard.press("End")  # Material listens to keys; typed Chinese makes none here
        result = page.locator(f".md-search-result__link[href*='{ARTICLE}']").first
        result.wait_for(timeout=20_000)
        marks = page.locator(".md-search-result__link mark").all_inner_texts()
        assert set(query.strip("_")) <= set("".join(marks).lower())
