"""Charts of results/charts inlined into a page: ids of their own, colours of the theme.

The hardware switch wants a chart of fewer devices at times. Its bars, axes and legend differ, so
it is another drawing, made here from the same records and kept by the content of the whole one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache as once_per_process
from html import escape
from importlib.metadata import version
from importlib.resources import files
from itertools import combinations

from kernelbook.errors import PageError
from kernelbook.experiment import Chart
from kernelbook.report.charts import chart_file
from kernelbook.report.marks import Card, marks
from kernelbook.site import cache
from kernelbook.site.context import Project
from kernelbook.site.switch import device_key

_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.S)
_ID = re.compile(r'\bid="([^"]+)"')
_NAMED = re.compile(r'\s(?:role|aria-label|aria-labelledby)="[^"]*"')
# Every choice among this many devices has a drawing of its own; of more, each one alone.
_ALL_CHOICES = 3


@dataclass(frozen=True)
class Drawing:
    """A chart of the devices with these keys, in the order of its legend."""

    devices: tuple[str, ...]
    svg: str


def attribute(text: str) -> str:
    """Text for a quoted attribute."""
    return escape(text, quote=True)


def drawings(
    project: Project, name: str, language: str, *, prefix: str, label: str
) -> tuple[Drawing, ...]:
    """The chart with all its devices, then with fewer; () while no record has what it draws.

    ``label`` names it, an attribute. Raises PageError for a chart nobody declared, or one that
    was not drawn.
    """
    chart = next((c for c in project.book.catalog.charts if c.name == name), None)
    if chart is None:
        known = ", ".join(c.name for c in project.book.catalog.charts)
        raise PageError(f"no chart {name!r}", hint=f"there are: {known}" if known else "")
    shown = list(dict.fromkeys(mark.card for mark in marks(project.book, chart)))
    file = chart_file(project.results, name, language)
    if not file.is_file():
        if not shown:
            return ()
        raise PageError(f"chart {name!r} is not drawn", hint="run scripts/run_all.py --render")
    whole = file.read_text(encoding="utf-8")
    found = [Drawing(_keys(shown), _own(whole, prefix, label))]
    for number, kept in enumerate(_choices(shown), 1):
        svg = _drawn(project, chart, kept, language, whole)
        found.append(Drawing(_keys(kept), _own(svg, f"{prefix}-{number}", label)))
    return tuple(found)


def _keys(cards: list[Card]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(device_key(card.slug, card.local) for card in cards))


def _choices(cards: list[Card]) -> Iterator[list[Card]]:
    """Fewer devices than all; a card both measured and cited is one device."""
    keys = _keys(cards)
    sizes = range(1, len(keys)) if len(keys) <= _ALL_CHOICES else range(1, 2)
    for size in sizes:
        for chosen in combinations(keys, size):
            yield [c for c in cards if device_key(c.slug, c.local) in chosen]


def _drawn(project: Project, chart: Chart, kept: list[Card], language: str, whole: str) -> str:
    def draw() -> str:
        from kernelbook.report import plots  # matplotlib takes half a second

        found = [m for m in marks(project.book, chart) if m.card in kept]
        return plots.draw(project.book, chart, found, language)

    key = cache.key_of(whole, *_keys(kept), language, _drawer())
    return cache.cached(cache.default_root() / "charts", key, draw)


@once_per_process
def _drawer() -> str:
    """All that decides how records are drawn, besides the records."""
    room = files("kernelbook.report")
    modules = ("plots.py", "chart_parts.py", "curves.py", "canvas.py", "marks.py", "show.py")
    texts = ((room / name).read_text("utf-8") for name in modules)
    return cache.key_of(version("matplotlib"), *texts)


def _own(svg: str, prefix: str, label: str) -> str:
    """Charts of one page were drawn apart and share ids, so every id gets the prefix."""
    svg = _PROLOGUE.sub("", svg).strip()
    for old in sorted(set(_ID.findall(svg)), key=len, reverse=True):
        new = f"{prefix}-{old}"
        svg = svg.replace(f'id="{old}"', f'id="{new}"')
        svg = svg.replace(f'"#{old}"', f'"#{new}"').replace(f"url(#{old})", f"url(#{new})")
    opening, rest = svg.split(">", 1)
    opening = _NAMED.sub("", opening).replace("<svg", f'<svg role="img" {label}', 1)
    return f"{opening}>{rest}"
