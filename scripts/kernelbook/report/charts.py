"""Charts as SVG files, one a language, from the author's declarations and the records."""

from __future__ import annotations

from pathlib import Path

from ..experiment import Chart
from .book import Book
from .marks import marks

LANGUAGES = ("zh", "en")


def chart_svg(book: Book, chart: Chart, language: str) -> str | None:
    """The SVG of a chart; None where no record has what it draws."""
    found = marks(book, chart)
    if not found:
        return None
    from . import plots  # matplotlib takes half a second, and most calls need no picture

    return plots.draw(book, chart, found, language)


def chart_file(results: Path, name: str, language: str) -> Path:
    """Where a page finds a chart: with the reader's own card, where they measured one."""
    local = results / "local" / "charts" / f"{name}.{language}.svg"
    return local if local.is_file() else results / "charts" / f"{name}.{language}.svg"
