"""Everything the records say, read once: what tables, pages, charts and the check work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from .. import records
from ..catalog import Catalog
from ..devices import Sheets
from ..errors import KernelbookError
from ..experiment import Text
from ..records import Record, Result, Stored
from ..staleness import source_digest
from .rows import Row, is_compilation_stale, is_stale, rows


class Numbers:
    """The rows of records held against one tree: a record's when they are first asked for.

    They stay as long as the record is the same object, so that whoever shows a tree again and
    again (a serve) computes only those of the records that have changed. The tree's sources must
    not change meanwhile.
    """

    def __init__(self, catalog: Catalog, sheets: Sheets) -> None:
        self.catalog = catalog
        self.sheets = sheets
        self._digest = cache(source_digest)  # thousands of rows are of a few dozen sources
        self._rows: dict[Path, tuple[Record, tuple[Row, ...]]] = {}

    def of(self, item: Stored) -> tuple[Row, ...]:
        """A record's rows, in its order."""
        found = self._rows.get(item.path)
        if found is None or found[0] is not item.record:
            found = item.record, rows((item,), self.catalog, self.sheets, self._digest)
            self._rows[item.path] = found
        return found[1]

    def is_stale(self, record: Record, result: Result) -> bool:
        """Whether the tree no longer has a key under which this result was taken."""
        if record.evidence != "compiled":
            return is_stale(record, result, self.catalog, self.sheets, self._digest)
        return any(
            is_compilation_stale(record, result, c, self.catalog, self.sheets, self._digest)
            for c in result.compilations
        )


@dataclass(frozen=True)
class Book:
    """The records, the numbers in them, and the tree they are held against."""

    numbers: Numbers
    stored: tuple[Stored, ...]

    @classmethod
    def load(cls, results: Path, catalog: Catalog, sheets: Sheets) -> Book:
        """Read a results folder; raises RecordError for the first broken record."""
        return cls(Numbers(catalog, sheets), records.load_all(results))

    @property
    def catalog(self) -> Catalog:
        return self.numbers.catalog

    @property
    def sheets(self) -> Sheets:
        return self.numbers.sheets

    def published(self) -> Book:
        """Without a reader's own runs."""
        return replace(self, stored=tuple(s for s in self.stored if not s.local))

    def only(self, item: Stored) -> Book:
        """With one record alone."""
        return replace(self, stored=(item,))

    @property
    def has_local(self) -> bool:
        return any(s.local for s in self.stored)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every number, in the order of the records; of one experiment ask `rows_about`."""
        return tuple(row for item in self.stored for row in self.rows_of(item))

    @cached_property
    def _by_experiment(self) -> Mapping[str, Sequence[Stored]]:
        found: dict[str, list[Stored]] = {}
        for item in self.stored:
            found.setdefault(item.record.experiment, []).append(item)
        return found

    def rows_about(self, experiment: str, evidence: str = "") -> tuple[Row, ...]:
        """The numbers in records of an experiment, of all grades or of one."""
        return tuple(
            row
            for item in self._by_experiment.get(experiment, ())
            if evidence in ("", item.record.evidence)
            for row in self.rows_of(item)
        )

    def records_of(self, evidence: str, experiment: str = "") -> tuple[Stored, ...]:
        """Records of a grade (and experiment): reference device first, local last.

        A member of a sweep is compiled and counted as another one, whose record is given then.
        """
        holder = self.catalog.holder(evidence, experiment)
        among = self._by_experiment.get(holder, ()) if holder else self.stored
        found = [item for item in among if item.record.evidence == evidence]
        return tuple(sorted(found, key=self._device_order))

    def _device_order(self, item: Stored) -> tuple[bool, bool, str]:
        slug = item.record.slug
        return item.local, slug != self.sheets.reference, slug

    def rows_of(self, item: Stored) -> tuple[Row, ...]:
        return self.numbers.of(item)

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
