"""What a build knows: the tree, the records and the numbers in them, read once and kept fresh.

Loading costs a fraction of a second and a site has a hundred pages, so the project is kept
between pages and read again only when a file below kernels/ or results/ has changed. That is
also what lets ``mkdocs serve`` show a changed kernel or record.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelbook import catalog as catalogs
from kernelbook import records
from kernelbook.catalog import Catalog
from kernelbook.devices import sheets
from kernelbook.errors import UsageError
from kernelbook.records import Record
from kernelbook.report.book import Book, Numbers
from kernelbook.report.index import Index
from kernelbook.report.rows import Row

# (path, modification time in ns, size) of everything the project is read from.
Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Project:
    """The data behind a site. ``results`` may lie outside ``root`` (a reader's own folder)."""

    root: Path
    results: Path
    book: Book
    index: Index

    @property
    def reference(self) -> str:
        """Slug of the device that prose is written for."""
        return self.book.sheets.reference

    def rows(self, evidence: str, experiment: str, variant: str = "") -> tuple[Row, ...]:
        """The numbers of one grade of an experiment, of all its variants or of one."""
        rows = self.book.rows_about(experiment, evidence)
        return tuple(row for row in rows if variant in ("", row.variant))


def find_root(start: Path) -> Path:
    """The folder that holds kernels/, at or above ``start``; raises UsageError."""
    for folder in (start, *start.parents):
        if (folder / "kernels").is_dir():
            return folder
    raise UsageError(f"no kernels/ folder at or above {start}", hint="run from the repository")


def load(root: Path, results: Path | None = None) -> Project:
    """The project below ``root``; read again only when something in it has changed."""
    root = root.resolve()
    results = (root / "results" if results is None else root / results).resolve()
    return _load(root, results, _sources(root), _records(results))


@lru_cache(maxsize=2)
def _load(root: Path, results: Path, sources: Signature, records_: Signature) -> Project:
    book = Book(_numbers(root, sources), records.load_all(results, _read))
    return Project(root, results, book, Index(book, book.stored))


def tree(root: Path) -> Catalog:
    """What the kernels' authors say, without the records; raises KernelbookError."""
    root = root.resolve()
    return _numbers(root, _sources(root)).catalog


@lru_cache(maxsize=2)
def _numbers(root: Path, sources: Signature) -> Numbers:
    """The tree, and the numbers that are held against it: kept while only records change."""
    return Numbers(catalogs.load(root), sheets())


def _read(path: Path) -> Record:
    """A record, parsed again only when its file has changed: a serve sees one change in dozens."""
    try:
        status = path.stat()
    except OSError:
        return records.load(path)  # which says what is wrong with it
    return _parsed(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=1024)
def _parsed(path: Path, *state: int) -> Record:
    return records.load(path)


def _sources(root: Path) -> Signature:
    return _signature((root / "kernels", (".py", ".cu", ".cuh", ".h", ".json")))


def _records(results: Path) -> Signature:
    return _signature(
        (results / "data", (".json",)),
        (results / "local", (".json", ".svg")),
        (results / "charts", (".svg",)),
    )


def _signature(*places: tuple[Path, tuple[str, ...]]) -> Signature:
    found: list[tuple[str, int, int]] = []
    for folder, endings in places:
        for parent, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                if name.endswith(endings):
                    path = os.path.join(parent, name)
                    status = os.stat(path)
                    found.append((path, status.st_mtime_ns, status.st_size))
    return tuple(sorted(found))
