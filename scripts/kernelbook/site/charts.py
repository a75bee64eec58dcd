"""Charts of results/charts inlined into a page: ids of their own, colours of the theme."""

from __future__ import annotations

import re
from html import escape

from kernelbook.errors import PageError
from kernelbook.report.charts import chart_file
from kernelbook.report.marks import marks
from kernelbook.site.context import Project

_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.S)
_ID = re.compile(r'\bid="([^"]+)"')
_NAMED = re.compile(r'\s(?:role|aria-label|aria-labelledby)="[^"]*"')


def attribute(text: str) -> str:
    """Text for a quoted attribute."""
    return escape(text, quote=True)


def inline(project: Project, name: str, language: str, *, prefix: str, label: str) -> str:
    """The SVG of a chart, "" while no record has what it draws; ``label`` names it, an attribute.

    Charts of one page were drawn apart and share ids, so every id gets the prefix. Raises
    PageError for a chart nobody declared, or one that was not drawn.
    """
    chart = next((c for c in project.book.catalog.charts if c.name == name), None)
    if chart is None:
        known = ", ".join(c.name for c in project.book.catalog.charts)
        raise PageError(f"no chart {name!r}", hint=f"there are: {known}" if known else "")
    file = chart_file(project.results, name, language)
    if not file.is_file():
        if not marks(project.book, chart):
            return ""
        raise PageError(f"chart {name!r} is not drawn", hint="run scripts/run_all.py --render")
    svg = _PROLOGUE.sub("", file.read_text(encoding="utf-8")).strip()
    for old in sorted(set(_ID.findall(svg)), key=len, reverse=True):
        new = f"{prefix}-{old}"
        svg = svg.replace(f'id="{old}"', f'id="{new}"')
        svg = svg.replace(f'"#{old}"', f'"#{new}"').replace(f"url(#{old})", f"url(#{new})")
    opening, rest = svg.split(">", 1)
    opening = _NAMED.sub("", opening).replace("<svg", f'<svg role="img" {label}', 1)
    return f"{opening}>{rest}"
