"""``/// results-page | 01_basics``: a chapter's results as a page of the site, and
``/// counters-page |``: results/counters.md as one.

The text is that of results/01_basics.md with the reader's own runs beside the published ones. It
takes the block's place before anything reads the page, so that its headings, tables and anchors
are those of any page.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from kernelbook.errors import KernelbookError, PageError
from kernelbook.report import counters
from kernelbook.report.pages import page as results_markdown
from kernelbook.site.page import PageState

_HEADER = re.compile(
    r"^/{3,}[ \t]*(?:results-page[ \t]*\|[ \t]*(?P<chapter>\S+)|counters-page[ \t]*\|)[ \t]*$"
)
_RANGE = re.compile(r"(?<=\d)–(?=\d)")
# Letters, digits and marks that begin nothing in Markdown; nor "///", which would be a block.
_PLAIN = re.compile(r"(?!.*///)(?:[^\W_]|[ .,:;%+×÷µ–—≤≥()/⚠\u2060-])*")
_END = re.compile(r"^/{3,}[ \t]*$")


class ResultsPagePreprocessor(Preprocessor):
    """Puts a chapter's results, or the comparison of counters, in the place of the block."""

    def __init__(self, page: PageState) -> None:
        super().__init__(page.md)
        self.page = page
        self.found = False  # whether this page is one

    def run(self, lines: list[str]) -> list[str]:
        shown: list[str] = []
        self.found = False
        rest = list(lines)
        while rest:
            line = rest.pop(0)
            match = _HEADER.match(line)
            if match is None:
                shown.append(line)
                continue
            self.found = True
            if rest and _END.match(rest[0]):
                rest.pop(0)
            shown += self._results(match["chapter"], " ".join(line.split()))
        return shown

    def _results(self, chapter: str | None, header: str) -> list[str]:
        try:
            if chapter is None:
                return self._counters()
            chapters = self.page.project.book.catalog.chapters
            if chapter not in chapters:
                hint = "there are: " + ", ".join(chapters)
                raise PageError(f"no chapter {chapter!r} in kernels/", hint=hint)
            text = results_markdown(self.page.project.book, chapter, self.page.language)
        except KernelbookError as error:
            self.page.note(self.page.error(error, self.page.take_line(header)))
            return []
        return [_unbroken(line) for line in text.splitlines()]

    def _counters(self) -> list[str]:
        comparisons = counters.load(self.page.project.results)
        if not comparisons:
            raise PageError("nothing in results/data/counters/ to compare")
        return counters.page(comparisons, self.page.language).splitlines()


class PlainCellsTreeprocessor(Treeprocessor):
    """Has the inline patterns pass by cells of a results page in which none of them can match.

    They are most of its twenty thousand, and each of some eighteen patterns looks at each of them.
    """

    def __init__(self, results: ResultsPagePreprocessor) -> None:
        super().__init__(results.md)
        self.results = results

    def run(self, root: ET.Element) -> None:
        for cell in root.iter("td") if self.results.found else ():
            if cell.text and not len(cell) and _PLAIN.fullmatch(cell.text):
                cell.text = AtomicString(cell.text)


def _unbroken(line: str) -> str:
    """A line whose ranges, ``233.8–235.0``, stay on one line of a table's cell."""
    return _RANGE.sub("\u2060–\u2060", line) if line.startswith("|") else line
