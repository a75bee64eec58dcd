"""What a launch did, and what its observers saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from .counts import KernelCounts
from .events import Observer
from .module import Kernel, Module
from .observers import Finding, Request, counts_of, findings_of, requests_of


@dataclass(frozen=True)
class Run:
    """One launch that has finished.

    ``steps``: instructions the machine executed, each for some lanes of a batch.
    ``lane_instructions``: the budget spent; a step costs at least 1,024.
    """

    module: Module = field(repr=False)
    kernel: Kernel = field(repr=False)
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    batches: int
    steps: int
    lane_instructions: int
    observers: tuple[Observer, ...] = field(repr=False)

    @property
    def counts(self) -> KernelCounts:
        """What the counting observers counted, for the kernel and per source line."""
        return counts_of(self.kernel, self.observers, dict(self.module.files))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checking observers found; empty when they found nothing (or were off)."""
        return findings_of(self.observers, dict(self.module.files))

    @property
    def requests(self) -> dict[str, tuple[Request, ...]]:
        """What one warp asked of shared memory, by "file:line"; see `RequestObserver`."""
        return requests_of(self.observers, dict(self.module.files))

    def _title(self) -> str:
        return f"{self.kernel.name}<<<{self.grid}, {self.block}>>>"

    def __str__(self) -> str:
        lines = [f"{self._title()}: {self.batches} batch(es), {self.steps:,} steps"]
        if self.observers:
            lines.append(str(self.counts))
            lines += [str(finding) for finding in self.findings] or ["no findings"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        found = "".join(f"<li>{escape(str(f))}</li>" for f in self.findings)
        findings = f"<ul>{found}</ul>" if found else "<p>no findings</p>"
        body = self.counts._repr_html_() + findings if self.observers else ""
        return f"<p><code>{escape(self._title())}</code></p>{body}"
