"""Which lane of a warp hits which bank of shared memory, drawn from the words it asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..ptx.events import WARP
from ..ptx.observers.wavefronts import BANKS, WORD, lanes_at_once, passes_and_groups
from .drawing import ASKED, CONFLICT
from .words import words

CELL = 8.0  # px
LEFT, TOP, BOTTOM = 34.0, 34.0, 22.0
SIZE = 12.0  # px of text
TICKS = (0, 8, 16, 24, 31)


@dataclass(frozen=True)
class BankMap:
    """One request of shared memory by one warp.

    ``banks``: for each lane those it hits, none of an inactive lane. ``together``: lanes that are
    served at once; only among these is there a conflict. ``passes`` are taken, ``ideal`` would be
    without conflicts. ``crowded``: (first lane of the group, bank) to the number of different words
    that the group wants of that bank.
    """

    banks: tuple[tuple[int, ...], ...]
    together: int
    passes: int
    ideal: int
    crowded: dict[tuple[int, int], int]

    @classmethod
    def of(cls, first_words: Sequence[int], size: int, *, store: bool) -> BankMap:
        """From the first word of each of 32 lanes (-1: inactive) and the bytes each accesses."""
        first = np.array(first_words, dtype=np.int64)
        active, address = first >= 0, first * WORD
        width = max(size // WORD, 1)
        wanted = [tuple(range(w, w + width)) if w >= 0 else () for w in first_words]
        together = lanes_at_once(address, active, size, store=store)
        passes, ideal = passes_and_groups(
            address[None, :], active[None, :], size, store=store
        )  # fmt: skip
        crowded: dict[tuple[int, int], int] = {}
        for start in range(0, WARP, together):
            found = {word for lane in wanted[start : start + together] for word in lane}
            for word in found:
                place = (start, word % BANKS)
                crowded[place] = crowded.get(place, 0) + 1
        banks = tuple(tuple(word % BANKS for word in lane) for lane in wanted)
        return cls(banks, together, int(passes[0]), int(ideal[0]), crowded)

    @property
    def degree(self) -> float:
        """Passes over those without conflicts; 1 is no conflict."""
        return self.passes / self.ideal

    @property
    def lanes(self) -> int:
        return sum(bool(hit) for hit in self.banks)

    @property
    def different(self) -> int:
        """How many banks are hit."""
        return len({bank for hit in self.banks for bank in hit})

    def conflicts(self, lane: int, bank: int) -> bool:
        """Whether this lane waits at this bank, or makes others wait."""
        return self.crowded[lane - lane % self.together, bank] > 1

    def svg(self, language: str, label: str) -> str:
        """Lanes downwards, banks across; ``label`` says what it is of."""
        width, height = LEFT + BANKS * CELL + 6, TOP + WARP * CELL + BOTTOM
        said = f"{label} {self.sentence(language)} {self._by_lane(language)}"
        parts = "".join((*self._axes(language), *self._cells(), self._verdict(language)))
        return (
            f'<svg role="img" aria-label="{escape(said, quote=True)}" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            f'xmlns="http://www.w3.org/2000/svg">{parts}</svg>'
        )

    def sentence(self, language: str) -> str:
        """Lanes, banks, passes: what a caption says."""
        said = words(language, "bank_map").format(
            lanes=self.lanes, banks=self.different, passes=self.passes, ideal=self.ideal
        )
        if self.together < WARP:
            said += words(language, "at_once").format(self.together)
        return said

    def _by_lane(self, language: str) -> str:
        each = ", ".join("/".join(map(str, hit)) or "–" for hit in self.banks)
        return words(language, "by_lane").format(each)

    def _axes(self, language: str) -> Iterator[str]:
        right, bottom = LEFT + BANKS * CELL, TOP + WARP * CELL
        yield (
            f'<rect x="{LEFT:g}" y="{TOP:g}" width="{right - LEFT:g}" height="{bottom - TOP:g}" '
            'fill="none" stroke="currentColor" stroke-opacity="0.6"/>'
        )
        for tick in TICKS[1:-1]:
            x, y = LEFT + tick * CELL, TOP + tick * CELL
            yield _line(x, TOP, x, bottom)
            yield _line(LEFT, y, right, y)
        for tick in TICKS:
            at = (tick + 0.5) * CELL
            yield _text(LEFT + at, TOP - 5, str(tick), "middle")
            yield _text(LEFT - 5, TOP + at + 4, str(tick), "end")
        yield _text(LEFT, 12, words(language, "bank_axes"), "start")

    def _cells(self) -> Iterator[str]:
        for lane, hit in enumerate(self.banks):
            for bank in hit:
                colour = CONFLICT if self.conflicts(lane, bank) else ASKED
                x, y = LEFT + bank * CELL, TOP + lane * CELL
                yield (
                    f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="{CELL - 1:g}" '
                    f'height="{CELL - 1:g}" fill="{colour}" stroke="currentColor" '
                    'stroke-width="0.8"/>'
                )

    def _verdict(self, language: str) -> str:
        """Below the fullest bank, how full it is."""
        (_, bank), deepest = max(self.crowded.items(), key=lambda item: (item[1], -item[0][1]))
        said = words(language, "way" if deepest > 1 else "no_conflict").format(deepest)
        middle = LEFT + (bank + 0.5) * CELL if deepest > 1 else LEFT + BANKS * CELL / 2
        half = SIZE * (0.5 if language == "zh" else 0.3) * (len(said) + 1)
        middle = min(max(middle, LEFT + half), LEFT + BANKS * CELL - half)
        return _text(middle, TOP + WARP * CELL + 16, said, "middle", bold=True)


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return (
        f'<line x1="{x0:g}" y1="{y0:g}" x2="{x1:g}" y2="{y1:g}" stroke="currentColor" '
        'stroke-opacity="0.25"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="currentColor" '
        f'font-size="{SIZE:g}"{weight}>{escape(text)}</text>'
    )
