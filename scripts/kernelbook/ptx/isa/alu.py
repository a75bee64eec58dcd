"""The form in which an arithmetic instruction is described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..module import Instruction

Array = NDArray[Any]

# NumPy's dtype of a PTX type. Packed and untyped ones are their bits.
DTYPES = {
    "pred": "?",
    "b8": "u1", "u8": "u1", "s8": "i1",
    "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16x2": "u4",
    "u16x2": "u4", "s16x2": "u4",
    "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8",
}  # fmt: skip


@dataclass(frozen=True)
class Alu:
    """``function(*sources) -> result`` (a tuple when there are several results).

    ``sources`` and ``results`` are NumPy dtypes. ``ufunc`` is the same operation as a NumPy ufunc,
    which can write its result in place; only for operations that need nothing else.
    ``carry_in``: the carry flag (bool) is the last source. ``carry_out``: it is the last result.
    """

    sources: tuple[str, ...]
    results: tuple[str, ...]
    function: Callable[..., Any]
    ufunc: np.ufunc | None = None
    carry_in: bool = False
    carry_out: bool = False


Builder = Callable[[Instruction], Alu | None]


def rounding(instruction: Instruction) -> str:
    """The rounding mode, "rn" when none is written."""
    for mode in ("rn", "rz", "rm", "rp"):
        if mode in instruction.modifiers:
            return mode
    return "rn"


def same(type_name: str, count: int, function: Callable[..., Any], ufunc: Any = None) -> Alu:
    """``count`` sources and one result, all of one type."""
    dtype = DTYPES[type_name]
    return Alu((dtype,) * count, (dtype,), function, ufunc)
