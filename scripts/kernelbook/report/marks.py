"""What a chart draws: numbers of the asked variants on every device that has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from ..devices import Device
from ..errors import KernelbookError
from ..experiment import BYTES, Chart, Experiment, Text, model
from ..metrics import metric
from ..records import Stored
from .book import Book
from .hardware import device_of
from .harmless import one_line
from .rows import Row
from .show import convert, row_value

EMULATOR = Text("模拟器（计数）", "emulator (counted)")
EMULATOR_HERE = Text("模拟器（本机计数）", "emulator (counted, this machine)")
MAX_NAME = 60  # characters of a device's or an author's name in a picture


@dataclass(frozen=True)
class Card:
    """A device as a chart names it; a reader's own run of a published card is another one. The
    emulator is one without a name.

    ``name`` is the card's; ``words`` add whether its numbers are measured or cited.
    """

    slug: str
    name: str
    words: Text
    cited: bool
    local: bool
    sheet: Device | None = field(compare=False)


@dataclass(frozen=True)
class Mark:
    """One number: ``value``, ``low`` and ``high`` (q1 and q3) in the chart's unit."""

    experiment: str
    variant: str
    card: Card
    value: float = 0.0
    low: float | None = None
    high: float | None = None
    text: str = ""
    stale: bool = False
    x: float = 0.0  # sweep: the size; roofline: FLOP/byte by the model


def unit_of_chart(chart: Chart) -> str:
    if chart.over:
        return "×"
    return metric("throughput" if chart.kind == "roofline" else chart.metric).unit


def marks(book: Book, chart: Chart) -> tuple[Mark, ...]:
    """In the order of experiments, devices (reference first, cited last) and variants.

    None exactly where there is no picture: a sweep leaves out lines of one point, which are no
    curve.
    """
    found = []
    grades = ("counted",) if chart.evidence == "counted" else ("measured", "cited")
    for name in chart.experiments:
        experiment = book.catalog.experiment(name)
        for item in (stored for grade in grades for stored in book.records_of(grade, name)):
            card = _card(book, item)
            for variant in chart.variants:
                mark = _mark(book, chart, experiment, item, card, variant)
                if mark is not None:
                    found.append(mark)
    if chart.kind == "sweep":
        points = Counter((m.variant, m.card) for m in found)
        found = [m for m in found if points[m.variant, m.card] > 1]
    return tuple(found)


def cards(book: Book) -> tuple[Card, ...]:
    """Every device with results, in one order for all charts: published, cited, the reader's.

    The reader's come last, so that they do not change the colours of the others.
    """
    grades = ("measured", "cited", "counted")
    found = [_card(book, item) for grade in grades for item in book.records_of(grade)]
    return tuple(sorted(dict.fromkeys(found), key=lambda c: c.local))


def _card(book: Book, item: Stored) -> Card:
    record = item.record
    if record.evidence == "counted":
        return Card("", "", EMULATOR_HERE if item.local else EMULATOR, False, item.local, None)
    name = one_line(book.device_name(record), MAX_NAME)
    sheet = book.sheets.devices.get(record.slug)
    if sheet is None and record.device is not None:
        sheet = device_of(record.device, book.sheets)
    words = Text(f"{name}（实测）", f"{name} (measured)")
    if record.citation is not None:
        author = one_line(record.citation.author, MAX_NAME)
        words = Text(f"{name}（引自 {author}）", f"{name} (cited from {author})")
    elif item.local:
        words = Text(f"{name}（本机实测）", f"{name} (measured, this machine)")
    return Card(record.slug, name, words, record.citation is not None, item.local, sheet)


def _mark(
    book: Book, chart: Chart, experiment: Experiment, item: Stored, card: Card, variant: str
) -> Mark | None:
    rows = {
        r.metric: r
        for r in book.rows_of(item)
        if r.variant == variant and r.cache in ("", chart.cache)
    }
    unit = unit_of_chart(chart)
    if chart.kind == "roofline":
        return _roofline_mark(experiment, card, variant, rows, unit)
    row = rows.get(chart.metric)
    if row is None:
        return None
    x = _size(chart, experiment, item) if chart.kind == "sweep" else 0.0
    if chart.over:
        return _ratio(book, chart, item, row, Mark(experiment.name, variant, card, x=x))
    return _of(row, experiment.name, card, unit, x)


def _size(chart: Chart, experiment: Experiment, item: Stored) -> float:
    shape = item.record.shape
    if chart.x != BYTES:
        return float(shape.get(chart.x, 0))
    return float(experiment.bytes_read(shape) + experiment.bytes_written(shape))


def _ratio(book: Book, chart: Chart, item: Stored, row: Row, mark: Mark) -> Mark | None:
    """The mark with the row as a multiple of the same one of ``chart.over``."""
    asked = (chart.over, row.metric, row.cache)
    for other in book.rows_of(item):
        if (other.variant, other.metric, other.cache) == asked and other.value:
            value = row.value / convert(other.value, other.unit, row.unit)
            text, stale = f"{value:.3f}", row.stale or other.stale
            return replace(mark, value=value, text=text, stale=stale)
    return None


def _of(row: Row, experiment: str, card: Card, unit: str, x: float, factor: float = 1.0) -> Mark:
    def scaled(value: float | None) -> float | None:
        return None if value is None else convert(value, row.unit, unit) * factor

    value = convert(row.value, row.unit, unit) * factor
    text = row_value(row, unit) if factor == 1.0 else f"{value:.3g}"
    low, high = scaled(row.q1), scaled(row.q3)
    return Mark(experiment, row.variant, card, value, low, high, text, row.stale, x)


def _roofline_mark(
    experiment: Experiment, card: Card, variant: str, rows: dict[str, Row], unit: str
) -> Mark | None:
    try:
        flops, read, written = model(experiment, experiment.variant(variant), experiment.shape)
    except KernelbookError:
        return None  # a cited variant that is none of ours has no model
    if not flops or not read + written:
        return None
    intensity = flops / (read + written)
    if (row := rows.get("throughput")) is not None:
        return _of(row, experiment.name, card, unit, intensity)
    if (row := rows.get("bandwidth")) is not None:
        # GB/s times FLOP/byte is GFLOP/s: a citation that gives only the bandwidth
        giga = Row(**{**vars(row), "unit": "GFLOPS", "metric": "throughput"})
        return _of(giga, experiment.name, card, unit, intensity, intensity)
    return None
