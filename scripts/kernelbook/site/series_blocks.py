"""Blocks drawn from docs/series.toml: navigation, the list, the graph, the paths and the tags."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.site import mermaid, series
from kernelbook.site.blocks import BookBlock

_PREVIOUS = Text("上一篇", "Previous")
_NEXT = Text("下一篇", "Next")
_BEFORE = Text("先读", "Read first")
_AFTER = Text("接着读", "Where to go from here")
_PLANNED = Text("计划中", "planned")
_WRITTEN = Text("已发布", "published")
_LABEL = Text("系列导航", "Series")
_NOTHING = Text("本篇是起点，不需要前置阅读。", "Nothing: the series starts here.")
_TAGS = Text("标签", "Tags")
_HEADS = (Text("文章", "article"), Text("标签", "tags"), Text("状态", "status"))
_GRAPH = Text(
    "箭头从先读的文章指向以它为基础的文章；实线框的文章已发布，虚线框的在计划中",
    "Arrows lead from what is read first to what builds on it; solid boxes are published, "
    "dashed ones planned",
)


class SeriesBlock(BookBlock):
    """What these blocks share: links to articles that exist, names of those that do not yet."""

    @property
    def whole(self) -> series.Series:
        return series.load(self.page.project.root)

    def written(self, entry: series.Entry) -> bool:
        return self.page.has_page(f"{entry.slug}.md")

    def link(self, entry: series.Entry) -> str:
        title = escape(entry.title.of(self.page.language))
        if self.written(entry):
            href = escape(self.page.link(f"{entry.slug}.md"))
            return f'<a href="{href}">{title}</a>'
        planned = escape(_PLANNED.of(self.page.language))
        return f'<span>{title} <em class="kb-mark">{planned}</em></span>'

    def tags(self, entry: series.Entry) -> str:
        """The article's tags, leading to the list of tags on the first page of the series."""
        whole = self.whole
        return " ".join(self._tag(whole.tag(name), whole) for name in entry.tags)

    def _tag(self, tag: series.Tag, whole: series.Series) -> str:
        title = escape(tag.title.of(self.page.language))
        uri = f"{whole.entries[0].slug}.md"
        if not self.page.has_page(uri):
            return f'<span class="kb-tag">{title}</span>'
        href = escape(self.page.link(uri, f"tag-{tag.id}"))
        return f'<a class="kb-tag" href="{href}">{title}</a>'


class NavigationBlock(SeriesBlock):
    """``/// navigation |``: previous and next, prerequisites and follow-ups, tags."""

    NAME = "navigation"

    def html(self) -> str:
        whole = self.whole
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
        tags = self.tags(entry)
        return (
            f'<nav class="kb-series" aria-label="{escape(_LABEL.of(language))}">'
            f"{self._steps(_BEFORE, entry.requires, whole) or self._titled(_BEFORE, nothing)}"
            f"{self._steps(_AFTER, entry.leads_to, whole)}"
            f"{self._titled(_TAGS, f'<p>{tags}</p>') if tags else ''}"
            f'<div class="kb-series__order">{order}</div></nav>'
        )

    def _steps(self, title: Text, steps: Sequence[series.Step], whole: series.Series) -> str:
        language = self.page.language
        items = []
        for step in steps:
            entry = whole.entry(step.slug)
            assert entry is not None, "series.load checks every step"
            why = f"<small>{escape(step.why.of(language))}</small>"
            items.append(f"<li>{self.link(entry)}{why}</li>")
        return self._titled(title, f"<ul>{''.join(items)}</ul>") if items else ""

    def _titled(self, title: Text, body: str) -> str:
        return f"<section><b>{escape(title.of(self.page.language))}</b>{body}</section>"

    def _neighbour(self, entry: series.Entry | None, title: Text, side: str) -> str:
        if entry is None:
            return ""
        label = f"<small>{escape(title.of(self.page.language))}</small>"
        return f'<div class="kb-series__{side}">{label}{self.link(entry)}</div>'


class ListBlock(SeriesBlock):
    """``/// series |``: every article with its tags and whether it is written."""

    NAME = "series"

    def html(self) -> str:
        language = self.page.language
        heads = "".join(f'<th scope="col">{escape(head.of(language))}</th>' for head in _HEADS)
        rows = []
        for entry in self.whole.entries:
            status = escape((_WRITTEN if self.written(entry) else _PLANNED).of(language))
            title = escape(entry.title.of(language))
            if self.written(entry):
                title = self.link(entry)
            rows.append(
                f'<tr><th scope="row">{title}</th><td>{self.tags(entry)}</td><td>{status}</td></tr>'
            )
        label = escape(_LABEL.of(language))
        return (
            f'<div class="kb-table"><div class="kb-scroll" tabindex="0" role="region" '
            f'aria-label="{label}"><table class="kb-data"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div></div>"
        )


class GraphBlock(SeriesBlock):
    """``/// series-graph |``: which article builds on which, drawn by mermaid."""

    NAME = "series-graph"

    def html(self) -> str:
        language = self.page.language
        caption = {"caption": _GRAPH.of(language)}
        return mermaid.fence(self.source(), options=caption, md=self.page.md)

    def source(self) -> str:
        """The diagram's text: a node an article that has neighbours, dashed while planned."""
        whole = self.whole
        steps = whole.steps
        linked = {slug for edge in steps for slug in edge}
        names = {e.slug: f"n{place}" for place, e in enumerate(whole.entries)}
        lines = ["flowchart LR"]
        for entry in whole.entries:
            if entry.slug in linked:
                title = entry.short.of(self.page.language).replace('"', "'")
                kind = "written" if self.written(entry) else "planned"
                lines.append(f'    {names[entry.slug]}["{title}"]:::{kind}')
        lines += [f"    {names[before]} --> {names[after]}" for before, after in steps]
        lines.append("    classDef written fill:#d5efe3")
        lines.append("    classDef planned stroke-dasharray:5 4")
        return "\n".join(lines)


class PathsBlock(SeriesBlock):
    """``/// series-paths |``: the ways through the series, each for one kind of reader."""

    NAME = "series-paths"

    def html(self) -> str:
        whole, language = self.whole, self.page.language
        parts = []
        for path in whole.paths:
            entries = [whole.entry(slug) for slug in path.articles]
            items = "".join(f"<li>{self.link(entry)}</li>" for entry in entries if entry)
            parts.append(
                f'<section id="path-{escape(path.id)}"><h3>{escape(path.title.of(language))}</h3>'
                f"<p>{escape(path.about.of(language))}</p><ol>{items}</ol></section>"
            )
        return f'<div class="kb-paths">{"".join(parts)}</div>'


class TagsBlock(SeriesBlock):
    """``/// series-tags |``: every tag with its articles."""

    NAME = "series-tags"

    def html(self) -> str:
        whole, language = self.whole, self.page.language
        items = []
        for tag in whole.tags:
            links = "".join(f"<li>{self.link(entry)}</li>" for entry in whole.tagged(tag.id))
            title = escape(tag.title.of(language))
            items.append(f'<dt id="tag-{escape(tag.id)}">{title}</dt><dd><ul>{links}</ul></dd>')
        return f'<dl class="kb-tags">{"".join(items)}</dl>'
