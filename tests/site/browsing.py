"""A browser, pages opened in it, and what is asked of every page."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

# Every piece of text that is shown: its colour, size, weight, and the colours painted below it
# from the nearest opaque ancestor on. Text in a chart stands on the page; the labels of diagrams,
# which stand in boxes, and white text on a coloured cell have tests of their own.
TEXTS = """
() => {
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim()) continue;
    if (element.closest(".kb-diagram svg, script, style, title, .katex-mathml, noscript")) continue;
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (!box.width || !box.height || style.visibility === "hidden") continue;
    const drawn = element.closest("svg");
    if (drawn && style.fill === "rgb(255, 255, 255)" && element.getAttribute("fill")) continue;
    let opacity = 1;
    const beneath = [];
    for (let at = element; at; at = at.parentElement) {
      const its = getComputedStyle(at);
      opacity *= Number(its.opacity);
      if (its.backgroundColor !== "rgba(0, 0, 0, 0)") beneath.unshift(its.backgroundColor);
    }
    if (opacity < 0.05) continue;
    const colour = drawn ? style.fill : style.color;
    const key = [colour, style.fontSize, style.fontWeight, opacity, beneath.join()].join("|");
    if (!found.has(key)) {
      found.set(key, {text: node.data.trim().slice(0, 40), colour, opacity, beneath,
                      size: parseFloat(style.fontSize), weight: Number(style.fontWeight),
                      where: String(element.className?.baseVal ?? element.className) ||
                             element.tagName});
    }
  }
  return [...found.values()];
}
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def served(site: Path) -> Iterator[str]:
    """A folder on a local server: its address."""
    handler = functools.partial(_Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@contextmanager
def launched() -> Iterator[Any]:
    """Chromium; skips the test where there is none."""
    api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield browser
        browser.close()


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


def watch(page: Any, origin: str) -> list[str]:
    """What the page says, fails at or asks elsewhere from now on; the list grows."""
    trouble: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "response", lambda r: trouble.append(f"{r.status} {r.url}") if r.status >= 400 else None
    )
    page.on(
        "request", lambda r: None if r.url.startswith((origin, "data:")) else trouble.append(r.url)
    )
    return trouble


def weak_texts(page: Any) -> list[tuple[str, str, float]]:
    """(text, where, contrast) of every text too pale to be read."""
    texts = page.evaluate(TEXTS)
    assert len(texts) > 3
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
    return weak


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
    """WCAG 2.1's contrast, written out here so that no test trusts the code it tests."""

    def luminance(rgb: tuple[float, float, float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
