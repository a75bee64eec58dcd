"""One card and everything recorded on it: what a device page is made of.

A reader's own run of a published card is a card of its own here: its numbers are never mixed with
the published ones.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelbook.devices import Device
from kernelbook.errors import KernelbookError, PageError
from kernelbook.experiment import Text
from kernelbook.metrics import metric
from kernelbook.records import DeviceInfo, Stored
from kernelbook.report.hardware import device_of
from kernelbook.report.index import Index
from kernelbook.report.rows import Row
from kernelbook.site.context import Project
from kernelbook.site.expressions import Resolved
from kernelbook.site.scope import ProjectScope

LIMITS = "limits.toml"
_HEADLINES = ("throughput", "bandwidth")


@dataclass(frozen=True)
class Limit:
    """A measured limit of a card; ``of`` is the expression it is a part of, or ""."""

    title: Text
    number: str
    of: str


@dataclass(frozen=True)
class Card:
    """A card with its records, published or a reader's own; ``sheet`` is None where unknown."""

    slug: str
    local: bool
    name: str
    sheet: Device | None
    info: DeviceInfo | None
    stored: tuple[Stored, ...]
    rows: tuple[Row, ...]

    def of_experiments(self, *names: str) -> tuple[Row, ...]:
        wanted = set(names)
        return tuple(row for row in self.rows if row.experiment in wanted)

    def best(self, name: str, rows: Sequence[Row] | None = None) -> Row | None:
        """The best number of a metric, L2 cold, host code and transfers left out."""
        better = metric(name).better or 1
        found = [
            row
            for row in (self.rows if rows is None else rows)
            if row.metric == name
            and row.cache in ("", "cold")
            and row.result.kind in ("kernel", "library")
        ]
        return max(found, key=lambda row: better * row.value, default=None)


def published(project: Project) -> tuple[Card, ...]:
    """Cards with published records: the reference first, cited ones last."""
    return _cards(project, local=False)


def own(project: Project) -> tuple[Card, ...]:
    """The cards of a reader's own runs."""
    return _cards(project, local=True)


def _cards(project: Project, *, local: bool) -> tuple[Card, ...]:
    book = project.book
    records = (*book.records_of("measured"), *book.records_of("cited"))
    slugs = dict.fromkeys(item.record.slug for item in records if item.local == local)
    return tuple(_card(project, slug, records, local=local) for slug in slugs)


def _card(project: Project, slug: str, records: Sequence[Stored], *, local: bool) -> Card:
    book = project.book
    stored = tuple(i for i in records if i.record.slug == slug and i.local == local)
    latest = max(stored, key=lambda item: item.record.date)
    infos = [i.record.device for i in stored if i.record.device is not None]
    sheet = book.sheets.devices.get(slug)
    if sheet is None and infos:
        sheet = device_of(infos[-1], book.sheets)
    rows = tuple(row for item in stored for row in book.rows_of(item))
    name = book.device_name(latest.record)
    return Card(slug, local, name, sheet, infos[-1] if infos else None, stored, rows)


def headline(rows: Sequence[Row], card: Card, bound: str) -> Row | None:
    """The best of a card's rows: throughput, or bandwidth where memory binds."""
    names = _HEADLINES if bound == "compute" else tuple(reversed(_HEADLINES))
    return next((row for name in names if (row := card.best(name, rows))), None)


def limits(root: Path) -> tuple[Limit, ...]:
    """docs/limits.toml, none where there is no such file; raises PageError."""
    file = root / "docs" / LIMITS
    if not file.is_file():
        return ()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        return tuple(
            Limit(Text(item["zh"], item["en"]), item["number"], item.get("of", ""))
            for item in data["limit"]
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=file) from None
    except (KeyError, TypeError) as error:
        raise PageError(f"a limit lacks {error}", file=file) from None


@dataclass(frozen=True)
class CardScope(ProjectScope):
    """Names as an article's, of one card: `measured` and `spec` are its own."""

    card: Card | None = None

    @classmethod
    def of(cls, project: Project, card: Card, language: str, strict: bool) -> CardScope:
        book = project.book
        others = (i for i in book.stored if i.record.evidence not in ("measured", "cited"))
        index = Index(book, (*card.stored, *others))
        return cls(replace(project, index=index), language, strict, card)

    def _default_device(
        self, evidence: str, experiment: str, variant: str, name: str, cache: str
    ) -> str:
        assert self.card is not None
        if evidence in ("measured", "cited"):
            return self.card.slug
        return super()._default_device(evidence, experiment, variant, name, cache)

    def _figure(self, slug: str | None, parts: Sequence[str]) -> Resolved:
        assert self.card is not None
        if slug is None and self.card.sheet is not None and len(parts) == 1:
            return Resolved(self.card.sheet.figure(parts[0]))
        return super()._figure(slug or self.card.slug, parts)


def shown_limits(
    project: Project, card: Card, scope: CardScope
) -> Iterator[tuple[Limit, KernelbookError | None]]:
    """Limits the card has records for; an error only where the reference device lacks them."""
    from kernelbook.site import expressions

    for limit in limits(project.root):
        try:
            expressions.number(limit.number.partition("|")[0].strip(), scope)
        except KernelbookError as error:
            if card.slug == project.reference and not card.local:
                yield limit, error
            continue
        yield limit, None
