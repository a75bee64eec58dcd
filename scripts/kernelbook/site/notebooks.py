"""Notebooks as they are kept: in both languages, the same code, nothing that a run left behind.

And how they are run: over an encrypted connection, so that a kernel has nothing to warn of; and
how their headings are called.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pymdownx.slugs import slugify

from kernelbook.site.place import line_with
from kernelbook.site.stubs import LANGUAGES

_COMMENT = re.compile(r"(?://|#)[^\n]*")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
# The line of a cell that IPython points at, before the files that it called.
_POINTED_AT = re.compile(r"^-+> \d+ (?P<code>.*)$", re.M)


def problems(root: Path) -> Iterator[str]:
    """One line for everything wrong with the notebooks of the repository."""
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {name: {} for name in LANGUAGES}
    for language in LANGUAGES:
        docs = root / "docs" / language
        for file in sorted(docs.rglob("*.ipynb")):
            shown = file.relative_to(root).as_posix()
            try:
                cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
                for place, problem in _run_before(cells):
                    yield f"{shown}:{_line_of(file, place)}: {problem}"
            except (OSError, ValueError, KeyError, TypeError) as error:
                yield f"{shown}:1: cannot be read: {error}"
                continue
            found[language][file.relative_to(docs).as_posix()] = cells
    for here, there in (LANGUAGES, tuple(reversed(LANGUAGES))):
        for uri in sorted(set(found[here]) - set(found[there])):
            yield f"docs/{here}/{uri}:1: there is no docs/{there}/{uri}"
    for uri in sorted(set(found["zh"]) & set(found["en"])):
        first, second = ([*map(_outline, found[name][uri])] for name in ("zh", "en"))
        for place, (one, other) in enumerate(zip(first, second, strict=False), 1):
            if one != other:
                line = _line_of(root / "docs" / "zh" / uri, place)
                yield f"docs/zh/{uri}:{line}: cell {place} is not that of docs/en/{uri}"
        if len(first) != len(second):
            yield f"docs/zh/{uri}:1: {len(first)} cells, docs/en/{uri} has {len(second)}"


def failed_line(file: Path, traceback: str) -> int:
    """The line of a notebook's file that holds the line of code a traceback begins at; else 1."""
    pointed_at = _POINTED_AT.search(_COLOUR.sub("", traceback))
    if pointed_at is None or not (code := pointed_at["code"].strip()):
        return 1
    wanted = json.dumps(code, ensure_ascii=False)[1:-1]
    return line_with(file.read_text(encoding="utf-8").splitlines(), wanted) or 1


def encrypt_kernels() -> None:
    """Have the kernels this process starts keep their connection encrypted.

    ipykernel says a paragraph about eavesdropping at each start otherwise, and mkdocs-jupyter hands
    no such setting on. Nothing where no notebook is run, or by a jupyter_client that cannot do it.
    """
    manager = getattr(sys.modules.get("jupyter_client.manager"), "KernelManager", None)
    trait = getattr(manager, "transport_encryption", None)
    if trait is not None and sys.modules["zmq"].has("curve"):
        trait.default_value = "auto"


def name_headings() -> None:
    """Have every heading of a notebook get a name that the search can lead to.

    mkdocs-jupyter makes names of the ASCII letters of a heading: of a Chinese one, none. Nothing
    where no notebook is converted.
    """
    convert = sys.modules.get("mkdocs_jupyter.convert")
    if convert is not None and hasattr(convert, "slugify"):
        vars(convert)["slugify"] = partial(slugify(case="lower"), sep="-")


def _run_before(cells: list[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    for place, cell in enumerate(cells, 1):
        if cell.get("outputs") or cell.get("execution_count"):
            yield place, f"cell {place} holds what a run left (clear all outputs before saving)"


def _line_of(file: Path, place: int) -> int:
    """The line on which a notebook's cell, counted from 1, says what it is; else 1."""
    lines = file.read_text(encoding="utf-8").splitlines()
    cells = [number for number, line in enumerate(lines, 1) if '"cell_type":' in line]
    return cells[place - 1] if place <= len(cells) else 1


def _outline(cell: Mapping[str, Any]) -> tuple[str, str]:
    """What both languages share: code without comments, the marks of headings."""
    text = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return "markdown", " ".join(re.findall(r"^(#+) ", text, re.M))
    code = re.sub(r'^LANGUAGE = "\w+"$', "", text, flags=re.M)
    return "code", " ".join(_COMMENT.sub("", code).split())
