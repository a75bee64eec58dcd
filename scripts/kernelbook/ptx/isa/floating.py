"""Floating-point arithmetic: IEEE operations exact to the bit, approximate ones rounded once.

Approximate instructions (``.approx``, ``.full``, ``ex2``, ``lg2``, ``sin`` ...) are computed in
float64 and rounded, so they differ from hardware by its own error. Against an H200, over special
and random inputs, that is at most 1 ulp for rcp, sqrt and rsqrt; 2 ulp for div.approx, div.full and
ex2; 2**-22 (absolute below 1, else relative) for lg2; 2**-21 absolute for sin and cos within
[-pi, pi]; 2**-16 relative for tanh; 2**-20 relative for the float64 approximations; 1 ulp for the
float16 ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import floats as fp
from ..module import Instruction
from .alu import DTYPES, Alu, Array, Builder, rounding, same

Function = Callable[..., Array]


def _finish(
    instruction: Instruction, function: Function, exact: Function | None = None
) -> Function:
    """Add what the modifiers ask for around a float32 operation: .ftz, .sat.

    ``exact``: the same operation on float64 sources before it is rounded to float32.
    """
    ftz, sat = instruction.has("ftz"), instruction.has("sat")
    if not ftz and not sat:
        return function

    def finished(*sources: Array) -> Array:
        if ftz:
            sources = tuple(fp.flush32(np.ascontiguousarray(s)) for s in sources)
        result = function(*sources)
        if ftz and exact is not None:
            result = fp.flush_tiny(
                result, lambda at: exact(*(s[at].astype(np.float64) for s in sources))
            )
        elif ftz:
            result = fp.flush32(result)
        return fp.saturate(result) if sat else result

    return finished


def _moded(operation: Function, mode: str) -> Function:
    return lambda *sources: operation(*sources, mode)


def _arithmetic(
    operation32: Function, operation64: Function, count: int, exact: Function | None = None
) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        mode = rounding(instruction)
        if instruction.type == "f32" and not instruction.has("approx"):
            return same("f32", count, _finish(instruction, _moded(operation32, mode), exact))
        if instruction.type == "f64" and not instruction.has("approx"):
            return same("f64", count, _moded(operation64, mode))
        return None

    return build


def _minus32(a: Array, b: Array, mode: str) -> Array:
    return fp.canonical32(a - b) if mode == "rn" else fp.add32(a, -b, mode)


def _minus64(a: Array, b: Array, mode: str) -> Array:
    result = a - b if mode == "rn" else fp.add64(a, -b, mode)
    return fp.settle64(result, b, a)


def _divide_approximately(a: Array, b: Array) -> Array:
    """``div.approx`` multiplies by a reciprocal, which is flushed to zero beyond 2**126."""
    result = fp.div32(a, b)
    huge = np.isfinite(b) & (np.abs(b) > np.float32(2.0**126))
    if huge.any():
        zero = np.copysign(np.float32(0), np.sign(a) * np.sign(b))
        gone = np.where(np.isfinite(a), np.where(a == 0, result, zero), np.float32(np.nan))
        result = fp.canonical32(np.where(huge, gone, result))
    return result


def _divide(instruction: Instruction) -> Alu | None:
    if instruction.type == "f32" and instruction.has("approx"):
        return same("f32", 2, _finish(instruction, _divide_approximately))
    if instruction.type == "f32":
        return same("f32", 2, _finish(instruction, _moded(fp.div32, rounding(instruction))))
    if instruction.type == "f64":
        return same("f64", 2, _moded(fp.div64, rounding(instruction)))
    return None


def _root(instruction: Instruction) -> Alu | None:
    if instruction.type == "f32":
        return same("f32", 1, _finish(instruction, _moded(fp.sqrt32, rounding(instruction))))
    if instruction.type == "f64":
        return same("f64", 1, _moded(fp.sqrt64, rounding(instruction)))
    return None


def _reciprocal(instruction: Instruction) -> Alu | None:
    mode = rounding(instruction)
    if instruction.type == "f32":
        one = lambda a: fp.div32(np.ones_like(a), a, mode)  # noqa: E731
        return same("f32", 1, _finish(instruction, one))
    if instruction.has("approx"):
        return _gross(instruction, np.reciprocal)
    return same("f64", 1, lambda a: fp.div64(np.ones_like(a), a, mode))


def _upper_half(a: Array) -> Array:
    bits = np.ascontiguousarray(a).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return bits.view(np.float64)


def _gross(instruction: Instruction, operation: Function) -> Alu:
    """rcp.approx and rsqrt.approx of float64: only the upper 32 bits of the result count.

    With ``.ftz`` only those of the source do as well, and subnormals are zeros.
    """
    ftz = instruction.has("ftz")

    def function(a: Array) -> Array:
        if ftz:
            a = _upper_half(a)
            a = np.where(np.abs(a) < 2.0**-1022, np.copysign(0.0, a), a)
        result = operation(a)
        if ftz:
            result = np.where(np.abs(result) < 2.0**-1022, np.copysign(0.0, result), result)
        return _upper_half(fp.settle64(result, a))

    return same("f64", 1, function)


def _through64(operation: Function) -> Function:
    """Evaluate in float64, round once."""
    return lambda a: fp.canonical32(operation(a.astype(np.float64)).astype(np.float32))


def _inverse_root(a: Array) -> Array:
    return 1.0 / np.sqrt(a)


def _approximate(operation: Function) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        if instruction.type == "f32":
            return same("f32", 1, _finish(instruction, _through64(operation)))
        if instruction.type == "f64":
            return _gross(instruction, operation)
        return None

    return build


def _negate(instruction: Instruction) -> Alu | None:
    return _sign_operation(instruction, np.negative)


def _absolute(instruction: Instruction) -> Alu | None:
    return _sign_operation(instruction, np.abs)


def _sign_operation(instruction: Instruction, operation: Function) -> Alu | None:
    """neg and abs change the sign bit, but not that of a NaN."""
    if instruction.type == "f32":
        ftz = instruction.has("ftz")
        return same(
            "f32",
            1,
            lambda a: fp.canonical32(operation(fp.flush32(np.ascontiguousarray(a)) if ftz else a)),
        )
    if instruction.type == "f64":
        return same("f64", 1, lambda a: fp.settle64(operation(a), a))
    return None


def _extreme(operation: Function) -> Builder:
    def build(instruction: Instruction) -> Alu | None:
        if instruction.type not in ("f32", "f64"):
            return None
        if instruction.has("abs") or instruction.has("xorsign"):
            return None
        propagate = instruction.has("NaN")

        def function(*sources: Array) -> Array:
            result = sources[0]
            for other in sources[1:]:
                result = operation(result, other)
            if propagate:
                for source in sources:
                    result = np.where(np.isnan(source), source, result)
            if result.dtype == np.float32:
                return fp.canonical32(result)
            return fp.settle64(result, *reversed(sources))

        count = len(instruction.operands) - 1
        if instruction.type == "f32":
            return same("f32", count, _finish(instruction, function))
        return same("f64", count, function)

    return build


def _copysign(instruction: Instruction) -> Alu | None:
    """``copysign d, a, b``: the sign of a on the magnitude of b."""
    if instruction.type not in ("f32", "f64"):
        return None
    return same(instruction.type, 2, lambda a, b: np.copysign(b, a))


def _testp(instruction: Instruction) -> Alu | None:
    if instruction.type not in ("f32", "f64"):
        return None
    dtype = DTYPES[instruction.type]
    tiny = np.finfo(dtype).tiny
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        # Zero passes, on hardware.
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < tiny),
    }
    test = next((tests[m] for m in instruction.modifiers if m in tests), None)
    return None if test is None else Alu((dtype,), ("?",), test)


def _fused32(a: Array, b: Array, c: Array, mode: str) -> Array:
    return fp.fma32(a, b, c, mode)


BUILDERS: dict[str, Builder] = {
    "add": _arithmetic(fp.add32, fp.add64, 2),
    "sub": _arithmetic(_minus32, _minus64, 2),
    "mul": _arithmetic(fp.mul32, fp.mul64, 2, np.multiply),
    "fma": _arithmetic(_fused32, fp.fma64, 3, fp.fused_to_odd),
    "mad": _arithmetic(_fused32, fp.fma64, 3, fp.fused_to_odd),
    "div": _divide,
    "sqrt": _root,
    "rcp": _reciprocal,
    "ex2": _approximate(np.exp2),
    "lg2": _approximate(np.log2),
    "sin": _approximate(np.sin),
    "cos": _approximate(np.cos),
    "tanh": _approximate(np.tanh),
    "rsqrt": _approximate(_inverse_root),
    "neg": _negate,
    "abs": _absolute,
    "min": _extreme(fp.minimum),
    "max": _extreme(fp.maximum),
    "copysign": _copysign,
    "testp": _testp,
}
