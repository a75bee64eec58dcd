"""How wide a label will be in the reader's browser, Chinese included.

mermaidx lays diagrams out with DejaVu Sans, which has no Chinese glyphs: it counts a
placeholder 0.6 em wide where the browser later draws 1 em, and the label sticks out of its
box. Here every East Asian wide character counts a full em, the rest is measured as before.
DejaVu Sans is wider than the fonts of the page's stack, so Latin labels have room to spare.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from mermaidx.engines._common import TextMeasurer

WIDE_EM = 1.0
EMOJI_EM = 1.25  # Segoe UI Emoji and Apple Color Emoji draw outside the em square


def is_wide(char: str, *, among_wide: bool = True) -> bool:
    """Whether a browser draws ``char`` about one em wide.

    Punctuation of ambiguous width (— … “ ”) comes from the Chinese font when it stands in
    Chinese text (``among_wide``), from the Latin font otherwise. Letters of ambiguous width
    (Greek, Cyrillic) are narrow in either.
    """
    width = unicodedata.east_asian_width(char)
    if width in "WF":
        return True
    return among_wide and width == "A" and unicodedata.category(char)[0] in "PS"


def wide_em(char: str) -> float:
    """The advance of a wide character, in em."""
    return EMOJI_EM if unicodedata.category(char) == "So" else WIDE_EM


def runs(text: str) -> Iterator[tuple[bool, str]]:
    """``text`` cut into maximal runs of wide and of other characters, in order."""
    among_wide = any(unicodedata.east_asian_width(c) in "WF" for c in text)
    for wide, chars in groupby(text, key=lambda c: is_wide(c, among_wide=among_wide)):
        yield wide, "".join(chars)


class WideTextMeasurer(TextMeasurer):
    """mermaidx's measurer with wide characters counted as wide. Sizes and results in px."""

    def width(self, text: str, size: Any, family: Any, weight: Any, style: Any) -> float:
        return float(self.full(text, size, family, weight, style)["width"])

    def full(self, text: str, size: Any, family: Any, weight: Any, style: Any) -> dict[str, float]:
        """Advance width, ascent, descent and x-height of ``text``."""
        px = float(size or 16)
        metrics: dict[str, float] = dict(super().full("", px, family, weight, style))
        metrics["width"] = sum(
            sum(wide_em(c) * px for c in run)
            if wide
            else super(WideTextMeasurer, self).full(run, px, family, weight, style)["width"]
            for wide, run in runs(text or "")
        )
        return metrics

    def glyphs(
        self, text: str, size: Any, family: Any, weight: Any, style: Any
    ) -> list[list[float]]:
        """``[pen, left, right, top, bottom]`` per glyph, the ink relative to the pen, y down."""
        px = float(size or 16)
        boxes: list[list[float]] = []
        pen = 0.0
        for wide, run in runs(text or ""):
            if wide:
                for char in run:
                    boxes.append([pen, 0.0, wide_em(char) * px, -0.88 * px, 0.12 * px])
                    pen += wide_em(char) * px
            else:
                for glyph_pen, *ink in super().glyphs(run, px, family, weight, style):
                    boxes.append([pen + glyph_pen, *ink])
                pen += super().full(run, px, family, weight, style)["width"]
        return boxes
