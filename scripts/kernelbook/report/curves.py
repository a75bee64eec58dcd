"""Charts over a size: a line for each variant and device, with rules and regions on the axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ..devices import SHEET
from ..experiment import BYTES, Chart
from .book import Book
from .canvas import COLOURS, DASHES, FOREGROUND, MARKERS, SMALL, WIDTH, Key
from .chart_parts import (
    ROOF,
    cards_of,
    grid,
    plane,
    roof_of,
    stale_words,
    title_of,
    value_axis,
    variants_of,
)
from .marks import Card, Mark, unit_of_chart
from .show import convert

DENSE = 12  # more sizes than this get round ticks, small marks and no whiskers' caps
TICKS = 10
ROOM = 1.12  # above the highest value, in which words stand
BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def curves(book: Book, chart: Chart, marks: Sequence[Mark], language: str) -> str:
    """The SVG of a sweep."""
    lines: dict[tuple[str, Card], list[Mark]] = {}
    for mark in sorted(marks, key=lambda m: m.x):
        lines.setdefault((mark.variant, mark.card), []).append(mark)
    shown, variants = cards_of(marks), variants_of(chart, marks)
    colour = {v: COLOURS[i % len(COLOURS)] for i, v in enumerate(variants)}
    shape = {v: MARKERS[i % len(MARKERS)] for i, v in enumerate(variants)}
    dash = {c: DASHES[i % len(DASHES)] for i, c in enumerate(shown)}
    keys = [Key(title_of(book, chart, v, language), "line", colour[v], shape[v]) for v in variants]
    keys += [Key(c.words.of(language), "line", dash=dash[c]) for c in shown]
    canvas, axes, left = plane(chart, keys, language)
    sizes = sorted({m.x for m in marks})
    for variant in variants:  # in the order of the legend, the first one on top
        for card in shown:
            if found := lines.get((variant, card)):
                style = {
                    "color": colour[variant], "marker": shape[variant], "ls": dash[card],
                    "markerfacecolor": "none" if card.cited else colour[variant],
                    "zorder": 3 + (len(variants) - variants.index(variant)) / 100,
                }  # fmt: skip
                _line(axes, found, style, len(sizes) > DENSE, language)
    _x_axis(axes, chart, sizes)
    roofs = {c: limit for c in shown if (limit := roof_of(chart, c)) is not None}
    _y_axis(axes, book, chart, marks, list(roofs.values()))
    _roofs(axes, chart, roofs, language)
    _rules(axes, book, chart, marks, language)
    _regions(axes, book, chart, language)
    grid(axes, "y")
    x_title = chart.x_title.of(language) or chart.x
    canvas.text(left + (WIDTH - left) / 2, canvas.height - 8, x_title, ha="center", size=SMALL + 1)
    return canvas.svg(f"chart-{chart.name}", chart.title.of(language))


def _line(
    axes: Any, found: Sequence[Mark], style: dict[str, Any], dense: bool, language: str
) -> None:
    whiskers = [
        [m.value - (m.low or m.value) for m in found],
        [(m.high or m.value) - m.value for m in found],
    ]
    axes.errorbar(
        [m.x for m in found], [m.value for m in found], yerr=whiskers, lw=1.8,
        markersize=3.5 if dense else 6, capsize=0 if dense else 3, elinewidth=1.2, **style,
    )  # fmt: skip
    stale = [m for m in found if m.stale]
    for m in stale[-1:] if dense else stale:
        axes.annotate(
            stale_words(language), (m.x, m.value), xytext=(0, 9), textcoords="offset points",
            ha="center", size=SMALL, color=FOREGROUND,
        )  # fmt: skip


# ---- axes --------------------------------------------------------------------------------------


def _x_axis(axes: Any, chart: Chart, sizes: Sequence[float]) -> None:
    ticks = ticks_of(sizes, logarithmic=chart.x_scale == "log")
    if chart.x_scale == "log":
        axes.set_xscale("log", base=2)
        axes.set_xlim(sizes[0] / 1.15, sizes[-1] * 1.15)
    else:
        low = 0.0 if sizes[0] < 0.2 * sizes[-1] else sizes[0] - 0.02 * sizes[-1]
        axes.set_xlim(low, sizes[-1] * 1.03)
    axes.set_xticks(ticks, [_size(x, chart.x == BYTES) for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def ticks_of(sizes: Sequence[float], *, logarithmic: bool) -> list[float]:
    """Where sizes are written at the axis: at all of a few, else at round ones.

    Round are powers of two, on a linear axis multiples of the sizes' common step.
    """
    if len(sizes) <= DENSE:
        return list(sizes)
    if logarithmic:
        first, last = math.ceil(math.log2(sizes[0])), math.floor(math.log2(sizes[-1]))
        step = max(1, math.ceil((last - first) / TICKS))
        return [2.0**i for i in range(first, last + 1) if (i - first) % step == 0]
    unit = float(reduce(math.gcd, (max(1, round(x)) for x in sizes)))
    while sizes[-1] / unit > TICKS:
        unit *= 2
    return [unit * i for i in range(1, int(sizes[-1] / unit) + 1) if unit * i >= sizes[0]]


def _size(value: float, binary: bool) -> str:
    if not binary:
        return f"{value:,.0f}"
    power = min(int(math.log2(max(value, 1)) // 10), len(BINARY) - 1)
    shown = value / 2 ** (10 * power)
    # Three digits: a few bytes beside the data (a sum's result, say) are left out.
    return f"{shown:.0f} {BINARY[power]}" if shown >= 100 else f"{shown:.3g} {BINARY[power]}"


def _y_axis(
    axes: Any, book: Book, chart: Chart, marks: Sequence[Mark], roofs: Sequence[float]
) -> None:
    rules = [_place(book, chart, r.axis, r.at) for r in chart.rules if r.axis == "y"]
    highest = max([*(m.high or m.value for m in marks), *roofs, *rules])
    lowest = min([*(m.low or m.value for m in marks), *rules])
    if chart.y_scale == "log":
        axes.set_yscale("log")
        axes.set_ylim(lowest / 1.5, highest * (4 if chart.regions else 2))
        axes.yaxis.set_major_locator(LogLocator(10))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        return
    if chart.over:  # of ratios the differences are looked at
        room = max(highest - lowest, 0.01) * (ROOM - 1)
        axes.set_ylim(lowest - room, highest + room * (2 if chart.regions else 1))
    else:
        axes.set_ylim(0, highest * (ROOM + 0.08 * bool(chart.regions)))
    value_axis(axes.yaxis, 500)


# ---- limits, rules, regions --------------------------------------------------------------------


def _roofs(axes: Any, chart: Chart, roofs: dict[Card, float], language: str) -> None:
    for card, limit in roofs.items():
        colon = ": " if language == "en" else "："
        words = f"{ROOF.of(language)}{colon}{card.name}, {limit:,.4g} {unit_of_chart(chart)}"
        axes.axhline(limit, color=FOREGROUND, lw=1.2, ls=(0, (2, 2)), zorder=1)
        axes.annotate(
            words, (axes.get_xlim()[0], limit), xytext=(6, 4), textcoords="offset points",
            size=SMALL, color=FOREGROUND,
        )  # fmt: skip


def _rules(axes: Any, book: Book, chart: Chart, marks: Sequence[Mark], language: str) -> None:
    levels = [_place(book, chart, "y", r.at) for r in chart.rules if r.axis == "y"]
    for rule in chart.rules:
        at = _place(book, chart, rule.axis, rule.at)
        line = {"color": FOREGROUND, "lw": 1.2, "ls": (0, (5, 3)), "zorder": 1, "alpha": 0.7}
        words = {"textcoords": "offset points", "size": SMALL, "color": FOREGROUND}
        if rule.axis == "y":
            axes.axhline(at, **line)
            axes.annotate(
                rule.title.of(language), (1, at), xycoords=("axes fraction", "data"), ha="right",
                **_beside(axes, at, [*levels, *(m.value for m in marks)]), **words,
            )  # fmt: skip
        else:
            axes.axvline(at, **line)
            axes.annotate(
                rule.title.of(language), (at, 0), xycoords=("data", "axes fraction"),
                xytext=(5, 6), **words,
            )  # fmt: skip


def _beside(axes: Any, at: float, others: Sequence[float]) -> dict[str, Any]:
    """Where the words of a level go: above its line, or below where something is close above."""
    heights = [axes.transData.transform((0, y))[1] for y in (at, *others)]
    room = (SMALL + 8) * axes.figure.dpi / 72  # of a line of words
    if any(0 < height - heights[0] < room for height in heights[1:]):
        return {"xytext": (-4, -4), "va": "top"}
    return {"xytext": (-4, 4), "va": "baseline"}


def _regions(axes: Any, book: Book, chart: Chart, language: str) -> None:
    """Every other region is shaded; words stand in the middle of what is seen of it."""
    low, high = axes.get_xlim()
    for number, region in enumerate(chart.regions):
        ends = (_place(book, chart, "x", end) for end in (region.low, region.high))
        start, end = (min(max(x, low), high) for x in ends)
        if end <= start:
            continue
        if number % 2 == 0:
            axes.axvspan(start, end, color=FOREGROUND, alpha=0.06, lw=0, zorder=0)
        middle = math.sqrt(start * end) if chart.x_scale == "log" else (start + end) / 2
        axes.annotate(
            region.title.of(language), (middle, 1), xycoords=("data", "axes fraction"),
            xytext=(0, -4), textcoords="offset points", ha="center", va="top",
            size=SMALL, color=FOREGROUND,
        )  # fmt: skip


def _place(book: Book, chart: Chart, axis: str, at: float | str) -> float:
    """A place on an axis in its unit; a name is a figure of the reference device's sheet."""
    if not isinstance(at, str):
        return at
    unit, attribute = SHEET[at]
    sheet = book.sheets.device(book.sheets.reference)
    found = getattr(sheet, attribute, None)
    value = float(getattr(sheet.arch, attribute) if found is None else found)
    return value if axis == "x" else convert(value, unit, unit_of_chart(chart))
