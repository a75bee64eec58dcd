"""Numbers that know their unit, their grade of evidence and where they came from.

A `Quantity` is kept in base units (bytes, seconds, FLOP, hertz, watts); a display unit is chosen
only when it is shown. Arithmetic carries units along and the weakest grade of its inputs, so a
ratio of a measured and a theoretical number is measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

from .errors import KernelbookError


class Grade(IntEnum):
    """The five grades of evidence, weakest first."""

    CITED = 0
    MEASURED = 1
    COUNTED = 2
    COMPILED = 3
    THEORY = 4

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Grade:
        try:
            return cls[text.upper()]
        except KeyError:
            raise UnitError(f"unknown grade of evidence {text!r}") from None


class UnitError(KernelbookError):
    """Quantities of different units added or compared, or shown in a unit of another kind."""


# Exponents of (byte, second, FLOP, cycle): enough for every number on the site.
Dims = tuple[int, int, int, int]
SCALAR: Dims = (0, 0, 0, 0)
BYTE: Dims = (1, 0, 0, 0)
SECOND: Dims = (0, 1, 0, 0)
FLOP: Dims = (0, 0, 1, 0)
CYCLE: Dims = (0, 0, 0, 1)


def _d(**e: int) -> Dims:
    return (e.get("b", 0), e.get("s", 0), e.get("f", 0), e.get("c", 0))


# Display unit -> (dimensions, factor to base units). Decimal prefixes for rates, binary for sizes:
# GB is 10^9 bytes, GiB is 2^30.
UNITS: dict[str, tuple[Dims, float]] = {
    "": (SCALAR, 1.0),
    "×": (SCALAR, 1.0),
    "%": (SCALAR, 0.01),
    "W": (SCALAR, 1.0),
    "°C": (SCALAR, 1.0),
    "B": (BYTE, 1.0),
    "kB": (BYTE, 1e3),
    "MB": (BYTE, 1e6),
    "GB": (BYTE, 1e9),
    "TB": (BYTE, 1e12),
    "KiB": (BYTE, 2.0**10),
    "MiB": (BYTE, 2.0**20),
    "GiB": (BYTE, 2.0**30),
    "s": (SECOND, 1.0),
    "ms": (SECOND, 1e-3),
    "µs": (SECOND, 1e-6),
    "ns": (SECOND, 1e-9),
    "FLOP": (FLOP, 1.0),
    "GFLOP": (FLOP, 1e9),
    "TFLOP": (FLOP, 1e12),
    "FLOP/s": (_d(f=1, s=-1), 1.0),
    "GFLOPS": (_d(f=1, s=-1), 1e9),
    "TFLOPS": (_d(f=1, s=-1), 1e12),
    "FLOP/B": (_d(f=1, b=-1), 1.0),
    "B/FLOP": (_d(f=-1, b=1), 1.0),
    "B/s": (_d(b=1, s=-1), 1.0),
    "GB/s": (_d(b=1, s=-1), 1e9),
    "TB/s": (_d(b=1, s=-1), 1e12),
    "Hz": (_d(s=-1), 1.0),
    "MHz": (_d(s=-1), 1e6),
    "GHz": (_d(s=-1), 1e9),
    "cycles": (CYCLE, 1.0),
    "cycle/s": (_d(c=1, s=-1), 1.0),
    "B/cycle": (_d(b=1, c=-1), 1.0),
    "FLOP/cycle": (_d(f=1, c=-1), 1.0),
}


@dataclass(frozen=True)
class Source:
    """Where one input of a number came from, for the reader and for the check."""

    grade: Grade
    label: str  # e.g. "gemm_1024 / matrix_mul_tiled, nvidia-h200"
    anchor: str = ""  # row in results pages, "01_basics.md#gemm_1024-matrix_mul_tiled"
    detail: str = ""  # spread, samples, date, commit: one line
    stale: bool = False


@dataclass(frozen=True)
class Quantity:
    """A value in base units with dimensions, grade and sources; q1/q3 in base units if measured."""

    value: float
    dims: Dims = SCALAR
    grade: Grade = Grade.THEORY
    sources: tuple[Source, ...] = field(default=())
    q1: float | None = None
    q3: float | None = None

    @classmethod
    def of(
        cls,
        value: float,
        unit: str = "",
        grade: Grade = Grade.THEORY,
        sources: tuple[Source, ...] = (),
    ) -> Quantity:
        """A quantity from a value in a display unit; raises UnitError for an unknown unit."""
        dims, factor = unit_of(unit)
        return cls(value * factor, dims, grade, sources)

    @property
    def stale(self) -> bool:
        return any(source.stale for source in self.sources)

    def to(self, unit: str) -> float:
        """The value in a display unit; raises UnitError where the dimensions differ."""
        dims, factor = unit_of(unit)
        if dims != self.dims:
            raise UnitError(f"a quantity in {describe(self.dims)} cannot be shown in {unit!r}")
        return self.value / factor

    def _join(self, other: Quantity, value: float, dims: Dims) -> Quantity:
        sources = self.sources + tuple(s for s in other.sources if s not in self.sources)
        return Quantity(value, dims, min(self.grade, other.grade), sources)

    def _same(self, other: Quantity, doing: str) -> None:
        if self.dims != other.dims:
            raise UnitError(f"cannot {doing} {describe(self.dims)} and {describe(other.dims)}")

    def __add__(self, other: Quantity) -> Quantity:
        self._same(other, "add")
        return self._join(other, self.value + other.value, self.dims)

    def __sub__(self, other: Quantity) -> Quantity:
        self._same(other, "subtract")
        return self._join(other, self.value - other.value, self.dims)

    def __mul__(self, other: Quantity) -> Quantity:
        dims = _combine(self.dims, other.dims, 1)
        return self._join(other, self.value * other.value, dims)

    def __truediv__(self, other: Quantity) -> Quantity:
        if other.value == 0:
            raise UnitError("division by zero")
        dims = _combine(self.dims, other.dims, -1)
        return self._join(other, self.value / other.value, dims)

    def __pow__(self, other: Quantity) -> Quantity:
        if other.dims != SCALAR or other.value != int(other.value):
            raise UnitError("a power must be a whole number without unit")
        power = int(other.value)
        dims = (
            self.dims[0] * power,
            self.dims[1] * power,
            self.dims[2] * power,
            self.dims[3] * power,
        )
        return self._join(other, self.value**power, dims)

    def __neg__(self) -> Quantity:
        return Quantity(-self.value, self.dims, self.grade, self.sources)

    def compare(self, other: Quantity) -> float:
        """self - other in base units, for claims; raises UnitError where the units differ."""
        self._same(other, "compare")
        return self.value - other.value


def _combine(a: Dims, b: Dims, sign: int) -> Dims:
    return (a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2], a[3] + sign * b[3])


def unit_of(unit: str) -> tuple[Dims, float]:
    """Dimensions and factor of a display unit; raises UnitError with the nearest known ones."""
    try:
        return UNITS[unit]
    except KeyError:
        known = ", ".join(u for u in UNITS if u)
        raise UnitError(f"unknown unit {unit!r}", hint=f"known: {known}") from None


def describe(dims: Dims) -> str:
    """A readable name for dimensions, e.g. 'B/s'."""
    for name, (known, factor) in UNITS.items():
        if known == dims and factor == 1.0:
            return name or "plain numbers"
    return "B^{} s^{} FLOP^{} cycle^{}".format(*dims)


def format_number(value: float, spec: str = "") -> str:
    """A number as an article shows it: a Python format spec, thousands separated by default."""
    if not math.isfinite(value):
        raise UnitError(f"a number that is {value} cannot be shown")
    if spec:
        return format(value, spec)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
