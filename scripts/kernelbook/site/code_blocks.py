"""Blocks that show source code: in an article, on a source page, and the list of all files."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from kernelbook.experiment import Kernel, Text
from kernelbook.quantities import Grade
from kernelbook.report.tables import compiled_table
from kernelbook.site import excerpt, line_counts, quotes
from kernelbook.site.blocks import BookBlock
from kernelbook.site.tables_html import badge, table_html

_RESOURCES = Text("编译后的资源占用", "Resources after compilation")
_QUOTED = Text("引用本文件的文章", "Articles that quote this file")
_HEADER_COMMENT = re.compile(r"\A//[ \t]*(?:[\w.-]+:[ \t]*)?(?P<idea>[^\n]+)")


class ExcerptBlock(BookBlock):
    """``/// excerpt | 01_basics/matrix_mul_tiled.cu#tile_loop``"""

    NAME = "excerpt"
    ARGUMENT_FORM = "CHAPTER/NAME.cu#region"

    def html(self) -> str:
        return excerpt.excerpt_html(excerpt.quote_of(self.argument), self.page)


class SourceBlock(BookBlock):
    """``/// source | 01_basics/vector_add.cu``: a whole file, its resources, who quotes it."""

    NAME = "source"
    ARGUMENT_FORM = "CHAPTER/NAME.cu"

    def html(self) -> str:
        path = excerpt.quote_of(self.argument).path
        lines, numbers = excerpt.whole_file(self.page.project.root, path)
        code = excerpt.code_html(lines, numbers, anchors=True)
        return (
            '<div class="kb-source">'
            f"{self._quoted_by(path)}"
            f'<figure class="kb-excerpt"><figcaption>kernels/{escape(path)}</figcaption>'
            f'<div class="highlight kb-code"><pre tabindex="0"><code>{code}</code></pre></div>'
            f"</figure>{self._resources(path)}"
            f"{line_counts.counts_html(self.page.project.book, path, lines, self.page)}</div>"
        )

    def _quoted_by(self, path: str) -> str:
        links = "".join(
            f'<li><a href="{escape(self.page.link(article.uri))}">{escape(article.title)}</a></li>'
            for article in quotes.quoting(self.page.docs, path)
            if self.page.has_page(article.uri)
        )
        if not links:
            return ""
        title = escape(_QUOTED.of(self.page.language))
        return f'<nav class="kb-quoted" aria-label="{title}"><b>{title}</b><ul>{links}</ul></nav>'

    def _resources(self, path: str) -> str:
        """A table for each experiment; a kernel that several use is shown once."""
        chapter, _, name = path.partition("/")
        book = self.page.project.book
        shown: set[str] = set()
        tables = []
        for experiment in book.catalog.of_chapter(chapter):
            variants = [
                kernel.name
                for kernel in experiment.kernels
                if kernel.source == name and kernel.name not in shown
            ]
            shown.update(variants)
            if not variants:
                continue
            table = compiled_table(book, experiment.name, variants=variants)
            if table.lines:
                tables.append(table_html(table, self.page, graded=False))
        title = f"{escape(_RESOURCES.of(self.page.language))} "
        title += badge(Grade.COMPILED, self.page.language)
        return f"<h2 id='resources'>{title}</h2>{''.join(tables)}" if tables else ""


class SourcesBlock(BookBlock):
    """``/// sources |``: every source file by chapter, with its kernels' titles or its idea."""

    NAME = "sources"

    def html(self) -> str:
        catalog = self.page.project.book.catalog
        items: dict[str, list[str]] = {}
        for file in catalog.sources():
            path = file.relative_to(catalog.root / "kernels").as_posix()
            chapter, _, name = path.partition("/")
            link = f"<code>{escape(name)}</code>"
            if self.page.has_page(excerpt.source_page(path)):
                href = escape(self.page.link(excerpt.source_page(path)))
                link = f'<a href="{href}">{link}</a>'
            about = self._about(chapter, name, file)
            items.setdefault(chapter, []).append(f"<li>{link}{about}</li>")
        return "".join(
            f'<div class="kb-sources"><b>{self.chapter_name(chapter)}</b>'
            f"<ul>{''.join(lines)}</ul></div>"
            for chapter, lines in items.items()
        )

    def _about(self, chapter: str, name: str, file: Path) -> str:
        """The titles of its kernels in the language of the page; a header comment is English."""
        language = self.page.language
        kernels = (
            variant
            for experiment in self.page.project.book.catalog.of_chapter(chapter)
            for variant in experiment.variants
            if isinstance(variant, Kernel) and variant.source == name
        )
        titles = dict.fromkeys(kernel.title.of(language).replace("`", "") for kernel in kernels)
        if titles and language != "en":
            return f" <span>{escape('；'.join(titles))}</span>"
        idea = _HEADER_COMMENT.match(file.read_text(encoding="utf-8"))
        return f' <span lang="en">{escape(idea["idea"])}</span>' if idea else ""
