"""``run_all.py --compare A B``: two folders of records held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from ..compare import RULE, Comparison, Row, compare
from ..errors import UsageError, printable
from ..records import Record, Stored, load_all
from .json_output import deliver, text_of
from .options import Options, path_of
from .progress import Display

JSON_SCHEMA = 1
_PARTS = ("data", "local")  # of a results folder: published records, and a reader's own


def compare_folders(display: Display, options: Options) -> int:
    """Print the comparison, or write it as JSON; returns the exit code.

    Raises UsageError for a folder that holds no measurement, RecordError for a broken record,
    CompareError where there is nothing to compare.
    """
    first, second = (measured(name, options.results) for name in options.compare)
    found = compare(first, second, RULE, lambda r, v: asked(options.only, r, v))
    if options.json:
        deliver(display, options.json, as_json(found, options.compare))
    if options.json != "-":
        show(display, found)
    return found.exit_code


def measured(name: str, results: Path) -> tuple[Record, ...]:
    """The measurements in a folder of results.

    ``name`` is a results folder, or its ``data`` or ``local`` part; these two words alone mean the
    parts of ``results``. A whole folder gives its published record where it has both.
    """
    folder = path_of(name)
    if not folder.is_dir() and name in _PARTS:
        folder = results / name
    if not folder.is_dir():
        raise UsageError(f"there is no results folder {name!r}")
    part = folder.name if folder.name in _PARTS else ""
    stored = load_all(folder.parent if part else folder)
    kept = [s for s in stored if s.record.evidence == "measured" and part in ("", _part(s))]
    if not kept:
        raise UsageError(f"there are no measurements in {folder}")
    by_place: dict[tuple[str, str], Record] = {}
    for item in kept:  # published ones come first
        by_place.setdefault((item.record.slug, item.record.experiment), item.record)
    return tuple(by_place.values())


def _part(item: Stored) -> str:
    return "local" if item.local else "data"


def asked(patterns: Sequence[str], record: Record, variant: str) -> bool:
    """Whether --only asks for a row; the experiment need not exist in the tree any more."""
    names = (
        record.chapter, record.chapter.split("_")[0], record.experiment, variant,
        f"{record.experiment}/{variant}",
    )  # fmt: skip
    return not patterns or any(fnmatchcase(name, p) for name in names for p in patterns)


def as_json(found: Comparison, folders: Sequence[str]) -> str:
    """The comparison for scripts; changes are shares, times are in µs."""
    verdicts = sorted({row.verdict for row in found.rows})
    content = {
        "schema": JSON_SCHEMA,
        "before": folders[0],
        "after": folders[1],
        "rule": asdict(RULE),
        "exit_code": found.exit_code,
        "counts": {v: found.count(v) for v in verdicts},
        "notes": list(found.notes),
        "rows": [asdict(row) for row in found.rows],
    }
    return text_of(content)


def show(display: Display, found: Comparison) -> None:
    """The comparison for people."""
    header = ("row", "verdict", "before", "after", "time", "cycles", "why")
    display.table(
        "Comparison (the second against the first)", header, [_cells(r) for r in found.rows]
    )
    for note in found.notes:
        display.say(printable(note))
    verdicts = sorted({row.verdict for row in found.rows})
    display.say(", ".join(f"{found.count(v)} {v}" for v in verdicts))


def _cells(row: Row) -> list[str]:
    times = [f"{t:,.2f} µs" if t is not None else "" for t in (row.before_us, row.after_us)]
    changes = [f"{c:+.1%}" if c is not None else "" for c in (row.time_change, row.cycle_change)]
    return [_name(row), row.verdict, *times, *changes]


def _name(row: Row) -> str:
    return f"{row.experiment}/{row.variant}" + (f" {row.cache}" if row.cache else "")
