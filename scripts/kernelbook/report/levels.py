"""A roofline for every level at once: what each of them would allow a kernel, and what it reaches.

What a kernel asks of a level is read from ncu's counters of the same record: wavefronts of shared
memory (128 bytes of its data path each, used or not), bytes of L2 and of DRAM, and instructions,
which share the issue slots with the multiply-adds. Roofs are those of the card's specification;
none is known for L2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..devices import SHARED_BANK_BYTES, Device
from ..experiment import Text
from ..quantities import Grade
from ..records import Stored
from .book import Book
from .hardware import device_of
from .lines import VARIANT, device_cell, run_notes
from .model import EMPTY, Cell, Header, Line, Table, both
from .rows import Row, anchor_of
from .show import number
from .steps import of_one_device
from .tables import DEVICE, check_names

NEEDED = (
    "shared_load_wavefronts", "shared_store_wavefronts", "l2_bytes", "dram_read_bytes",
    "dram_write_bytes", "warp_instructions", "flops",
)  # fmt: skip
FLOP_PER_INSTRUCTION = 64  # of a multiply-add of a whole warp
RATE = Header("throughput", Text("实测", "measured"), "TFLOPS")
ISSUE = Header("issue", Text("发射上限", "issue roof"), "TFLOPS")
SHARED = Header("shared", Text("共享内存上限", "shared memory roof"), "TFLOPS")
DRAM = Header("dram", Text("显存上限", "DRAM roof"), "TFLOPS")
REACHED = Header("reached", Text("达到最低的上限", "of the lowest roof"), "%")


@dataclass(frozen=True)
class Step:
    """A kernel under its roofs. Rates in FLOP/s, intensities in FLOP a byte of the level.

    The peak bounds every roof, so none exceeds it.
    """

    variant: str
    row: Row  # its throughput
    rate: float
    per_shared_byte: float
    per_l2_byte: float
    per_dram_byte: float
    issue_roof: float
    shared_roof: float
    dram_roof: float

    @property
    def lowest(self) -> float:
        return min(self.issue_roof, self.shared_roof, self.dram_roof)


@dataclass(frozen=True)
class Ladder:
    """The steps of one record, in the asked order."""

    item: Stored
    sheet: Device
    steps: tuple[Step, ...]


def ladders(
    book: Book, experiment: str, variants: Sequence[str], *, cache: str = "cold"
) -> tuple[Ladder, ...]:
    """One a measured record with counters of these variants; variants without any are left out.

    Raises PageError for a variant that neither the tree nor a record knows.
    """
    check_names(book, experiment, variants, ())
    found = []
    for item in book.records_of("measured", experiment):
        sheet = book.sheets.devices.get(item.record.slug)
        if sheet is None and item.record.device is not None:
            sheet = device_of(item.record.device, book.sheets)
        if sheet is None:
            continue
        rows = {
            (r.variant, r.metric): r for r in book.rows_of(item) if r.cache in ("", cache)
        }  # fmt: skip
        steps = [s for name in variants if (s := _step(name, rows, sheet)) is not None]
        if steps:
            found.append(Ladder(item, sheet, tuple(steps)))
    return tuple(found)


def _step(variant: str, rows: dict[tuple[str, str], Row], sheet: Device) -> Step | None:
    counts = {name: rows[variant, name].value for name in NEEDED if (variant, name) in rows}
    rate = rows.get((variant, "throughput"))
    if rate is None or len(counts) < len(NEEDED):
        return None
    flops, peak = counts["flops"], sheet.fp32_flops
    shared = SHARED_BANK_BYTES * (
        counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
    )
    dram = counts["dram_read_bytes"] + counts["dram_write_bytes"]
    of_shared, of_dram = flops / max(shared, 1), flops / max(dram, 1)
    of_issue = flops / FLOP_PER_INSTRUCTION / max(counts["warp_instructions"], 1)
    return Step(
        variant, rate, rate.value * 1e12, of_shared, flops / max(counts["l2_bytes"], 1), of_dram,
        issue_roof=min(peak, peak * of_issue),
        shared_roof=min(peak, of_shared * sheet.shared_bandwidth),
        dram_roof=min(peak, of_dram * sheet.bandwidth),
    )  # fmt: skip


def levels_table(book: Book, found: Sequence[Ladder]) -> Table:
    """Steps by number, with the roof of every level and how much of the lowest is reached."""
    lines = [
        _line(book, ladder, place, step)
        for ladder in found
        for place, step in enumerate(ladder.steps, 1)
    ]
    header = (VARIANT, DEVICE, RATE, ISSUE, SHARED, DRAM, REACHED)
    notes = run_notes(book, [x.item for x in found])
    return of_one_device(Table("counters", header, tuple(lines), notes))


def _line(book: Book, ladder: Ladder, place: int, step: Step) -> Line:
    record, peak = ladder.item.record, ladder.sheet.fp32_flops
    title = book.variant_title(record.experiment, step.variant)
    row = step.row

    def cell(value: float, show: str = ",.1f") -> Cell:
        detail = row.quantity().sources[0].detail
        return Cell(both(number(value, show)), Grade.MEASURED, detail=detail, stale=row.stale)

    def roof(value: float) -> Cell:
        # A roof at the peak is no roof of this level.
        return EMPTY if value >= peak else cell(value / 1e12)

    cells = (
        Cell(Text(f"{place}. {title.zh}", f"{place}. {title.en}")),
        device_cell(book, ladder.item),
        Cell(both(number(row.value, ",.2f")), Grade.MEASURED, stale=row.stale, row=row),
        roof(step.issue_roof), roof(step.shared_roof), roof(step.dram_roof),
        cell(step.rate / step.lowest * 100),
    )  # fmt: skip
    return Line(
        cells, step.variant, record.chapter, anchor_of(record.experiment, step.variant),
        record.slug, record.evidence, ladder.item.local, row.stale,
    )  # fmt: skip
