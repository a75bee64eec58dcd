"""Where in an article we are, and how to stop the build with one line that says so.

MkDocs hands an extension neither the page nor a line number. The page is found through the
tree processor that MkDocs registers for relative links; the line is found by looking the
quoted text up in the page's own file, because front matter and earlier preprocessors have
shifted every line number the parser could offer.

Outside MkDocs (a test, another site generator, a plain ``markdown.markdown`` call) there is
no page: the error then carries no place, and everything else works the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import markdown
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError
from pymdownx.superfences import SuperFencesException

from kernelbook.errors import PageError


class PageBuildError(PageError, PluginError, SuperFencesException):
    """A PageError that MkDocs and superfences pass on instead of wrapping.

    MkDocs ends with exit code 1 and this one line for a ``PluginError``, with a traceback for
    anything else; superfences swallows whatever is not its own exception.
    """


def _mkdocs_page(md: markdown.Markdown) -> Any:
    """MkDocs' relative-path tree processor: has ``file``, ``files``, ``config``; None outside."""
    if "relpath" not in md.treeprocessors:
        return None
    return md.treeprocessors["relpath"]


def page_of(md: markdown.Markdown) -> Path | None:
    """The file the page is written in, or None (outside MkDocs, or a page made in memory)."""
    page = _mkdocs_page(md)
    source = None if page is None else page.file.abs_src_path
    return None if source is None else Path(source)


def add_static_file(md: markdown.Markdown, uri: str, content: bytes) -> None:
    """Put a file into the site being built, at ``uri`` below its root; nothing outside MkDocs.

    Pages are converted before MkDocs copies static files, so a file added here is written
    like one from the docs folder. Adding it again, from another page, does nothing.
    """
    page = _mkdocs_page(md)
    if page is None or uri in page.files.src_uris:
        return
    from mkdocs.structure.files import File

    page.files.append(File.generated(page.config, uri, content=content))


class StaticFiles(Preprocessor):
    """Puts an extension's files into the site whichever page is converted first.

    Every page links the style sheets (``extra_css``), also in a site where none has a formula.
    """

    def __init__(self, md: markdown.Markdown, contents: Callable[[], Mapping[str, bytes]]) -> None:
        super().__init__(md)
        self.contents = contents

    def run(self, lines: list[str]) -> list[str]:
        if _mkdocs_page(self.md) is not None:
            for uri, content in self.contents().items():
                add_static_file(self.md, uri, content)
        return lines


def line_of(md: markdown.Markdown, quoted: str) -> int | None:
    """The 1-based line of the page's file on which ``quoted`` begins; None if it is not found.

    Indentation is ignored, so a block inside a list item or an admonition is found too.
    """
    path = page_of(md)
    wanted = [line.strip() for line in quoted.strip().splitlines()]
    if path is None or not wanted:
        return None
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return None
    for start in range(len(lines) - len(wanted) + 1):
        if _begins_at(lines, start, wanted):
            return start + 1
    return line_with(lines, wanted[0])


def line_with(lines: Iterable[str], text: str) -> int | None:
    """The first line, from 1, that holds a text; None where none does."""
    return next((number for number, line in enumerate(lines, 1) if text in line), None)


def _begins_at(lines: list[str], start: int, wanted: list[str]) -> bool:
    if len(wanted) == 1:
        return wanted[0] in lines[start]
    return (
        lines[start].endswith(wanted[0])
        and lines[start + 1 : start + len(wanted) - 1] == wanted[1:-1]
        and lines[start + len(wanted) - 1].startswith(wanted[-1])
    )


def page_error(
    md: markdown.Markdown, what: str, *, quoted: str = "", line: int | None = None, hint: str = ""
) -> PageBuildError:
    """The error to raise for something wrong on this page.

    Parameters
    ----------
    what : the sentence, without the place.
    quoted : the offending text as it stands in the article; its line is looked up.
    line : the line, where the caller knows it better.
    hint : what the author can do.
    """
    path = page_of(md)
    if line is None and quoted:
        line = line_of(md, quoted)
    file = None if path is None else _shown(path)
    return PageBuildError(what, file=file, line=line if file else None, hint=hint)


def complain(md: markdown.Markdown, problem: PageBuildError) -> None:
    """Have a problem told with all others of the page; raises it where no page keeps them."""
    for extension in md.registeredExtensions:
        if callable(note := getattr(extension, "note", None)):
            note(problem)
            return
    raise problem


def _shown(path: Path) -> str:
    """Relative to where the command runs when the page is below it: short, and clickable."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
