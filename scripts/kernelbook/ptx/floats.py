"""IEEE arithmetic exact to the bit, in every rounding mode PTX has.

The one idea: compute a float64 value rounded to odd (the exact result if it fits, else the
neighbour whose last bit is 1). Rounding that to float32 or float16 in any mode gives the correctly
rounded result, because 53 bits are at least two more than the target has (Boldo and Melquiond,
"Emulation of a FMA and correctly rounded sums", IEEE Trans. Computers 57(4), 2008). The error term
that tells which neighbour comes from the error-free two-sum and two-product.

Every function takes and returns arrays of one shape and never changes its inputs. ``mode`` is one
of "rn", "rz", "rm", "rp". NaN results are the canonical NaN for float32 and float16; float64 passes
on the payload of a NaN operand, as the hardware does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .exact import fma64_exact, quotient64_exact, root64_exact

Array = NDArray[Any]

NAN32 = np.uint32(0x7FFFFFFF)
NAN16 = np.uint16(0x7FFF)
NAN64 = np.uint64(0xFFF8000000000000)  # what an invalid operation makes of no NaN
QUIET64 = np.uint64(1 << 51)
_TINY32 = 2.0**-126
_SPLITTER = 134217729.0  # 2**27 + 1, Veltkamp's constant for 53 bits
# Within these magnitudes two_product neither overflows nor loses its error to underflow.
_SAFE_LOW, _SAFE_HIGH = 2.0**-480, 2.0**480


def canonical32(x: Array) -> Array:
    """Replace NaNs of a float32 array, in place, by 0x7fffffff."""
    bad = np.isnan(x)
    if bad.any():
        x.view(np.uint32)[bad] = NAN32
    return x


def canonical16(x: Array) -> Array:
    """Replace NaNs of a float16 array, in place, by 0x7fff."""
    bad = (x.view(np.uint16) & 0x7FFF) > 0x7C00
    if bad.any():
        x.view(np.uint16)[bad] = NAN16
    return x


def settle64(x: Array, *sources: Array) -> Array:
    """Make NaNs of a float64 result, in place, the first NaN among ``sources``, quieted.

    Which operand comes first was read off an H200: b, c, a for fma; b, a for add, mul, min and max;
    a, b for div. Without a NaN operand it is 0xfff8000000000000.
    """
    bad = np.isnan(x)
    if bad.any():
        chosen = np.full(x.shape, NAN64)
        for source in reversed(sources):
            bits = np.ascontiguousarray(source).view(np.uint64) | QUIET64
            chosen = np.where(np.isnan(source), bits, chosen)
        x.view(np.uint64)[bad] = chosen[bad]
    return x


# Mantissa and exponent bits by size in bytes.
_LAYOUT = {2: (10, 5), 4: (23, 8), 8: (52, 11)}


def carry_nan(result: Array, source: Array) -> Array:
    """Give the NaNs of a converted float, in place, the sign and leading payload of the source."""
    bad = np.isnan(source)
    if not bad.any():
        return result
    from_mantissa, from_exponent = _LAYOUT[source.dtype.itemsize]
    mantissa, exponent = _LAYOUT[result.dtype.itemsize]
    bits = np.ascontiguousarray(source)[bad].view(f"u{source.dtype.itemsize}").astype(np.uint64)
    sign = bits >> np.uint64(from_mantissa + from_exponent)
    payload = bits & np.uint64((1 << from_mantissa) - 1)
    shift = mantissa - from_mantissa
    payload = payload << np.uint64(shift) if shift >= 0 else payload >> np.uint64(-shift)
    quiet = ((1 << (exponent + 1)) - 1) << (mantissa - 1)
    whole = sign << np.uint64(mantissa + exponent) | np.uint64(quiet) | payload
    result.view(f"u{result.dtype.itemsize}")[bad] = whole.astype(f"u{result.dtype.itemsize}")
    return result


def flush32(x: Array) -> Array:
    """Subnormal float32 to zero of the same sign (``.ftz``)."""
    bits = x.view(np.uint32)
    small = (bits & 0x7F800000) == 0
    if small.any():
        return np.where(small, bits & np.uint32(0x80000000), bits).view(np.float32)
    return x


def flush16(x: Array) -> Array:
    """Subnormal float16 to zero of the same sign (``.ftz``)."""
    bits = x.view(np.uint16)
    return np.where((bits & 0x7C00) == 0, bits & np.uint16(0x8000), bits).view(np.float16)


def flush_tiny(result: Array, exact: Callable[[Array], Array]) -> Array:
    """Finish ``.ftz``: what is subnormal before rounding is flushed, even if it rounds to normal.

    ``exact(lanes)`` gives the float64 result (exact, or rounded to odd) at some lanes; it is asked
    only where the rounded result is the smallest normal number.
    """
    flush = flush32 if result.dtype == np.float32 else flush16
    smallest = np.finfo(result.dtype).tiny
    edge = np.flatnonzero(np.abs(result) == smallest)
    if edge.size:
        tiny = edge[np.abs(exact(edge)) < float(smallest)]
        result[tiny] = np.copysign(result.dtype.type(0), result[tiny])
    return flush(result)


def saturate(x: Array) -> Array:
    """Clamp to [0, 1]; NaN and -0 become +0 (``.sat``)."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    result: Array = np.where(x > zero, np.minimum(x, one), zero)
    return result


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded float64 sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, error


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded float64 product and its exact error (Dekker, Veltkamp); magnitudes must be safe."""
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def to_odd(total: Array, error: Array) -> Array:
    """The float64 of ``total + error`` rounded to odd; ``total`` is the nearest float64."""
    result = np.array(total, copy=True)
    bits = result.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error) & ((bits & 1) == 0)
    if inexact.any():
        bits += np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)
    return result


def round_to(x: Array, mode: str, dtype: type[np.floating[Any]]) -> Array:
    """Round float64 (exact or rounded to odd) to float32 or float16."""
    result = x.astype(dtype)
    if mode == "rn":
        return result
    wide = result.astype(np.float64)
    if mode == "rz":
        wrong, toward = np.abs(wide) > np.abs(x), dtype(0)
    elif mode == "rm":
        wrong, toward = wide > x, dtype(-np.inf)
    else:
        wrong, toward = wide < x, dtype(np.inf)
    return np.where(wrong, np.nextafter(result, toward), result)


def _exact_zero_sign(total: Array, a: Array, b: Array, mode: str) -> Array:
    """An exact zero sum is -0 when rounding down, unless both addends are +0."""
    if mode != "rm":
        return total
    zero = total == 0
    if zero.any():
        total = np.where(zero, np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0), total)
    return total


def _sum_to_odd(a: Array, b: Array, mode: str) -> Array:
    total, error = two_sum(a, b)
    return _exact_zero_sign(to_odd(total, error), a, b, mode)


def fused_to_odd(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float64 holding float32 or float16 values, rounded to odd."""
    return to_odd(*two_sum(a * b, c))


# float32


def add32(a: Array, b: Array, mode: str = "rn") -> Array:
    if mode == "rn":
        return canonical32(a + b)
    odd = _sum_to_odd(a.astype(np.float64), b.astype(np.float64), mode)
    return canonical32(round_to(odd, mode, np.float32))


def mul32(a: Array, b: Array, mode: str = "rn") -> Array:
    if mode == "rn":
        return canonical32(a * b)
    return canonical32(round_to(a.astype(np.float64) * b, mode, np.float32))


def fma32(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """``a * b + c`` rounded once; the product of two float32 is exact in float64."""
    product = a.astype(np.float64)
    product *= b
    if mode != "rn":
        odd = _sum_to_odd(product, c.astype(np.float64), mode)
        return canonical32(round_to(odd, mode, np.float32))
    total = product + c
    result = total.astype(np.float32)
    # Rounding twice is wrong only if the first rounding landed on a midpoint of float32, or the
    # result is subnormal, where float32 has fewer bits and the midpoints lie elsewhere.
    suspect = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    suspect |= np.abs(total) < _TINY32
    if suspect.any():
        at = np.flatnonzero(suspect & (total != 0))
        if at.size:
            odd = _sum_to_odd(product[at], c[at].astype(np.float64), mode)
            result[at] = odd.astype(np.float32)
    return canonical32(result)


def div32(a: Array, b: Array, mode: str = "rn") -> Array:
    if mode == "rn":
        return canonical32(a / b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    quotient = x / y
    high, low = two_product(quotient, y)
    remainder = ((x - high) - low) * np.sign(y)
    error = np.where(np.isfinite(quotient) & np.isfinite(y) & (y != 0), remainder, 0.0)
    return canonical32(round_to(to_odd(quotient, error), mode, np.float32))


def sqrt32(a: Array, mode: str = "rn") -> Array:
    if mode == "rn":
        return canonical32(np.sqrt(a))
    x = a.astype(np.float64)
    root = np.sqrt(x)
    high, low = two_product(root, root)
    error = np.where(np.isfinite(root) & (root != 0), (x - high) - low, 0.0)
    return canonical32(round_to(to_odd(root, error), mode, np.float32))


# float64


def _direct64(nearest: Array, error: Array, mode: str) -> Array:
    """Move the nearest float64 to the one ``mode`` asks for, given the sign of the exact error."""
    if mode == "rn":
        return nearest
    if mode == "rm":
        wrong, toward = error < 0, -np.inf
    elif mode == "rp":
        wrong, toward = error > 0, np.inf
    else:
        wrong, toward = (error < 0) & (nearest > 0) | (error > 0) & (nearest < 0), 0.0
    return np.where(wrong & np.isfinite(nearest), np.nextafter(nearest, toward), nearest)


def _fits(*values: Array) -> Array:
    """Where every value is zero or of a magnitude that the error-free transforms can take."""
    good = np.ones(values[0].shape, bool)
    for value in values:
        size = np.abs(value)
        good &= (value == 0) | ((size > _SAFE_LOW) & (size < _SAFE_HIGH))
    return good


def add64(a: Array, b: Array, mode: str = "rn") -> Array:
    total = a + b
    if mode == "rn":
        return settle64(total, b, a)
    total, error = two_sum(a, b)
    result = _exact_zero_sign(_direct64(total, error, mode), a, b, mode)
    hard = ~np.isfinite(total)
    return settle64(_repair64(result, hard, mode, np.ones_like(a), a, b), b, a)


def mul64(a: Array, b: Array, mode: str = "rn") -> Array:
    if mode == "rn":
        return settle64(a * b, b, a)
    product, error = two_product(a, b)
    result = _direct64(product, error, mode)
    hard = ~_fits(a, b, product)
    return settle64(_repair64(result, hard, mode, a, b, np.copysign(0.0, product)), b, a)


def fma64(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """``a * b + c`` rounded once (Boldo and Melquiond's algorithm 5)."""
    upper, lower = two_product(a, b)
    inner, inner_error = two_sum(c, lower)
    outer, outer_error = two_sum(upper, inner)
    odd = to_odd(*two_sum(inner_error, outer_error))
    total, error = two_sum(outer, odd)
    result = _exact_zero_sign(_direct64(total, error, mode), a * b, c, mode)
    hard = ~_fits(a, b, c, upper, total) | (total == 0)
    return settle64(_repair64(result, hard, mode, a, b, c), b, c, a)


def _repair64(result: Array, hard: Array, mode: str, a: Array, b: Array, c: Array) -> Array:
    """Recompute the hard lanes with rationals; infinities and NaN are IEEE's own."""
    for at in np.flatnonzero(hard):
        result[at] = fma64_exact(float(a[at]), float(b[at]), float(c[at]), mode)
    return result


def div64(a: Array, b: Array, mode: str = "rn") -> Array:
    result = a / b
    if mode != "rn":
        for at in np.ndindex(result.shape):
            result[at] = quotient64_exact(float(a[at]), float(b[at]), mode)
    return settle64(result, a, b)


def sqrt64(a: Array, mode: str = "rn") -> Array:
    result = np.sqrt(a)
    if mode != "rn":
        for at in np.ndindex(result.shape):
            result[at] = root64_exact(float(a[at]), mode)
    return settle64(result, a)


# float16 (arithmetic exists in round-to-nearest only)


def fma16(a: Array, b: Array, c: Array) -> Array:
    product = a.astype(np.float64) * b.astype(np.float64)
    return canonical16(_sum_to_odd(product, c.astype(np.float64), "rn").astype(np.float16))


def add16(a: Array, b: Array) -> Array:
    # A sum of two float16 spans at most 41 bits: exact in float64.
    return canonical16((a.astype(np.float64) + b.astype(np.float64)).astype(np.float16))


def mul16(a: Array, b: Array) -> Array:
    # A product has 22 bits and no exponent float32 cannot hold: exact, then one rounding.
    return canonical16((a.astype(np.float32) * b.astype(np.float32)).astype(np.float16))


# bfloat16, held as uint16


def widen_bf16(bits: Array) -> Array:
    """uint16 patterns of bfloat16 to float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def round_bf16(x: Array, mode: str = "rn") -> Array:
    """float32 or float64 (exact or rounded to odd) to uint16 patterns of bfloat16."""
    if x.dtype == np.float64:
        # Truncate to float32, then set its last bit if anything was lost: rounded to odd again.
        single = round_to(x, "rz", np.float32)
        lost = single.astype(np.float64) != x
        bits = single.view(np.uint32) | (lost & ~np.isnan(x)).astype(np.uint32)
    else:
        bits = np.ascontiguousarray(x).view(np.uint32)
    if mode == "rn":
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> 16
    else:
        rounded = bits >> np.uint32(16)
    return np.where(np.isnan(x), NAN16, rounded).astype(np.uint16)


# minimum and maximum


def minimum(a: Array, b: Array) -> Array:
    """IEEE minNum with -0 < +0: the other operand when one is NaN."""
    smaller = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(b), a, np.where(np.isnan(a), b, smaller))


def maximum(a: Array, b: Array) -> Array:
    """IEEE maxNum with -0 < +0: the other operand when one is NaN."""
    larger = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return np.where(np.isnan(b), a, np.where(np.isnan(a), b, larger))
