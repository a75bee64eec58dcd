"""Which line of a source costs what: the emulator's counts by line, for source pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from kernelbook.errors import KernelbookError
from kernelbook.experiment import Kernel, Text
from kernelbook.metrics import metric
from kernelbook.quantities import Grade
from kernelbook.records import Result
from kernelbook.report.book import Book
from kernelbook.report.rows import anchor_of, shape_text
from kernelbook.site.page import PageState
from kernelbook.site.tables_html import badge
from kernelbook.sources import layout

# Of all counts those that tell lines apart; an average would not add up over lines.
COLUMNS = (
    "warp_instructions",
    "ffma",
    "global_load_sectors",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "barriers",
    "divergent_branches",
    "atomics",
)
_TITLE = Text("逐行计数", "Counts by line")
_LINE = Text("行", "line")
_CODE = Text("代码", "code")
_STALE = Text("已过期", "stale")
_ROW = Text("合计在结果页的这一行", "the totals: this row of the results")


@dataclass(frozen=True)
class LineCounts:
    """The counts of one variant by line of one file.

    ``moved``: the file has other lines now, so their numbers are those of a text that is gone.
    """

    chapter: str
    experiment: str
    variant: str
    title: Text
    shape: str
    stale: bool
    moved: bool
    lines: Mapping[int, Mapping[str, float]]

    @property
    def columns(self) -> tuple[str, ...]:
        """Counts that are not zero on every line."""
        return tuple(
            name for name in COLUMNS if any(counts.get(name) for counts in self.lines.values())
        )


def counts_of(book: Book, path: str) -> tuple[LineCounts, ...]:
    """What was counted for each kernel of ``01_basics/vector_add.cu``; a kernel once."""
    chapter, _, name = path.partition("/")
    found: dict[str, LineCounts] = {}
    for item in book.records_of("counted"):
        record = item.record
        if record.chapter != chapter:
            continue
        for result in record.results:
            lines = {
                int(line): counts
                for place, counts in result.lines.items()
                for file, _, line in (place.rpartition(":"),)
                if file == name and line.isdigit()
            }
            if lines and result.variant not in found:
                moved = _has_moved(book, record.experiment, result)
                found[result.variant] = LineCounts(
                    record.chapter,
                    record.experiment,
                    result.variant,
                    book.variant_title(record.experiment, result.variant),
                    shape_text(record.shape),
                    moved or book.numbers.is_stale(record, result),
                    moved,
                    dict(sorted(lines.items())),
                )
    return tuple(found.values())


def _has_moved(book: Book, experiment: str, result: Result) -> bool:
    """Whether the lines counted are no longer those of the tree's source."""
    try:
        found = book.catalog.experiment(experiment)
        variant = found.variant(result.variant)
    except KernelbookError:
        return True  # the experiment or the variant is gone
    return (
        result.layout != ""
        and isinstance(variant, Kernel)
        and result.layout != layout(found.folder / variant.source)
    )


def counts_html(book: Book, path: str, source: Sequence[str], page: PageState) -> str:
    """A folded table for each kernel of the file; its lines lead to the code above."""
    tables = "".join(
        _table(counts, source, page, unfolded=place == 0)
        for place, counts in enumerate(counts_of(book, path))
    )
    if not tables:
        return ""
    title = escape(_TITLE.of(page.language))
    return f'<h2 id="counts">{title} {badge(Grade.COUNTED, page.language)}</h2>{tables}'


def _table(counts: LineCounts, source: Sequence[str], page: PageState, *, unfolded: bool) -> str:
    language = page.language
    heads = "".join(
        f'<th scope="col" class="kb-num">{escape(metric(name).title.of(language))}</th>'
        for name in counts.columns
    )
    total = {n: sum(c.get(n, 0) for c in counts.lines.values()) for n in counts.columns}
    rows = []
    for number, line in counts.lines.items():
        cells = "".join(_cell(line.get(name, 0), total[name]) for name in counts.columns)
        place, text = f"L{number}", ""
        if number <= len(source) and not counts.moved:
            place = f'<a href="#L{number}">{place}</a>'
            text = f"<code>{escape(source[number - 1].strip())}</code>"
        rows.append(f'<tr><th scope="row">{place}</th><td>{text}</td>{cells}</tr>')
    name = f"<code>{escape(counts.variant)}</code> {escape(counts.title.of(language))}"
    stale = f' <em class="kb-mark">{_STALE.of(language)}</em>' if counts.stale else ""
    label = escape(f"{_TITLE.of(language)}: {counts.variant}")
    return (
        f'<details class="kb-lines"{" open" * unfolded}><summary>{name}{stale} '
        f"<small>{escape(counts.experiment)}, {escape(counts.shape)}</small></summary>"
        f"{_row(counts, page)}"
        f'<div class="kb-scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="kb-data"><thead><tr><th scope="col">{_LINE.of(language)}</th>'
        f'<th scope="col">{_CODE.of(language)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _row(counts: LineCounts, page: PageState) -> str:
    """A link to the whole kernel's counts."""
    uri = f"results/{counts.chapter}.md"
    if not page.has_page(uri):
        return ""
    href = page.link(uri, anchor_of(counts.experiment, counts.variant))
    return f'<p><a href="{escape(href)}">{escape(_ROW.of(page.language))}</a></p>'


def _cell(value: float, total: float) -> str:
    """A count with its share of the column as a bar behind it."""
    if not value:
        return '<td class="kb-num">·</td>'
    share = 100 * value / total if total else 0
    return f'<td class="kb-num kb-share" style="--kb-share:{share:.0f}%">{value:,.0f}</td>'
