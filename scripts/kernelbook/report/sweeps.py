"""A sweep as one table: a line for each size, its variants side by side, one table a card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import PageError
from ..experiment import Experiment, Kernel, Library, Text, Variant
from ..metrics import METRICS, metric
from ..records import Stored
from .book import Book
from .lines import Entry, fill, ratio_of, run_notes
from .model import EMPTY, Cell, Header, Line, Table, both
from .rows import anchor_of, place_of
from .show import convert
from .tables import compiled_table, counts_table, timed_entry

CONFIGURATION = Header("configuration", Text("配置", "configuration"), numeric=False)
TIMES_UP_TO = 2  # variants: of more, only their rates are shown
SMALL_RATE = 100.0
RATES = {"memory": "bandwidth", "compute": "throughput"}
WARM = Text("（L2 热）", " (warm L2)")


@dataclass(frozen=True)
class Run:
    """A card's records of a sweep, by the name of the member."""

    items: dict[str, Stored]

    @property
    def first(self) -> Stored:
        return next(iter(self.items.values()))


def members_of(book: Book, name: str) -> tuple[Experiment, ...]:
    """The experiments of a sweep; raises PageError where there is none of that name."""
    found = book.catalog.members(name)
    if not found:
        known = dict.fromkeys(e.sweep.name for e in book.catalog.experiments if e.sweep)
        hint = "known: " + ", ".join(known) if known else "there is none yet"
        raise PageError(f"there is no sweep {name!r}", hint=hint)
    return found


def runs(book: Book, members: Sequence[Experiment], grade: str) -> tuple[Run, ...]:
    """Records of a grade by card: the reference device first, the reader's own last."""
    found: dict[tuple[bool, bool, str], dict[str, Stored]] = {}
    for member in members:
        for item in book.records_of(grade, member.name):
            slug = item.record.slug
            key = (item.local, slug != book.sheets.reference, slug)
            found.setdefault(key, {})[member.name] = item
    return tuple(Run(found[key]) for key in sorted(found))


def sweep_table(book: Book, members: Sequence[Experiment], run: Run) -> Table:
    """One card's times, rates and ratios: cold, and of warm L2 the ratios (of what arithmetic
    bounds) or the rates."""
    columns = [_size_columns(members), *_configurations(members)]
    for cache in ("cold", "warm"):
        for variant in _timed_variants(members[0]):
            columns.append(_measured(book, members, run, variant, cache))
    header = tuple(head for heads, _ in columns for head in heads)
    lines = tuple(
        _line(member, run.items[member.name], tuple(c for _, cells in columns for c in cells[i]))
        for i, member in enumerate(members)
        if member.name in run.items
    )
    header, lines = _without_empty(header, lines)
    return Table("results", header, lines, _notes(book, run))


Columns = tuple[tuple[Header, ...], list[tuple[Cell, ...]]]  # of each member


def _size_columns(members: Sequence[Experiment]) -> Columns:
    entries = tuple(members[0].shape)
    if all(len(set(m.shape.values())) == 1 for m in members):
        head = Header("size", both(" = ".join(entries)))
        return (head,), [(_size(next(iter(m.shape.values()))),) for m in members]
    heads = tuple(Header(name, both(name)) for name in entries)
    return heads, [tuple(_size(m.shape[name]) for name in entries) for m in members]


def _size(value: int) -> Cell:
    return Cell(both(f"{value:,}"))


def _configurations(members: Sequence[Experiment]) -> list[Columns]:
    """A column for each kernel that has configurations."""
    found: list[Columns] = []
    for place, kernel in enumerate(members[0].kernels):
        names = [m.kernels[place].configuration for m in members]
        if any(names):
            head = CONFIGURATION
            if len(members[0].kernels) > 1:
                title = Text(f"{kernel.name}：{head.title.zh}", f"{kernel.name}: {head.title.en}")
                head = replace(head, title=title)
            found.append(((head,), [(_code(name),) for name in names]))
    return found


def _code(name: str) -> Cell:
    return Cell(both(name), code=True) if name else EMPTY


def _timed_variants(experiment: Experiment) -> tuple[Variant, ...]:
    return tuple(
        v for v in experiment.variants if not (isinstance(v, Kernel) and v.counter_example)
    )


def _measured(
    book: Book, members: Sequence[Experiment], run: Run, variant: Variant, cache: str
) -> Columns:
    """A variant's columns in one state of L2, a row of cells for each member."""
    entries: list[Entry | None] = []
    for member in members:
        item = run.items.get(member.name)
        result = item.record.result(variant.name) if item else None
        entry = timed_entry(book, item, result, cache) if item and result else None
        entries.append(entry if entry and entry.values else None)
    names = _columns(members[0], variant, cache, [e for e in entries if e])
    heads, lines = fill(book, names, [e for e in entries if e is not None])
    title = book.variant_title(members[0].name, variant.name)
    warm = WARM if cache == "warm" else Text("", "")
    heads = tuple(_titled(head, title, warm) for head in heads)
    cells = iter(lines)
    rows = [
        tuple(
            _precise(book, entry, *pair) for pair in zip(names, next(cells).cells[2:], strict=True)
        )
        if entry
        else (EMPTY,) * len(heads)
        for entry in entries
    ]
    return heads, rows


def _titled(head: Header, variant: Text, warm: Text) -> Header:
    return replace(
        head,
        title=Text(
            f"{variant.zh}：{head.title.zh}{warm.zh}", f"{variant.en}: {head.title.en}{warm.en}"
        ),
    )


def _columns(
    experiment: Experiment, variant: Variant, cache: str, entries: Sequence[Entry]
) -> tuple[str, ...]:
    rate = RATES[experiment.bound]
    if not any(rate in e.values for e in entries):
        rate = "time"
    library = next((v.name for v in experiment.variants if isinstance(v, Library)), "")
    held_against = [f"{rate}/{library}"] if library and isinstance(variant, Kernel) else []
    if cache == "warm":  # of what memory bounds, how much more L2 gives is looked at
        return tuple(held_against) if library and experiment.bound == "compute" else (rate,)
    few = len(_timed_variants(experiment)) <= TIMES_UP_TO
    return tuple(dict.fromkeys([*(["time"] if few else []), rate, *held_against]))


def _precise(book: Book, entry: Entry, name: str, cell: Cell) -> Cell:
    """A sweep is read for small differences and spans decades: ratios get three decimals, small
    bandwidths three digits."""
    if "/" in name and (ratio := ratio_of(book, entry, name)) is not None:
        return replace(cell, text=both(f"{ratio[0]:.3f}"))
    if name != "bandwidth" or cell.row is None:
        return cell
    value = convert(cell.row.value, cell.row.unit, metric(name).unit)
    return replace(cell, text=both(f"{value:.3g}")) if 0 < value < SMALL_RATE else cell


def _line(member: Experiment, item: Stored, cells: tuple[Cell, ...]) -> Line:
    lost = [f"{r.variant}: {r.reason}" for r in item.record.results if r.status != "ok"]
    places = [place_of(member.name)]
    places += [anchor_of(member.name, v.name) for v in member.variants]
    return Line(
        cells=cells,
        chapter=member.chapter,
        anchor=places[0],
        more_anchors=tuple(places[1:]),
        device=item.record.slug,
        evidence=item.record.evidence,
        local=item.local,
        stale=any(cell.stale for cell in cells),
        status="failed" if lost else "",
        reason=both(f"{member.name}: {'; '.join(lost)}") if lost else None,
    )


def _without_empty(
    header: tuple[Header, ...], lines: tuple[Line, ...]
) -> tuple[tuple[Header, ...], tuple[Line, ...]]:
    kept = [i for i in range(len(header)) if any(x.cells[i] is not EMPTY for x in lines)]
    thinner = tuple(replace(x, cells=tuple(x.cells[i] for i in kept)) for x in lines)
    return tuple(header[i] for i in kept), thinner


def _notes(book: Book, run: Run) -> tuple[Text, ...]:
    """What holds for all records of the run, once; of what differs, only dates and commits."""
    records = [item.record for item in run.items.values()]
    first = records[0]
    common = {
        key: value
        for key, value in first.notes.items()
        if all(r.notes.get(key) == value for r in records)
    }
    notes = run_notes(book, [replace(run.first, record=replace(first, notes=common))])
    taken = dict.fromkeys(
        f"{r.date[:10]} {r.commit[:10]}{'+' if r.dirty else ''}".strip() for r in records
    )
    if len(taken) > 1:
        listed = ", ".join(taken)
        notes += (Text(f"各点取自：{listed}", f"points are of: {listed}"),)
    return notes


# ---- compiled and counted: once for each kernel that differs -----------------------------------


def stand_ins(book: Book, members: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The members that hold the compiled and counted records."""
    return tuple(m for m in members if book.catalog.stands_for(m.name) == m.name)


def sweep_counts(book: Book, members: Sequence[Experiment]) -> Table:
    """What the emulator counted of each different kernel."""
    found = stand_ins(book, members)
    seen = {
        name
        for member in found
        for item in book.records_of("counted", member.name)
        for result in item.record.results
        for name, value in result.counts.items()
        if value
    }
    columns = [name for name in METRICS if name in seen] or ["warp_instructions"]
    return _stacked([(m, counts_table(book, m.name, columns=columns)) for m in found])


def sweep_compiled(book: Book, members: Sequence[Experiment]) -> Table:
    """Registers, shared memory and occupancy of each different kernel on the reference device."""
    arch = book.sheets.device(book.sheets.reference).arch.name
    found = stand_ins(book, members)
    archs = [arch] if len(found) > 1 else None
    tables = [(m, compiled_table(book, m.name, archs=archs)) for m in found]
    return _stacked(tables)


def _stacked(tables: Sequence[tuple[Experiment, Table]]) -> Table:
    """Tables of equal columns as one, with the configuration in place of the variant's title."""
    shown = [(member, table) for member, table in tables if table.lines]
    if not shown:
        return tables[0][1]
    several = len(shown) > 1
    lines = [
        _configured(member, line) if several else line
        for member, table in shown
        for line in table.lines
    ]
    notes = dict.fromkeys(note for _, table in shown for note in table.notes)
    return replace(shown[0][1], lines=tuple(lines), notes=tuple(notes))


def _configured(member: Experiment, line: Line) -> Line:
    kernel = next((k for k in member.kernels if k.name == line.variant), None)
    if kernel is None or not kernel.configuration:
        return replace(line, anchor="")
    return replace(line, cells=(Cell(both(kernel.configuration)), *line.cells[1:]), anchor="")
