"""Tables to Markdown that GitHub and Python-Markdown read alike, with every string made harmless.

Device names, notes and reasons in records are strangers' data. What could be HTML or Markdown in
them is written as character references, which neither reader takes for markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from .harmless import one_line
from .model import GRADES, STALE, STATUSES, Cell, Line, Table, grades_of

MAX_LENGTH = 400  # of one string of a record on a page
# What opens markup somewhere: the usual characters anywhere, others only where they would do so
# (``a_b``, ``n=4`` and ``driver: 580`` stay readable). Bare addresses are kept from being linked.
_SPECIAL = re.compile(
    r"[\\`*{}\[\]<>&#|$~^]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|=(?==)|(?<==)=|\+(?=\+)|(?<=\+)\+"
    r"|:(?=[\w/-])|(?<=www)\.",
    re.IGNORECASE,
)
_PLAIN_NAME = re.compile(r"[\w.-]+")


def escape(text: str) -> str:
    """One line of text that shows as it is and can neither open markup nor leave its cell."""
    kept = one_line(text, MAX_LENGTH)
    return _SPECIAL.sub(lambda m: f"&#{ord(m.group())};", kept)


def code(text: str) -> str:
    """A name in code type."""
    return f"`{text}`" if _PLAIN_NAME.fullmatch(text) else f"<code>{escape(text)}</code>"


def anchor(name: str) -> str:
    """A place on the page that a link can go to."""
    return f'<a id="{html.escape(name)}"></a>'


def table(
    content: Table,
    language: str,
    *,
    anchors: set[str],
    drop: Sequence[str] = (),
    titles: bool = True,
) -> list[str]:
    """Lines of a pipe table, with a column for the grade and the remarks below.

    ``anchors`` are those already on the page: an id stands at a variant's first line only.
    ``drop`` names columns to leave out, e.g. the device under a heading that names it; without
    ``titles``, variants go by their names only.
    """
    keep = [i for i, h in enumerate(content.header) if h.key not in drop]
    heads = [content.header[i] for i in keep]
    columns = [
        escape(h.title.of(language)) + (f" ({escape(h.unit)})" if h.unit else "") for h in heads
    ]
    grade_title = "等级" if language == "zh" else "grade"
    out = [
        "| " + " | ".join([*columns, grade_title]) + " |",
        "|" + "|".join("---:" if h.numeric else "---" for h in heads) + "|---|",
    ]
    for line in content.lines:
        cells = [_cell(line.cells[i], line, language) for i in keep]
        cells[0] = _first(line, cells[0] if titles else "", language, anchors)
        grades = " ".join(GRADES[g].of(language) for g in grades_of(line.cells))
        grades = grades or (STATUSES[line.status].of(language) if line.status else "—")
        out.append("| " + " | ".join([*cells, grades]) + " |")
    return out + _remarks(content, language)


def _first(line: Line, shown: str, language: str, anchors: set[str]) -> str:
    mark = ""
    for name in filter(None, (line.anchor, *line.more_anchors)):
        if name not in anchors:
            anchors.add(name)
            mark += anchor(name)
    stale = f" ⚠ {STALE.of(language)}" if line.stale else ""
    if not line.variant:
        return f"{mark}{shown}{stale}"
    title = f"{shown} " if shown and shown != escape(line.variant) else ""
    return f"{mark}{title}{code(line.variant)}{stale}"


def _cell(cell: Cell, line: Line, language: str) -> str:
    text = escape(cell.text.of(language))
    if cell.code:
        text = code(cell.text.of(language))
    text = f"**{text}**" if cell.best else text
    return f"{text} ⚠" if cell.stale and not line.stale else text


def _remarks(content: Table, language: str) -> list[str]:
    """Why rows have no numbers, what is to be said of rows, and where the run comes from."""
    said: dict[str, None] = {}
    for line in content.lines:
        for words in (line.reason, line.note):
            if words is not None:
                whose = f"{code(line.variant)}: " if line.variant else ""
                said[f"- {whose}{escape(words.of(language))}"] = None
    said.update(dict.fromkeys(f"- {escape(note.of(language))}" for note in content.notes))
    return ["", *said] if said else []
