"""From a record's results to the lines of a table: cells, ratios, the best, reasons and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..errors import KernelbookError
from ..experiment import Text
from ..metrics import metric
from ..quantities import Grade
from ..records import Record, Result, Stored
from .book import Book
from .model import EMPTY, LOCAL, STATUSES, Cell, Header, Line, both
from .rows import Row, anchor_of
from .show import column_unit, convert, number, row_spread, row_value

ABOUT_RUN = {
    "spread": Text("耗时 q1–q3", "time q1–q3"),
    "samples": Text("样本数", "samples"),
    "error": Text("误差 ÷ 容差", "error ÷ tolerance"),
    "max_error": Text("最大绝对误差", "largest absolute error"),
}
LIMITS = {
    "threads": Text("线程数", "threads"),
    "registers": Text("寄存器", "registers"),
    "shared memory": Text("共享内存", "shared memory"),
    "blocks": Text("块数", "blocks"),
    "does not fit": Text("放不下", "does not fit"),
}
# What a run notes of itself, in words; a note without any goes by its own name.
NOTES = {
    "clock_settings": Text("时钟设置", "clock settings"),
    "clocks": Text("时钟", "clocks"),
    "cpu_threads": Text("CPU 线程", "CPU threads"),
    "empty_kernel_in_graph_us": Text("空核函数在图中（µs）", "empty kernel in a graph (µs)"),
    "empty_kernel_us": Text("空核函数（µs）", "empty kernel (µs)"),
    "host": Text("主机", "host"),
    "host_baselines": Text("主机代码的基线", "baselines in host code"),
    "order": Text("采样顺序", "order of sampling"),
    "other_processes": Text("其他进程", "other processes"),
    "process": Text("进程", "process"),
    "warm_up": Text("预热", "warm-up"),
}
VARIANT = Header("variant", Text("实现", "variant"), numeric=False)


@dataclass(frozen=True)
class Entry:
    """A result that becomes a line, with its numbers by metric.

    ``device`` is a card's slug or, for a compilation, an architecture.
    """

    item: Stored
    result: Result
    values: dict[str, Row]
    device: str

    @property
    def record(self) -> Record:
        return self.item.record


def fill(
    book: Book, columns: Sequence[str], entries: Sequence[Entry]
) -> tuple[tuple[Header, ...], tuple[Line, ...]]:
    """Headers of the asked columns, and a line an entry: variant, device, then the columns."""
    units = {
        name: column_unit(name, [e.values[name] for e in entries if name in e.values])
        for name in (*columns, "time")
        if "/" not in name and name not in ABOUT_RUN
    }
    texts = [[_cell(book, name, entry, units) for name in columns] for entry in entries]
    best = {(name, id(entry)) for name in columns for entry in _best(book, name, entries)}
    lines = []
    for entry, cells in zip(entries, texts, strict=True):
        marked = tuple(
            _marked(cell) if (name, id(entry)) in best else cell
            for name, cell in zip(columns, cells, strict=True)
        )
        lines.append(_line(book, entry, marked))
    experiment = entries[0].record.experiment if entries else ""
    return tuple(_header(book, experiment, name, units) for name in columns), tuple(lines)


def limit_cell(entry: Entry) -> Cell:
    """What limits the theoretical occupancy of a compilation."""
    for c in entry.result.compilations:
        if c.arch == entry.device:
            limit = LIMITS.get(c.occupancy_limit, both(c.occupancy_limit))
            return Cell(limit, stale=any(r.stale for r in entry.values.values()))
    return EMPTY


def run_notes(book: Book, records: Iterable[Stored]) -> tuple[Text, ...]:
    """Where the numbers of these records come from, a remark each."""
    return tuple(note for item in records for note in _notes_of(book, item))


def _notes_of(book: Book, item: Stored) -> Iterable[Text]:
    record, name = item.record, book.device_name(item.record)
    if record.citation is not None:
        c = record.citation
        where = c.place + (f", {c.revision}" if c.revision else "")
        own = Text(_of(c.note, "zh"), _of(c.note, "en"))
        zh = f"{name} 的数据引自 {c.author}，《{c.title}》，{where}。{own.zh}"
        en = f"Figures for the {name} are cited from {c.author}, “{c.title}”, {where}. {own.en}"
        yield Text(zh, en.strip())
        return
    commit = record.commit[:10] + ("+" if record.dirty else "")
    facts = [record.date[:10], commit]
    if record.device is not None:
        d = record.device
        facts += [f"driver {d.driver}", f"CUDA {d.cuda}", f"CuPy {d.cupy}"]
    known = [(NOTES.get(k, both(k)), v) for k, v in sorted(record.notes.items())]
    zh = "，".join([*filter(None, facts), *(f"{words.zh}：{value}" for words, value in known)])
    en = ", ".join([*filter(None, facts), *(f"{words.en}: {value}" for words, value in known)])
    mark = Text(f"（{LOCAL.zh}）", f" ({LOCAL.en})") if item.local else both("")
    yield Text(f"{name}{mark.zh}：{zh}", f"{name}{mark.en}: {en}")


def _header(book: Book, experiment: str, name: str, units: dict[str, str]) -> Header:
    if name in ABOUT_RUN:
        return Header(name, ABOUT_RUN[name], units["time"] if name == "spread" else "")
    base, _, variant = name.partition("/")
    title = metric(base).title
    if not variant:
        return Header(name, title, units[name])
    below = book.variant_title(experiment, variant)
    return Header(name, Text(f"{title.zh} ÷ {below.zh}", f"{title.en} ÷ {below.en}"), "×")


def _cell(book: Book, name: str, entry: Entry, units: dict[str, str]) -> Cell:
    if name in ABOUT_RUN:
        return _about_run(name, entry, units["time"])
    base, _, variant = name.partition("/")
    row = entry.values.get(base)
    if row is None:
        return EMPTY
    grade, detail = Grade.parse(row.evidence), row.detail
    if variant:
        ratio = ratio_of(book, entry, name)
        if ratio is None:
            return EMPTY
        text = number(ratio[0], ",.2f")
        return Cell(both(text), grade, detail=detail, stale=ratio[1], row=row, over=variant)
    unit = units[name]
    text, spread = row_value(row, unit), row_spread(row, unit)
    return Cell(both(text), grade, spread, row.samples, detail, stale=row.stale, row=row)


def ratio_of(book: Book, entry: Entry, name: str) -> tuple[float, bool] | None:
    """A row over another variant's row of the same record and L2 state; stale if either is."""
    base, _, variant = name.partition("/")
    row = entry.values.get(base)
    found = [r for r in book.rows_of(entry.item) if (r.variant, r.metric) == (variant, base)]
    found = [r for r in found if row and r.cache == row.cache] or found
    if row is None or not found or not found[0].value:
        return None
    below = convert(found[0].value, found[0].unit, row.unit)
    return row.value / below, row.stale or found[0].stale


def _about_run(name: str, entry: Entry, time_unit: str) -> Cell:
    time = entry.values.get("time")
    grade = Grade.parse(entry.record.evidence)
    if name in ("spread", "samples"):
        if time is None or time.q1 is None:
            return EMPTY
        text = row_spread(time, time_unit) if name == "spread" else f"{time.samples:,}"
        return Cell(both(text), grade, stale=time.stale, row=time)
    checks = entry.result.verifications
    if not checks:
        return EMPTY
    stale = time.stale if time else False
    if name == "error":
        return Cell(both(f"{max(v.worst_ratio for v in checks):.2g}"), grade, stale=stale)
    at_shape = [v for v in checks if dict(v.shape) == dict(entry.record.shape)] or checks
    return Cell(both(f"{max(v.max_error for v in at_shape):.2g}"), grade, stale=stale)


def _best(book: Book, name: str, entries: Sequence[Entry]) -> Iterable[Entry]:
    """The best of our kernels in a column, one a device and run; none where only one ran.

    Baselines are what a kernel is held against, not contenders.
    """
    base = name.partition("/")[0]
    better = 0 if name in ABOUT_RUN else metric(base).better
    if not better:
        return
    groups: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for i, entry in enumerate(entries):
        value = None
        if "/" in name:
            ratio = ratio_of(book, entry, name)
            value = ratio[0] if ratio else None
        elif name in entry.values:
            row = entry.values[name]
            value = convert(row.value, row.unit, metric(base).unit)
        if value is not None and _competes(book, entry):
            key = (str(entry.item.path), entry.record.slug)
            groups.setdefault(key, []).append((better * value, -i))
    for group in groups.values():
        if len(group) > 1:
            yield entries[-max(group)[1]]


def _competes(book: Book, entry: Entry) -> bool:
    """Baselines do not compete, nor do kernels that are wrong on purpose."""
    if entry.result.kind != "kernel":
        return False
    try:
        variant = book.catalog.experiment(entry.record.experiment).variant(entry.result.variant)
    except KernelbookError:
        return True
    return not getattr(variant, "counter_example", False)


def _marked(cell: Cell) -> Cell:
    return replace(cell, best=True)


def _line(book: Book, entry: Entry, cells: tuple[Cell, ...]) -> Line:
    record, result = entry.record, entry.result
    reason = None
    if result.status != "ok":
        word = STATUSES[result.status]
        reason = Text(f"{word.zh}：{result.reason}", f"{word.en}: {result.reason}")
    title = Cell(book.variant_title(record.experiment, result.variant))
    return Line(
        cells=(title, _place_cell(book, entry), *cells),
        variant=result.variant,
        chapter=record.chapter,
        anchor=anchor_of(record.experiment, result.variant),
        device=entry.device,
        evidence=record.evidence,
        local=entry.item.local,
        # Of its own numbers: a ratio to a row that is stale is a stale cell of a line that is not.
        stale=any(row.stale for row in entry.values.values()),
        status="" if result.status == "ok" else result.status,
        reason=reason,
        note=_note(book, entry),
    )


def _place_cell(book: Book, entry: Entry) -> Cell:
    if entry.device != entry.record.slug:
        return Cell(both(entry.device))  # an architecture
    return device_cell(book, entry.item)


def device_cell(book: Book, item: Stored) -> Cell:
    """The card of a record, and whether it is the reader's own or cited."""
    name = book.device_name(item.record)
    if item.local:
        return Cell(Text(f"{name}（{LOCAL.zh}）", f"{name} ({LOCAL.en})"))
    if item.record.citation is not None:
        author = item.record.citation.author
        return Cell(Text(f"{name}（引自 {author}）", f"{name} (cited from {author})"))
    return Cell(both(name))


def _note(book: Book, entry: Entry) -> Text | None:
    """The author's remark on a baseline, the record's on the row, and throttling."""
    zh, en = [], []
    try:
        variant = book.catalog.experiment(entry.record.experiment).variant(entry.result.variant)
        own = getattr(variant, "note", None)
        # What we say of our own baseline need not hold of somebody else's.
        if isinstance(own, Text) and (own.zh or own.en) and entry.record.citation is None:
            zh.append(own.zh.replace("`", ""))
            en.append(own.en.replace("`", ""))
    except KernelbookError:
        pass  # the record speaks of a variant the tree no longer has
    zh.append(_of(entry.result.note, "zh"))
    en.append(_of(entry.result.note, "en"))
    zh += entry.result.findings  # of the emulator's checks
    en += entry.result.findings
    time = entry.values.get("time")
    for timing in entry.result.timings:
        if timing.throttle and time is not None and timing.cache == time.cache:
            zh.append(f"测量时降频：{timing.throttle}")
            en.append(f"throttled: {timing.throttle}")
    # What the author says of a baseline, its record may say again.
    zh, en = list(dict.fromkeys(filter(None, zh))), list(dict.fromkeys(filter(None, en)))
    note = Text("；".join(zh), "; ".join(en))
    return note if note.zh or note.en else None


def _of(words: object, language: str) -> str:
    """A record's words in a language, else in the other one."""
    assert hasattr(words, "get")
    return str(words.get(language) or words.get("en") or words.get("zh") or "")
