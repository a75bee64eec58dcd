"""A figure as an SVG that fits into a page, light or dark, and stands alone as well.

Text stays text. Text and axes take the page's colour; where there is no page (GitHub shows the
file as an image) they follow the reader's colour scheme. The bytes depend on the drawing alone.
"""

from __future__ import annotations

import io
import logging
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

WIDTH = 720.0  # of every chart, in px
SIZE = 12.5  # of text, in px
SMALL = 11.0
# Matplotlib draws "foreground" in this colour, which is replaced by currentColor.
FOREGROUND = "#010203"
# Each has a contrast of at least 3 with white and with Material's slate (#1e2129); neighbours
# differ in lightness or hue also to readers who see few colours.
COLOURS = ("#2a7fff", "#d9660a", "#159a6c", "#b65fcf", "#c2565c", "#7d8590")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (6, 2, 1.5, 2)))
STYLE = """
.kb-chart{color:var(--md-default-fg-color,#1f2328);max-width:100%;height:auto}
@media (prefers-color-scheme:dark){.kb-chart{color:var(--md-default-fg-color,#e6edf3)}}
.kb-chart *{stroke-linejoin:round;stroke-linecap:butt}
.kb-chart text{font-family:var(--md-text-font-family,system-ui),-apple-system,"Segoe UI",\
"Noto Sans CJK SC","Noto Sans SC","PingFang SC","Microsoft YaHei",sans-serif}
"""


def text_width(text: str, size: float = SIZE) -> float:
    """How wide a reader's browser will draw a line, in px, to the safe side.

    Matplotlib measures with its own font, which has no Chinese: an East Asian wide character is
    one em wide.
    """
    em = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            em += 1.0
        elif char in "il.,:;'|!()[] ":
            em += 0.38
        elif char in "mwMW%÷×@":
            em += 0.92
        else:
            em += 0.72 if char.isupper() else 0.62
    return em * size


@dataclass(frozen=True)
class Key:
    """An entry of a legend. ``shape``: a filled or hatched box, or a line with a marker."""

    text: str
    shape: str  # "box", "hatched", "line", "marker" or "rule"
    colour: str = FOREGROUND
    marker: str = ""
    dash: Any = "-"


class Canvas:
    """A figure measured in px from the top left, with a title and a legend above the axes."""

    def __init__(self, height: float, title: str) -> None:
        self.height = height
        self.figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, facecolor="none")
        self.text(0, 20, title, size=SIZE + 2, weight="bold")

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """A line of text with its base line at (x, y)."""
        style.setdefault("size", SIZE)
        place = (x / WIDTH, 1 - y / self.height)
        self.figure.text(*place, " ".join(text.split()), color=FOREGROUND, va="baseline", **style)

    def axes(self, left: float, top: float, right: float, bottom: float) -> Any:
        """Axes whose frame lies at these px."""
        width, height = WIDTH - left - right, self.height - top - bottom
        axes = self.figure.add_axes(
            (left / WIDTH, bottom / self.height, width / WIDTH, height / self.height),
            facecolor="none",
        )
        for name, spine in axes.spines.items():
            spine.set_visible(name in ("left", "bottom"))
            spine.set_color(FOREGROUND)
            spine.set_linewidth(0.8)
        axes.tick_params(colors=FOREGROUND, labelsize=SMALL, width=0.8)
        axes.tick_params(which="minor", colors=FOREGROUND, width=0.6)
        return axes

    def legend(self, keys: Sequence[Key], top: float) -> None:
        """Entries from left to right, in as many rows as ``legend_rows`` says."""
        for row, entries in enumerate(_flow(keys)):
            y = top + row * LEGEND_ROW
            for x, key in entries:
                self._swatch(x, y - 4.5, key)
                self.text(x + SWATCH + 6, y, key.text, size=SMALL + 0.5)

    def _swatch(self, x: float, y: float, key: Key) -> None:
        def place(px: float, py: float) -> tuple[float, float]:
            return px / WIDTH, 1 - py / self.height

        if key.shape in ("box", "hatched"):
            corner = place(x, y + 5)
            size = SWATCH / WIDTH, 10 / self.height
            self.figure.patches.append(
                Rectangle(
                    corner, *size, transform=self.figure.transFigure, figure=self.figure,
                    **fill_of(key.colour, hatched=key.shape == "hatched"),
                )
            )  # fmt: skip
            return
        (x0, y0), (x1, _) = place(x, y), place(x + SWATCH, y)
        if key.shape == "rule":
            (x0, y0), (x1, y1) = place(x + SWATCH / 2, y - 6), place(x + SWATCH / 2, y + 6)
            self.figure.add_artist(
                Line2D([x0, x1], [y0, y1], color=key.colour, lw=2.2, ls=(0, (2, 1)))
            )
            return
        xs = [(x0 + x1) / 2] if key.shape == "marker" else [x0, (x0 + x1) / 2, x1]
        self.figure.add_artist(
            Line2D(
                xs, [y0] * len(xs), color=key.colour, lw=1.8, ls=key.dash, marker=key.marker,
                markersize=6, markevery=[len(xs) // 2] if key.marker else None,
            )
        )  # fmt: skip

    def svg(self, name: str, title: str) -> str:
        """The finished SVG; ids begin with the chart's name, so that many fit into one page."""
        with matplotlib.rc_context({"svg.hashsalt": name}):
            out = io.StringIO()
            FigureCanvasSVG(self.figure).print_svg(  # type: ignore[no-untyped-call]
                out, metadata={"Date": None, "Creator": None, "Type": None, "Format": None}
            )
        return _clean(out.getvalue(), name, title, self.height)


LEGEND_ROW = 19.0
SWATCH = 22.0
_RC: Any = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # comes with matplotlib: a layout does not depend on the machine
    "hatch.linewidth": 1.6,
    "axes.unicode_minus": False,
    "text.parse_math": False,  # a dollar in a device's name is a dollar
}


def legend_rows(keys: Sequence[Key]) -> int:
    return len(_flow(keys))


def fill_of(colour: str, *, hatched: bool) -> dict[str, Any]:
    """How a bar is filled: what someone else reported is hatched."""
    if hatched:
        return {"facecolor": "none", "edgecolor": colour, "hatch": "////", "linewidth": 1.2}
    return {"facecolor": colour, "edgecolor": "none"}


@contextmanager
def styled() -> Iterator[None]:
    """Everything is drawn inside this, for an artist takes its settings when it is made."""
    with _quiet(), matplotlib.rc_context(_RC):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    # Matplotlib says of each Chinese character that its font lacks it; the reader's has it.
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Gg]lyph.*missing.*")
            yield
    finally:
        logger.setLevel(level)


def _flow(keys: Sequence[Key]) -> list[list[tuple[float, Key]]]:
    rows: list[list[tuple[float, Key]]] = [[]]
    x = 0.0
    for key in keys:
        width = SWATCH + 6 + text_width(key.text, SMALL + 0.5)
        if rows[-1] and x + width > WIDTH:
            rows.append([])
            x = 0.0
        rows[-1].append((x, key))
        x += width + 18
    return [row for row in rows if row]


_FONT = re.compile(r'font: (?:(bold|\d{3}) )?([\d.]+)px [^;"]*')
_FONT_SIZE = re.compile(r'font-family: [^;"]*;?\s*')


def _clean(svg: str, name: str, title: str, height: float) -> str:
    body = svg[svg.index("<svg") :]
    body = body[body.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.S)
    # Matplotlib's style sheet speaks of every element of the page it is put into.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", body, count=1, flags=re.S)
    body = body.replace(FOREGROUND, "currentColor")
    body = _FONT.sub(_font, body)
    body = _FONT_SIZE.sub("", body)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", body))
    body = re.sub(r' id="([^"]+)"', lambda m: m.group() if m.group(1) in used else "", body)
    body = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r'<path d="[^"]*" style="fill: none"/>', "", body)
    body = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", body)
    body = re.sub(r'(?<= d=")[^"]*', lambda m: " ".join(m.group().split()), body)
    body = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m.group()):.2f}", body)
    while (shorter := re.sub(r"<g>\s*</g>", "", body)) != body:
        body = shorter
    body = "\n".join(line.strip() for line in body.splitlines() if line.strip())
    head = (
        f'<svg class="kb-chart" role="img" aria-labelledby="{name}-title" width="{WIDTH:g}" '
        f'height="{height:g}" viewBox="0 0 {WIDTH:g} {height:g}" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    described = f'<title id="{name}-title">{escape(title)}</title>'
    return f"{head}\n{described}\n<style>{STYLE}</style>\n{body}\n"


def _font(match: re.Match[str]) -> str:
    weight, size = match.groups()
    return f"font-size: {size}px" + (f"; font-weight: {weight}" if weight else "")
