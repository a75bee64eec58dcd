"""The tables an article or a results page can show, from rows: `model.Table`s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..devices import Sheets
from ..errors import KernelbookError, PageError
from ..experiment import Experiment, Kernel, Shape, Text
from ..metrics import METRICS
from ..quantities import Grade
from ..records import Result, Stored
from ..staleness import launch_of
from .book import Book
from .hardware import hardware
from .lines import ABOUT_RUN, VARIANT, Entry, fill, limit_cell, run_notes
from .model import Cell, Header, Line, Table, both
from .rows import Row, anchor_of, shape_text, sizes_text

RESULT_COLUMNS = {"memory": ("time", "bandwidth"), "compute": ("time", "throughput")}
COMPILED_COLUMNS = (
    "registers",
    "shared_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "blocks_per_sm",
    "occupancy",
)
DEVICE = Header("device", Text("设备", "device"), numeric=False)
ARCH = Header("arch", Text("架构", "architecture"), numeric=False)
LIMIT = Header("limit", Text("占用率受限于", "occupancy limited by"), numeric=False)
CODE_PATHS = (
    Header("source", Text("源文件", "source"), numeric=False),
    Header("kernel", Text("核函数", "kernel"), numeric=False),
    Header("technique", Text("做法", "technique"), numeric=False),
    Header("launch", Text("启动：grid × block", "launch: grid × block"), numeric=False),
    Header("size", Text("规模", "size"), numeric=False),
)

__all__ = [
    "compiled_table",
    "counters_table",
    "counts_table",
    "default_columns",
    "hardware",
    "kernels_table",
    "results_table",
    "timed_entry",
]


def results_table(
    book: Book,
    experiment: str,
    *,
    columns: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    evidence: Sequence[str] = ("measured", "cited"),
    cache: str = "cold",
) -> Table:
    """Variants by devices: published, the reader's own and cited rows together.

    A column is a metric, ``metric/variant`` (the ratio to that variant in the same record), or
    one of ``spread`` (q1–q3 of the time), ``samples``, ``error`` (against the fp64 reference, 1
    is what is tolerated) and ``max_error``. Lines are grouped by device: the reference, other
    cards, the reader's, cited ones. Raises PageError for an unknown experiment, variant or column.
    """
    chosen = tuple(columns or default_columns(book, experiment))
    check_names(book, experiment, variants, chosen)
    records = [item for grade in evidence for item in book.records_of(grade, experiment)]
    entries = [
        entry
        for item in records
        for result in book.results_of(item.record, variants)
        if (entry := timed_entry(book, item, result, cache)) is not None
    ]
    header, lines = fill(book, chosen, entries)
    notes = run_notes(book, _shown(records, entries))
    return Table("results", (VARIANT, DEVICE, *header), lines, notes)


def default_columns(book: Book, experiment: str) -> tuple[str, ...]:
    """What an experiment's results show where the author asks for nothing in particular."""
    return RESULT_COLUMNS[_experiment(book, experiment).bound]


def counts_table(
    book: Book,
    experiment: str,
    *,
    columns: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
) -> Table:
    """What the emulator counted, by variant; a note names the shape it ran.

    Without ``columns``, every count that is not zero throughout. Raises PageError as above.
    """
    check_names(book, experiment, variants, columns or ())
    records = book.records_of("counted", experiment)
    entries = _with_values(book, records, variants, "counts")
    header, lines = fill(book, columns or _occurring(entries), entries)
    shapes = dict.fromkeys(shape_text(i.record.shape) for i in _shown(records, entries))
    notes = tuple(
        Text(f"模拟器执行的规模：{s}", f"executed by the emulator at {s}") for s in shapes
    )
    lines = tuple(replace(x, cells=(x.cells[0], *x.cells[2:])) for x in lines)
    return Table("counts", (VARIANT, *header), lines, notes)


def counters_table(
    book: Book,
    experiment: str,
    *,
    columns: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
) -> Table:
    """What ncu read on real cards, by variant and device; columns as `counts_table`."""
    check_names(book, experiment, variants, columns or ())
    records = book.records_of("measured", experiment)
    entries = _with_values(book, records, variants, "counters")
    header, lines = fill(book, columns or _occurring(entries), entries)
    notes = run_notes(book, _shown(records, entries))
    return Table("counters", (VARIANT, DEVICE, *header), lines, notes)


def compiled_table(
    book: Book,
    experiment: str,
    *,
    archs: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
) -> Table:
    """Registers, shared memory, spills and theoretical occupancy, by variant and architecture."""
    check_names(book, experiment, variants, ())
    entries = [
        entry
        for item in book.records_of("compiled", experiment)
        for result in book.results_of(item.record, variants)
        for entry in _compilations(book, item, result, archs)
    ]
    header, lines = fill(book, COMPILED_COLUMNS, entries)
    lines = tuple(
        replace(line, cells=(*line.cells, limit_cell(entry)))
        for line, entry in zip(lines, entries, strict=True)
    )
    compilers = sorted({c.nvrtc for e in entries for c in e.result.compilations})
    notes = tuple(both(f"NVRTC {version}") for version in compilers)
    return Table("compiled", (VARIANT, ARCH, *header, LIMIT), lines, notes)


def kernels_table(book: Book, chapter: str, *, variants: Sequence[str] | None = None) -> Table:
    """A chapter's code paths: source, kernel, technique, launch, sizes. One line a kernel.

    The launch is that of the first size on the reference device. Raises PageError for an unknown
    chapter or kernel.
    """
    experiments = book.catalog.of_chapter(chapter)
    if not experiments:
        known = ", ".join(book.catalog.chapters)
        raise PageError(f"there is no chapter {chapter!r}", hint=f"known: {known}")
    kernels: dict[str, list[tuple[Experiment, Kernel]]] = {}
    for experiment in experiments:
        for kernel in experiment.kernels:
            kernels.setdefault(kernel.name, []).append((experiment, kernel))
    for name in variants or ():
        if name not in kernels:
            raise PageError(f"chapter {chapter!r} has no kernel {name!r}")
    lines = tuple(_code_path(kernels[name], book.sheets) for name in variants or kernels)
    return Table("kernels", CODE_PATHS, lines)


# ---- which results become lines --------------------------------------------------------------


def timed_entry(book: Book, item: Stored, result: Result, cache: str) -> Entry | None:
    """A result as a line of a table in one state of L2; None where it has no time in it."""
    if result.status != "ok":
        return Entry(item, result, {}, item.record.slug)
    rows = [r for r in book.rows_of(item) if r.variant == result.variant]
    # The card's L2 means nothing to host code or to a transfer: such a row stands in any table.
    bound = result.kind in ("kernel", "library") or any(r.cache == cache for r in rows)
    values = {r.metric: r for r in rows if not bound or r.cache in ("", cache)}
    if not values or (item.record.evidence == "measured" and "time" not in values):
        return None
    return Entry(item, result, values, item.record.slug)


def _with_values(
    book: Book, records: Iterable[Stored], variants: Sequence[str] | None, field: str
) -> list[Entry]:
    """Results with counts or counters; failed ones too where counting is all a record is for."""
    entries = []
    for item in records:
        rows = book.rows_of(item)
        for result in book.results_of(item.record, variants):
            names = getattr(result, field)
            values = {
                r.metric: r for r in rows if r.variant == result.variant and r.metric in names
            }
            failed = result.status != "ok" and item.record.evidence == "counted"
            if values or failed:
                entries.append(Entry(item, result, values, item.record.slug))
    return entries


def _compilations(
    book: Book, item: Stored, result: Result, archs: Sequence[str] | None
) -> list[Entry]:
    by_arch: dict[str, dict[str, Row]] = {}
    for row in book.rows_of(item):
        if row.variant == result.variant:
            by_arch.setdefault(row.device, {})[row.metric] = row
    entries = [
        Entry(item, result, values, arch)
        for arch, values in by_arch.items()
        if archs is None or arch in archs
    ]
    if not by_arch and result.status != "ok":
        return [Entry(item, result, {}, "")]
    return entries


def _shown(records: Iterable[Stored], entries: Sequence[Entry]) -> list[Stored]:
    return [item for item in records if any(entry.item is item for entry in entries)]


def _occurring(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Metrics that are not zero throughout, in the vocabulary's order."""
    seen = {name for e in entries for name, row in e.values.items() if row.value}
    return (*(n for n in METRICS if n in seen), *sorted(seen - set(METRICS)))


def _code_path(uses: Sequence[tuple[Experiment, Kernel]], sheets: Sheets) -> Line:
    experiment, kernel = uses[0]
    target = sheets.device(sheets.reference).target
    grid, block, _ = launch_of(kernel, experiment.shape, target)
    path = f"{experiment.chapter}/{kernel.source}"
    title = Text(kernel.title.zh.replace("`", ""), kernel.title.en.replace("`", ""))
    return Line(
        cells=(
            Cell(both(kernel.source), code=True, source=path),
            Cell(both(kernel.entry), code=True),
            Cell(title),
            Cell(both(f"{_dims(grid)} × {_dims(block)}"), Grade.THEORY),
            Cell(_used_at([e for e, _ in uses]), Grade.THEORY),
        ),
        variant=kernel.name,
        chapter=experiment.chapter,
        anchor=anchor_of(experiment.name, kernel.name),
    )


def _used_at(experiments: Sequence[Experiment]) -> Text:
    """The sizes of experiments in words, a sweep's by its title and their number."""
    alone = _sizes(e.shape for e in experiments if e.sweep is None)
    zh, en = ([alone], [alone]) if alone else ([], [])
    for sweep, count in Counter(e.sweep for e in experiments if e.sweep is not None).items():
        zh.append(f"{sweep.title.zh}（{count} 个规模）")
        en.append(f"{sweep.title.en} ({count} sizes)")
    return Text("; ".join(zh), "; ".join(en))


def _sizes(shapes: Iterable[Shape]) -> str:
    """``m = n = k = 1,024; 2,048``: sizes in words, cubes of the same entries together."""
    cubes: dict[str, list[str]] = {}
    for shape in shapes:
        if len(set(shape.values())) == 1:
            size = f"{next(iter(shape.values())):,}"
            cubes.setdefault(" = ".join(shape) + " = ", []).append(size)
        else:
            cubes[sizes_text(shape)] = []
    return "; ".join(name + "; ".join(dict.fromkeys(sizes)) for name, sizes in cubes.items())


def _dims(dims: tuple[int, int, int]) -> str:
    used = list(dims)
    while len(used) > 1 and used[-1] == 1:
        used.pop()
    return "(" + ", ".join(f"{n}" for n in used) + ")"


# ---- what an author may ask for --------------------------------------------------------------


def _experiment(book: Book, name: str) -> Experiment:
    try:
        return book.catalog.experiment(name)
    except KernelbookError as error:
        raise PageError(error.what, hint=error.hint) from None


def check_names(
    book: Book, experiment: str, variants: Sequence[str] | None, columns: Sequence[str]
) -> None:
    """Raise PageError for a variant or column that neither the tree nor a record knows."""
    known = {v.name for v in _experiment(book, experiment).variants}
    named = book.rows_about(experiment)
    known |= {r.variant for r in named}
    metrics = {*METRICS, *(r.metric for r in named)}
    for name in variants or ():
        if name not in known:
            hint = "known: " + ", ".join(sorted(known))
            raise PageError(f"experiment {experiment!r} has no variant {name!r}", hint=hint)
    for column in columns:
        base, slash, variant = column.partition("/")
        if slash and variant not in known:
            raise PageError(f"column {column!r}: {experiment!r} has no variant {variant!r}")
        if base not in metrics and (slash or base not in ABOUT_RUN):
            raise PageError(
                f"there is no metric {base!r} for a column",
                hint="known: " + ", ".join((*METRICS, *ABOUT_RUN)),
            )
