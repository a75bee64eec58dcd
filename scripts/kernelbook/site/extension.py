"""The Markdown extension of the site: numbers, claims and blocks bound to records and sources.

markdown_extensions:
  kernelbook.site.extension:
    language: zh
    strict: false        a stale number of ours fails the build instead of being marked
    root: ""             the repository; default: the folder of mkdocs.yml
    results: ""          records; default: results/ of the repository
    search: true         false: pages of this build are not put into the search index
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import markdown
from pymdownx.blocks import BlocksExtension, BlocksProcessor

from kernelbook.site import fresh, notebooks
from kernelbook.site.block_types import BLOCKS
from kernelbook.site.blocks import LeftoverTreeprocessor
from kernelbook.site.context import find_root
from kernelbook.site.numbers import TokenInline, TokenPostprocessor, TokenPreprocessor
from kernelbook.site.page import LANGUAGES, PageState
from kernelbook.site.place import PageBuildError, page_error
from kernelbook.site.results_page import PlainCellsTreeprocessor, ResultsPagePreprocessor
from kernelbook.site.switch import SwitchPostprocessor
from kernelbook.site.tokens import Token

# Before everything that reads or removes text (whitespace normalisation is at 30).
_PREPROCESS = 40
# After code spans (190), before escapes (180) and everything that reads punctuation.
_INLINE = 188
# Before the inline pass (20).
_PLAIN_CELLS = 21
# After the inline pass (20) has marked code as atomic, before MkDocs looks at links (0).
_LEFTOVER = 19
# After raw HTML has been put back (30).
_POSTPROCESS = 10


class SiteExtension(BlocksExtension):
    """Registers everything; one instance is one page in MkDocs."""

    def __init__(self, **kwargs: Any) -> None:
        self.config = {
            "language": ["zh", "zh or en"],
            "strict": [False, "a stale number of ours is an error"],
            "root": ["", "the repository; default: the folder of mkdocs.yml"],
            "results": ["", "folder of the records; default: results/ of the repository"],
            "search": [True, "pages are put into the search index"],
            "keep_going": [False, "log what is wrong with a page, then do the next one"],
        }
        super().__init__(**kwargs)
        self._tokens: list[Token] = []
        self._page: PageState | None = None

    def extendMarkdownBlocks(self, md: markdown.Markdown, block_mgr: BlocksProcessor) -> None:
        md.registerExtension(self)
        language = str(self.getConfig("language"))
        if language not in LANGUAGES:
            raise page_error(md, f"language is {language!r}", hint="one of " + ", ".join(LANGUAGES))
        # Reading its configuration, before every build, MkDocs tries the extension on an object
        # that is whole; that of a page gets its extensions before its serializer.
        if fresh.is_dirty_serve() and "serializer" in vars(md):
            fresh.refresh(find_root(Path.cwd()), language)
        notebooks.encrypt_kernels()
        notebooks.name_headings()
        page = PageState(
            md,
            language,
            bool(self.getConfig("strict")),
            str(self.getConfig("root") or ""),
            str(self.getConfig("results") or ""),
            bool(self.getConfig("keep_going")),
        )
        self._page = page
        tokens = self._tokens
        search = fresh.SearchPreprocessor(md, language, kept=not self.getConfig("search"))
        md.preprocessors.register(search, "kb-search", _PREPROCESS)
        md.preprocessors.register(TokenPreprocessor(page, tokens), "kb-tokens", _PREPROCESS)
        results = ResultsPagePreprocessor(page)
        md.preprocessors.register(results, "kb-results", _PREPROCESS - 1)
        md.treeprocessors.register(PlainCellsTreeprocessor(results), "kb-plain", _PLAIN_CELLS)
        md.inlinePatterns.register(TokenInline(page, tokens), "kb-token", _INLINE)
        md.postprocessors.register(TokenPostprocessor(page, tokens), "kb-tokens", _POSTPROCESS)
        md.postprocessors.register(SwitchPostprocessor(page), "kb-switch", _POSTPROCESS - 1)
        for block in BLOCKS:
            block_mgr.register(block, {"page": page, "tokens": tokens})
        md.treeprocessors.register(LeftoverTreeprocessor(page, block_mgr), "kb-leftover", _LEFTOVER)

    def note(self, problem: PageBuildError) -> None:
        """What another extension found wrong with the page, to be told with all the rest."""
        assert self._page is not None
        self._page.note(problem)

    def reset(self) -> None:
        """Between two pages converted by one Markdown object."""
        self._tokens.clear()
        if self._page is not None:
            self._page.start()


def makeExtension(**kwargs: Any) -> SiteExtension:
    """Python-Markdown's entry point."""
    return SiteExtension(**kwargs)
