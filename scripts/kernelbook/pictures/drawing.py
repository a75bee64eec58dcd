"""Pictures as SVG inside HTML: they take the colour of the page's text, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..ptx.events import WARP
from ..ptx.observers.sectors import SECTOR, sectors
from ..ptx.observers.wavefronts import BANKS, WORD, wavefronts
from .recorder import Access, Recorder
from .words import words

LINE = 128  # bytes of a cache line
CELL = 15  # px
LABEL = 104  # px left of the cells
MAX_LINES = 8  # cache lines a picture shows
MAX_STEPS = 40  # rows of a timeline
# White text on them has a contrast of at least 4.5; they stand out from a light and a dark page.
ASKED, CONFLICT = "#2468d8", "#b4530a"


@dataclass(frozen=True)
class Picture:
    """Something a notebook shows."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def sectors_picture(access: Access, code: str, language: str) -> Picture:
    """Words one warp asks for (filled) in the 32-byte sectors that move for them (shaded)."""
    base = access.allocation.base if access.allocation else 0
    name = access.allocation.name if access.allocation else "?"
    asked = {
        (int(a) - base + byte) // WORD
        for a in access.address[access.active]
        for byte in range(0, max(access.size, WORD), WORD)
    }
    per_line, per_sector = LINE // WORD, SECTOR // WORD
    lines = sorted({word // per_line for word in asked})
    moved = {word // per_sector for word in asked}
    parts = []
    for row, line in enumerate(lines[:MAX_LINES]):
        y = row * (CELL + 8) + 4
        parts.append(_text(LABEL - 8, y + 11, f"{name} + {line * LINE:,} B", "end"))
        for sector in range(per_line // per_sector):
            x = LABEL + sector * (per_sector * CELL + 6)
            hit = line * 4 + sector in moved
            parts.append(_box(x - 2, y - 2, per_sector * CELL + 3, CELL + 3, ASKED, hit * 0.25))
            for word in range(per_sector):
                index = (line * 4 + sector) * per_sector + word
                opacity = 1.0 if index in asked else 0.0
                parts.append(_box(x + word * CELL, y, CELL - 1, CELL - 1, ASKED, opacity))
    height = min(len(lines), MAX_LINES) * (CELL + 8) + 8
    count = sectors(access.address, access.active)
    used = int(access.active.sum()) * access.size
    facts = words(language, "sectors").format(
        lanes=int(access.active.sum()), used=used, sectors=count, moved=count * SECTOR
    )
    if len(lines) > MAX_LINES:
        facts += words(language, "more").format(len(lines) - MAX_LINES)
    facts += _alike(access, language)
    width = LABEL + per_line * CELL + 30
    return _figure(parts, width, height, _title(access, code, language), facts)


def banks_picture(access: Access, code: str, language: str) -> Picture:
    """For each bank the different words the warp's lanes want of it; higher is slower."""
    wanted: dict[int, dict[int, list[int]]] = {bank: {} for bank in range(BANKS)}
    for lane in np.flatnonzero(access.active):
        first = int(access.address[lane]) // WORD
        for word in range(first, first + max(access.size // WORD, 1)):
            wanted[word % BANKS].setdefault(word, []).append(int(lane))
    deepest = max(len(found) for found in wanted.values())
    shown = min(deepest, WARP)
    parts = []
    for bank, found in wanted.items():
        x = LABEL + bank * (CELL + 3)
        for level in range(shown):
            y = (shown - 1 - level) * (CELL + 2) + 4
            lanes = list(found.values())[level] if level < len(found) else []
            colour = CONFLICT if level else ASKED
            if lanes or not level:
                parts.append(_box(x, y, CELL + 1, CELL, colour, float(bool(lanes))))
            if lanes:
                label = f"{lanes[0]}" if len(lanes) == 1 else "∗"
                parts.append(_text(x + 8, y + 11, label, "middle", "#fff", 9))
        parts.append(_text(x + 8, shown * (CELL + 2) + 17, str(bank), "middle", size=9))
    parts.append(_text(LABEL - 8, shown * (CELL + 2) + 17, words(language, "bank"), "end"))
    address, active = access.address[None, :], access.active[None, :]
    passes = int(wavefronts(address, active, access.size, store=access.access != "read")[0])
    facts = words(language, "banks").format(
        lanes=int(access.active.sum()), passes=passes, deepest=deepest
    )
    facts += _alike(access, language)
    width, height = LABEL + BANKS * (CELL + 3) + 4, shown * (CELL + 2) + 26
    return _figure(parts, width, height, _title(access, code, language), facts)


def divergence_picture(recorder: Recorder, source: Sequence[str], language: str) -> Picture:
    """One row a stretch of instructions of a line, one column a lane; empty where it waits."""
    parts, steps = [], recorder.steps
    left = 2 * LABEL + 90
    for row, step in enumerate(steps[:MAX_STEPS]):
        y = row * CELL + 16
        code = source[step.line - 1].strip() if step.line <= len(source) else ""
        parts.append(_text(left - 8, y + 11, f"{step.line}: {code[:34]}", "end", mono=True))
        for lane in range(WARP):
            active = float(step.active[lane])
            parts.append(_box(left + lane * CELL, y, CELL - 1, CELL - 1, ASKED, active))
    for lane in range(0, WARP, 4):
        parts.append(_text(left + lane * CELL + 7, 11, str(lane), "middle", size=9))
    parts.append(_text(left - 8, 11, words(language, "lane"), "end"))
    facts = words(language, "divergence").format(
        instructions=recorder.instructions,
        active=recorder.lane_instructions / max(recorder.instructions, 1),
    )
    height = min(len(steps), MAX_STEPS) * CELL + 22
    if len(steps) > MAX_STEPS:
        facts += words(language, "more_steps").format(MAX_STEPS)
    return _figure(parts, left + WARP * CELL + 4, height, "", facts)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Picture:
    """A table whose first column is text and whose others are numbers; cells are plain text."""
    heads = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = ""
    for row in rows:
        cells = (f'<td style="text-align:right">{escape(text)}</td>' for text in row[1:])
        first = f'<td style="text-align:left"><code>{escape(row[0])}</code></td>'
        body += f"<tr>{first}{''.join(cells)}</tr>"
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    return Picture(f"<table>{named}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>")


def _title(access: Access, code: str, language: str) -> str:
    line = words(language, "line").format(access.line)
    return f"{line}{code.strip()} ({words(language, access.access)})"


def _alike(access: Access, language: str) -> str:
    return words(language, "alike").format(access.alike) if access.alike else ""


def _box(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="1.5" '
        f'fill="{colour}" fill-opacity="{opacity:g}" stroke="currentColor" stroke-opacity="0.3"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str,
    colour: str = "currentColor",
    size: float = 11,
    mono: bool = False,
) -> str:
    family = "monospace" if mono else "sans-serif"
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size:g}" font-family="{family}">{escape(text)}</text>'
    )


def _figure(parts: Sequence[str], width: float, height: float, title: str, facts: str) -> Picture:
    label = escape(f"{title} {facts}".strip(), quote=True)
    head = f"<figcaption><code>{escape(title)}</code></figcaption>" if title else ""
    return Picture(
        f'<figure data-search-exclude style="margin:0 0 1em;overflow-x:auto">{head}'
        f'<svg role="img" aria-label="{label}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(parts)}</svg><figcaption>{escape(facts)}</figcaption></figure>"
    )


def stacked(pictures: Sequence[Picture]) -> Picture:
    """Several pictures below each other."""
    return Picture("".join(picture.html for picture in pictures))
