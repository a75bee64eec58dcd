"""Which articles quote a source file: the way back from a source page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernelbook.site.tokens import stretches

_EXCERPT = re.compile(r"^[ \t]*/{3,}[ \t]*excerpt[ \t]*\|[ \t]*(?P<path>[^\s#]+)", re.M)
_TITLE = re.compile(r"^#[ \t]+(?P<title>.+?)[ \t]*(?:\{[^}]*\})?[ \t]*$", re.M)
_FRONT_TITLE = re.compile(r"\A---\n(?:.*\n)*?title:[ \t]*(?P<title>.+)\n(?:.*\n)*?---\n")


@dataclass(frozen=True)
class Article:
    """A page written by an author: its path below the docs folder and its title."""

    uri: str
    title: str


def articles(docs: Path) -> tuple[Article, ...]:
    """The pages at the top of a docs folder, sorted by name."""
    return tuple(Article(path.name, title_of(path)) for path in sorted(docs.glob("*.md")))


def quoting(docs: Path, source: str) -> tuple[Article, ...]:
    """The articles that quote ``01_basics/vector_add.cu``."""
    return tuple(
        article
        for article in articles(docs)
        if source in quoted_in((docs / article.uri).read_text(encoding="utf-8"))
    )


def quoted_in(text: str) -> set[str]:
    """The source files a page's text quotes; examples in code fences do not count."""
    return {
        match["path"]
        for _, stretch, is_code in stretches(text)
        if not is_code
        for match in _EXCERPT.finditer(stretch)
    }


def title_of(path: Path) -> str:
    """A page's title: its front matter's, else its first heading, else its name."""
    text = path.read_text(encoding="utf-8")
    match = _FRONT_TITLE.match(text) or _TITLE.search(text)
    return match["title"].strip("\"'") if match else path.stem
