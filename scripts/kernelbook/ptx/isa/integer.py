"""Integer arithmetic, modulo two to the width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..module import TYPE_BYTES, Instruction
from .alu import DTYPES, Alu, Array, Builder, same

_INTEGER = {"u16", "s16", "u32", "s32", "u64", "s64"}
_MASK24 = 0xFFFFFF


def _unsigned(type_name: str) -> np.dtype[Any]:
    return np.dtype(f"u{TYPE_BYTES[type_name]}")


def _wide(type_name: str) -> str:
    return f"{DTYPES[type_name][0]}{2 * TYPE_BYTES[type_name]}"


def _saturating(operation: np.ufunc) -> Callable[[Array, Array], Array]:
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max

    def function(a: Array, b: Array) -> Array:
        exact: Array = operation(a.astype(np.int64), b.astype(np.int64))
        return np.clip(exact, low, high).astype("i4")

    return function


def _sum_with_carry(width: str) -> Callable[..., tuple[Array, Array]]:
    def function(a: Array, b: Array, carry: Array | None = None) -> tuple[Array, Array]:
        total = a + b
        out = total < a
        if carry is not None:
            total = total + carry.astype(width)
            out |= carry & (total == 0)
        return total, out

    return function


def _difference_with_borrow(width: str) -> Callable[..., tuple[Array, Array]]:
    def function(a: Array, b: Array, borrow: Array | None = None) -> tuple[Array, Array]:
        total = a - b
        out = a < b
        if borrow is not None:
            out |= borrow & (total == 0)
            total = total - borrow.astype(width)
        return total, out

    return function


def _linear(
    operation: np.ufunc, chained: Callable[[str], Callable[..., tuple[Array, Array]]], name: str
) -> Builder:
    """add and sub, with ``.sat``, ``.cc`` and (opcode + "c") the carry flag as input."""

    def build(instruction: Instruction) -> Alu | None:
        kind = instruction.type
        if kind not in _INTEGER:
            return None
        if instruction.has("sat"):
            return same(kind, 2, _saturating(operation)) if kind == "s32" else None
        carry_in = instruction.opcode == name + "c"
        carry_out = instruction.has("cc")
        if not carry_in and not carry_out:
            return same(kind, 2, operation, operation)
        dtype = str(_unsigned(kind).str[1:])
        step = chained(dtype)
        sources = (dtype, dtype, "?") if carry_in else (dtype, dtype)
        if carry_out:
            return Alu(sources, (dtype, "?"), step, carry_in=carry_in, carry_out=True)
        return Alu(sources, (dtype,), lambda *s: step(*s)[0], carry_in=carry_in)

    return build


def high_product(a: Array, b: Array) -> Array:
    """Upper half of the product of two equally wide integers."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        product: Array = a.astype(wide) * b.astype(wide)
        return (product >> (8 * a.dtype.itemsize)).astype(a.dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> shift, y & low, y >> shift
    middle = x1 * y0 + ((x0 * y0) >> shift)
    other = x0 * y1 + (middle & low)
    upper: Array = x1 * y1 + (middle >> shift) + (other >> shift)
    if a.dtype.kind == "i":
        upper = upper - np.where(a < 0, y, 0) - np.where(b < 0, x, 0)
    return upper.view(a.dtype)


def _product(kind: str, part: str) -> Callable[[Array, Array], Array]:
    if part == "hi":
        return lambda a, b: high_product(np.ascontiguousarray(a), np.ascontiguousarray(b))
    if part == "wide":
        wide = _wide(kind)
        return lambda a, b: np.multiply(a, b, dtype=wide)
    return np.multiply


def _part(instruction: Instruction) -> str:
    return next((m for m in instruction.modifiers if m in ("lo", "hi", "wide")), "")


def _multiply(instruction: Instruction) -> Alu | None:
    kind, part = instruction.type, _part(instruction)
    if kind not in _INTEGER or not part or (part == "wide" and kind.endswith("64")):
        return None
    if part == "lo":
        return same(kind, 2, np.multiply, np.multiply)
    dtype = DTYPES[kind]
    result = _wide(kind) if part == "wide" else dtype
    return Alu((dtype, dtype), (result,), _product(kind, part))


def _multiply_add(instruction: Instruction) -> Alu | None:
    """mad, madc: ``a * b + c`` with the low, high or whole product."""
    kind, part = instruction.type, _part(instruction)
    if kind not in _INTEGER or not part or (part == "wide" and kind.endswith("64")):
        return None
    dtype = DTYPES[kind]
    result = _wide(kind) if part == "wide" else dtype
    product = _product(kind, part)
    carry_in, carry_out = instruction.opcode == "madc", instruction.has("cc")
    if instruction.has("sat"):
        return None
    if not carry_in and not carry_out:
        return Alu((dtype, dtype, result), (result,), lambda a, b, c: product(a, b) + c)
    unsigned = "u" + result[1:]
    add = _sum_with_carry(unsigned)

    def function(a: Array, b: Array, c: Array, *carry: Array) -> Any:
        term = np.ascontiguousarray(product(a, b)).view(unsigned)
        total = add(term, c, *carry)
        return total if carry_out else total[0]

    sources = (dtype, dtype, unsigned, "?") if carry_in else (dtype, dtype, unsigned)
    results = (unsigned, "?") if carry_out else (unsigned,)
    return Alu(sources, results, function, carry_in=carry_in, carry_out=carry_out)


def _product24(a: Array, b: Array, part: str) -> Array:
    if a.dtype.kind == "i":
        a = (a << 8).astype(np.int64) >> 8
        b = (b << 8).astype(np.int64) >> 8
    else:
        a = a.astype(np.uint64) & np.uint64(_MASK24)
        b = b.astype(np.uint64) & np.uint64(_MASK24)
    product = a * b
    return product >> 16 if part == "hi" else product


def _multiply24(instruction: Instruction) -> Alu | None:
    kind, part = instruction.type, _part(instruction)
    if kind not in ("u32", "s32") or part not in ("lo", "hi") or instruction.has("sat"):
        return None
    dtype = DTYPES[kind]
    if instruction.opcode == "mul24":
        return same(kind, 2, lambda a, b: _product24(a, b, part).astype(dtype))
    return same(kind, 3, lambda a, b, c: _product24(a, b, part).astype(dtype) + c)


def magnitude(a: Array) -> Array:
    """Absolute value as an unsigned integer (so that the most negative one fits)."""
    if a.dtype.kind == "u":
        return a
    bits = a.view(f"u{a.dtype.itemsize}")
    return np.where(a < 0, ~bits + bits.dtype.type(1), bits)


def _quotient(a: Array, b: Array) -> Array:
    """Truncating division; by zero it gives all ones, as the hardware does."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    x, y = magnitude(a), magnitude(b)
    result = x // np.maximum(y, y.dtype.type(1))
    if a.dtype.kind == "i":
        result = np.where((a < 0) != (b < 0), ~result + result.dtype.type(1), result)
    result = np.where(y == 0, np.iinfo(result.dtype).max, result)
    return result.view(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend; all ones when dividing by zero, as on hardware."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    x, y = magnitude(a), magnitude(b)
    result = x % np.maximum(y, y.dtype.type(1))
    if a.dtype.kind == "i":
        result = np.where(a < 0, ~result + result.dtype.type(1), result)
    result = np.where(y == 0, np.iinfo(result.dtype).max, result)
    return result.view(a.dtype)


def _plain(count: int, function: Callable[..., Array], ufunc: np.ufunc | None = None) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        kind = instruction.type
        if kind not in _INTEGER or instruction.has("relu"):
            return None
        return same(kind, count, function, ufunc)

    return build


def _absolute_difference(a: Array, b: Array, c: Array) -> Array:
    larger, smaller = np.maximum(a, b), np.minimum(a, b)
    return (larger - smaller) + c


def _bytes_of(a: Array, signed: bool) -> Array:
    """(lanes,) 32-bit words to (lanes, 4) bytes, widened to int64."""
    return np.ascontiguousarray(a).view("i1" if signed else "u1").reshape(-1, 4).astype(np.int64)


def _dot4(instruction: Instruction) -> Alu | None:
    if len(instruction.types) != 2:
        return None
    signed_a, signed_b = (t == "s32" for t in instruction.types)

    def function(a: Array, b: Array, c: Array) -> Array:
        terms: Array = (_bytes_of(a, signed_a) * _bytes_of(b, signed_b)).sum(axis=1)
        return (terms + c.astype(np.int64)).astype(np.uint64).astype(np.uint32)

    return Alu(("u4", "u4", "u4"), ("u4",), function)


def _dot2(instruction: Instruction) -> Alu | None:
    if len(instruction.types) != 2:
        return None
    signed_a, signed_b = (t == "s32" for t in instruction.types)
    first = 2 if instruction.has("hi") else 0

    def function(a: Array, b: Array, c: Array) -> Array:
        halves = np.ascontiguousarray(a).view("i2" if signed_a else "u2").reshape(-1, 2)
        chosen = _bytes_of(b, signed_b)[:, first : first + 2]
        terms: Array = (halves.astype(np.int64) * chosen).sum(axis=1)
        return (terms + c.astype(np.int64)).astype(np.uint64).astype(np.uint32)

    return Alu(("u4", "u4", "u4"), ("u4",), function)


BUILDERS: dict[str, Builder] = {
    "add": _linear(np.add, _sum_with_carry, "add"),
    "addc": _linear(np.add, _sum_with_carry, "add"),
    "sub": _linear(np.subtract, _difference_with_borrow, "sub"),
    "subc": _linear(np.subtract, _difference_with_borrow, "sub"),
    "mul": _multiply,
    "mad": _multiply_add,
    "madc": _multiply_add,
    "mul24": _multiply24,
    "mad24": _multiply24,
    "div": _plain(2, _quotient),
    "rem": _plain(2, _remainder),
    "min": _plain(2, np.minimum, np.minimum),
    "max": _plain(2, np.maximum, np.maximum),
    "neg": _plain(1, np.negative, np.negative),
    "abs": _plain(1, np.abs, np.absolute),
    "sad": _plain(3, _absolute_difference),
    "dp4a": _dot4,
    "dp2a": _dot2,
}
