"""Source code as an article shows it: true line numbers, marks of regions left out.

Line numbers are drawn by the style sheet from an attribute, so they are neither copied nor
searched. Where marks inside an excerpt were left out the numbers skip, as they should.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CudaLexer

from kernelbook.errors import PageError
from kernelbook.site.page import PageState
from kernelbook.sources import Excerpt, is_mark, line_range, region

_RANGE = re.compile(r"^L(?P<first>\d+)(?:-L?(?P<last>\d+))?$")


@dataclass(frozen=True)
class Quote:
    """What ``01_basics/vector_add.cu#vector_add`` names: a file below kernels/ and a part of it."""

    path: str
    part: str

    @property
    def page(self) -> str:
        """The source page of the file."""
        return source_page(self.path)


def quote_of(argument: str) -> Quote:
    """Parse a block's argument; raises PageError."""
    path, _, part = argument.strip().partition("#")
    if not path.endswith((".cu", ".cuh", ".h")) or ".." in path.split("/"):
        raise PageError(
            f"{argument!r} names no source file",
            hint="write CHAPTER/NAME.cu#region or CHAPTER/NAME.cu#L5-L10",
        )
    return Quote(path, part)


def source_page(path: str) -> str:
    """``01_basics/vector_add.cu`` → ``source/01_basics/vector_add.md``."""
    return f"source/{path.rsplit('.', 1)[0]}.md"


def read(root: Path, quote: Quote) -> Excerpt:
    """The quoted lines; raises PageError naming the .cu where the region or range is wrong."""
    file = _file(root, quote.path)
    match = _RANGE.match(quote.part)
    if match:
        return line_range(file, int(match["first"]), int(match["last"] or match["first"]))
    if quote.part:
        return region(file, quote.part)
    lines = file.read_text(encoding="utf-8").splitlines()
    return line_range(file, 1, len(lines))


def _file(root: Path, path: str) -> Path:
    """A file below kernels/, whatever links lead to; raises PageError."""
    kernels = (root / "kernels").resolve()
    file = kernels / path
    try:
        if file.is_file() and file.resolve().is_relative_to(kernels):
            return file
        near = sorted(p.name for p in file.parent.glob("*.cu*")) if file.parent.is_dir() else []
    except (OSError, ValueError):  # too long for a name, or no name at all
        near = []
    raise PageError(
        f"no file kernels/{path[:80]!s}",
        hint="there are: " + ", ".join(near) if near else "no such folder",
    )


def excerpt_html(quote: Quote, page: PageState) -> str:
    """The excerpt as a figure whose heading and line numbers lead to the source page."""
    excerpt = read(page.project.root, quote)
    name = quote.path.rsplit("/", 1)[-1]
    lines = f"L{excerpt.first}–L{excerpt.last}"
    href = ""
    if page.has_page(quote.page):
        href = page.link(quote.page, f"L{excerpt.first}")
    place = f"<span>{escape(name)}</span> : {lines}"
    heading = f'<a href="{escape(href)}">{place}</a>' if href else place
    code = code_html(excerpt.lines, excerpt.numbers)
    return (
        f'<figure class="kb-excerpt"><figcaption>{heading}</figcaption>'
        f'<div class="highlight kb-code"><pre tabindex="0"><code>{code}</code></pre></div></figure>'
    )


def code_html(lines: Sequence[str], numbers: Sequence[int], *, anchors: bool = False) -> str:
    """Highlighted lines, one element a line; with ``anchors`` line 7 has the id ``L7``."""
    text = "\n".join(lines)
    html = highlight(text, CudaLexer(stripnl=False, stripall=False), HtmlFormatter(nowrap=True))
    shown = html.removesuffix("\n").split("\n")
    assert len(shown) == len(lines), "Pygments keeps lines"
    width = len(str(numbers[-1]))
    parts = []
    for line, code, number in zip(lines, shown, numbers, strict=True):
        classes = "kb-line kb-line--mark" if anchors and is_mark(line) else "kb-line"
        identity = f' id="L{number}"' if anchors else ""
        gutter = f'<a class="kb-ln" href="#L{number}"' if anchors else '<i class="kb-ln"'
        end = "</a>" if anchors else "</i>"
        label = f' aria-label="L{number}"' if anchors else ' aria-hidden="true"'
        parts.append(
            f'<span class="{classes}"{identity}>'
            f'{gutter} data-n="{number:>{width}}"{label}>{end}{code}\n</span>'
        )
    return "".join(parts)


def whole_file(root: Path, path: str) -> tuple[list[str], list[int]]:
    """All lines of a source with their numbers, marks included; raises PageError."""
    file = _file(root, path)
    lines = file.read_text(encoding="utf-8").splitlines()
    return lines, list(range(1, len(lines) + 1))
