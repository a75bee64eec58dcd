"""``/// navigation |``: previous and next, prerequisites and follow-ups, from docs/series.toml."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.site import series
from kernelbook.site.blocks import BookBlock

_PREVIOUS = Text("上一篇", "Previous")
_NEXT = Text("下一篇", "Next")
_BEFORE = Text("先读", "Read first")
_AFTER = Text("接着读", "Where to go from here")
_PLANNED = Text("计划中", "planned")
_LABEL = Text("系列导航", "Series")
_NOTHING = Text("本篇是起点，不需要前置阅读。", "Nothing: the series starts here.")


class NavigationBlock(BookBlock):
    """Links to articles that exist; planned ones are named without a link."""

    NAME = "navigation"

    def html(self) -> str:
        whole = series.load(self.page.project.root)
        slug = self.page.uri.removesuffix(".md")
        entry = whole.entry(slug)
        if entry is None:
            known = ", ".join(e.slug for e in whole.entries)
            raise PageError(f"docs/series.toml has no article {slug!r}", hint=f"it has: {known}")
        language = self.page.language
        previous, following = whole.neighbours(slug)
        order = self._neighbour(previous, _PREVIOUS, "prev") + self._neighbour(
            following, _NEXT, "next"
        )
        nothing = f"<p>{escape(_NOTHING.of(language))}</p>"
        return (
            f'<nav class="kb-series" aria-label="{escape(_LABEL.of(language))}">'
            f"{self._steps(_BEFORE, entry.requires, whole) or self._titled(_BEFORE, nothing)}"
            f"{self._steps(_AFTER, entry.leads_to, whole)}"
            f'<div class="kb-series__order">{order}</div></nav>'
        )

    def _steps(self, title: Text, steps: Sequence[series.Step], whole: series.Series) -> str:
        language = self.page.language
        items = []
        for step in steps:
            entry = whole.entry(step.slug)
            assert entry is not None, "series.load checks every step"
            why = f"<small>{escape(step.why.of(language))}</small>"
            items.append(f"<li>{self._link(entry)}{why}</li>")
        return self._titled(title, f"<ul>{''.join(items)}</ul>") if items else ""

    def _titled(self, title: Text, body: str) -> str:
        return f"<section><b>{escape(title.of(self.page.language))}</b>{body}</section>"

    def _neighbour(self, entry: series.Entry | None, title: Text, side: str) -> str:
        if entry is None:
            return ""
        label = f"<small>{escape(title.of(self.page.language))}</small>"
        return f'<div class="kb-series__{side}">{label}{self._link(entry)}</div>'

    def _link(self, entry: series.Entry) -> str:
        title = escape(entry.title.of(self.page.language))
        uri = f"{entry.slug}.md"
        if self.page.has_page(uri):
            return f'<a href="{escape(self.page.link(uri))}">{title}</a>'
        planned = escape(_PLANNED.of(self.page.language))
        return f'<span>{title} <em class="kb-mark">{planned}</em></span>'
