"""What one stage made of one experiment, for the closing table and the exit code."""

from __future__ import annotations

from dataclasses import dataclass

from ..records import Record


@dataclass(frozen=True)
class Outcome:
    """``record`` is what now stands in the results folder; ``failures`` one sentence each.

    ``fresh`` is False where a current record was left as it was.
    """

    stage: str
    experiment: str
    record: Record | None
    fresh: bool
    failures: tuple[str, ...] = ()
