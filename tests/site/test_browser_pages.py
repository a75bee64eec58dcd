"""Every page in a real browser: quiet, legible in both schemes, on a phone, by keyboard."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
import site_project
from browsing import contrast, opened, rgba, watch, weak_texts

from kernelbook.pictures.drawing import ASKED, CONFLICT
from kernelbook.site import outline
from kernelbook.site.math import DISPLAY
from kernelbook.site.tokens import stretches

pytestmark = pytest.mark.browser

ARTICLE = "01-vector-add-to-tiled-gemm/"
SERIES = "00-how-to-read-this-series/"
NOTEBOOK = "notebooks/what-a-kernel-touches/"
ARTICLE_LIMIT_BYTES = 250 * 1000


def pages(*, source: bool) -> list[str]:
    """URLs of this repository's pages, source pages or all others, as of its Chinese files."""
    docs = site_project.ROOT / "docs" / "zh"
    found = []
    for file in sorted([*docs.rglob("*.md"), *docs.rglob("*.ipynb")]):
        url = file.relative_to(docs).with_suffix("").as_posix() + "/"
        url = url.removesuffix("index/")
        if url.startswith("source/") and url != "source/":
            found += [url] * source
        elif not source:
            found.append(url)
    return found


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Any, axe: str, context: str = "document") -> list[tuple[str, str]]:
    """What axe-core finds serious; contrast is measured here, in both schemes and faster."""
    options = "{resultTypes: ['violations'], rules: {'color-contrast': {enabled: false}}}"
    page.evaluate(axe)
    return [
        (violation["id"], violation["nodes"][0]["html"][:200])
        for violation in page.evaluate(f"axe.run({context}, {options})")["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def written(language: str, path: str) -> tuple[int, int]:
    """(diagrams, displayed formulas) in the text of the page at a URL."""
    docs = site_project.ROOT / "docs" / language
    stem = path.rstrip("/")
    file = next((f for f in (docs / f"{stem}.md", docs / stem / "index.md") if f.is_file()), None)
    if file is None:
        return 0, 0
    text = file.read_text(encoding="utf-8")
    graphs = text.count("/// series-graph |")
    prose = "".join(part for _, part, is_code in stretches(text) if not is_code)
    return len(outline.read(file).of("diagram")) + graphs, len(re.findall(DISPLAY, prose))


@pytest.mark.parametrize("path", [*pages(source=False), "source/04_gemm/fast_gemm/", "404.html"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_page_holds(browser: Any, origin: str, axe: str, language: str, path: str) -> None:
    prefix = "" if language == "zh" else "en/"
    found: dict[str, Any] = {}
    with opened(browser, "about:blank", color_scheme="light") as page:
        trouble = watch(page, origin)
        page.goto(origin + prefix + path)
        page.evaluate("() => document.fonts.ready")
        page.add_style_tag(content="* { transition: none !important }")  # colours that stand still
        found["light"] = weak_texts(page)
        found["axe"] = violations(page, axe)
        shown = [page.locator(s).count() for s in (".kb-diagram svg", ".kb-math--display .katex")]
        found["not drawn"] = [
            n for n, m in zip(written(language, path), shown, strict=True) if n != m
        ]
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
        found["dark"] = weak_texts(page)
        page.set_viewport_size({"width": 390, "height": 844})
        found["too wide"] = max(0, page.evaluate("document.documentElement.scrollWidth") - 390)
        other = "en" if language == "zh" else "zh"
        if not path.endswith("404.html"):
            link = page.locator(f".md-select__link[hreflang={other}]")
            expected = origin + ("en/" if other == "en" else "") + path
            found["language"] = [link.evaluate("link => link.href")]
            found["language"].remove(expected)
        assert page.locator("html").get_attribute("lang") == language
    found["trouble"] = trouble
    assert {name: value for name, value in found.items() if value} == {}


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_source_pages_are_quiet_and_fit_a_phone(
    browser: Any, origin: str, axe: str, prefix: str
) -> None:
    paths = pages(source=True)
    assert len(paths) > 10
    with opened(browser, "about:blank", viewport={"width": 390, "height": 844}) as page:
        trouble = watch(page, origin)
        for path in paths:
            page.goto(origin + prefix + path)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, path
            assert page.locator(".kb-code .kb-line").count() > 5, path
            # The lines of one source are looked at above; here they would take most of the time.
            assert violations(page, axe, "{exclude: ['.kb-code code']}") == [], path
            other, there = ("en", "en/") if not prefix else ("zh", "")
            link = page.locator(f".md-select__link[hreflang={other}]")
            assert link.evaluate("link => link.href") == origin + there + path
    assert trouble == []


def test_contrast_is_computed_as_wcag_defines_it() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21.0)
    grey = 119 / 255  # #777777 on white is the well-known near miss of 4.48
    assert contrast((grey, grey, grey), (1, 1, 1)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("colour", [ASKED, CONFLICT])
def test_white_labels_can_be_read_on_the_cells_of_a_picture(colour: str) -> None:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    assert contrast((red, green, blue), (1, 1, 1)) >= 4.5


# ---- what particular pages have --------------------------------------------------------------


@pytest.fixture(params=["", "en/"])
def prefix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def shows(page: Any, *selectors: str) -> None:
    for selector in selectors:
        found = page.locator(selector)
        assert found.count() > 0, selector
        assert found.first.bounding_box() is not None, selector


def test_diagrams_formulas_and_excerpts_are_there(browser: Any, origin: str, prefix: str) -> None:
    with opened(browser, origin + prefix + ARTICLE) as page:
        kinds = page.evaluate(
            "() => [...document.querySelectorAll('.kb-diagram')].map(e => e.className)"
        )
        assert any("sequence" in kind for kind in kinds)
        assert any("flowchart" in kind for kind in kinds)
        shows(page, ".kb-diagram svg text", ".kb-math .katex-html", ".kb-excerpt .kb-line",
              ".kb-device", ".kb-figure svg", ".kb-table--kernels tbody tr")  # fmt: skip
        assert page.locator("script[src*=mermaid], script[src*=mathjax]").count() == 0


def test_the_page_of_the_series_shows_graph_paths_and_articles(
    browser: Any, origin: str, prefix: str
) -> None:
    with opened(browser, origin + prefix + SERIES) as page:
        shows(page, ".kb-diagram--flowchart svg .node", ".kb-paths a", ".kb-tags dt", ".kb-tag")
        assert page.locator(".kb-paths section").count() == 4
        page.goto(page.locator("a.kb-tag").first.evaluate("link => link.href"))
        assert page.evaluate("document.querySelector(':target')?.tagName") == "DT"


def test_the_notebook_shows_pictures_and_its_contents_lead_to_them(
    browser: Any, origin: str, prefix: str
) -> None:
    with opened(browser, origin + prefix + NOTEBOOK) as page:
        shows(page, ".jp-Notebook figure svg rect", ".jp-Notebook pre", "a[download]")
        targets = page.evaluate(
            "[...document.querySelectorAll('.md-sidebar--secondary a[href^=\"#\"]')]"
            ".map(link => document.getElementById(link.hash.slice(1))?.tagName)"
        )
        assert targets.count("H2") == len(targets) >= 6


def test_an_article_weighs_little(browser: Any, origin: str, prefix: str) -> None:
    bodies: dict[str, bytes] = {}

    def keep(response: Any) -> None:
        if "/search/" not in response.url and response.status == 200:
            bodies[response.url] = response.body()

    with opened(browser, "about:blank") as page:
        page.on("response", keep)
        page.goto(origin + prefix + ARTICLE)
        page.wait_for_load_state("networkidle")
    # Fonts and pictures come compressed; everything else is served as gzip.
    sizes = {
        url: len(body) if url.endswith((".woff2", ".png")) else len(gzip.compress(body))
        for url, body in bodies.items()
    }
    assert sum(sizes.values()) <= ARTICLE_LIMIT_BYTES, sizes


def test_nothing_moves_while_an_article_loads(browser: Any, origin: str) -> None:
    with opened(browser, "about:blank") as page:
        page.add_init_script(
            "window.shifts = 0; new PerformanceObserver(list => { for (const entry of "
            "list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value; })"
            ".observe({type: 'layout-shift', buffered: true})"
        )
        page.goto(origin + ARTICLE)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.shifts") < 0.02


@pytest.mark.parametrize("path", [ARTICLE, "results/01_basics/", "devices/nvidia-h200/", NOTEBOOK])
def test_on_paper_everything_is_there_dark_on_white(browser: Any, origin: str, path: str) -> None:
    options = {"viewport": {"width": 720, "height": 1000}, "color_scheme": "dark"}
    with opened(browser, origin + path, **options) as page:
        page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
        page.add_style_tag(content="* { transition: none !important }")  # colours that stand still
        page.emulate_media(media="print", color_scheme="dark")
        assert page.locator(".kb-tip:visible, .md-header:visible, .kb-switch:visible").count() == 0
        cut = page.evaluate(
            "[...document.querySelectorAll('.md-content :is(table, svg, pre, img)')]"
            ".filter(e => e.getBoundingClientRect().right > 721).map(e => e.outerHTML.slice(0, 80))"
        )
        assert cut == []
        ground = rgba(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert ground[:3] == (1.0, 1.0, 1.0)
        assert weak_texts(page) == []


def test_a_wide_table_keeps_its_grades_in_sight(browser: Any, origin: str) -> None:
    with opened(browser, origin + ARTICLE, viewport={"width": 1000, "height": 900}) as page:
        hidden = page.evaluate(
            "[...document.querySelectorAll('.kb-table .kb-scroll')]"
            ".filter(box => box.querySelector('.kb-grades')).filter(box => "
            "box.querySelector('td.kb-grades').getBoundingClientRect().right > "
            "box.getBoundingClientRect().right + 1).length"
        )
        assert hidden == 0
