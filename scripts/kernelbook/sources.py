"""Reading .cu files: tokens without comments, project includes, and named regions.

A region is what lies between ``// [name]`` and ``// [/name]``, each alone on its line. Regions may
nest; the marks themselves are never part of an excerpt.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import PageError

_MARK = re.compile(r"^\s*//\s*\[(?P<close>/?)(?P<name>[A-Za-z_][\w-]*)\]\s*$")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
# Strings and character literals are kept whole, so that a // inside one is not a comment.
_TOKEN = re.compile(
    r'(?P<skip>//[^\n]*|/\*.*?\*/|\s+)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|\S",
    re.S,
)


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file as an article shows them.

    ``numbers`` are the file's own line numbers of ``lines`` (marks of regions are left out, so the
    numbers may skip). ``first`` and ``last`` are those of the first and last line shown.
    """

    file: Path
    lines: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.numbers[0]

    @property
    def last(self) -> int:
        return self.numbers[-1]


# Without "::", whose halves stand apart in inline assembly and mean the same.
_OPERATORS = frozenset(("++", "--", "<<", ">>", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=",
                        "*=", "/=", "%=", "&=", "|=", "^=", "->", "##", "/*", "//"))  # fmt: skip


def tokens(text: str) -> list[str]:
    """C++ tokens of a source text, without comments and white space.

    Operators come character by character; where white space keeps two characters from being one
    operator (``a - -b`` is not ``a--b``), it is a token, too.
    """
    found: list[str] = []
    apart = False
    for match in _TOKEN.finditer(text):
        if match.group("skip") is not None:
            apart = True
            continue
        token = match.group()
        if apart and found and found[-1] + token in _OPERATORS:
            found.append(" ")
        found.append(token)
        apart = False
    return found


def layout(source: Path) -> str:
    """Hash of which lines of a source and its project includes hold tokens.

    What is said of line 12 holds for another text of equal tokens only where this is equal, too.
    """
    digest = hashlib.sha256()
    for path in (source, *includes_of(source)):
        text = path.read_text(encoding="utf-8")
        starts = (m.start() for m in _TOKEN.finditer(text) if m.group("skip") is None)
        lines = sorted({text.count("\n", 0, start) + 1 for start in starts})
        digest.update(f"{path.name}: {lines}\n".encode())
    return digest.hexdigest()[:16]


def includes_of(source: Path) -> tuple[Path, ...]:
    """Project files included with quotes, recursively, in order of first inclusion.

    A quoted name that is no file beside the including one is a toolkit header and is left out.
    """
    found: list[Path] = []
    todo = [source.resolve()]
    while todo:
        here = todo.pop(0)
        for name in _INCLUDE.findall(here.read_text(encoding="utf-8")):
            path = (here.parent / name).resolve()
            if path.is_file() and path not in found and path != source.resolve():
                found.append(path)
                todo.append(path)
    return tuple(found)


def region(file: Path, name: str) -> Excerpt:
    """The lines between ``// [name]`` and ``// [/name]``.

    Raises PageError naming the .cu and line where the region is missing, opened twice or unclosed.
    """
    lines = _lines(file)
    opened: list[int] = []
    closed: list[int] = []
    for number, line in enumerate(lines, 1):
        mark = _MARK.match(line)
        if mark and mark["name"] == name:
            (closed if mark["close"] else opened).append(number)
    if not opened:
        raise PageError(f"no region [{name}]", file=file, hint=_known(lines))
    if len(opened) > 1:
        raise PageError(f"region [{name}] is opened twice", file=file, line=opened[1])
    if not closed or closed[0] < opened[0]:
        raise PageError(f"region [{name}] is never closed", file=file, line=opened[0])
    if len(closed) > 1:
        raise PageError(f"region [{name}] is closed twice", file=file, line=closed[1])
    return _excerpt(file, lines, opened[0] + 1, closed[0] - 1)


def line_range(file: Path, first: int, last: int) -> Excerpt:
    """Lines ``first`` to ``last``, both included; raises PageError for a range outside the file."""
    lines = _lines(file)
    if first < 1 or last < first:
        raise PageError(f"L{first}-L{last} is not a range of lines", file=file)
    if last > len(lines):
        raise PageError(
            f"L{first}-L{last} is outside the file, which has {len(lines)} lines", file=file
        )
    return _excerpt(file, lines, first, last)


def is_mark(line: str) -> bool:
    """Whether a line only opens or closes a region."""
    return _MARK.match(line) is not None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=file) from error


def _known(lines: list[str]) -> str:
    marks = [m for line in lines if (m := _MARK.match(line)) and not m["close"]]
    return "it has: " + ", ".join(m["name"] for m in marks) if marks else "it has none"


def _excerpt(file: Path, lines: list[str], first: int, last: int) -> Excerpt:
    kept = [(n, lines[n - 1]) for n in range(first, last + 1) if not is_mark(lines[n - 1])]
    if not any(text.strip() for _, text in kept):
        raise PageError("the excerpt is empty", file=file, line=first)
    indents = [len(text) - len(text.lstrip()) for _, text in kept if text.strip()]
    cut = min(indents)
    return Excerpt(file, tuple(text[cut:] for _, text in kept), tuple(n for n, _ in kept))
