"""Charts of results/charts inlined into a page: ids of their own, colours of the theme."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from kernelbook.errors import PageError

_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.S)
_ID = re.compile(r'\bid="([^"]+)"')
_NAME = re.compile(r"^[\w.-]+$")
_SIZE = re.compile(r'\s(?:width|height)="[^"]*"')


def attribute(text: str) -> str:
    """Text for a quoted attribute."""
    return escape(text, quote=True)


def inline(folder: Path, name: str, language: str, *, prefix: str, label: str) -> str:
    """The SVG of a chart; ``label`` is its accessible name as an attribute.

    Charts of one page were drawn apart and share ids, so every id gets the prefix. Raises
    PageError where there is no such chart.
    """
    file = folder / f"{name}.{language}.svg"
    if not _NAME.match(name) or not file.is_file():
        known = sorted(
            p.name.removesuffix(f".{language}.svg") for p in folder.glob(f"*.{language}.svg")
        )
        raise PageError(
            f"no chart {name!r}",
            hint="there are: " + ", ".join(known)
            if known
            else "run scripts/run_all.py --render, which draws them",
        )
    svg = _PROLOGUE.sub("", file.read_text(encoding="utf-8")).strip()
    ids = sorted(set(_ID.findall(svg)), key=len, reverse=True)
    for old in ids:
        new = f"{prefix}-{old}"
        svg = svg.replace(f'id="{old}"', f'id="{new}"')
        svg = svg.replace(f'"#{old}"', f'"#{new}"').replace(f"url(#{old})", f"url(#{new})")
    opening, rest = svg.split(">", 1)
    opening = _SIZE.sub("", opening).replace("<svg", f'<svg role="img" {label}', 1)
    return f"{opening}>{rest}"
