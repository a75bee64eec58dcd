"""Comparisons: setp and set, ordered and unordered, with an optional predicate to combine with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import floats as fp
from ..module import Instruction, Pair
from .alu import DTYPES, Alu, Array, Builder

Compare = Callable[[Array, Array], Array]

_ORDERED: dict[str, Compare] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOATS = ("f16", "f32", "f64")


def _float_compare(name: str) -> Compare | None:
    if name == "ne":  # ordered: false when either is NaN
        return lambda a, b: (a < b) | (a > b)
    if name in _ORDERED:
        return _ORDERED[name]
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "neu":
        return np.not_equal
    if name.endswith("u") and name[:-1] in _ORDERED:
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    return None


def comparison(instruction: Instruction, kind: str) -> Compare | None:
    """The comparison that the first modifier names, for operands of type ``kind``."""
    name = instruction.modifiers[0] if instruction.modifiers else ""
    if kind in _FLOATS:
        compare = _float_compare(name)
        if compare is None or not instruction.has("ftz") or kind == "f64":
            return compare
        flush = fp.flush32 if kind == "f32" else fp.flush16
        return lambda a, b: compare(flush(np.ascontiguousarray(a)), flush(np.ascontiguousarray(b)))
    return _ORDERED.get(_UNSIGNED.get(name, name))


def _combination(instruction: Instruction) -> np.ufunc | None:
    names: dict[str, np.ufunc] = {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
    }
    return next((names[m] for m in instruction.modifiers[1:] if m in names), None)


def _set_predicate(instruction: Instruction) -> Alu | None:
    kind = instruction.type
    if kind not in DTYPES or kind.endswith("x2") or kind == "bf16":
        return None
    compare = comparison(instruction, kind)
    if compare is None:
        return None
    combine = _combination(instruction)
    two = isinstance(instruction.operands[0], Pair) if instruction.operands else False
    dtype = DTYPES[kind]
    if combine is None and not two:
        ufunc = compare if isinstance(compare, np.ufunc) else None
        return Alu((dtype, dtype), ("?",), compare, ufunc)

    def function(a: Array, b: Array, *c: Array) -> Any:
        true = compare(a, b)
        false = ~true
        if combine is not None:
            true, false = combine(true, c[0]), combine(false, c[0])
        return (true, false) if two else true

    sources = (dtype, dtype, "?") if combine is not None else (dtype, dtype)
    return Alu(sources, ("?", "?") if two else ("?",), function)


def _set(instruction: Instruction) -> Alu | None:
    """set: all ones or 1.0 where the comparison holds, else 0."""
    if len(instruction.types) != 2:
        return None
    to, kind = instruction.types
    if kind.endswith("x2") or kind == "bf16" or to not in ("u32", "s32", "f32", "f16", "u16"):
        return None
    compare = comparison(instruction, kind)
    if compare is None:
        return None
    combine = _combination(instruction)
    result = DTYPES[to]
    true_value = np.dtype(result).type(1) if to[0] == "f" else np.array(-1).astype(result)[()]

    def function(a: Array, b: Array, *c: Array) -> Array:
        holds = compare(a, b)
        if combine is not None:
            holds = combine(holds, c[0])
        return np.where(holds, true_value, np.dtype(result).type(0))

    dtype = DTYPES[kind]
    sources = (dtype, dtype, "?") if combine is not None else (dtype, dtype)
    return Alu(sources, (result,), function)


BUILDERS: dict[str, Builder] = {"setp": _set_predicate, "set": _set}
