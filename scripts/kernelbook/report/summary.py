"""summary.csv: one row a number, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from .book import Book
from .harmless import one_line
from .rows import Row

COLUMNS = (
    "chapter", "experiment", "variant", "shape", "dtype", "cache", "device", "evidence", "metric",
    "value", "unit", "q1", "q3", "samples", "stale",
)  # fmt: skip
MAX_LENGTH = 200
DIGITS = 12  # more than any clock has, fewer than show binary dust such as 0.30000000000000004


def summary(book: Book) -> str:
    """The CSV of all numbers of a book, in the tree's order and then by name."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _ordered(book):
        writer.writerow(_fields(row))
    return out.getvalue()


def _ordered(book: Book) -> Iterable[Row]:
    rank = {e.name: i for i, e in enumerate(book.catalog.experiments)}

    def place(row: Row) -> tuple[object, ...]:
        return (
            rank.get(row.experiment, len(rank)), row.experiment, row.evidence, row.device,
            row.local, row.variant, row.cache, row.metric,
        )  # fmt: skip

    return sorted(book.rows, key=place)


def _fields(row: Row) -> list[str]:
    return [
        row.chapter, row.experiment, _text(row.variant), _text(row.shape), _text(row.dtype),
        row.cache, row.device, row.evidence, _text(row.metric), _number(row.value), _text(row.unit),
        _number(row.q1), _number(row.q3), str(row.samples) if row.samples else "",
        "true" if row.stale else "false",
    ]  # fmt: skip


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{DIGITS}g}"


def _text(text: str) -> str:
    """A stranger's string as one line that no spreadsheet takes for a formula."""
    line = one_line(text, MAX_LENGTH)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@", "|", "%") else line
