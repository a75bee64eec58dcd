"""cvt: between every integer and floating-point type, with rounding and saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import floats as fp
from ..module import TYPE_BYTES, Instruction
from .alu import DTYPES, Alu, Array, Builder

_FLOATS = {"f16", "f32", "f64", "bf16"}
_INTEGERS = {f"{sign}{width}" for sign in "us" for width in (8, 16, 32, 64)}
_ROUND_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_NUMPY_FLOAT: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _mode(instruction: Instruction, names: tuple[str, ...], default: str) -> str:
    return next((m for m in instruction.modifiers if m in names), default)


def _integer_to_integer(to: str, saturate: bool) -> Callable[[Array], Array]:
    dtype = DTYPES[to]
    if not saturate:
        return lambda a: a.astype(dtype)
    limits = np.iinfo(dtype)

    def clamp(a: Array) -> Array:
        own = np.iinfo(a.dtype)
        low, high = max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))
        return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(dtype)

    return clamp


def _integer_to_odd(a: Array) -> Array:
    """An integer as float64, rounded to odd if it needs more than 53 bits."""
    if a.dtype.itemsize < 8:
        return a.astype(np.float64)
    upper = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
    lower = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
    return fp.to_odd(*fp.two_sum(upper, lower))


def _integer_to_float(to: str, mode: str, saturate: bool) -> Callable[[Array], Array]:
    def function(a: Array) -> Array:
        if to == "f64":
            if mode == "rn" or a.dtype.itemsize < 8:
                result = a.astype(np.float64)
            else:
                upper = (a >> a.dtype.type(32)).astype(np.float64) * 2.0**32
                lower = (a & a.dtype.type(0xFFFFFFFF)).astype(np.float64)
                result = fp.add64(upper, lower, mode)
        else:
            result = fp.round_to(_integer_to_odd(a), mode, _NUMPY_FLOAT[to])
        return fp.saturate(result) if saturate else result

    return function


def _float_to_integer(to: str, source: str, round_it: str, ftz: bool) -> Callable[[Array], Array]:
    dtype = np.dtype(DTYPES[to])
    limits = np.iinfo(dtype)
    to_integer = _ROUND_INTEGER[round_it]
    # The manual: NaN gives 0, except from f64 or to 64 bits, where only the top bit is set.
    width = 8 * TYPE_BYTES[to]
    odd_nan = source == "f64" or width == 64
    nan_value = np.array(1 << (width - 1), np.uint64).astype(dtype) if odd_nan else dtype.type(0)
    low, beyond = float(limits.min), float(int(limits.max) + 1)

    def function(a: Array) -> Array:
        if ftz and source == "f32":
            a = fp.flush32(np.ascontiguousarray(a))
        x = to_integer(a.astype(np.float64))
        inside = (x >= low) & (x < beyond)
        result = np.where(inside, x, 0.0).astype(dtype)
        result = np.where(x < low, limits.min, result)
        result = np.where(x >= beyond, limits.max, result)
        return np.where(np.isnan(x), nan_value, result).astype(dtype)

    return function


def _float_to_float(instruction: Instruction, to: str, source: str) -> Callable[[Array], Array]:
    ftz, sat, relu = (instruction.has(m) for m in ("ftz", "sat", "relu"))
    mode = _mode(instruction, ("rn", "rz", "rm", "rp"), "rn")
    integral = _mode(instruction, tuple(_ROUND_INTEGER), "")

    def function(a: Array) -> Array:
        if source == "bf16":
            a = fp.widen_bf16(a)
        if ftz and a.dtype == np.float32:
            a = fp.flush32(np.ascontiguousarray(a))
        if integral:
            a = _ROUND_INTEGER[integral](a)
        if relu:
            a = np.where(a > 0, a, np.where(np.isnan(a), a, a.dtype.type(0)))
        if to == "bf16":
            return fp.round_bf16(a.astype(np.float64), mode)
        if TYPE_BYTES[to] < a.dtype.itemsize:
            result = fp.round_to(a.astype(np.float64), mode, _NUMPY_FLOAT[to])
        else:
            result = a.astype(_NUMPY_FLOAT[to])
        if ftz and to == "f32":
            result = fp.flush32(result)
        if sat:
            return fp.saturate(result)
        # Conversions among f16 and f32 make a NaN canonical; f64 passes it on, quieted, and bf16
        # is the upper half of a float32 whatever it holds.
        if source == "bf16":
            return result
        if "f64" in (to, source):
            return fp.carry_nan(result, a)
        return fp.canonical16(result) if to == "f16" else fp.canonical32(result)

    return function


def _pack_two(instruction: Instruction) -> Alu | None:
    """``cvt.f16x2.f32 d, a, b``: a in the upper half, b in the lower."""
    to, source = instruction.types
    if source != "f32" or to not in ("f16x2", "bf16x2") or instruction.has("rna"):
        return None
    half = _float_to_float(instruction, to[:-2], source)

    def function(a: Array, b: Array) -> Array:
        upper = half(a).view(np.uint16).astype(np.uint32)
        lower = half(b).view(np.uint16).astype(np.uint32)
        return (upper << np.uint32(16)) | lower

    return Alu(("f4", "f4"), ("u4",), function)


def _convert(instruction: Instruction) -> Alu | None:
    if len(instruction.types) != 2 or instruction.has("pack"):
        return None
    to, source = instruction.types
    if to.endswith("x2"):
        return _pack_two(instruction)
    sat = instruction.has("sat")
    function: Callable[[Array], Array]
    if source in _INTEGERS and to in _INTEGERS:
        function = _integer_to_integer(to, sat)
    elif source in _INTEGERS and to in _NUMPY_FLOAT:
        function = _integer_to_float(to, _mode(instruction, ("rn", "rz", "rm", "rp"), "rn"), sat)
    elif source in _NUMPY_FLOAT and to in _INTEGERS:
        round_it = _mode(instruction, tuple(_ROUND_INTEGER), "rzi")
        function = _float_to_integer(to, source, round_it, instruction.has("ftz"))
    elif source in _FLOATS and to in _FLOATS:
        function = _float_to_float(instruction, to, source)
    else:
        return None
    return Alu((DTYPES[source],), (DTYPES[to],), function)


BUILDERS: dict[str, Builder] = {"cvt": _convert}
