"""How a number of a table is written: one unit a column, as many digits as it deserves."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from ..metrics import metric
from ..quantities import unit_of
from .rows import Row

MS_FROM_US = 10_000  # a column whose shortest time is longer than this is shown in ms
FINE_DIGITS = 3  # significant digits of a number that its column's format would round away


def column_unit(name: str, rows: Iterable[Row]) -> str:
    """The unit a column of this metric is shown in."""
    rows = tuple(rows)
    unit = metric(name).unit
    if not unit and rows:
        unit = rows[0].unit  # a cited figure of a kind we do not measure
    if unit == "µs" and rows:
        shortest = min(convert(r.value, r.unit, "µs") for r in rows)
        return "ms" if shortest >= MS_FROM_US else "µs"
    return unit


def convert(value: float, unit: str, to: str) -> float:
    """A value in another unit of the same kind; unchanged where the units are the same."""
    if unit == to:
        return value
    return value * unit_of(unit)[1] / unit_of(to)[1]


def number(value: float, spec: str) -> str:
    """By the format, unless that would leave nothing of a small number."""
    text = format(value, spec)
    if value and sum(c in "123456789" for c in text) == 0:
        return f"{value:.{FINE_DIGITS}g}"
    return text


def spec_of(name: str, unit: str) -> str:
    """The metric's format in its own unit; three decimals of a millisecond."""
    known = metric(name)
    return ",.3f" if (known.unit, unit) == ("µs", "ms") else known.show or ",.4g"


def row_value(row: Row, unit: str) -> str:
    """A row's value in its column's unit; a cited one with the digits its author printed."""
    if row.evidence == "cited":
        return as_printed(row.value, row.unit, unit)
    return number(convert(row.value, row.unit, unit), spec_of(row.metric, unit))


def row_spread(row: Row, unit: str) -> str:
    """``q1–q3`` in the column's unit, "" where the row has none."""
    if row.q1 is None or row.q3 is None:
        return ""
    spec = spec_of(row.metric, unit)
    low, high = (convert(q, row.unit, unit) for q in (row.q1, row.q3))
    return f"{number(low, spec)}–{number(high, spec)}"


def as_printed(value: float, unit: str, to: str) -> str:
    """``value`` with its own digits, the decimal point moved: 0.86 ms is 860 µs."""
    exact = Decimal(repr(value))
    if unit != to:
        factor = Decimal(repr(unit_of(unit)[1])) / Decimal(repr(unit_of(to)[1]))
        exact = Decimal(f"{exact * factor:.{len(exact.as_tuple().digits)}g}")
    if exact == exact.to_integral_value():
        return f"{exact.to_integral_value():,f}"
    return f"{exact.normalize():,f}"
