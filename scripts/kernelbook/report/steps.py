"""A ladder of variants as factors: each step over the one before, multiplying up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from ..errors import PageError
from ..experiment import Text
from ..quantities import Grade
from ..records import Stored
from .book import Book
from .lines import VARIANT, device_cell, run_notes
from .model import EMPTY, Cell, Header, Line, Table, both
from .rows import Row, anchor_of
from .show import column_unit, number, row_spread, row_value
from .tables import DEVICE, check_names

FACTOR = Header("factor", Text("÷ 上一步", "÷ step before"), "×")
SO_FAR = Header("so_far", Text("累计", "so far"), "×")
SHARE = Header("share", Text("÷ 最后一行", "÷ last row"), "%")
WHOLE = Text("各步之积", "product of the steps")


def steps_table(
    book: Book, experiment: str, variants: Sequence[str], *, cache: str = "cold"
) -> Table:
    """Measured variants in this order, with the speed of each over that of the one before.

    One group of lines a record that has all of them, closed by the product of the factors.
    Raises PageError for an unknown name, or fewer than two variants.
    """
    check_names(book, experiment, variants, ())
    if len(variants) < 2:
        raise PageError("a ladder has at least two variants")
    groups: list[tuple[Stored, list[Row], list[Row | None]]] = []
    for item in book.records_of("measured", experiment):
        rows = {(r.variant, r.metric): r for r in book.rows_of(item) if r.cache == cache}
        chain = [rows[name, "time"] for name in variants if (name, "time") in rows]
        if len(chain) == len(variants):
            groups.append((item, chain, [rows.get((name, "throughput")) for name in variants]))
    unit = column_unit("time", [row for _, chain, _ in groups for row in chain])
    lines = [line for group in groups for line in _group(book, *group, unit)]
    notes = run_notes(book, [item for item, _, _ in groups])
    time = Header("time", Text("耗时", "time"), unit)
    rate = Header("throughput", Text("计算吞吐", "throughput"), "TFLOPS")
    header = (VARIANT, DEVICE, time, rate, FACTOR, SO_FAR, SHARE)
    return of_one_device(Table("results", header, tuple(lines), notes))


def of_one_device(table: Table) -> Table:
    """The table without its second column, the device, where all lines are of one."""
    if len({(line.device, line.local) for line in table.lines}) != 1:
        return table
    lines = tuple(replace(x, cells=(x.cells[0], *x.cells[2:])) for x in table.lines)
    return replace(table, header=(table.header[0], *table.header[2:]), lines=lines)


def _group(
    book: Book, item: Stored, chain: Sequence[Row], rates: Sequence[Row | None], unit: str
) -> list[Line]:
    # Times of one record are in one unit, so a ratio needs no conversion.
    factors = [before.value / row.value for before, row in pairwise(chain)]
    lines = []
    for place, (row, rate) in enumerate(zip(chain, rates, strict=True)):
        cells = (
            Cell(book.variant_title(row.experiment, row.variant)),
            device_cell(book, item),
            _value(row, row_value(row, unit), row_spread(row, unit)),
            EMPTY if rate is None else _value(rate, row_value(rate, "TFLOPS")),
            _ratio(chain, place - 1, place, factors[place - 1], ",.3f") if place else EMPTY,
            _ratio(chain, 0, place, chain[0].value / row.value, ",.2f") if place else EMPTY,
            _ratio(chain, len(chain) - 1, place, chain[-1].value / row.value * 100, ",.1f"),
        )
        lines.append(_line(item, row, cells))
    whole = Cell(
        both(number(prod(factors), ",.3f")), Grade.MEASURED, stale=any(row.stale for row in chain)
    )
    end = (Cell(WHOLE), device_cell(book, item), EMPTY, EMPTY, whole, EMPTY, EMPTY)
    return [*lines, _line(item, None, end)]


def _value(row: Row, text: str, spread: str = "") -> Cell:
    detail = row.quantity().sources[0].detail
    return Cell(
        both(text), Grade.MEASURED, spread, row.samples, detail, stale=row.stale, row=row
    )  # fmt: skip


def _ratio(chain: Sequence[Row], over: int, place: int, value: float, show: str) -> Cell:
    row, base = chain[place], chain[over]
    detail = row.quantity().sources[0].detail
    stale = row.stale or base.stale
    return Cell(
        both(number(value, show)), Grade.MEASURED, detail=detail, stale=stale, row=row,
        over=base.variant,
    )  # fmt: skip


def _line(item: Stored, row: Row | None, cells: tuple[Cell, ...]) -> Line:
    record = item.record
    return Line(
        cells=cells,
        variant=row.variant if row else "",
        chapter=record.chapter,
        anchor=anchor_of(record.experiment, row.variant) if row else "",
        device=record.slug,
        evidence=record.evidence,
        local=item.local,
        stale=any(cell.stale for cell in cells),
    )
