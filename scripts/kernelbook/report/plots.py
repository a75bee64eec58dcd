"""The kinds of chart: bars and rooflines here, sweeps in `curves`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, NullLocator

from ..experiment import Chart, Text
from ..metrics import metric
from .book import Book
from .canvas import (
    DASHES,
    FOREGROUND,
    LEGEND_ROW,
    MARKERS,
    SIZE,
    SMALL,
    WIDTH,
    Canvas,
    Key,
    fill_of,
    legend_rows,
    styled,
    text_width,
)
from .chart_parts import (
    ROOF,
    TITLE,
    cards_of,
    colours_of,
    grid,
    label_of,
    plane,
    roof_of,
    stale_words,
    title_of,
    value_axis,
    variants_of,
)
from .curves import curves
from .marks import Mark, unit_of_chart
from .show import convert

BAR = 16.0
GAP = 12.0
HEAD = 24.0
SPREAD = Text("须线：q1–q3", "whiskers: q1–q3")


def draw(book: Book, chart: Chart, marks: Sequence[Mark], language: str) -> str:
    """The SVG of a chart that has at least one mark."""
    with styled():
        if chart.kind == "bars":
            return bars(book, chart, marks, language)
        if chart.kind == "roofline":
            return roofline(book, chart, marks, language)
        return curves(book, chart, marks, language)


def bars(book: Book, chart: Chart, marks: Sequence[Mark], language: str) -> str:
    """A bar for each variant and device, variants in the author's order."""
    shown = cards_of(marks)
    colours = colours_of(book)
    keys = [Key(c.words.of(language), "hatched" if c.cited else "box", colours[c]) for c in shown]
    roofs = {c: limit for c in shown if (limit := roof_of(chart, c)) is not None}
    if roofs:
        keys.append(Key(ROOF.of(language), "rule"))
    groups = _groups(book, chart, marks, language)
    labels = [label for _, label, _ in groups if label]
    left = max([60.0, *(text_width(label) for label in labels)]) + 14
    rows = sum(len(found) * BAR + GAP if found else HEAD for _, _, found in groups)
    top = TITLE + legend_rows(keys) * LEGEND_ROW + 8
    canvas = Canvas(top + rows + 46, chart.title.of(language))
    canvas.legend(keys, TITLE + 14)
    axes = canvas.axes(left, top, 8, 46)
    axes.spines["left"].set_visible(False)
    every = [m.high or m.value for m in marks] + list(roofs.values())
    room = max(text_width(label_of(m, language), SMALL) for m in marks) + 12
    span = WIDTH - left - 8
    axes.set_xlim(0, max(every) / (1 - room / span))
    axes.set_ylim(rows, 0)
    y = 0.0
    for heading, label, found in groups:
        if not found:
            canvas.text(0, top + y + 15, heading, size=SIZE, weight="bold")
            y += HEAD
            continue
        middle = y + len(found) * BAR / 2
        canvas.text(left - 10, top + middle + 4.5, label, ha="right")
        axes.plot([0, 0], [y, y + len(found) * BAR], color=FOREGROUND, lw=1.2, clip_on=False)
        for mark in found:
            _bar(axes, mark, y + BAR / 2, colours[mark.card], roofs.get(mark.card), language, span)
            y += BAR
        y += GAP
    axes.yaxis.set_major_locator(NullLocator())
    value_axis(axes.xaxis, span)
    grid(axes, "x")
    _axis_title(canvas, left, chart, marks, language)
    return canvas.svg(f"chart-{chart.name}", chart.title.of(language))


def _bar(
    axes: Any, mark: Mark, y: float, colour: str, roof: float | None, language: str, span: float
) -> None:
    axes.barh(y, mark.value, height=BAR - 3, zorder=2, **fill_of(colour, hatched=mark.card.cited))
    end = mark.value
    if mark.low is not None and mark.high is not None:
        axes.plot([mark.low, mark.high], [y, y], color=FOREGROUND, lw=1.4, zorder=4)
        for edge in (mark.low, mark.high):
            axes.plot([edge, edge], [y - 3, y + 3], color=FOREGROUND, lw=1.4, zorder=4)
        end = max(end, mark.high)
    if roof is not None:
        half = BAR / 2
        room = (text_width(label_of(mark, language), SMALL) + 12) / span * axes.get_xlim()[1]
        if end <= roof < end + room:
            end = roof  # the number stands behind the limit, not across it
        axes.plot(
            [roof, roof], [y - half, y + half], color=FOREGROUND, lw=2.2, ls=(0, (2, 1)), zorder=3
        )
    axes.annotate(
        label_of(mark, language), (end, y), xytext=(6, 0), textcoords="offset points",
        va="center", ha="left", size=SMALL, color=FOREGROUND, zorder=5,
    )  # fmt: skip


def roofline(book: Book, chart: Chart, marks: Sequence[Mark], language: str) -> str:
    """Throughput over FLOP per byte of compulsory traffic, under each card's two roofs."""
    shown, variants = cards_of(marks), variants_of(chart, marks)
    colours = colours_of(book)
    shape = {v: MARKERS[i % len(MARKERS)] for i, v in enumerate(variants)}
    keys = [
        Key(c.words.of(language), "line", colours[c], dash=DASHES[1] if c.cited else "-")
        for c in shown
    ]
    keys += [Key(title_of(book, chart, v, language), "marker", marker=shape[v]) for v in variants]
    canvas, axes, left = plane(chart, keys, language)
    unit = unit_of_chart(chart)
    xs = [m.x for m in marks] + [c.sheet.ridge for c in shown if c.sheet]
    low, high = min(xs) / 3, max(xs) * 3
    tops = [m.value for m in marks]
    for card in shown:
        if card.sheet is None:
            continue
        peak = convert(card.sheet.fp32_flops, "FLOP/s", unit)
        slope = convert(card.sheet.bandwidth, "FLOP/s", unit)  # times FLOP/byte
        tops.append(peak)
        axes.plot(
            [low, card.sheet.ridge, high], [low * slope, peak, peak], color=colours[card],
            lw=1.8, ls=DASHES[1] if card.cited else "-", zorder=2,
        )  # fmt: skip
    for mark in marks:
        axes.plot(
            [mark.x], [mark.value], ls="none", marker=shape[mark.variant], markersize=8,
            color=colours[mark.card], markeredgewidth=1.6, zorder=4,
            markerfacecolor="none" if mark.card.cited else colours[mark.card],
        )  # fmt: skip
        if mark.stale:
            axes.annotate(
                stale_words(language), (mark.x, mark.value), xytext=(8, 0),
                textcoords="offset points", va="center", size=SMALL, color=FOREGROUND,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(min(m.value for m in marks) / 3, max(tops) * 2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    grid(axes, "both")
    x_title = {
        "zh": "算术强度（FLOP/B，按必要流量）",
        "en": "arithmetic intensity (FLOP/B of compulsory traffic)",
    }[language]
    canvas.text(left + (WIDTH - left) / 2, canvas.height - 8, x_title, ha="center", size=SMALL + 1)
    return canvas.svg(f"chart-{chart.name}", chart.title.of(language))


def _groups(
    book: Book, chart: Chart, marks: Sequence[Mark], language: str
) -> list[tuple[str, str, list[Mark]]]:
    """(heading, "", []) before an experiment where there are several; ("", label, bars)."""
    groups: list[tuple[str, str, list[Mark]]] = []
    experiments = [e for e in chart.experiments if any(m.experiment == e for m in marks)]
    for name in experiments:
        if len(experiments) > 1:
            groups.append((book.catalog.experiment(name).title.of(language), "", []))
        for variant in chart.variants:
            found = [m for m in marks if (m.experiment, m.variant) == (name, variant)]
            if found:
                label = book.variant_title(name, variant).of(language)
                groups.append(("", label, found))
    return groups


def _axis_title(
    canvas: Canvas, left: float, chart: Chart, marks: Sequence[Mark], language: str
) -> None:
    unit = unit_of_chart(chart)
    words = metric(chart.metric).title.of(language) + (f" ({unit})" if unit else "")
    if any(m.low is not None for m in marks):
        words += f"；{SPREAD.zh}" if language == "zh" else f"; {SPREAD.en}"
    canvas.text(left + (WIDTH - left) / 2, canvas.height - 8, words, ha="center", size=SMALL + 1)
