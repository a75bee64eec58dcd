"""``mkdocs serve --dirty`` shows changed kernels and records: pages with them count as changed.

A dirty build converts only pages whose own file is newer than what was built from it. A page of
this site also shows sources and records. MkDocs loads its configuration, and with it our
extension, before every build; there the files that changed since the last one are found, and the
pages that name them are touched. No plugin is needed, and a whole build is not affected.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kernelbook.codec import write_atomically
from kernelbook.site.cache import default_root

_ENDINGS = (".py", ".cu", ".cuh", ".h", ".json", ".svg")


def is_dirty_serve(arguments: Sequence[str] | None = None) -> bool:
    """Whether this process is ``mkdocs serve --dirty``."""
    given = sys.argv if arguments is None else arguments
    return "serve" in given and bool({"--dirty", "--dirtyreload"} & set(given))


def refresh(root: Path, language: str, cache: Path | None = None) -> tuple[Path, ...]:
    """Touch the pages of a language that show a file changed since the last call; those pages."""
    pages = outdated(root, language, "served", cache)
    for page in pages:
        os.utime(page)
    return pages


def outdated(root: Path, language: str, server: str, cache: Path | None = None) -> tuple[Path, ...]:
    """Pages of a language that show a file changed since the last call for the same ``server``."""
    state = (default_root() if cache is None else cache) / f"{server}-{language}.json"
    now = _times(root)
    try:
        before = json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = now  # a first build converts every page anyway
    changed = [path for path in sorted({*now, *before}) if now.get(path) != before.get(path)]
    pages = tuple(dependents(root, language, changed)) if changed else ()
    state.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(state, json.dumps(now))
    return pages


def dependents(root: Path, language: str, changed: Iterable[str]) -> Iterator[Path]:
    """Pages whose text names what these files hold; paths as seen from the repository."""
    names = {name for path in changed for name in _names(root, Path(path))}
    for page in sorted((root / "docs" / language).rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if any(re.search(name, text, re.M) for name in names):
            yield page


def _names(root: Path, path: Path) -> Iterator[str]:
    """What a page says when it shows a file, as regular expressions."""
    if path.parts[0] == "kernels":
        yield re.escape(path.relative_to("kernels").as_posix())
        chapter = path.parts[1]
        if path.suffix == ".cu":
            yield from (rf"results-page \| {chapter}", rf"kernels \| {chapter}")
        else:
            yield re.escape(chapter)  # a header or the experiments: whatever shows the chapter
    elif path.suffix == ".svg":
        yield rf"chart \| {re.escape(path.name.split('.')[0])}"
    else:
        # A record: results/data/GRADE[/DEVICE]/EXPERIMENT.json or results/local/….
        name, local = re.escape(path.stem), "local" in path.parts
        grade = "measured" if local else path.parts[2]
        # A block that names it, or a number of this grade; a command in prose shows nothing of it.
        yield from (rf"^ */+ .*\b{name}\b", rf"\b{grade}(\[[^]]*\])?\.{name}\b")
        yield rf"results-page \| {re.escape(_chapter(root / path))}"
        yield r"own-devices \|" if local else rf"device \| {re.escape(path.parent.name)}"


def _chapter(record: Path) -> str:
    """The chapter of a record; "" (any chapter) where it is gone or half written."""
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["chapter"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _times(root: Path) -> dict[str, int]:
    found = {}
    for folder in ("kernels", "results"):
        for parent, folders, files in os.walk(root / folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                if name.endswith(_ENDINGS):
                    path = Path(parent) / name
                    found[path.relative_to(root).as_posix()] = path.stat().st_mtime_ns
    return found
