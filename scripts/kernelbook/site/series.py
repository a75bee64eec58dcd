"""docs/series.toml: which articles there are, in which order, and what leads to what."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.site.place import line_with


@dataclass(frozen=True)
class Step:
    """Another article and why it comes before or after this one."""

    slug: str
    why: Text


@dataclass(frozen=True)
class Entry:
    """An article of the series, written or planned. ``slug`` is its file name without .md.

    ``short`` is its title in the graph, where a long one would not fit.
    """

    slug: str
    title: Text
    short: Text
    tags: tuple[str, ...]
    requires: tuple[Step, ...]
    leads_to: tuple[Step, ...]


@dataclass(frozen=True)
class Tag:
    """What articles have in common; ``id`` is also its place on the page of the series."""

    id: str
    title: Text


@dataclass(frozen=True)
class Route:
    """A way through the series for one kind of reader: slugs in reading order."""

    id: str
    title: Text
    about: Text
    articles: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """All articles in reading order, and the ways to group them."""

    entries: tuple[Entry, ...]
    tags: tuple[Tag, ...] = ()
    paths: tuple[Route, ...] = ()

    def entry(self, slug: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.slug == slug), None)

    def of_chapter(self, chapter: str) -> Entry | None:
        """The article of a folder of kernels, by their number: ``01_basics`` and ``01-…``."""
        number = chapter.partition("_")[0]
        return next((e for e in self.entries if e.slug.startswith(f"{number}-")), None)

    def tag(self, name: str) -> Tag:
        """A tag that `load` has found to be listed."""
        return next(tag for tag in self.tags if tag.id == name)

    def tagged(self, name: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if name in entry.tags)

    def neighbours(self, slug: str) -> tuple[Entry | None, Entry | None]:
        """The articles before and after this one."""
        place = [entry.slug for entry in self.entries].index(slug)
        before = self.entries[place - 1] if place else None
        after = self.entries[place + 1] if place + 1 < len(self.entries) else None
        return before, after

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(what is read first, what builds on it), each once, in reading order."""
        rank = {entry.slug: place for place, entry in enumerate(self.entries)}
        found = {(step.slug, entry.slug) for entry in self.entries for step in entry.requires}
        found |= {(entry.slug, step.slug) for entry in self.entries for step in entry.leads_to}
        return tuple(sorted(found, key=lambda edge: (rank[edge[0]], rank[edge[1]])))

    @property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """The edges without hints that a longer way already gives; what is required stays."""

        def reached(start: str, without: tuple[str, str]) -> set[str]:
            seen: set[str] = set()
            waiting = [start]
            while waiting:
                here = waiting.pop()
                ways = {b for a, b in edges if a == here and (a, b) != without} - seen
                seen |= ways
                waiting += ways
            return seen

        edges = self.edges
        required = {(step.slug, entry.slug) for entry in self.entries for step in entry.requires}
        return tuple(
            edge for edge in edges if edge in required or edge[1] not in reached(edge[0], edge)
        )


def load(root: Path) -> Series:
    """The series of the repository; raises PageError naming the file and what is wrong."""
    file = root / "docs" / "series.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=file) from None
    try:
        series = Series(
            tuple(_entry(item) for item in data["article"]),
            tuple(Tag(item["id"], _text(item)) for item in data.get("tag", ())),
            tuple(_path(item) for item in data.get("path", ())),
        )
    except (KeyError, TypeError) as error:
        raise PageError(f"an article, tag or path lacks {error}", file=file) from None
    for name, problem in _dangling(series):
        raise PageError(problem, file=file, line=_line_of(file, name))
    return series


def _line_of(file: Path, name: str) -> int | None:
    """The first line that has a name in quotes."""
    return line_with(file.read_text(encoding="utf-8").splitlines(), f'"{name}"')


def _dangling(series: Series) -> Iterable[tuple[str, str]]:
    """(name that the table should not have here, what is wrong with it)."""
    known = {entry.slug for entry in series.entries}
    tags = {tag.id for tag in series.tags}
    for entry in series.entries:
        for step in (*entry.requires, *entry.leads_to):
            if step.slug not in known:
                yield step.slug, f"{entry.slug} names {step.slug!r}, which is not listed"
        for name in entry.tags:
            if name not in tags:
                yield name, f"{entry.slug} has the tag {name!r}, which is not listed"
    for path in series.paths:
        for place, slug in enumerate(path.articles):
            if slug not in known:
                yield slug, f"path {path.id!r} names {slug!r}, which is not listed"
                continue
            needed = {s.slug for e in series.entries if e.slug == slug for s in e.requires}
            for other in sorted(needed - set(path.articles[:place])):
                what = f"path {path.id!r} names {slug!r} without {other!r} before it"
                yield path.id, f"{what}, which it needs"


def _text(item: Mapping[str, Any]) -> Text:
    return Text(item["zh"], item["en"])


def _entry(item: Mapping[str, Any]) -> Entry:
    return Entry(
        slug=item["slug"],
        title=_text(item),
        short=Text(item.get("short_zh", item["zh"]), item.get("short_en", item["en"])),
        tags=tuple(item.get("tags", ())),
        requires=tuple(_step(step) for step in item.get("requires", ())),
        leads_to=tuple(_step(step) for step in item.get("leads_to", ())),
    )


def _step(item: Mapping[str, Any]) -> Step:
    return Step(item["slug"], _text(item))


def _path(item: Mapping[str, Any]) -> Route:
    about = Text(item["about_zh"], item["about_en"])
    return Route(item["id"], _text(item), about, tuple(item["articles"]))
