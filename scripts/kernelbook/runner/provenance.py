"""Which source a record was taken from, and when; and the record that says so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..experiment import Experiment, Shape
from ..records import SCHEMA, DeviceInfo, Evidence, Record, Result


@dataclass(frozen=True)
class Provenance:
    """``commit`` is "" where neither git nor KERNELBOOK_COMMIT says; ``date`` is ISO 8601 UTC."""

    commit: str
    dirty: bool
    date: str


def provenance(root: Path) -> Provenance:
    """The commit of the tree at ``root``. Dirty means that what kernels are made of differs.

    On a machine without git, KERNELBOOK_COMMIT and KERNELBOOK_DIRTY=1 say it.
    """
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if commit := os.environ.get("KERNELBOOK_COMMIT"):
        return Provenance(commit, os.environ.get("KERNELBOOK_DIRTY") == "1", date)
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", "kernels", "scripts/kernelbook")
    return Provenance(commit or "", bool(changed), date)


def record_of(
    experiment: Experiment,
    evidence: Evidence,
    shape: Shape,
    origin: Provenance,
    *,
    results: tuple[Result, ...] = (),
    device: DeviceInfo | None = None,
    notes: Mapping[str, str] | None = None,
) -> Record:
    """A record of an experiment at a shape, taken from this source."""
    return Record(
        schema=SCHEMA,
        evidence=evidence,
        chapter=experiment.chapter,
        experiment=experiment.name,
        shape=dict(shape),
        dtype=experiment.dtype,
        seed=experiment.seed,
        results=results,
        commit=origin.commit,
        dirty=origin.dirty,
        date=origin.date,
        device=device,
        notes=notes or {},
    )


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
