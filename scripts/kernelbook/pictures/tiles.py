"""How a matrix product is shared out: block, warp and thread tile, drawn from a kernel's constants.

Two layouts are known. With WM and WN, a warp has a WM x WN tile of its own, and a thread's TM x TN
elements are strips of four by four, spread over it; neighbouring lanes alternate between the two
directions. Without them a thread's tile is one piece, and threads follow each other along rows of
tiles. A picture of another layout would be wrong, so tests hold both against what threads store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ..errors import PageError
from ..ptx.events import WARP
from .drawing import ASKED, CONFLICT
from .words import words

STRIP = 4  # rows and columns of a strip
CELL = 17.0  # px of a cell with a lane's number
SMALL = 12.0  # px of one element of a thread's tile
BLOCK = 216.0  # px of the longer side of the block's tile
EDGE = 26.0  # px around a panel
LANE = 5  # the lane that is followed
FRAGMENT_B = "#0f7a54"


@dataclass(frozen=True)
class Tiling:
    """Shapes in elements of C, rows first; ``warp`` is (0, 0) where threads follow along rows."""

    block: tuple[int, int]
    depth: int
    warp: tuple[int, int]
    thread: tuple[int, int]

    @classmethod
    def of(cls, constants: Mapping[str, int]) -> Tiling:
        """From BM BN BK (WM WN) TM TN; raises PageError where they describe no known layout."""
        lacking = [n for n in ("BM", "BN", "BK", "TM", "TN") if n not in constants]
        if lacking:
            raise PageError(f"the kernel has no constant {lacking[0]}, so no picture of its tiles")
        c = constants
        made = cls(
            (c["BM"], c["BN"]), c["BK"] * c.get("SLICES", 1), (c.get("WM", 0), c.get("WN", 0)),
            (c["TM"], c["TN"]),
        )  # fmt: skip
        if min(*made.block, *made.thread, c["BK"]) < 1 or not made._fits():
            raise PageError(
                f"block {made.block}, warp {made.warp}, thread {made.thread}: no tiling"
            )
        return made

    @property
    def strips(self) -> bool:
        """Whether a thread's elements are strips spread over the tile of its warp."""
        return self.warp != (0, 0)

    @property
    def footprint(self) -> tuple[int, int]:
        """What one warp computes."""
        if self.strips:
            return self.warp
        across = self.block[1] // self.thread[1]
        return WARP // across * self.thread[0], self.block[1]

    @property
    def cell(self) -> tuple[int, int]:
        """The largest piece that is one lane's throughout."""
        return (STRIP, STRIP) if self.strips else self.thread

    def _fits(self) -> bool:
        (bm, bn), (tm, tn) = self.block, self.thread
        if not self.strips:
            return bn % tn == 0 and WARP % (bn // tn) == 0 and bm % self.footprint[0] == 0
        wm, wn = self.warp
        lanes = wm // tm, wn // tn
        exact = wm % tm == wn % tn == tm % STRIP == tn % STRIP == 0 == bm % wm == bn % wn
        return exact and lanes[0] * lanes[1] == WARP and min(lanes) % 2 == 0

    def lane_of(self, row: int, col: int) -> int:
        """The lane of warp 0 that computes this element of the block's tile."""
        tm, tn = self.thread
        if not self.strips:
            return row // tm * (self.block[1] // tn) + col // tn
        lanes_m, lanes_n = self.warp[0] // tm, self.warp[1] // tn
        down, across = row // STRIP % lanes_m, col // STRIP % lanes_n
        return down // 2 * 2 * lanes_n + across // 2 * 4 + down % 2 * 2 + across % 2


def panels(tiling: Tiling, language: str) -> tuple[str, ...]:
    """Three SVGs: the block's tile, the warp's, the thread's."""
    return (
        _block_panel(tiling, language),
        _warp_panel(tiling, language),
        _thread_panel(tiling, language),
    )


def _block_panel(t: Tiling, language: str) -> str:
    bm, bn = t.block
    scale = BLOCK / max(bm, bn)
    height, width = bm * scale, bn * scale
    thin = max(t.depth * scale, 7.0)
    left, top = EDGE + thin + 6, EDGE + thin + 6
    wm, wn = t.footprint
    parts = [
        _rect(left - thin - 6, top, thin, height, CONFLICT, 0.55),
        _rect(left, top - thin - 6, width, thin, FRAGMENT_B, 0.55),
        _rect(left, top, width, height, ASKED, 0.1),
        _rect(left, top, wn * scale, wm * scale, ASKED, 0.75),
    ]
    parts += [
        _rect(left + x * scale, top + y * scale, wn * scale, wm * scale, "none", 0)
        for y in range(0, bm, wm)
        for x in range(0, bn, wn)
    ]
    parts += [
        _label(left + width / 2, top - thin - 13, f"B: {t.depth} × {bn}"),
        _label(left - thin - 12, top + height / 2, f"A: {bm} × {t.depth}", turned=True),
        _label(left + width / 2, top + height + 17, f"C: {bm} × {bn}"),
    ]
    said = words(language, "block_tile").format(
        m=bm, n=bn, depth=t.depth, warps=bm // wm * (bn // wn)
    )
    return _svg(parts, left + width + 12, top + height + EDGE, said)


def _warp_panel(t: Tiling, language: str) -> str:
    (rows, cols), (high, wide) = t.footprint, t.cell
    down, across = rows // high, cols // wide
    parts = []
    for y in range(down):
        for x in range(across):
            lane = t.lane_of(y * high, x * wide)
            left, top = EDGE + x * CELL, EDGE + y * CELL
            chosen = lane == LANE
            parts.append(_rect(left, top, CELL, CELL, ASKED, 1.0 if chosen else 0.0))
            colour = "#fff" if chosen else "currentColor"
            parts.append(_label(left + CELL / 2, top + 12, str(lane), colour, size=9.5))
    width, height = across * CELL, down * CELL
    parts.append(_label(EDGE + width / 2, EDGE - 9, f"{cols}"))
    parts.append(_label(EDGE - 8, EDGE + height / 2, f"{rows}", turned=True))
    said = words(language, "warp_tile").format(m=rows, n=cols, high=high, wide=wide, lane=LANE)
    return _svg(parts, EDGE + width + 6, EDGE + height + 8, said)


def _thread_panel(t: Tiling, language: str) -> str:
    rows, cols = t.thread
    gap = 3.0  # between strips, which are apart in C

    def at(index: int) -> float:
        return index * SMALL + (index // STRIP * gap if t.strips else 0.0)

    left = top = EDGE + SMALL + 10
    parts = []
    for i in range(rows):
        parts.append(_rect(left - SMALL - 8, top + at(i), SMALL, SMALL, CONFLICT, 0.55))
        parts += [_rect(left + at(j), top + at(i), SMALL, SMALL, ASKED, 0.75) for j in range(cols)]
    parts += [
        _rect(left + at(j), top - SMALL - 8, SMALL, SMALL, FRAGMENT_B, 0.55) for j in range(cols)
    ]
    width, height = at(cols - 1) + SMALL, at(rows - 1) + SMALL
    parts.append(_label(left + width / 2, top - SMALL - 14, words(language, "of_b").format(cols)))
    parts.append(
        _label(
            left - SMALL - 14, top + height / 2, words(language, "of_a").format(rows), turned=True
        )
    )
    said = words(language, "thread_tile").format(m=rows, n=cols, loads=rows + cols, fma=rows * cols)
    return _svg(parts, left + width + 8, top + height + 8, said)


def _rect(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return (
        f'<rect x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}" '
        f'fill="{colour}" fill-opacity="{opacity:g}" stroke="currentColor" stroke-opacity="0.45"/>'
    )


def _label(
    x: float,
    y: float,
    text: str,
    colour: str = "currentColor",
    size: float = 12,
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-90 {x:.5g} {y:.5g})"' if turned else ""
    return (
        f'<text x="{x:.5g}" y="{y:.5g}" text-anchor="middle" fill="{colour}" '
        f'font-size="{size:g}"{turn}>{escape(text)}</text>'
    )


def _svg(parts: list[str], width: float, height: float, said: str) -> str:
    return (
        f'<figure><svg role="img" aria-label="{escape(said, quote=True)}" width="{width:.5g}" '
        f'height="{height:.5g}" viewBox="0 0 {width:.5g} {height:.5g}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
        f"<figcaption>{escape(said)}</figcaption></figure>"
    )
