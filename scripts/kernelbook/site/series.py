"""docs/series.toml: which articles there are, in which order, and what leads to what."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelbook.errors import PageError
from kernelbook.experiment import Text


@dataclass(frozen=True)
class Step:
    """Another article and why it comes before or after this one."""

    slug: str
    why: Text


@dataclass(frozen=True)
class Entry:
    """An article of the series, written or planned. ``slug`` is its file name without .md."""

    slug: str
    title: Text
    requires: tuple[Step, ...]
    leads_to: tuple[Step, ...]


@dataclass(frozen=True)
class Series:
    """All articles in reading order."""

    entries: tuple[Entry, ...]

    def entry(self, slug: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.slug == slug), None)

    def neighbours(self, slug: str) -> tuple[Entry | None, Entry | None]:
        """The articles before and after this one."""
        place = [entry.slug for entry in self.entries].index(slug)
        before = self.entries[place - 1] if place else None
        after = self.entries[place + 1] if place + 1 < len(self.entries) else None
        return before, after


def load(root: Path) -> Series:
    """Read docs/series.toml; raises PageError naming the file and what is wrong."""
    file = root / "docs" / "series.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=file) from None
    try:
        series = Series(tuple(_entry(item) for item in data["article"]))
    except (KeyError, TypeError) as error:
        raise PageError(f"an article lacks {error}", file=file) from None
    known = {entry.slug for entry in series.entries}
    for entry in series.entries:
        for step in (*entry.requires, *entry.leads_to):
            if step.slug not in known:
                raise PageError(f"{entry.slug} names {step.slug!r}, which is not listed", file=file)
    return series


def _entry(item: Mapping[str, Any]) -> Entry:
    return Entry(
        slug=item["slug"],
        title=Text(item["zh"], item["en"]),
        requires=tuple(_step(step) for step in item.get("requires", ())),
        leads_to=tuple(_step(step) for step in item.get("leads_to", ())),
    )


def _step(item: Mapping[str, Any]) -> Step:
    return Step(item["slug"], Text(item["zh"], item["en"]))
