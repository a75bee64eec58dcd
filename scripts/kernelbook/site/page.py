"""The page being converted: its project, language and place, and links to other pages."""

from __future__ import annotations

import logging
import os
import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import markdown
from markdown.util import ETX, STX

from kernelbook.errors import KernelbookError
from kernelbook.site.context import Project, find_root, load
from kernelbook.site.place import PageBuildError, page_error, page_of
from kernelbook.site.scope import ProjectScope
from kernelbook.site.tokens import CLOSE, OPEN

LANGUAGES = ("zh", "en")
_MARKS = dict.fromkeys(map(ord, (STX, ETX, OPEN, CLOSE)))
_LOG = logging.getLogger("mkdocs.kernelbook")


@dataclass
class PageState:
    """What the extensions share while one page is converted; a new one for every page.

    ``lines`` maps a block header or token to the lines of the page's file it stands on, in
    order: Python-Markdown itself keeps no line numbers.
    """

    md: markdown.Markdown
    language: str
    strict: bool
    root_option: str = ""
    results_option: str = ""
    keep_going: bool = False
    lines: dict[str, list[int]] = field(default_factory=dict)
    problems: list[PageBuildError] = field(default_factory=list)
    _ids: int = 0
    _project: Project | None = None

    def start(self) -> None:
        """Forget the page before: one Markdown object may convert many."""
        self.lines.clear()
        self.problems.clear()
        self._ids = 0
        self._project = None

    @property
    def project(self) -> Project:
        """The project this page speaks of; raises KernelbookError where it is broken."""
        if self._project is None:
            root = Path(self.root_option) if self.root_option else find_root(self._start())
            self._project = load(root, Path(self.results_option) if self.results_option else None)
        return self._project

    @property
    def scope(self) -> ProjectScope:
        return ProjectScope(self.project, self.language, self.strict)

    def _start(self) -> Path:
        page = self._mkdocs
        configured = None if page is None else page.config.config_file_path
        return Path(configured).resolve().parent if configured else Path.cwd()

    @property
    def _mkdocs(self) -> Any:
        processors = self.md.treeprocessors
        return processors["relpath"] if "relpath" in processors else None  # noqa: SIM401

    @property
    def uri(self) -> str:
        """Path of the page below its docs folder, ``source/01_basics/vector_add.md``; or ""."""
        page = self._mkdocs
        if page is not None:
            return str(page.file.src_uri)
        path = page_of(self.md)
        return "" if path is None else path.name

    @property
    def docs(self) -> Path:
        """The folder of this language's pages."""
        page = self._mkdocs
        if page is not None:
            return Path(page.config.docs_dir)
        return self.project.root / "docs" / self.language

    def has_page(self, uri: str) -> bool:
        """Whether a page of this path will be built; True outside MkDocs, where nobody knows."""
        page = self._mkdocs
        return page is None or page.files.get_file_from_path(uri) is not None

    def link(self, uri: str, fragment: str = "") -> str:
        """Relative URL from this page to another page of the site, given as ``dir/name.md``."""
        page = self._mkdocs
        anchor = f"#{fragment}" if fragment else ""
        if page is None:
            return _relative(self.uri, uri) + anchor
        target = page.files.get_file_from_path(uri)
        if target is None:
            raise KernelbookError(
                f"there is no page {uri}", hint="run scripts/run_all.py, which creates it"
            )
        return str(target.url_relative_to(page.file)) + anchor

    def new_id(self, prefix: str) -> str:
        """An id no other element of this page has, the same in every build."""
        self._ids += 1
        return f"{prefix}-{self._ids}"

    def stash(self, html: str) -> str:
        """What Python-Markdown puts in the place of this HTML until the page is done.

        It marks such places with control characters, and we mark ours. A stranger's string with
        the same characters would have another piece of the page put in its place, or itself, for
        ever.
        """
        return str(self.md.htmlStash.store(html.translate(_MARKS)))

    def take_line(self, quoted: str) -> int | None:
        """The next line on which ``quoted`` stands; the last one again when all are taken."""
        lines = self.lines.get(quoted)
        if not lines:
            return None
        return lines.pop(0) if len(lines) > 1 else lines[0]

    def note(self, problem: PageBuildError) -> None:
        """Keep a problem until the page is done, so that an author sees all of them at once."""
        self.problems.append(problem)

    def finish(self) -> None:
        """Raise what was noted, one line a problem; where we keep going, tell MkDocs' log."""
        problems = {str(problem): problem for problem in self.problems}
        found = sorted(problems.values(), key=lambda problem: problem.line or 0)
        if self.keep_going:
            for problem in found:
                _LOG.error(str(problem))
            return
        if len(found) == 1:
            raise found[0]
        if found:
            raise PageBuildError("\n".join(str(problem) for problem in found))

    def error(self, error: KernelbookError | str, line: int | None) -> PageBuildError:
        """The build error for something wrong on this page at ``line`` of its file."""
        if isinstance(error, PageBuildError):
            return error
        if isinstance(error, str):
            return page_error(self.md, error, line=line)
        place = ""
        if error.file is not None:
            place = _shown(error.file) + (f":{error.line}" if error.line is not None else "") + ": "
        return page_error(self.md, place + error.what, line=line, hint=error.hint)


def _relative(origin: str, target: str) -> str:
    start = posixpath.dirname(origin) or "."
    return posixpath.relpath(target, start)


def _shown(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
