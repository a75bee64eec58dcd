"""Numbers by name: what an article's expressions look up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import KernelbookError
from ..records import Stored
from .book import Book
from .rows import Row

# Evidence, variant, metric and state of L2; what lies behind it is a row a device.
_Key = tuple[str, str, str, str]


class Index:
    """The rows of these records by name, an experiment's when it is first asked for.

    Lookup raises KernelbookError listing what there is. Of two records the first one counts: a
    reader's own run never replaces a published row of the same card.
    """

    def __init__(self, book: Book, stored: Iterable[Stored]) -> None:
        self._book = book
        self._stored: dict[str, list[Stored]] = {}
        self._rows: dict[str, Mapping[_Key, Mapping[str, Row]]] = {}
        for item in stored:
            self._stored.setdefault(item.record.experiment, []).append(item)

    def find(
        self,
        evidence: str,
        experiment: str,
        variant: str,
        name: str,
        *,
        device: str,
        cache: str = "",
    ) -> Row:
        """The one row; a timed metric without ``cache`` is the cold one where there is one."""
        rows = self._of(experiment)
        for state in (cache,) if cache else ("", "cold", "warm"):
            by_device = rows.get((evidence, variant, name, state), {})
            if device in by_device:
                return by_device[device]
        raise KernelbookError(
            f"no {evidence} number {experiment}/{variant} {name}"
            + (f" on {device}" if device else ""),
            hint=self._known(evidence, experiment, variant),
        )

    def _of(self, experiment: str) -> Mapping[_Key, Mapping[str, Row]]:
        if experiment not in self._rows:
            found: dict[_Key, dict[str, Row]] = {}
            for item in self._stored.get(experiment, ()):
                for row in self._book.rows_of(item):
                    key = (row.evidence, row.variant, row.metric, row.cache)
                    found.setdefault(key, {}).setdefault(row.device, row)
            self._rows[experiment] = found
        return self._rows[experiment]

    def _known(self, evidence: str, experiment: str, variant: str) -> str:
        rows = self._of(experiment)
        same = [key for key in rows if key[0] == evidence]
        if not same:
            having = {
                item.record.experiment
                for items in self._stored.values()
                for item in items
                if item.record.evidence == evidence and self._book.rows_of(item)
            }
            if not having:
                return f"there are no {evidence} records"
            return "experiments: " + ", ".join(sorted(having))
        exact = [key for key in same if key[1] == variant]
        if not exact:
            return "variants: " + ", ".join(sorted({key[1] for key in same}))
        found = {key[2]: sorted(rows[key]) for key in exact}
        return "; ".join(
            f"{m}: {', '.join(d for d in ds if d) or 'yes'}" for m, ds in found.items()
        )
