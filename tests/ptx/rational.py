"""Rounding of rationals to binary formats by the definition: search the two neighbours, choose."""

from __future__ import annotations

import math
from fractions import Fraction

# precision, least exponent of a unit in the last place, largest finite value
FORMATS = {
    "f16": (11, -24, Fraction(65504)),
    "f32": (24, -149, Fraction(2**24 - 1) * 2**104),
    "f64": (53, -1074, Fraction(2**53 - 1) * 2**971),
}


def round_rational(value: Fraction, fmt: str, mode: str) -> float:
    """The element of a format that IEEE 754 rounds a non-zero rational to."""
    precision, least, largest = FORMATS[fmt]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    while Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    below = (value / unit).__floor__() * unit
    above = below if below == value else below + unit
    if mode == "rm":
        chosen = below
    elif mode == "rp":
        chosen = above
    elif mode == "rz":
        chosen = below if value > 0 else above
    elif value - below != above - value:
        chosen = below if value - below < above - value else above
    else:
        chosen = below if (below / unit) % 2 == 0 else above
    sign = 1.0 if value > 0 else -1.0
    if abs(chosen) > largest:
        toward_zero = mode == "rz" or mode == ("rm" if value > 0 else "rp")
        chosen_value = float(largest) if toward_zero else math.inf
        return math.copysign(chosen_value, sign)
    return math.copysign(float(chosen), sign)
