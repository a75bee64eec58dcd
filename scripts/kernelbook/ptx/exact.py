"""float64 operations on rationals, one value at a time: for the rare cases that vectors cannot do.

Used where an error-free transform would overflow or underflow, and for directed division and roots.
"""

from __future__ import annotations

import math
from fractions import Fraction

_PRECISION = 53
_MINIMUM_EXPONENT = -1074
_LARGEST = float.fromhex("0x1.fffffffffffffp+1023")


def _integer_part(value: Fraction, mode: str, negative: bool) -> int:
    """Round a non-negative rational to an integer as the magnitude of a number of that sign."""
    floor = value.numerator // value.denominator
    rest = value - floor
    if rest == 0:
        return floor
    if mode == "rn":
        half = Fraction(1, 2)
        return floor + (rest > half or (rest == half and floor & 1 == 1))
    up = (mode == "rp" and not negative) or (mode == "rm" and negative)
    return floor + up


def round_fraction(value: Fraction, mode: str, sticky: bool = False) -> float:
    """Round a rational to float64. ``sticky``: the true value lies just above ``abs(value)``."""
    if value == 0:
        return 0.0
    negative = value < 0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    ulp = max(exponent - _PRECISION + 1, _MINIMUM_EXPONENT)
    scaled = magnitude / Fraction(2) ** ulp
    if sticky:
        scaled += Fraction(1, 1 << 64)
    integer = _integer_part(scaled, mode, negative)
    try:
        result = math.ldexp(integer, ulp)
    except OverflowError:
        result = math.inf
    if math.isinf(result) and (mode == "rz" or mode == ("rp" if negative else "rm")):
        result = _LARGEST
    return -result if negative else result


def fma64_exact(a: float, b: float, c: float, mode: str) -> float:
    """``a * b + c`` rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        same = (sign < 0) == (math.copysign(1.0, c) < 0)
        exact_zero = (a == 0 or b == 0) and c == 0
        if exact_zero and same:
            return c
        return -0.0 if mode == "rm" else 0.0
    result = round_fraction(total, mode)
    return math.copysign(result, -1.0 if total < 0 else 1.0)


def quotient64_exact(a: float, b: float, mode: str) -> float:
    """``a / b`` rounded once."""
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if math.isinf(a):
        return math.nan if math.isinf(b) else math.copysign(math.inf, sign)
    if math.isinf(b) or a == 0:
        return math.nan if b == 0 else math.copysign(0.0, sign)
    if b == 0:
        return math.copysign(math.inf, sign)
    return math.copysign(round_fraction(Fraction(a) / Fraction(b), mode), sign)


def root64_exact(a: float, mode: str) -> float:
    """Square root rounded once."""
    if math.isnan(a) or a < 0:
        return math.nan
    if a == 0 or math.isinf(a):
        return a
    value = Fraction(a)
    # Scale so that the integer root has more than 53 bits; an inexact root is sticky.
    shift = 256
    while value * Fraction(4) ** shift < 1 << 128:
        shift += 256
    scaled = value * Fraction(4) ** shift
    floor = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(floor) ** 2 == scaled
    return round_fraction(Fraction(floor) / Fraction(2) ** shift, mode, sticky=not exact)
