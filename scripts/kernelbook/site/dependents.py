"""Which pages show what a file holds: found in what the pages say, without converting any.

Rather a page too many than one too few: a page converted again for nothing costs a moment, one that
is not shows what no longer holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernelbook.errors import KernelbookError
from kernelbook.experiment import Experiment, Kernel, Library
from kernelbook.site import context

# Tables of expressions over records, and the blocks that show them.
_TABLES = {"gains.toml": r"gains \|", "limits.toml": r"(own-)?devices? \|"}

# What is said of a kernel that its source may change; what others report of it does not age.
_OF_SOURCE = "(?:measured|counted|compiled|macro)"


def dependents(root: Path, language: str, changed: Iterable[str]) -> Iterator[Path]:
    """Pages that show something of these files, given as paths from the repository."""
    experiments = _experiments(root)
    names = {name for path in changed for name in _names(root, Path(path), experiments)}
    for page in sorted((root / "docs" / language).rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if any(re.search(name, text, re.M) for name in names):
            yield page


def _experiments(root: Path) -> tuple[Experiment, ...]:
    """The tree's experiments; none while an author's change has broken one, which a build says."""
    try:
        return context.tree(root).experiments
    except KernelbookError:
        return ()


def _names(root: Path, path: Path, experiments: tuple[Experiment, ...]) -> Iterator[str]:
    """What a page says when it shows a file, as regular expressions."""
    if path.parts[0] == "kernels":
        yield from _of_source(root, path.relative_to("kernels"), experiments)
    elif path.suffix == ".svg":
        yield rf"chart \| {re.escape(path.name.split('.')[0])}"
    else:
        yield from _of_record(root, path, experiments)


def _of_source(root: Path, path: Path, experiments: tuple[Experiment, ...]) -> Iterator[str]:
    """A kernel shows in excerpts and in its constants, and makes numbers of it stale."""
    chapter, name = path.parts[0], path.relative_to(path.parts[0]).as_posix()
    users = [e for e in experiments if e.chapter == chapter]
    variants: set[str] = set()
    grade = r"\w+"
    if path.suffix == ".cu":
        users = [e for e in users if name in _sources(e)]
        variants = {v for e in users for v in _sources(e)[name]}
        grade = _OF_SOURCE
        yield re.escape(path.as_posix())
        yield from (rf"results-page \| {chapter}", rf"kernels \| {chapter}")
    else:
        yield re.escape(chapter)  # a header or the experiments: whatever shows the chapter
    yield from _of_experiments(root, users, grade, variants)
    if users:
        yield r"device \||own-devices \|"


def _of_record(root: Path, path: Path, experiments: tuple[Experiment, ...]) -> Iterator[str]:
    """A record: results/data/GRADE[/DEVICE]/EXPERIMENT.json or results/local/…."""
    local = "local" in path.parts
    grade = "measured" if local else path.parts[2]
    yield rf"results-page \| {re.escape(_chapter(root / path))}"
    if grade in ("measured", "cited"):
        yield r"own-devices \|" if local else rf"device \| {re.escape(path.parent.name)}"
    holder = next((e for e in experiments if e.name == path.stem), None)
    if holder is None:
        yield from _of_names(root, (path.stem,), grade)
        return
    users = [holder]
    if grade in ("compiled", "counted"):
        # Of a sweep's members alike, one is compiled and counted, and it shows on source pages.
        users = [e for e in experiments if e.sweep is not None and e.sweep == holder.sweep] or users
        for source in sorted({name for e in users for name in _sources(e)}):
            yield rf"source \| {re.escape(f'{holder.chapter}/{source}')}"
    yield from _of_experiments(root, users, grade)


def _of_experiments(
    root: Path, users: Iterable[Experiment], grade: str, variants: Iterable[str] = ()
) -> Iterator[str]:
    """Experiments by their names and by those of the sweeps they are members of."""
    found: dict[str, None] = {}
    for experiment in users:
        found[experiment.name] = None
        if experiment.sweep is not None:
            found[experiment.sweep.name] = None
    if found:
        yield from _of_names(root, found, grade, variants)


def _of_names(
    root: Path, names: Iterable[str], grade: str, variants: Iterable[str] = ()
) -> Iterator[str]:
    """A block that names one, or a number of this grade (of these variants, where any are given);
    a command in prose shows nothing, nor does a region of a source that is called the same."""
    one = _any(names)
    number = rf"{one}\.{_any(variants)}\b" if variants else rf"{one}\."
    yield from (rf"^ */+ .*(?<![#\w]){one}\b", rf"\b{grade}(\[[^]]*\])?\.{number}")
    for name, block in _TABLES.items():
        table = root / "docs" / name
        if table.is_file() and re.search(rf"\b{number}", table.read_text(encoding="utf-8")):
            yield block


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(words)))})"


def _sources(experiment: Experiment) -> Mapping[str, Sequence[str]]:
    """The variants of an experiment by the file of its chapter they are in."""
    found: dict[str, list[str]] = {}
    for variant in experiment.variants:
        if isinstance(variant, Kernel | Library) and variant.source:
            found.setdefault(variant.source, []).append(variant.name)
    return found


def _chapter(record: Path) -> str:
    """The chapter of a record; "" (any chapter) where it is gone or half written."""
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["chapter"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
