"""Tables and hardware boxes of the report room as HTML.

Every string may come from a stranger's record, so all of them are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kernelbook.experiment import Text
from kernelbook.quantities import Grade
from kernelbook.report.book import Book
from kernelbook.report.model import (
    GRADES,
    ROLES,
    STALE,
    Box,
    Cell,
    Figure,
    Line,
    Table,
    grades_of,
)
from kernelbook.site import provenance
from kernelbook.site.excerpt import source_page
from kernelbook.site.page import PageState
from kernelbook.site.switch import device_key

_GRADE = Text("证据", "evidence")
_EMPTY = Text("还没有这样的记录。", "There are no such records yet.")
_NOTES = Text("数据从哪来", "Where these numbers come from")
_BEST = Text(
    "加粗的绿色数字：同一设备的同一次运行里，我们的核函数中最好的一个。",
    "Bold and green: the best of our kernels in one run on one device.",
)
_LABEL = {
    "results": Text("结果", "results"),
    "counts": Text("计数", "counts"),
    "counters": Text("硬件计数器", "hardware counters"),
    "compiled": Text("编译结果", "compilation"),
    "kernels": Text("代码路径", "code paths"),
}
_BY_DEVICE = ("results", "counters")  # tables whose lines are of a card, not of an architecture


def table_html(table: Table, page: PageState, *, graded: bool = True) -> str:
    """A table that scrolls by itself where it is wide, with its remarks below."""
    if not table.lines:
        return empty_html(page.language)
    language = page.language
    heads = "".join(
        f'<th scope="col"{_aligned(h.numeric)}>{_heading(h.title.of(language))}'
        + (f"<small>{escape(h.unit)}</small>" if h.unit else "")
        + "</th>"
        for h in table.header
    )
    if graded:
        heads += f'<th scope="col" class="kb-grades">{escape(_GRADE.of(language))}</th>'
    rows = "".join(_row(table, line, page, graded=graded) for line in table.lines)
    label = escape(_LABEL[table.kind].of(language))
    return (
        f'<div class="kb-table kb-table--{table.kind}">'
        f'<div class="kb-scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="kb-data"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{_remarks(table, language)}</div>"
    )


def empty_html(language: str) -> str:
    """What stands where a table or chart has no records yet."""
    return f'<div class="kb-empty">{escape(_EMPTY.of(language))}</div>'


def _heading(title: str) -> str:
    # A long name of a variant may be broken where it has joints.
    return escape(title).replace("_", "_<wbr>")


def _aligned(numeric: bool) -> str:
    return ' class="kb-num"' if numeric else ""


def _row(table: Table, line: Line, page: PageState, *, graded: bool) -> str:
    cells = []
    for place, (head, cell) in enumerate(zip(table.header, line.cells, strict=True)):
        classes = ["kb-num"] if head.numeric else []
        classes += ["kb-best"] * cell.best + ["kb-stale"] * cell.stale
        attribute = f' class="{" ".join(classes)}"' if classes else ""
        shown = _first(line, cell, page) if place == 0 else _cell(line, cell, page)
        tag = "th scope='row'" if place == 0 else "td"
        cells.append(f"<{tag}{attribute}>{shown}</{tag.split()[0]}>")
    if graded:
        grades = "".join(badge(g, page.language) for g in grades_of(line.cells)) or "—"
        cells.append(f'<td class="kb-grades">{grades}</td>')
    attributes = ""
    if table.kind in _BY_DEVICE and line.device:
        attributes = f' data-device="{escape(device_key(line.device, line.local))}"'
    attributes += ' class="kb-local"' if line.local else ""
    return f"<tr{attributes}>{''.join(cells)}</tr>"


def badge(grade: Grade, language: str) -> str:
    """The grade as a small label of its own."""
    return f'<b class="kb-grade kb-{grade.label}">{escape(GRADES[grade].of(language))}</b>'


def _first(line: Line, cell: Cell, page: PageState) -> str:
    text = _text(cell, page)
    if line.stale:
        text += f' <em class="kb-mark">{escape(STALE.of(page.language))}</em>'
    return text


def _text(cell: Cell, page: PageState) -> str:
    text = escape(cell.text.of(page.language))
    if cell.code:
        text = f"<code>{text.replace('_', '_<wbr>')}</code>"
    if cell.source and page.has_page(source_page(cell.source)):
        text = f'<a href="{escape(page.link(source_page(cell.source)))}">{text}</a>'
    return text


def _cell(line: Line, cell: Cell, page: PageState) -> str:
    text = _text(cell, page)
    if cell.grade is None or cell.grade is Grade.THEORY or not line.anchor:
        return text
    uri = f"results/{line.chapter}.md"
    href = page.link(uri, line.anchor) if page.has_page(uri) else ""
    tip = _tip(cell, page.project.book, page.language, linked=bool(href))
    classes = f"kb-number kb-cell kb-{cell.grade.label}"
    return provenance.noted(text, tip, classes, page.new_id("kb-tip"), href)


def _tip(cell: Cell, book: Book, language: str, *, linked: bool) -> str:
    assert cell.grade is not None
    tip = [f"<b>{escape(GRADES[cell.grade].of(language))}</b>"]
    if cell.stale:
        tip.append(f"<em>{escape(provenance.word(language, 'stale'))}</em>")
    if cell.row is not None:
        over = cell.over and book.variant_title(cell.row.experiment, cell.over).of(language)
        tip.append(provenance.lines_html(provenance.parts(cell.row, language, over)))
    elif cell.detail:
        tip.append(provenance.lines_html((cell.detail,)))
    if linked:
        tip.append(f"<i>{escape(provenance.word(language, 'go'))}</i>")
    return "".join(tip)


def _remarks(table: Table, language: str) -> str:
    """Why rows have no numbers, said openly; where the others come from, on request."""
    said: dict[str, None] = {}
    for line in table.lines:
        for words in (line.reason, line.note):
            if words is not None:
                colon = "：" if language == "zh" else ": "
                name = f"<b>{escape(line.cells[0].text.of(language))}</b>"
                said[f"<li>{name}{colon}{escape(words.of(language))}</li>"] = None
    html = f'<ul class="kb-remarks">{"".join(said)}</ul>' if said else ""
    said_below = list(table.notes)
    if any(cell.best for line in table.lines for cell in line.cells):
        said_below.insert(0, _BEST)
    if said_below:
        notes = "".join(f"<li>{escape(note.of(language))}</li>" for note in said_below)
        summary = escape(_NOTES.of(language))
        html += f'<details class="kb-notes"><summary>{summary}</summary><ul>{notes}</ul></details>'
    return html


def hardware_html(boxes: Sequence[Box], page: PageState) -> str:
    """A card for every device, the reference first."""
    return f'<div class="kb-devices">{"".join(_box(box, page) for box in boxes)}</div>'


def _box(box: Box, page: PageState) -> str:
    figures = "".join(_figure(box, figure, page) for figure in box.figures)
    role = escape(ROLES[box.role].of(page.language))
    key = escape(device_key(box.slug, box.role == "local"))
    return (
        f'<section class="kb-device kb-device--{box.role}" data-device="{key}">'
        f'<p class="kb-device__name"><b>{escape(box.name)}</b> <small>{role}</small></p>'
        f"<dl>{figures}</dl></section>"
    )


def _figure(box: Box, figure: Figure, page: PageState) -> str:
    """A figure with where it is from on hover and focus, leading to the card's sheet."""
    language = page.language
    value = escape(figure.cell.text.of(language))
    value += f"\u00a0{escape(figure.unit)}" if figure.unit else ""
    title = escape(figure.title.of(language))
    if figure.cell.detail:
        local = box.role == "local"
        uri, place = ("devices/own.md", f"{box.slug}-spec") if local else (
            f"devices/{box.slug}.md", "spec"
        )  # fmt: skip
        tip = [f"<b>{escape(GRADES[Grade.THEORY].of(language))}</b>"]
        tip.append(provenance.lines_html((figure.cell.detail,)))
        href = ""
        if page.has_page(uri):
            href = page.link(uri, place)
            tip.append(f"<i>{escape(provenance.word(language, 'sheet'))}</i>")
        classes = f"kb-number kb-cell kb-{Grade.THEORY.label}"
        value = provenance.noted(value, "".join(tip), classes, page.new_id("kb-tip"), href)
    return f"<div><dt>{title}</dt><dd>{value}</dd></div>"
