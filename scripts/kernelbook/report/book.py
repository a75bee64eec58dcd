"""Everything the records say, read once: what tables, pages, charts and the check work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import records
from ..catalog import Catalog
from ..devices import Sheets
from ..errors import KernelbookError
from ..experiment import Text
from ..records import Record, Result, Stored
from .rows import Row, rows


@dataclass(frozen=True)
class Book:
    """The records, the numbers in them, and the tree they are held against."""

    catalog: Catalog
    sheets: Sheets
    stored: tuple[Stored, ...]
    rows: tuple[Row, ...]
    by_path: Mapping[Path, tuple[Row, ...]]

    @classmethod
    def of(cls, stored: Iterable[Stored], catalog: Catalog, sheets: Sheets) -> Book:
        kept = tuple(stored)
        by_path = {item.path: rows((item,), catalog, sheets) for item in kept}
        every = tuple(row for found in by_path.values() for row in found)
        return cls(catalog, sheets, kept, every, by_path)

    @classmethod
    def load(cls, results: Path, catalog: Catalog, sheets: Sheets) -> Book:
        """Read a results folder; raises RecordError for the first broken record."""
        return cls.of(records.load_all(results), catalog, sheets)

    def published(self) -> Book:
        """Without a reader's own runs."""
        return Book(
            self.catalog,
            self.sheets,
            tuple(s for s in self.stored if not s.local),
            tuple(r for r in self.rows if not r.local),
            self.by_path,
        )

    @property
    def has_local(self) -> bool:
        return any(s.local for s in self.stored)

    def records_of(self, evidence: str, experiment: str = "") -> tuple[Stored, ...]:
        """Records of a grade (and experiment): reference device first, local last.

        A member of a sweep is compiled and counted as another one, whose record is given then.
        """
        holder = self.catalog.holder(evidence, experiment)
        found = [
            s
            for s in self.stored
            if s.record.evidence == evidence and holder in ("", s.record.experiment)
        ]
        return tuple(sorted(found, key=self._device_order))

    def _device_order(self, item: Stored) -> tuple[bool, bool, str]:
        slug = item.record.slug
        return item.local, slug != self.sheets.reference, slug

    def rows_of(self, item: Stored) -> tuple[Row, ...]:
        return self.by_path[item.path]

    def device_name(self, record: Record) -> str:
        """The card's name as the driver or the spec sheet has it: raw text, to be escaped."""
        if record.device is not None:
            return record.device.name
        sheet = self.sheets.devices.get(record.slug)
        return sheet.name if sheet else record.slug

    def results_of(self, record: Record, variants: Iterable[str] | None) -> tuple[Result, ...]:
        """A record's rows in the author's order, those the catalog does not list after them."""
        try:
            order = [v.name for v in self.catalog.experiment(record.experiment).variants]
        except KernelbookError:
            order = []
        wanted = None if variants is None else tuple(variants)
        found = [r for r in record.results if wanted is None or r.variant in wanted]
        if wanted is not None:
            return tuple(sorted(found, key=lambda r: wanted.index(r.variant)))
        rank = {name: i for i, name in enumerate(order)}
        return tuple(sorted(found, key=lambda r: rank.get(r.variant, len(order))))

    def variant_title(self, experiment: str, variant: str) -> Text:
        """The author's words for a variant, without Markdown; its name where there are none."""
        try:
            title = self.catalog.experiment(experiment).variant(variant).title
        except KernelbookError:
            return Text(variant, variant)
        return Text(title.zh.replace("`", ""), title.en.replace("`", ""))
