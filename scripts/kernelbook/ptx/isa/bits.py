"""Bits: logic, shifts, fields, permutations and selection."""

from __future__ import annotations

import numpy as np

from ..module import TYPE_BYTES, Immediate, Instruction
from .alu import DTYPES, Alu, Array, Builder, same

_U32 = np.uint32
_PRMT_MODES = {
    # selector -> source byte of each result byte, lowest first
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def _bitwise(ufunc: np.ufunc, count: int) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        if instruction.type not in ("pred", "b16", "b32", "b64"):
            return None
        return same(instruction.type, count, ufunc, ufunc)

    return build


def _logical_not(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in ("b16", "b32", "b64"):
        return None
    dtype = DTYPES[kind]
    return same(kind, 1, lambda a: (a == 0).astype(dtype))


def _shift_left(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in ("b16", "b32", "b64"):
        return None
    dtype = DTYPES[kind]
    if kind == "b16":
        # NumPy would widen to 32 bits; an amount beyond the width gives 0 either way.
        return Alu((dtype, "u4"), (dtype,), lambda a, b: np.left_shift(a, b).astype(dtype))
    return Alu((dtype, "u4"), (dtype,), np.left_shift, np.left_shift)


def _shift_right(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind[1:] not in ("16", "32", "64") or kind[0] not in "bus":
        return None
    dtype = DTYPES[kind]
    if kind[0] == "s":
        last = 8 * TYPE_BYTES[kind] - 1
        return Alu(
            (dtype, "u4"), (dtype,), lambda a, b: a >> np.minimum(b, _U32(last)).astype(dtype)
        )
    if kind[1:] == "16":
        return Alu((dtype, "u4"), (dtype,), lambda a, b: np.right_shift(a, b).astype(dtype))
    return Alu((dtype, "u4"), (dtype,), np.right_shift, np.right_shift)


def _funnel(instruction: Instruction) -> Alu | None:
    if instruction.type != "b32":
        return None
    left, wrap = instruction.has("l"), instruction.has("wrap")

    def function(a: Array, b: Array, c: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        amount = ((c & _U32(31)) if wrap else np.minimum(c, _U32(32))).astype(np.uint64)
        if left:
            return ((both << amount) >> np.uint64(32)).astype(np.uint32)
        return (both >> amount).astype(np.uint32)

    return Alu(("u4", "u4", "u4"), ("u4",), function)


def bit_length(a: Array) -> Array:
    """Number of bits needed for an unsigned integer (0 for 0), as int32."""
    if a.dtype.itemsize < 8:
        return np.frexp(a.astype(np.float64))[1].astype(np.int32)
    upper = (a >> np.uint64(32)).astype(np.uint32)
    lower = a.astype(np.uint32)
    return np.where(upper != 0, bit_length(upper) + 32, bit_length(lower))


def _count_bits(instruction: Instruction) -> Alu | None:
    if instruction.type not in ("b32", "b64"):
        return None
    return Alu(
        (DTYPES[instruction.type],), ("u4",), lambda a: np.bitwise_count(a).astype(np.uint32)
    )


def _leading_zeros(instruction: Instruction) -> Alu | None:
    if instruction.type not in ("b32", "b64"):
        return None
    width = 8 * TYPE_BYTES[instruction.type]
    return Alu(
        (DTYPES[instruction.type],),
        ("u4",),
        lambda a: (width - bit_length(np.ascontiguousarray(a))).astype(np.uint32),
    )


def _reverse(instruction: Instruction) -> Alu | None:
    if instruction.type not in ("b32", "b64"):
        return None
    size = TYPE_BYTES[instruction.type]

    def function(a: Array) -> Array:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(-1, size)[:, ::-1]
        bits = np.unpackbits(octets, axis=1).reshape(-1, size, 8)
        return np.packbits(bits[:, :, ::-1].reshape(-1, 8 * size), axis=1).view(a.dtype).reshape(-1)

    return Alu((DTYPES[instruction.type],), (DTYPES[instruction.type],), function)


def _find(instruction: Instruction) -> Alu | None:
    """bfind: position of the highest bit that differs from the sign; all ones if none does."""
    kind = instruction.type
    if kind not in ("u32", "s32", "u64", "s64"):
        return None
    width = 8 * TYPE_BYTES[kind]
    unsigned = f"u{TYPE_BYTES[kind]}"
    shift_amount = instruction.has("shiftamt")

    def function(a: Array) -> Array:
        bits = np.ascontiguousarray(a).view(unsigned)
        if a.dtype.kind == "i":
            bits = np.where(a < 0, ~bits, bits)
        position = bit_length(bits) - 1
        if shift_amount:
            position = np.where(position < 0, -1, width - 1 - position)
        return position.astype(np.int32).view(np.uint32)

    return Alu((DTYPES[kind],), ("u4",), function)


def _low_mask(length: Array, width: int, dtype: str) -> Array:
    """``length`` ones at the bottom of a word (all of it from ``width`` on)."""
    one = np.dtype(dtype).type(1)
    partial = np.left_shift(one, length.astype(dtype)) - one
    return np.where(length >= width, np.iinfo(dtype).max, partial).astype(dtype)


def _field(value: Array, width: int) -> Array:
    """A position or length: the low 8 bits count for 32-bit fields, all of it for 64-bit ones."""
    return value & _U32(0xFF) if width == 32 else value


def _extract(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in ("u32", "s32", "u64", "s64"):
        return None
    width = 8 * TYPE_BYTES[kind]
    dtype = f"u{TYPE_BYTES[kind]}"
    signed = kind[0] == "s"

    def function(a: Array, position: Array, length: Array) -> Array:
        position = _field(position, width).astype(np.int64)
        length = _field(length, width).astype(np.int64)
        mask = _low_mask(np.minimum(length, np.maximum(width - position, 0)), width, dtype)
        field: Array = np.right_shift(a, position.astype(dtype)) & mask
        if not signed:
            return field
        last = np.minimum(position + length - 1, width - 1)
        sign = (np.right_shift(a, np.maximum(last, 0).astype(dtype)) & a.dtype.type(1)) != 0
        return np.where(sign & (length > 0), field | ~mask, field)

    return Alu((dtype, "u4", "u4"), (dtype,), function)


def _insert(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in ("b32", "b64"):
        return None
    width = 8 * TYPE_BYTES[kind]
    dtype = DTYPES[kind]

    def function(a: Array, b: Array, position: Array, length: Array) -> Array:
        position = _field(position, width).astype(dtype)
        mask = np.left_shift(
            _low_mask(_field(length, width).astype(np.int64), width, dtype), position
        )
        return (np.left_shift(a, position) & mask) | (b & ~mask)

    return Alu((dtype, dtype, "u4", "u4"), (dtype,), function)


def _mask_field(instruction: Instruction) -> Alu | None:
    """bmsk: ones from a position, of a length, clamped or wrapped to 32 bits."""
    wrap = instruction.has("wrap")

    def function(position: Array, length: Array) -> Array:
        if wrap:
            position, length = position & _U32(31), length & _U32(31)
        ones = _low_mask(np.minimum(length, _U32(32)).astype(np.int64), 32, "u4")
        return np.left_shift(ones, np.minimum(position, _U32(32)))

    return Alu(("u4", "u4"), ("u4",), function)


def _permute(instruction: Instruction) -> Alu | None:
    mode = next((m for m in instruction.modifiers if m in _PRMT_MODES), None)

    def function(a: Array, b: Array, c: Array) -> Array:
        octets = np.empty((a.size, 8), np.uint8)
        octets[:, :4] = np.ascontiguousarray(a).view(np.uint8).reshape(-1, 4)
        octets[:, 4:] = np.ascontiguousarray(b).view(np.uint8).reshape(-1, 4)
        if mode is not None:
            source = np.array(_PRMT_MODES[mode])[c & _U32(3)]
            return np.take_along_axis(octets, source, axis=1).view(np.uint32).reshape(-1)
        selectors = (c[:, None] >> np.arange(0, 16, 4, dtype=np.uint32)) & _U32(15)
        chosen = np.take_along_axis(octets, (selectors & _U32(7)).astype(np.int64), axis=1)
        signs = (chosen.view(np.int8) >> 7).view(np.uint8)
        chosen = np.where(selectors & _U32(8), signs, chosen)
        return np.ascontiguousarray(chosen).view(np.uint32).reshape(-1)

    return Alu(("u4", "u4", "u4"), ("u4",), function)


def _two_input(table: int, b: Array, c: Array) -> Array:
    """The function of b and c whose truth table (bit ``2 b + c``) is ``table``."""
    result = np.zeros_like(b)
    for bit in range(4):
        if table >> bit & 1:
            result |= (b if bit & 2 else ~b) & (c if bit & 1 else ~c)
    return result


def _lop3(instruction: Instruction) -> Alu | None:
    lut = instruction.operands[4] if len(instruction.operands) > 4 else None
    if not isinstance(lut, Immediate):
        return None
    table = int(lut.value) & 0xFF

    def function(a: Array, b: Array, c: Array, *_: Array) -> Array:
        return (a & _two_input(table >> 4, b, c)) | (~a & _two_input(table & 15, b, c))

    combine = next((m for m in instruction.modifiers if m in ("or", "and")), None)
    if combine is None:
        return Alu(("u4", "u4", "u4", "u4"), ("u4",), function)
    join = np.logical_or if combine == "or" else np.logical_and

    def with_predicate(a: Array, b: Array, c: Array, _: Array, q: Array) -> tuple[Array, Array]:
        result = function(a, b, c)
        return result, join(result != 0, q)

    return Alu(("u4", "u4", "u4", "u4", "?"), ("u4", "?"), with_predicate)


def _select(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind in ("", "pred"):
        return None
    dtype = DTYPES[kind]
    return Alu((dtype, dtype, "?"), (dtype,), lambda a, b, p: np.where(p, a, b))


def _select_sign(instruction: Instruction) -> Alu | None:
    """slct: a where c >= 0, else b (a NaN selects b)."""
    if len(instruction.types) != 2 or instruction.types[1] not in ("s32", "f32"):
        return None
    dtype, control = DTYPES[instruction.types[0]], DTYPES[instruction.types[1]]
    return Alu((dtype, dtype, control), (dtype,), lambda a, b, c: np.where(c >= 0, a, b))


def _sign_extend(instruction: Instruction) -> Alu | None:
    """szext: extend the low b bits of a."""
    kind = instruction.type
    if kind not in ("u32", "s32"):
        return None
    wrap = instruction.has("wrap")

    def function(a: Array, b: Array) -> Array:
        width = ((b & _U32(31)) if wrap else np.minimum(b, _U32(32))).astype(np.int64)
        mask = _low_mask(width, 32, "u4")
        sign = (np.right_shift(a, np.maximum(width - 1, 0).astype("u4")) & _U32(1)) != 0
        sign &= (width > 0) & (kind == "s32")
        return np.where(sign, a | ~mask, a & mask)

    return Alu(("u4", "u4"), ("u4",), function)


BUILDERS: dict[str, Builder] = {
    "and": _bitwise(np.bitwise_and, 2),
    "or": _bitwise(np.bitwise_or, 2),
    "xor": _bitwise(np.bitwise_xor, 2),
    "not": _bitwise(np.invert, 1),
    "cnot": _logical_not,
    "shl": _shift_left,
    "shr": _shift_right,
    "shf": _funnel,
    "popc": _count_bits,
    "clz": _leading_zeros,
    "brev": _reverse,
    "bfind": _find,
    "bfe": _extract,
    "bfi": _insert,
    "bmsk": _mask_field,
    "prmt": _permute,
    "lop3": _lop3,
    "selp": _select,
    "slct": _select_sign,
    "szext": _sign_extend,
}
