"""Tables without a language or a markup: what pages render to Markdown and the site to HTML.

Every string is raw text. Some come from strangers' records (device names, reasons, notes), so
whoever renders a table escapes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ..experiment import Text
from ..quantities import Grade
from .rows import Row


def both(text: str) -> Text:
    """Words that are the same in both languages."""
    return Text(text, text)


@dataclass(frozen=True)
class Header:
    """A column: ``key`` is what an author asked for, ``unit`` holds for the whole column."""

    key: str
    title: Text
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """One cell. ``grade`` is None exactly where the cell is no number.

    ``spread`` and ``samples`` are what stands behind a measured number; ``detail`` is its
    provenance in one line; ``best`` marks the best of our kernels in this column on this device.
    ``source`` is a .cu under kernels/ ("01_basics/vector_add.cu") the cell should link to.
    ``row`` is the number in the records this cell shows, or divides for a ratio to ``over``.
    """

    text: Text
    grade: Grade | None = None
    spread: str = ""  # "853.1–866.0" in the column's unit
    samples: int = 0
    detail: str = ""
    best: bool = False
    stale: bool = False
    code: bool = False
    source: str = ""
    row: Row | None = field(default=None, compare=False, repr=False)
    over: str = ""


EMPTY = Cell(both("—"))


@dataclass(frozen=True)
class Line:
    """A row of a table: one variant of one record.

    ``anchor`` is the fragment of the variant in ``results/{chapter}``; of a sweep's table a line is
    a size, without a ``variant``, and ``more_anchors`` are those of its variants. ``reason`` says
    why a failed, skipped or unbuilt row has no numbers; ``note`` is the record's remark on the row.
    """

    cells: tuple[Cell, ...]
    variant: str = ""
    chapter: str = ""
    anchor: str = ""
    device: str = ""
    evidence: str = ""
    local: bool = False
    stale: bool = False
    status: str = ""  # "failed", "skipped" or "not built" (see STATUSES), "" for a row with numbers
    reason: Text | None = None
    note: Text | None = None
    more_anchors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Lines under headers; ``notes`` are remarks on the whole table, below it."""

    kind: Literal["results", "counts", "counters", "compiled", "kernels"]
    header: tuple[Header, ...]
    lines: tuple[Line, ...]
    notes: tuple[Text, ...] = ()

    @property
    def stale(self) -> bool:
        return any(line.stale for line in self.lines)


@dataclass(frozen=True)
class Figure:
    """One figure of a hardware box."""

    key: str
    title: Text
    cell: Cell
    unit: str = ""


@dataclass(frozen=True)
class Box:
    """A card: ``role`` says whether it is the reference, another's, the reader's or cited."""

    slug: str
    name: str
    role: Literal["reference", "published", "local", "cited"]
    figures: tuple[Figure, ...]


ROLES = {
    "reference": Text("参考设备", "reference device"),
    "published": Text("已发布的实测", "published measurements"),
    "local": Text("本机", "this machine"),
    "cited": Text("仅有引用数据", "cited figures only"),
}

GRADES = {
    Grade.THEORY: Text("理论", "theory"),
    Grade.COMPILED: Text("编译", "compiled"),
    Grade.COUNTED: Text("计数", "counted"),
    Grade.MEASURED: Text("实测", "measured"),
    Grade.CITED: Text("引用", "cited"),
}

STATUSES = {
    "failed": Text("失败", "failed"),
    "skipped": Text("跳过", "skipped"),
    "not built": Text("未构建", "not built"),
}

STALE = Text("过期", "stale")
LOCAL = Text("本机", "this machine")


def grades_of(cells: Iterable[Cell]) -> tuple[Grade, ...]:
    """The grades that occur, strongest first."""
    return tuple(sorted({c.grade for c in cells if c.grade is not None}, reverse=True))
