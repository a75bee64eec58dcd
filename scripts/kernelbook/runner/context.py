"""What every stage of a run needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..devices import Sheets
from .provenance import Provenance


@dataclass(frozen=True)
class Context:
    """``again``: current records are taken again, too."""

    root: Path
    results: Path
    cache: Path
    sheets: Sheets
    provenance: Provenance
    again: bool
