"""Running a kernel from a string and looking at what one of its warps did."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import ptx
from ..compiler import compile_source
from ..errors import UsageError
from ..metrics import metric
from . import drawing
from .drawing import Picture
from .recorder import Access, Recorder
from .words import words

# What tells the lines of a kernel apart.
_LINE_COUNTS = (
    "warp_instructions",
    "global_load_sectors",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "divergent_branches",
)


@dataclass(frozen=True)
class Seen:
    """A launch that has finished. In a notebook it shows its counts."""

    source: tuple[str, ...]
    run: ptx.Run
    recorder: Recorder
    language: str

    @property
    def counts(self) -> ptx.KernelCounts:
        """Counts of the whole launch and of each line."""
        return self.run.counts

    def sectors(self, line: int | None = None) -> Picture:
        """Which bytes of global memory one warp asks for, and which sectors move for them.

        Without ``line``, every instruction that reads or writes global memory, the first time
        the warp executes it. Raises UsageError where there is none.
        """
        found = self._accesses("global", line)
        return drawing.stacked(
            [drawing.sectors_picture(a, self._code(a.line), self.language) for a in found]
        )

    def banks(self, line: int | None = None) -> Picture:
        """Which banks of shared memory the lanes of one warp meet in; as `sectors`."""
        found = self._accesses("shared", line)
        return drawing.stacked(
            [drawing.banks_picture(a, self._code(a.line), self.language) for a in found]
        )

    def divergence(self) -> Picture:
        """Which lanes of one warp are active, from its first instruction on."""
        return drawing.divergence_picture(self.recorder, self.source, self.language)

    def lines(self) -> Picture:
        """What each line of the source costs, over all blocks."""
        rows = [(line.line, line.counts.to_dict()) for line in self.counts.lines]
        names = [n for n in _LINE_COUNTS if any(counts.get(n) for _, counts in rows)]
        header = [words(self.language, "code"), *(self._name(name) for name in names)]
        return drawing.table(
            header,
            [
                [f"{line}: {self._code(line).strip()}", *(_count(counts, n) for n in names)]
                for line, counts in rows
            ],
        )

    def _name(self, name: str) -> str:
        return metric(name).title.of("zh" if self.language == "zh" else "en")

    def _code(self, line: int) -> str:
        return self.source[line - 1] if 0 < line <= len(self.source) else ""

    def _accesses(self, space: str, line: int | None) -> list[Access]:
        every = [a for _, a in sorted(self.recorder.accesses.items()) if a.space == space]
        found = [a for a in every if line in (None, a.line)]
        if not found:
            where = sorted({a.line for a in every})
            hint = f"it is accessed on lines {', '.join(map(str, where))}" if where else ""
            place = "" if line is None else f" on line {line}"
            raise UsageError(f"the warp accesses no {space} memory{place}", hint=hint)
        return _grouped(found)

    def _repr_html_(self) -> str:
        return self.counts._repr_html_()


def run(
    source: str,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    *,
    warp: int = 0,
    arch: str = "sm_90",
    language: str = "en",
) -> Seen:
    """Compile CUDA C++ from a string, execute a kernel of it on the emulator, and watch one warp.

    Parameters
    ----------
    kernel : its name; declare it ``extern "C"``.
    grid, block : an int or up to three ints.
    args : one a parameter: NumPy arrays (changed in place) and numbers.
    warp : which warp of block 0 the pictures show.
    language : of the pictures, ``en`` or ``zh``.

    Raises CompileError for source that does not compile, PtxError for a launch that fails.
    """
    text = source.strip("\n")
    with tempfile.TemporaryDirectory(prefix="kernelbook-") as folder:
        file = Path(folder) / "kernel.cu"
        file.write_text(text + "\n", encoding="utf-8")
        compiled = compile_source(file, arch)
    recorder = Recorder(warp)
    observers = (*ptx.default_observers(), recorder)
    names = _parameters(text, kernel, len(args))
    done = ptx.run(compiled.ptx, kernel, grid, block, args, observers=observers, names=names)
    return Seen(tuple(text.splitlines()), done, recorder, language)


def beside(before: Seen, after: Seen) -> Picture:
    """The counts in which two launches differ."""
    first, second = before.counts.to_dict(), after.counts.to_dict()
    names = [n for n in {**first, **second} if first.get(n, 0) != second.get(n, 0)]
    language = after.language
    header = [words(language, key) for key in ("metric", "before", "after")]
    rows = [[after._name(n), _count(first, n), _count(second, n)] for n in names]
    return drawing.table(header, rows)


def _grouped(accesses: Sequence[Access]) -> list[Access]:
    """One access of those that an unrolled loop made of one line, with how many there are."""
    groups: dict[tuple[object, ...], list[Access]] = {}
    for access in accesses:
        lanes = access.address[access.active]
        pattern = tuple(lanes - lanes[0])
        name = access.allocation.name if access.allocation else ""
        key = (access.line, access.access, access.size, name, pattern)
        groups.setdefault(key, []).append(access)
    return [replace(found[0], alike=len(found) - 1) for found in groups.values()]


def _count(counts: dict[str, float], name: str) -> str:
    value = counts.get(name, 0)
    return f"{value:,.2f}" if isinstance(value, float) and value % 1 else f"{value:,.0f}"


def _parameters(source: str, kernel: str, count: int) -> tuple[str, ...]:
    """What the source calls the parameters; () where that cannot be read."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(([^)]*)\)", source)
    names = re.findall(r"(\w+)\s*(?:,|$)", found[1]) if found else []
    return tuple(names) if len(names) == count else ()
