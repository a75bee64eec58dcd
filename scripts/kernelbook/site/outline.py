"""What a page is made of, read from its text: headings, blocks, numbers, claims, tables, diagrams.

The two languages of a page must agree in all of it: they tell one story over the same evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelbook.site.tokens import extract, stretches

_HEADING = re.compile(r"^(?P<marks>#{1,6})[ \t]+(?P<text>.+?)[ \t]*$", re.M)
_ID = re.compile(r"\{[^}]*#(?P<id>[\w-]+)[^}]*\}\s*$")
_BLOCK = re.compile(
    r"^[ \t]*/{3,}[ \t]*(?P<name>[\w-]+)[ \t]*(?:\|[ \t]*(?P<arg>.*?))?[ \t]*$", re.M
)
_TABLE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$", re.M)
_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\{?\.?mermaid\b[^\n]*\n[\s-]*(?P<kind>\w[\w-]*)")
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(|<img\b(?P<attributes>[^>]*)>")
_KINDS = {"=": "number", "?": "claim"}
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass(frozen=True)
class Part:
    """One thing on a page; ``what`` is what both languages must share."""

    kind: str  # "heading", "block", "number", "claim", "table", "diagram"
    what: str
    line: int


@dataclass(frozen=True)
class Outline:
    """The parts of a page in order, and the lines of images without alternative text."""

    file: Path
    parts: tuple[Part, ...]
    images_without_alt: tuple[int, ...]

    def of(self, kind: str) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.kind == kind)


# Parts whose order both languages share; numbers and claims may stand in another word order.
ORDERED = ("heading", "block", "table", "diagram")
UNORDERED = ("number", "claim")


def read(file: Path) -> Outline:
    """The outline of a page."""
    text = file.read_text(encoding="utf-8")
    parts = sorted(_parts(text), key=lambda part: part.line)
    return Outline(file, tuple(parts), tuple(_images_without_alt(text)))


def differences(first: Outline, second: Outline) -> Iterator[tuple[Path, int, str]]:
    """(file, line, sentence) for everything in which two languages of a page differ."""
    for kind in ORDERED:
        yield from _in_order(kind, first, second)
    for kind in UNORDERED:
        for outline, other in ((first, second), (second, first)):
            lacking = Counter(p.what for p in outline.of(kind))
            lacking.subtract(Counter(p.what for p in other.of(kind)))
            for part in outline.of(kind):
                if lacking[part.what] > 0:
                    lacking[part.what] -= 1
                    yield outline.file, part.line, f"{kind} {part.what!r} is not in {_name(other)}"


def _in_order(kind: str, first: Outline, second: Outline) -> Iterator[tuple[Path, int, str]]:
    here, there = first.of(kind), second.of(kind)
    for a, b in zip(here, there, strict=False):
        if a.what != b.what:
            yield (
                first.file,
                a.line,
                f"{kind} {a.what!r} stands where {_name(second)}:{b.line} has {b.what!r}",
            )
            return
    if len(here) != len(there):
        outline, other = (first, second) if len(here) > len(there) else (second, first)
        part = outline.of(kind)[min(len(here), len(there))]
        yield outline.file, part.line, f"{kind} {part.what!r} is not in {_name(other)}"


def _name(outline: Outline) -> str:
    return "/".join(outline.file.parts[-2:])


def _parts(text: str) -> Iterator[Part]:
    body = _without_front_matter(text)
    for token in extract(body)[1]:
        if token.kind in _KINDS:
            yield Part(_KINDS[token.kind], token.body, token.line)
    for start, stretch, is_code in stretches(body):
        line = 1 + body.count("\n", 0, start)
        if is_code:
            if fence := _FENCE.match(stretch):
                yield Part("diagram", fence["kind"], line)
            continue

        def at(match: re.Match[str], stretch: str = stretch, line: int = line) -> int:
            return line + stretch.count("\n", 0, match.start())

        for match in _HEADING.finditer(stretch):
            identity = _ID.search(match["text"])
            name = f" {{#{identity['id']}}}" if identity else ""
            yield Part("heading", match["marks"] + name, at(match))
        for match in _BLOCK.finditer(stretch):
            yield Part("block", f"{match['name']} | {match['arg'] or ''}".strip(), at(match))
        for match in _TABLE.finditer(stretch):
            columns = match.group().strip().strip("|").count("|") + 1
            yield Part("table", f"of {columns} columns", at(match))


def _without_front_matter(text: str) -> str:
    """The text with its front matter blanked, so that lines keep their numbers."""
    match = re.match(r"---\n.*?\n---\n", text, re.S)
    return "\n" * text.count("\n", 0, match.end()) + text[match.end() :] if match else text


def _images_without_alt(text: str) -> Iterator[int]:
    for start, stretch, is_code in stretches(text):
        if is_code:
            continue
        plain = _CODE_SPAN.sub(lambda m: " " * len(m.group()), stretch)
        for match in _IMAGE.finditer(plain):
            alt = match["alt"]
            if alt is None:
                found = re.search(r"""\balt=["'](?P<alt>[^"']*)""", match["attributes"])
                alt = found["alt"] if found else ""
            if not alt.strip():
                yield 1 + text.count("\n", 0, start + match.start())
