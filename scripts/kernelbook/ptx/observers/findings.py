"""What the checks report: findings, and the log that gathers them without repeating itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..events import Allocation, Batch
from ..module import Instruction

Kind = Literal[
    "race", "uninitialised", "divergent-barrier", "out-of-bounds", "misaligned", "not-judged"
]
Dim = tuple[int, int, int]


@dataclass(frozen=True)
class Place:
    """One thread at one instruction. Indices are (x, y, z)."""

    block: Dim
    thread: Dim
    access: str  # "reads", "writes", "updates atomically", "waits", ...
    line: int  # source line, 0 if the compiler did not say
    file: int = 0  # index of the source file, as in Instruction.file
    file_name: str = ""
    instruction: str = ""  # PTX text

    def __str__(self) -> str:
        where = f"{self.file_name or 'line'}{':' if self.file_name else ' '}{self.line}"
        if not self.line:
            where = f"`{self.instruction}`"
        return f"thread {_dim(self.thread)} of block {_dim(self.block)} {self.access} at {where}"


@dataclass(frozen=True)
class Finding:
    """One problem between two instructions (or at one), with the first example seen of it.

    ``count`` is how many accesses of the launch show it (lanes at words; warps, for barriers).
    """

    kind: Kind
    detail: str  # "write-write", "read-write", "same instruction", ...
    what: str  # the array element, "tile_a[33]", or what the finding is about
    first: Place | None = None  # the earlier of the two, as executed
    second: Place | None = None
    count: int = 1
    hint: str = ""
    array: str = ""  # name of the array, without the index

    def __str__(self) -> str:
        title = {
            "race": f"race ({self.detail}) on {self.what}",
            "uninitialised": f"{self.what} is read before anything was written to it",
            "divergent-barrier": f"divergent barrier: {self.what}",
            "not-judged": f"not judged: {self.what}",
        }.get(self.kind, f"{self.kind}: {self.what}")
        places = "; ".join(str(p) for p in (self.first, self.second) if p is not None)
        sentence = f"{title}: {places}" if places else title
        if self.count > 1:
            what = "warps" if self.kind == "divergent-barrier" else "such accesses"
            sentence += f"; {self.count:,} {what}"
        return sentence + (f" ({self.hint})" if self.hint else "")


class FindingLog:
    """Findings of one check, gathered by pairs of instructions, told by pairs of source lines.

    An unrolled loop is many instructions of one line: they make one finding.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Finding] = {}

    def add(self, key: tuple[object, ...], count: int, finding: Finding | None) -> None:
        """Count ``count`` more of ``key``; ``finding`` is its example if it is new."""
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + count)
        elif finding is not None:
            self._found[key] = replace(finding, count=count)

    def knows(self, key: tuple[object, ...]) -> bool:
        return key in self._found

    def __bool__(self) -> bool:
        return bool(self._found)

    def findings(self, files: Mapping[int, str]) -> tuple[Finding, ...]:
        """All findings in the order they were first seen, with file names filled in."""
        told: dict[tuple[object, ...], Finding] = {}
        for f in self._found.values():
            key = (f.kind, f.detail, f.hint, f.array or f.what, _line(f.first), _line(f.second))
            if key in told:
                told[key] = replace(told[key], count=told[key].count + f.count)
            else:
                first, second = _named(f.first, files), _named(f.second, files)
                told[key] = replace(f, first=first, second=second)
        return tuple(told.values())


def _line(place: Place | None) -> tuple[object, ...]:
    if place is None:
        return ()
    return (place.file, place.line) if place.line else (place.instruction,)


def _named(place: Place | None, files: Mapping[int, str]) -> Place | None:
    return None if place is None else replace(place, file_name=files.get(place.file, ""))


def place(batch: Batch, block: int, lane: int, instruction: Instruction, access: str) -> Place:
    """The place of a lane of a block.

    Parameters
    ----------
    block : linear id in the grid. lane : linear id in the block.
    """
    grid, dims = batch.launch.grid, batch.launch.block
    return Place(
        _unravel(block, grid),
        _unravel(lane, dims),
        access,
        instruction.line,
        instruction.file,
        "",
        str(instruction),
    )


def element(
    arrays: tuple[Allocation, ...], address: int, *instructions: Instruction
) -> tuple[str, str]:
    """Name of the array that holds an address, and its element there: ("tile", "tile[33]").

    Shared arrays reach PTX as bytes: the index is then in elements of what the instructions access.
    """
    for array in arrays:
        if array.base <= address < array.base + array.size:
            name = source_name(array.name)
            offset, size = address - array.base, array.element_bytes
            if size <= 1:
                size = max(i.element_bytes for i in instructions)
            return name, f"{name}[{offset // size}]" if size else f"{name} at byte {offset}"
    return "", f"byte {address} of {instructions[0].space or 'memory'}"


def source_name(name: str) -> str:
    """The name of a variable as the source has it: ``_ZZ4gemmE4tile`` is ``tile`` in a function."""
    plain = name.split("_$_")[0]  # the compiler numbers parts of a variable it splits up
    if not plain.startswith("_Z"):
        return plain
    parts: list[str] = []
    while found := re.search(r"[1-9]\d*", plain):
        start, end = found.end(), found.end() + int(found[0])
        if end > len(plain):
            break
        parts.append(plain[start:end])
        plain = plain[end:]
    return parts[-1] if parts else name


def _unravel(linear: int, dims: Dim) -> Dim:
    return linear % dims[0], linear // dims[0] % dims[1], linear // (dims[0] * dims[1])


def _dim(index: Dim) -> str:
    return f"({index[0]}, {index[1]}, {index[2]})"


def verb(instruction: Instruction) -> str:
    """What an access does, in words."""
    if instruction.opcode in ("atom", "red"):
        return "updates atomically"
    return "reads" if instruction.opcode in ("ld", "ldu") else "writes"
