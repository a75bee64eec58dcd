"""What keeps results/ from being what the tree says: stale, missing or hand-edited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..catalog import Catalog
from ..devices import Sheets
from ..errors import RecordError
from ..experiment import Kernel
from ..records import METHOD_VERSION, Record, Result, Stored
from .book import Book
from .render import contents, obsolete, place

RUN = "run `python scripts/run_all.py`"
MEASURE = "run `python scripts/run_all.py --publish` on the reference device"
RENDER = "run `python scripts/run_all.py --render`"


@dataclass(frozen=True)
class Problem:
    """One sentence, the file it is about, and what to do. ``serious`` ones fail the check."""

    what: str
    file: Path | None = None
    hint: str = ""
    serious: bool = True

    def __str__(self) -> str:
        place = f"{self.file}: " if self.file is not None else ""
        return f"{place}{self.what}" + (f" ({self.hint})" if self.hint else "")


def problems(
    root: Path,
    results: Path,
    catalog: Catalog,
    sheets: Sheets,
    *,
    archs: Sequence[str] = (),
    counted: bool = True,
    charts: bool = True,
) -> tuple[Problem, ...]:
    """Everything the strict check fails for, in a fixed order; runs nothing.

    ``archs`` are those every kernel must be compiled for, the reference device's if none are
    given. Without ``counted``, missing counts are no problem (stale ones are). Measured rows of
    other cards than the reference device may be stale: they only show it. Files are named from
    ``root`` where they lie in it.
    """
    try:
        book = Book.load(results, catalog, sheets)
    except RecordError as error:
        return (_relative(root, Problem(error.what, Path(error.file or results), error.hint)),)
    wanted_archs = tuple(archs) or (sheets.device(sheets.reference).arch.name,)
    found = (
        *_stale(book),
        *_uncompiled(book, wanted_archs),
        *(_uncounted(book) if counted else ()),
        *_unrendered(book, results, charts),
    )
    return tuple(_relative(root, problem) for problem in found)


def _relative(root: Path, problem: Problem) -> Problem:
    return problem if problem.file is None else replace(problem, file=place(root, problem.file))


def _stale(book: Book) -> Iterator[Problem]:
    for item in book.stored:
        record = item.record
        ours = record.evidence in ("compiled", "counted") or (
            record.evidence == "measured" and record.slug == book.sheets.reference
        )
        if item.local or not ours:
            continue
        hint = MEASURE if record.evidence == "measured" else RUN
        for result in record.results:
            if book.numbers.is_stale(record, result):
                what = f"{_name(record, result)} is stale: the tree has changed since"
                yield Problem(what, item.path, hint)
        if record.evidence == "measured" and record.method_version != METHOD_VERSION:
            what = (
                f"{record.experiment} was measured by method {record.method_version}, "
                f"the harness now uses method {METHOD_VERSION}"
            )
            yield Problem(what, item.path, MEASURE, serious=False)


def _uncompiled(book: Book, archs: Sequence[str]) -> Iterator[Problem]:
    for name, kernel, item, result in _kernels(book, "compiled"):
        file = item.path if item else None
        if result is None:
            yield Problem(f"there is no compiled record of {name}", file, RUN)
            continue
        if result.status != "ok":
            yield Problem(f"{name} does not compile: {result.reason}", file)
            continue
        compiled = {c.arch for c in result.compilations}
        missing = [a for a in archs if a not in compiled and _runs_on(kernel, a, book.sheets)]
        if missing:
            yield Problem(f"{name} is not compiled for {', '.join(missing)}", file, RUN)


def _uncounted(book: Book) -> Iterator[Problem]:
    for name, kernel, item, result in _kernels(book, "counted"):
        if kernel.gpu_only:
            continue
        file = item.path if item else None
        if result is None:
            yield Problem(f"there is no counted record of {name}", file, RUN)
        elif result.status != "ok":
            yield Problem(f"{name} was not counted, {result.status}: {result.reason}", file, RUN)


def _kernels(
    book: Book, evidence: str
) -> Iterator[tuple[str, Kernel, Stored | None, Result | None]]:
    """Every kernel of the tree with its published record and row, if there are any.

    A sweep's kernels that differ in nothing but the measured size are one: the first of them.
    """
    for experiment in book.catalog.experiments:
        if book.catalog.stands_for(experiment.name) != experiment.name:
            continue
        found = [i for i in book.records_of(evidence, experiment.name) if not i.local]
        item = found[0] if found else None
        for kernel in experiment.kernels:
            result = item.record.result(kernel.name) if item else None
            yield f"{experiment.name}/{kernel.name}", kernel, item, result


def _runs_on(kernel: Kernel, arch: str, sheets: Sheets) -> bool:
    return sheets.arch(arch).cc >= kernel.min_cc


def _unrendered(book: Book, results: Path, charts: bool) -> Iterator[Problem]:
    published = contents(book.published(), charts=charts)
    for name, text in published.items():
        path = results / name
        try:
            found = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            yield Problem("is missing or unreadable", path, RENDER)
            continue
        if found != text:
            yield Problem("is not what the records say", path, RENDER)
    for path in obsolete(results, published, charts=charts):
        if "local" not in path.relative_to(results).parts:
            yield Problem("has no record behind it", path, RENDER)


def _name(record: Record, result: Result) -> str:
    card = f" on {record.slug}" if record.slug else ""
    return f"{record.evidence} {record.experiment}/{result.variant}{card}"
