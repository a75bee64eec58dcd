"""What the kinds of chart have in common: the plane, names, colours, limits and axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..devices import SHEET
from ..errors import ExperimentError
from ..experiment import Chart, Text
from ..metrics import metric
from .book import Book
from .canvas import (
    COLOURS,
    FOREGROUND,
    LEGEND_ROW,
    SMALL,
    Canvas,
    Key,
    legend_rows,
)
from .marks import Card, Mark, cards, unit_of_chart
from .model import STALE
from .show import convert

TITLE = 30.0  # px from the top to the base line of the legend's first row, less one row
ROOF = Text("理论上限", "theoretical limit")


def plane(chart: Chart, keys: Sequence[Key], language: str) -> tuple[Canvas, Any, float]:
    """A canvas with axes for sweeps and rooflines, and px from the left to the axes."""
    top = TITLE + legend_rows(keys) * LEGEND_ROW + 30
    canvas = Canvas(top + 290 + 50, chart.title.of(language))
    canvas.legend(keys, TITLE + 14)
    left = 56.0
    axes = canvas.axes(left, top, 12, 50)
    name = "throughput" if chart.kind == "roofline" else chart.metric
    unit = unit_of_chart(chart)
    words = metric(name).title.of(language)
    if chart.over:
        words += f" ÷ {chart.over}"
    words += f" ({unit})" if unit else ""
    if chart.kind == "roofline":
        words += {"zh": "；折线：理论上限", "en": "; lines: theoretical limits"}[language]
    canvas.text(0, top - 12, words, size=SMALL + 1)
    return canvas, axes, left


def cards_of(marks: Sequence[Mark]) -> list[Card]:
    """Devices in order: published, the reader's, cited."""
    return sorted(dict.fromkeys(m.card for m in marks), key=lambda c: c.cited)


def colours_of(book: Book) -> dict[Card, str]:
    return {card: COLOURS[i % len(COLOURS)] for i, card in enumerate(cards(book))}


def variants_of(chart: Chart, marks: Sequence[Mark]) -> list[str]:
    seen = {m.variant for m in marks}
    return [v for v in chart.variants if v in seen]


def title_of(book: Book, chart: Chart, variant: str, language: str) -> str:
    for name in chart.experiments:
        if any(v.name == variant for v in book.catalog.experiment(name).variants):
            return book.variant_title(name, variant).of(language)
    return variant


def roof_of(chart: Chart, card: Card) -> float | None:
    """The card's figure that bounds the metric, in the chart's unit."""
    if not chart.roof or card.sheet is None:
        return None
    if chart.roof not in SHEET:
        raise ExperimentError(f"chart {chart.name!r}: no figure {chart.roof!r} in a spec sheet")
    base, attribute = SHEET[chart.roof]
    value = convert(float(getattr(card.sheet, attribute)), base, unit_of_chart(chart))
    return value if math.isfinite(value) and value > 0 else None


def label_of(mark: Mark, language: str) -> str:
    return mark.text + (f" {stale_words(language)}" if mark.stale else "")


def stale_words(language: str) -> str:
    return f"⚠ {STALE.of(language)}"


def value_axis(axis: Any, span: float) -> None:
    axis.set_major_locator(MaxNLocator(nbins=max(3, int(span / 80)), steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))


def grid(axes: Any, which: str) -> None:
    axes.grid(axis=which, color=FOREGROUND, alpha=0.15, lw=0.8, zorder=0)
    axes.set_axisbelow(True)
