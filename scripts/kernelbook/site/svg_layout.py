"""Two things mermaid lays out without looking at the text, put right afterwards.

A note over several participants of a sequence diagram is as wide as their distance, however
long its text; the names below the bars of a chart are never wrapped. Both then run over what
is beside them, and Chinese does so soonest. Widths are estimated as everywhere else, by
``text_width``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

from kernelbook.site.text_width import WideTextMeasurer, is_wide

_SVG = "{http://www.w3.org/2000/svg}"
_NOTE_PADDING = 12.0
_LABEL_SIZE = 14.0
_LINE_HEIGHT = 1.25
_BAND_SHARE = 0.92  # of the distance between two bars' middles, for a label below one


def text_width(text: str, size_px: float) -> float:
    """The estimated width of ``text`` in px."""
    return WideTextMeasurer().width(text, size_px, "", "normal", "normal")


def widen_notes(root: ET.Element) -> None:
    """Make every note at least as wide as its longest line, and the drawing with it."""
    for group in root.iter(f"{_SVG}g"):
        box = next((r for r in group.findall(f"{_SVG}rect") if r.get("class") == "note"), None)
        if box is None:
            continue
        lines = ["".join(text.itertext()) for text in group.findall(f"{_SVG}text")]
        wanted = max((text_width(line, 16.0) for line in lines), default=0.0) + 2 * _NOTE_PADDING
        x, width = float(box.attrib["x"]), float(box.attrib["width"])
        if wanted > width:
            x -= (wanted - width) / 2
            box.set("x", f"{x:.2f}")
            box.set("width", f"{wanted:.2f}")
            _include(root, x - 4, x + wanted + 4)


def wrap_axis_labels(root: ET.Element) -> None:
    """Break the names on a chart's horizontal axis so that neighbours do not touch."""
    axis = _group(root, "bottom-axis")
    labels = None if axis is None else _group(axis, "label")
    if axis is None or labels is None:
        return
    texts = labels.findall(f"{_SVG}text")
    middles = [_translation(t)[0] for t in texts]
    if len(texts) < 2:
        return
    room = _BAND_SHARE * min(abs(b - a) for a, b in pairwise(middles))
    wrapped = [_wrap(text.text or "", room) for text in texts]
    extra_lines = max(len(lines) for lines in wrapped) - 1
    if extra_lines == 0:
        return
    for text, lines in zip(texts, wrapped, strict=True):
        text.text = None
        for number, line in enumerate(lines):
            row = ET.SubElement(text, f"{_SVG}tspan", x="0", dy=f"{_LINE_HEIGHT * (number > 0)}em")
            row.text = line
    extra = extra_lines * _LINE_HEIGHT * _LABEL_SIZE
    title = _group(axis, "title")
    for text in [] if title is None else title.findall(f"{_SVG}text"):
        x, y = _translation(text)
        text.set("transform", f"translate({x:g}, {y + extra:g}) rotate(0)")
    left, top, width, height = _view_box(root)
    root.set("viewBox", f"{left:g} {top:g} {width:g} {height + extra:g}")


def _wrap(label: str, room: float) -> list[str]:
    """``label`` in lines no wider than ``room`` px, broken at spaces and between Chinese.

    A single word wider than ``room`` stays whole.
    """
    lines = [""]
    for piece in _pieces(label):
        longer = lines[-1] + piece
        if lines[-1].strip() and text_width(longer.strip(), _LABEL_SIZE) > room:
            lines.append(piece)
        else:
            lines[-1] = longer
    return [line.strip() for line in lines]


def _pieces(label: str) -> list[str]:
    """Parts between which a line may be broken; punctuation stays with what it closes."""
    pieces: list[str] = []
    for char in label:
        closes = char in "，。、；：！？）》」』】”’…"
        opened = bool(pieces) and pieces[-1][-1:] in ("（", "《", "「", "『", "【", "“", "‘")
        joins = pieces and not (is_wide(char) or is_wide(pieces[-1][-1]) or pieces[-1][-1] == " ")
        if joins or closes or opened or (pieces and char == " "):
            pieces[-1] += char
        else:
            pieces.append(char)
    return pieces


def _group(parent: ET.Element, name: str) -> ET.Element | None:
    return next((g for g in parent.iter(f"{_SVG}g") if g.get("class") == name), None)


def _translation(element: ET.Element) -> tuple[float, float]:
    match = re.search(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", element.get("transform", ""))
    return (float(match[1]), float(match[2])) if match else (0.0, 0.0)


def _view_box(root: ET.Element) -> tuple[float, float, float, float]:
    left, top, width, height = (float(v) for v in root.attrib["viewBox"].split())
    return left, top, width, height


def _include(root: ET.Element, x_min: float, x_max: float) -> None:
    left, top, width, height = _view_box(root)
    new_left, right = min(left, x_min), max(left + width, x_max)
    root.set("viewBox", f"{new_left:g} {top:g} {right - new_left:g} {height:g}")
