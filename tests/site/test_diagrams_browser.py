"""Diagrams as a browser draws them: text that can be read, and stays in its box."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import contrast, over, rgba
from diagrams import ALL, convert, fenced

from kernelbook.site import katex, mermaid

pytestmark = pytest.mark.browser

# Material's two schemes, the variables diagram.css reads (values of Material 9.8).
SCHEMES = """
:root, [data-md-color-scheme="default"] {
  --md-default-fg-color: rgba(0, 0, 0, 0.87); --md-default-bg-color: #fff; }
@media screen { [data-md-color-scheme="slate"] {
  --md-default-fg-color: hsla(232, 15%, 90%, 0.82); --md-default-bg-color: hsl(232, 15%, 14%); } }
body { background: var(--md-default-bg-color); color: var(--md-default-fg-color); margin: 16px; }
"""

# For every text: its colour laid over what is drawn beneath its middle, bottom first.
TEXTS = """
() => [...document.querySelectorAll(".kb-diagram text")].map(text => {
  const box = text.getBoundingClientRect();
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const beneath = [];
  for (const shape of text.ownerSVGElement.querySelectorAll("rect, circle, polygon, path")) {
    if (shape.closest("marker, defs")) continue;
    const style = getComputedStyle(shape);
    if (style.fill === "none" || !shape.isPointInFill) continue;
    const point = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
    const before = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (before && shape.isPointInFill(point)) beneath.push(style.fill);
  }
  const row = text.querySelector("tspan.text-inner-tspan") || text.querySelector("tspan") || text;
  return {text: text.textContent, colour: getComputedStyle(row).fill, beneath,
          page: getComputedStyle(document.body).backgroundColor};
})
"""

# Every label with the box it belongs in, both in page pixels.
BOXES = """
() => {
  const found = [];
  const add = (label, box) => {
    const a = label.getBoundingClientRect(), b = box.getBoundingClientRect();
    found.push({text: label.textContent, left: a.left - b.left, right: b.right - a.right,
                top: a.top - b.top, bottom: b.bottom - a.bottom});
  };
  for (const node of document.querySelectorAll(".node")) {
    const box = node.querySelector(":scope > :is(rect.label-container, polygon, path, g)");
    for (const text of node.querySelectorAll(".label text")) if (box) add(text, box);
  }
  for (const cluster of document.querySelectorAll(".cluster"))
    add(cluster.querySelector("text"), cluster.querySelector(":scope > rect"));
  for (const note of document.querySelectorAll("rect.note, rect.actor"))
    for (const text of note.parentElement.querySelectorAll("text")) add(text, note);
  for (const text of document.querySelectorAll(".kb-diagram text"))
    if (text.textContent.trim()) add(text, text.ownerSVGElement);
  return found;
}
"""


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page with every sample diagram and a few formulas, in a real browser."""
    folder = tmp_path_factory.mktemp("page")
    article = "\n".join(fenced(source) for source in ALL.values())
    article += "\n$$\\sum_{t=0}^{\\lceil N/T \\rceil - 1} \\text{总访存量} " + "+ x" * 80 + "$$\n"
    body = convert(article, folder / "cache")
    for uri, content in {**mermaid.static_files(), **katex.static_files()}.items():
        (folder / uri).parent.mkdir(parents=True, exist_ok=True)
        (folder / uri).write_bytes(content)
    (folder / "index.html").write_text(
        f'<!doctype html><html lang="zh"><meta charset="utf-8"><style>{SCHEMES}</style>'
        f'<link rel="stylesheet" href="{mermaid.STYLESHEET_URI}">'
        f'<link rel="stylesheet" href="{katex.STYLESHEET_URI}">'
        f'<body data-md-color-scheme="default">{body}</body></html>',
        encoding="utf-8",
    )
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.goto((folder / "index.html").as_uri())
    page.evaluate("() => document.fonts.ready")
    yield page
    page.close()


def show(page: Any, scheme: str, width: int = 900) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(f"document.body.dataset.mdColorScheme = {json.dumps(scheme)}")


@pytest.mark.parametrize(
    ("scheme", "medium"), [("default", "screen"), ("slate", "screen"), ("slate", "print")]
)
def test_text_can_be_read_on_what_is_beneath_it(page: Any, scheme: str, medium: str) -> None:
    show(page, scheme)
    page.emulate_media(media=medium)
    texts = [t for t in page.evaluate(TEXTS) if t["text"].strip()]
    page.emulate_media(media="screen")
    assert len(texts) > 40
    assert sum(len(t["beneath"]) for t in texts) > 10
    for text in texts:
        ground = rgba(text["page"])[:3]
        for fill in text["beneath"]:
            ground = over(rgba(fill), ground)
        ratio = contrast(over(rgba(text["colour"]), ground), ground)
        assert ratio >= 4.5, (text["text"], scheme, round(ratio, 2))


@pytest.mark.parametrize("width", [900, 390])
def test_no_label_leaves_its_box(page: Any, width: int) -> None:
    show(page, "default", width)
    labels = page.evaluate(BOXES)
    assert len(labels) > 50
    for label in labels:
        outside = {s: round(label[s], 1) for s in ("left", "right", "top", "bottom")}
        assert min(outside.values()) >= -1.0, (label["text"], outside)


def test_a_phone_scrolls_the_wide_parts_and_not_the_page(page: Any) -> None:
    show(page, "default", 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = page.evaluate(
        "[...document.querySelectorAll('.kb-math--display, .kb-diagram__scroll')]"
        ".map(e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX)"
    )
    assert wide.count("auto") >= 2  # the long sum, and the widest diagram at least


def test_text_in_a_diagram_stays_legible_on_a_phone(page: Any) -> None:
    show(page, "default", 390)
    sizes = page.evaluate(
        "[...document.querySelectorAll('.kb-diagram text')].filter(t => t.textContent.trim())"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
        ".filter(size => size > 0)"
    )
    assert min(sizes) >= 8


def test_formulas_are_drawn_with_katexs_own_fonts(page: Any) -> None:
    assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
    loaded = page.evaluate("[...document.fonts].filter(f => f.status == 'loaded').length")
    assert loaded >= 2
