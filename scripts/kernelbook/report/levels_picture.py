"""The roofline of every level as an SVG of its own: shared memory, L2 and DRAM in one picture.

Text and axes take the colour of the page, so that it is legible in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import floor, log10

from ..devices import Device
from ..experiment import Text
from .levels import Ladder

WIDTH, HEIGHT = 720.0, 430.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 40.0, 46.0
SMALL = 11.5
# Each has a contrast of at least 3 with a light and a dark page, as the charts' colours have.
SHARED, L2, DRAM = "#2a7fff", "#b65fcf", "#d9660a"
NAMES = {
    SHARED: Text("共享内存", "shared memory"),
    L2: Text("L2（没有可用的规格带宽）", "L2 (no specified bandwidth)"),
    DRAM: Text("显存", "DRAM"),
}
X_TITLE = Text(
    "算术强度：每搬 1 字节的 FLOP，按该层实际搬运", "FLOP per byte that the level really moves"
)
Y_TITLE = Text("计算吞吐（TFLOPS）", "throughput (TFLOPS)")
PEAK = Text("FP32 峰值", "FP32 peak")


class _Plane:
    """Logarithmic axes: FLOP/B across, TFLOPS upwards."""

    def __init__(self, ladder: Ladder) -> None:
        xs = [x for s in ladder.steps for x in (s.per_shared_byte, s.per_l2_byte, s.per_dram_byte)]
        rates = [s.rate / 1e12 for s in ladder.steps]
        peak = ladder.sheet.fp32_flops / 1e12
        self.x_from, self.x_to = log10(min(xs) / 2), log10(max(xs) * 2)
        self.y_from, self.y_to = log10(min(rates) / 1.8), log10(max(*rates, peak) * 1.25)

    def x(self, value: float) -> float:
        share = (log10(value) - self.x_from) / (self.x_to - self.x_from)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (log10(value) - self.y_from) / (self.y_to - self.y_from)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def levels_svg(ladder: Ladder, language: str, label: str) -> str:
    """The picture of one record's steps, numbered in their order; ``label`` names it."""
    plane = _Plane(ladder)
    parts = [*_axes(plane, language), *_roofs(plane, ladder.sheet, language)]
    parts += [*_points(plane, ladder), *_legend(language)]
    return (
        f'<svg class="kb-chart" role="img" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" height="{HEIGHT:g}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _axes(plane: _Plane, language: str) -> Iterator[str]:
    floor_y, end_x = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in _ticks(plane.x_from, plane.x_to):
        x = plane.x(value)
        yield _line(x, TOP, x, floor_y, "currentColor", 0.8, opacity=0.15)
        yield _text(x, floor_y + 16, f"{value:g}", "middle")
    for value in _ticks(plane.y_from, plane.y_to):
        y = plane.y(value)
        yield _line(LEFT, y, end_x, y, "currentColor", 0.8, opacity=0.15)
        yield _text(LEFT - 7, y + 4, f"{value:g}", "end")
    yield _line(LEFT, TOP, LEFT, floor_y, "currentColor", 0.8)
    yield _line(LEFT, floor_y, end_x, floor_y, "currentColor", 0.8)
    yield _text((LEFT + end_x) / 2, HEIGHT - 8, X_TITLE.of(language), "middle")
    yield _text(2, TOP - 9, Y_TITLE.of(language), "start")


def _ticks(low: float, high: float) -> list[float]:
    return [
        step * 10.0**power
        for power in range(floor(low), floor(high) + 1)
        for step in (1, 2, 5)
        if low <= log10(step) + power <= high
    ]


def _roofs(plane: _Plane, sheet: Device, language: str) -> Iterator[str]:
    peak = sheet.fp32_flops / 1e12
    right = 10.0**plane.x_to
    words = f"{PEAK.of(language)}: {peak:.1f}" if language == "en" else f"{PEAK.zh}：{peak:.1f}"
    for colour, bandwidth in ((SHARED, sheet.shared_bandwidth), (DRAM, sheet.bandwidth)):
        slope = bandwidth / 1e12
        left = max(10.0**plane.x_from, 10.0**plane.y_from / slope)
        ridge = peak / slope
        if left < ridge:
            x, y = plane.x(left), plane.y(left * slope)
            yield _line(x, y, plane.x(ridge), plane.y(peak), colour, 1.8)
    yield _line(plane.x(10.0**plane.x_from), plane.y(peak), plane.x(right), plane.y(peak),
                "currentColor", 1.4, dash="6 3")  # fmt: skip
    yield _text(WIDTH - RIGHT, plane.y(peak) - 6, words, "end")


def _points(plane: _Plane, ladder: Ladder) -> Iterator[str]:
    placed = []
    for number, step in enumerate(ladder.steps, 1):
        y = plane.y(step.rate / 1e12)
        levels = (
            (step.per_shared_byte, SHARED), (step.per_l2_byte, L2), (step.per_dram_byte, DRAM),
        )  # fmt: skip
        xs = [plane.x(intensity) for intensity, _ in levels]
        yield _line(min(xs), y, max(xs), y, "currentColor", 0.8, opacity=0.35)
        placed += [(x, y, colour, number) for x, (_, colour) in zip(xs, levels, strict=True)]
    for x, y, colour, _ in placed:
        yield _mark(x, y, colour)
    marks = [(x, y + 4) for x, y, _, _ in placed]  # as base lines of numbers standing on them
    numbers: list[tuple[float, float]] = []
    for x, y, _, number in placed:
        spot = _free(x, y, marks, numbers)
        numbers.append(spot)
        yield _text(*spot, str(number), "middle")


def _mark(x: float, y: float, colour: str) -> str:
    """Circles, squares and triangles, so that colour is not all that tells them apart."""
    if colour == SHARED:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>'
    if colour == L2:
        box = f'x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"'
        return f'<rect {box} fill="{colour}"/>'
    corners = f"{x:.1f},{y - 5:.1f} {x - 5:.1f},{y + 4:.1f} {x + 5:.1f},{y + 4:.1f}"
    return f'<polygon points="{corners}" fill="{colour}"/>'


_AROUND = (
    (0, -8), (11, 4), (-11, 4), (0, 17), (11, -7), (-11, -7), (11, 15), (-11, 15), (22, 4),
    (-22, 4), (0, -19), (0, 28), (24, -7), (-24, -7), (24, 15), (-24, 15),
)  # fmt: skip


def _free(
    x: float, y: float, marks: list[tuple[float, float]], numbers: list[tuple[float, float]]
) -> tuple[float, float]:
    """The nearest spot beside a mark that no other mark or number takes up."""

    def clear(spot: tuple[float, float]) -> bool:
        off_marks = all(abs(spot[0] - a) >= 9 or abs(spot[1] - b) >= 9 for a, b in marks)
        return off_marks and all(
            abs(spot[0] - a) >= 14 or abs(spot[1] - b) >= 11 for a, b in numbers
        )

    spots = [(x + dx, y + dy) for dx, dy in _AROUND]
    return next((spot for spot in spots if clear(spot)), spots[0])


def _legend(language: str) -> Iterator[str]:
    x = LEFT
    for colour, name in NAMES.items():
        words = name.of(language)
        yield _mark(x, 12, colour)
        yield _text(x + 11, 16, words, "start")
        x += 30 + sum(11.5 if ord(c) > 0x2E80 else 6.6 for c in words)


def _line(
    x0: float, y0: float, x1: float, y1: float, colour: str, width: float, *,
    opacity: float = 1.0, dash: str = "",
) -> str:  # fmt: skip
    more = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    more += f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" '
        f'stroke="{colour}" stroke-width="{width:g}"{more}/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" '
        f'font-size="{SMALL:g}">{escape(text)}</text>'
    )
