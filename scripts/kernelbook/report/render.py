"""Everything that is generated under results/, written from the records in it.

    results/CHAPTER.md  CHAPTER.en.md  summary.csv  charts/NAME.LANGUAGE.svg    published records
    counters.md  counters.en.md                         the emulator beside a GPU's own counters
    results/local/…     the same names                                          with a reader's own

What is rendered depends on the records and the tree alone: rendering twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import codec
from ..catalog import Catalog
from ..devices import Sheets
from ..errors import RecordError
from . import counters
from .book import Book
from .charts import LANGUAGES, chart_svg
from .pages import page
from .summary import summary

_PAGE = re.compile(r"^\d\d_\w+(\.en)?\.md$")


@dataclass(frozen=True)
class Rendered:
    """What a rendering did to the files it owns; paths as `place` shows them."""

    written: tuple[Path, ...]
    removed: tuple[Path, ...]
    unchanged: tuple[Path, ...]

    @property
    def changed(self) -> tuple[Path, ...]:
        return (*self.written, *self.removed)


def render(
    root: Path, results: Path, catalog: Catalog, sheets: Sheets, *, charts: bool = True
) -> Rendered:
    """Write pages, charts and summary.csv of a results folder; remove those without a source.

    Without ``charts``, charts stay as they are. Raises RecordError for a broken record, before
    anything is written, or an unwritable folder.
    """
    wanted = contents(Book.load(results, catalog, sheets), charts=charts)
    wanted |= counters.pages(results)
    written: list[Path] = []
    unchanged: list[Path] = []
    for name, text in wanted.items():
        path = results / name
        changed = codec.write_atomically(path, text)
        (written if changed else unchanged).append(place(root, path))
    removed = []
    for path in obsolete(results, wanted, charts=charts):
        try:
            path.unlink()
        except OSError as error:
            raise RecordError(f"cannot be removed: {error.strerror}", file=path) from error
        removed.append(place(root, path))
    return Rendered(tuple(written), tuple(removed), tuple(unchanged))


def place(root: Path, path: Path) -> Path:
    """A path as a message names it: from the tree's root where it lies in the tree."""
    return path.relative_to(root) if path.is_relative_to(root) else path


def contents(book: Book, *, charts: bool = True) -> dict[str, str]:
    """Every generated file by its path under results/."""
    files = dict(_of_book(book.published(), charts))
    if book.has_local:
        files.update((f"local/{name}", text) for name, text in _of_book(book, charts))
    return files


def obsolete(results: Path, wanted: Mapping[str, str], *, charts: bool = True) -> list[Path]:
    """Generated files of an earlier rendering that nothing stands behind any more."""
    found = []
    for folder in (results, results / "local"):
        found += [p for p in sorted(folder.glob("*.md")) if _PAGE.match(p.name)]
        if charts:
            found += sorted((folder / "charts").glob("*.svg"))
    found += [results / "local" / "summary.csv"]
    return [p for p in found if p.is_file() and p.relative_to(results).as_posix() not in wanted]


def _of_book(book: Book, charts: bool) -> Iterator[tuple[str, str]]:
    for chapter in book.catalog.chapters:
        yield f"{chapter}.md", page(book, chapter, "zh")
        yield f"{chapter}.en.md", page(book, chapter, "en")
    yield "summary.csv", summary(book)
    for chart in book.catalog.charts if charts else ():
        for language in LANGUAGES:
            svg = chart_svg(book, chart, language)
            if svg is not None:
                yield f"charts/{chart.name}.{language}.svg", svg
