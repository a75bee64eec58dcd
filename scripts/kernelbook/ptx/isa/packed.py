"""Half precision: f16, bf16, and both packed two to a register."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import floats as fp
from ..module import Instruction, Pair
from .alu import DTYPES, Alu, Array, Builder
from .compare import comparison

Function = Callable[..., Array]
_HALF = ("f16", "f16x2", "bf16", "bf16x2")


def _bf16(operation: Function) -> Function:
    """A bfloat16 operation from one that is exact, or rounded to odd, in float64."""
    return lambda *s: fp.round_bf16(operation(*(fp.widen_bf16(x).astype(np.float64) for x in s)))


def _odd_sum(a: Array, b: Array) -> Array:
    return fp.to_odd(*fp.two_sum(a, b))


def _minus16(a: Array, b: Array) -> Array:
    return fp.add16(a, -b)


def _ftz16(function: Function, exact: Function | None = None) -> Function:
    """Flush sources and result; ``exact`` is the operation on float64, before rounding."""

    def flushed(*sources: Array) -> Array:
        sources = tuple(fp.flush16(s) for s in sources)
        result = function(*sources)
        if exact is None:
            return fp.flush16(result)
        return fp.flush_tiny(result, lambda at: exact(*(s[at].astype(np.float64) for s in sources)))

    return flushed


def _saturated(function: Function) -> Function:
    return lambda *s: fp.saturate(function(*s))


def _relu16(function: Function) -> Function:
    def clamped(*sources: Array) -> Array:
        result = function(*sources)
        return np.where((result > 0) | np.isnan(result), result, np.float16(0))

    return clamped


def _lanes_of(kind: str) -> Callable[[Array], Array]:
    """uint16 or uint32 register bits to the elements they hold."""
    dtype = np.float16 if kind.startswith("f16") else np.uint16
    return lambda bits: np.ascontiguousarray(bits).view(dtype)


def _elementwise(kind: str, count: int, function: Function) -> Alu:
    """Apply a function of float16 (or bfloat16 bits) to plain or packed registers."""
    elements = _lanes_of(kind)
    register = "u4" if kind.endswith("x2") else "u2"

    def on_registers(*sources: Array) -> Array:
        result = function(*(elements(s) for s in sources))
        return np.ascontiguousarray(result).view(register)

    return Alu((register,) * count, (register,), on_registers)


def _arithmetic(
    half: Function, brain: Function, count: int, exact: Function | None = None
) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        kind = instruction.type
        if kind not in _HALF:
            return None
        if kind.startswith("bf16"):
            if instruction.has("relu") or instruction.has("sat") or instruction.has("ftz"):
                return None
            return _elementwise(kind, count, brain)
        function = half
        if instruction.has("ftz"):
            function = _ftz16(function, exact)
        if instruction.has("sat"):
            function = _saturated(function)
        if instruction.has("relu"):
            function = _relu16(function)
        return _elementwise(kind, count, function)

    return build


def _sign(instruction: Instruction) -> Alu | None:
    """neg and abs act on sign bits."""
    kind = instruction.type
    if kind not in _HALF:
        return None
    negate = instruction.opcode == "neg"
    half = fp.flush16 if instruction.has("ftz") and kind.startswith("f16") else None

    def function(x: Array) -> Array:
        if half is not None:
            x = half(x)
        bits = x.view(np.uint16)
        bits = bits ^ np.uint16(0x8000) if negate else bits & np.uint16(0x7FFF)
        return np.where((bits & 0x7FFF) > (0x7C00 if half_type else 0x7F80), fp.NAN16, bits)

    half_type = kind.startswith("f16")
    return _elementwise(kind, 1, function)


def _extreme(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in _HALF or instruction.has("abs") or instruction.has("xorsign"):
        return None
    pick = fp.minimum if instruction.opcode == "min" else fp.maximum
    propagate = instruction.has("NaN")
    brain = kind.startswith("bf16")
    ftz = instruction.has("ftz") and not brain

    def function(*sources: Array) -> Array:
        values = [fp.widen_bf16(s) if brain else fp.flush16(s) if ftz else s for s in sources]
        result = values[0]
        for other in values[1:]:
            result = pick(result, other)
        if propagate:
            for value in values:
                result = np.where(np.isnan(value), value, result)
        return fp.round_bf16(result) if brain else fp.canonical16(result)

    return _elementwise(kind, len(instruction.operands) - 1, function)


def _approximate(operation: Function) -> Builder:
    """ex2 and tanh of half precision: computed in float64, rounded once."""

    def build(instruction: Instruction) -> Alu | None:
        kind = instruction.type
        if kind not in _HALF:
            return None
        if kind.startswith("bf16"):
            return _elementwise(kind, 1, _bf16(operation))

        def function(x: Array) -> Array:
            return fp.canonical16(operation(x.astype(np.float64)).astype(np.float16))

        return _elementwise(kind, 1, _ftz16(function) if instruction.has("ftz") else function)

    return build


def _set_predicate(instruction: Instruction) -> Alu | None:
    """setp on packed halves: one predicate for the lower, one for the upper."""
    kind = instruction.type
    if kind not in ("f16x2", "bf16", "bf16x2"):
        return None
    compare = comparison(instruction, "f16" if kind == "f16x2" else "f32")
    if compare is None or any(m in ("and", "or", "xor") for m in instruction.modifiers[1:]):
        return None
    brain = kind.startswith("bf16")
    elements = _lanes_of(kind)
    two = isinstance(instruction.operands[0], Pair) if instruction.operands else False
    if kind.endswith("x2") != two:
        return None

    def function(a: Array, b: Array) -> Array | tuple[Array, Array]:
        x, y = elements(a), elements(b)
        holds = compare(fp.widen_bf16(x), fp.widen_bf16(y)) if brain else compare(x, y)
        return (holds[0::2], holds[1::2]) if two else holds

    return Alu((DTYPES[kind],) * 2, ("?", "?") if two else ("?",), function)


def _set(instruction: Instruction) -> Alu | None:
    """set on packed halves: 1.0 or all ones in each half."""
    if len(instruction.types) != 2 or instruction.types[1] not in ("f16x2", "bf16x2"):
        return None
    to, kind = instruction.types
    compare = comparison(instruction, "f16" if kind == "f16x2" else "f32")
    if compare is None or to not in ("f16x2", "bf16x2", "u32", "s32"):
        return None
    true_value = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(to, 0xFFFF)
    elements = _lanes_of(kind)
    brain = kind == "bf16x2"

    def function(a: Array, b: Array) -> Array:
        x, y = elements(a), elements(b)
        holds = compare(fp.widen_bf16(x), fp.widen_bf16(y)) if brain else compare(x, y)
        return np.where(holds, np.uint16(true_value), np.uint16(0)).view(np.uint32)

    return Alu(("u4", "u4"), ("u4",), function)


BUILDERS: dict[str, Builder] = {
    "add": _arithmetic(fp.add16, _bf16(_odd_sum), 2),
    "sub": _arithmetic(_minus16, _bf16(lambda a, b: _odd_sum(a, -b)), 2),
    "mul": _arithmetic(fp.mul16, _bf16(np.multiply), 2, np.multiply),
    "fma": _arithmetic(fp.fma16, _bf16(fp.fused_to_odd), 3, fp.fused_to_odd),
    "neg": _sign,
    "abs": _sign,
    "min": _extreme,
    "max": _extreme,
    "ex2": _approximate(np.exp2),
    "tanh": _approximate(np.tanh),
    "setp": _set_predicate,
    "set": _set,
}
