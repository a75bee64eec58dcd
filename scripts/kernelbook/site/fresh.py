"""``mkdocs serve --dirty`` shows changed kernels and records: pages with them count as changed.

A dirty build converts only pages whose own file is newer than what was built from it. A page of
this site also shows sources and records. MkDocs loads its configuration, and with it our
extension, before every build; there the files that changed since the last one are found, and the
pages that show them (`dependents`) are touched. No plugin is needed, and a whole build is not
affected.

A touched page keeps what the search knows of it: other numbers are no other words, reading a page
for the search takes as long as converting it, and Material's search takes the pages of a dirty
build for one page, so that of many it forgets the others, after the home page all.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import markdown
from markdown.preprocessors import Preprocessor

from kernelbook.codec import write_atomically
from kernelbook.site.cache import default_root
from kernelbook.site.dependents import dependents

_SERVER, _TOUCHED = "served", "touched"
_ENDINGS = (".py", ".cu", ".cuh", ".h", ".json", ".svg")


def is_dirty_serve(arguments: Sequence[str] | None = None) -> bool:
    """Whether this process is ``mkdocs serve --dirty``."""
    given = sys.argv if arguments is None else arguments
    return "serve" in given and bool({"--dirty", "--dirtyreload"} & set(given))


def refresh(root: Path, language: str, cache: Path | None = None) -> tuple[Path, ...]:
    """Touch the pages of a language that show a file changed since the last call; those pages."""
    last_call = _time(_state(_SERVER, language, cache))
    pages = outdated(root, language, _SERVER, cache)
    touched = {}
    for page in pages:
        edited = _time(page) > last_call
        os.utime(page)
        if not edited:
            touched[str(page)] = _time(page)
    if touched:
        text = json.dumps({**_read(_state(_TOUCHED, language, cache)), **touched})
        write_atomically(_state(_TOUCHED, language, cache), text)
    return pages


class SearchPreprocessor(Preprocessor):
    """Leaves pages out of the search of this build: all if ``kept``, else those only touched.

    Every page is given an entry of its front matter, since the theme sets a page without any a
    little differently.
    """

    def __init__(self, md: markdown.Markdown, language: str, kept: bool) -> None:
        super().__init__(md)
        self.language = language
        self.kept = kept

    def run(self, lines: list[str]) -> list[str]:
        if "relpath" in self.md.treeprocessors:
            file: Any = self.md.treeprocessors["relpath"].file
            entry = dict(file.page.meta.get("search") or {})
            if self.kept or (is_dirty_serve() and self._is_known(file)):
                entry["exclude"] = True
            file.page.meta["search"] = entry
        return lines

    def _is_known(self, file: Any) -> bool:
        """Whether a build of this serve has told the search what the page still says."""
        source = Path(file.abs_src_path)
        return os.path.exists(file.abs_dest_path) and is_only_touched(source, self.language)


def is_only_touched(page: Path, language: str, cache: Path | None = None) -> bool:
    """Whether a page is as `refresh` left it, and its author had not changed it before."""
    return _read(_state(_TOUCHED, language, cache)).get(str(page)) == _time(page)


def outdated(root: Path, language: str, server: str, cache: Path | None = None) -> tuple[Path, ...]:
    """Pages of a language that show a file changed since the last call for the same ``server``."""
    state = _state(server, language, cache)
    now = _times(root)
    before = _read(state) or now  # a first build converts every page anyway
    changed = [path for path in sorted({*now, *before}) if now.get(path) != before.get(path)]
    pages = tuple(dependents(root, language, changed)) if changed else ()
    state.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(state, json.dumps(now))
    os.utime(state)  # the time of this call, also where nothing has changed
    return pages


def _state(name: str, language: str, cache: Path | None) -> Path:
    return (default_root() if cache is None else cache) / f"{name}-{language}.json"


def _read(state: Path) -> Mapping[str, int]:
    """Modification times in ns by path; none where nothing was written down, or not whole."""
    try:
        found = json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _time(path: Path) -> int:
    """When a file was changed, in ns; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


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
