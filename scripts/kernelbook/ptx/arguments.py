"""Kernel arguments: arrays placed in the arena, scalars converted by parameter type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PtxError
from .memory import ALIGNMENT
from .module import Kernel, Param

Array = NDArray[Any]


@dataclass(frozen=True)
class Pointer:
    """A pointer to element ``offset`` of an array, as ``array.ptr + offset`` would be on a GPU.

    The whole array can be accessed through it; the address keeps the misalignment of the offset.
    """

    array: Array
    offset: int = 0


class Struct:
    """A struct passed by value: its members in order, each at its natural alignment.

    Members are NumPy scalars, arrays or ``Pointer`` (8 bytes), bytes, or nested ``Struct``.
    """

    def __init__(self, *members: Any) -> None:
        self.members = members


@dataclass(frozen=True)
class Region:
    """Host memory to be placed in the arena in one piece: arrays that overlap share it."""

    name: str
    start: int
    end: int
    residue: int  # of the start modulo 256, as the array's owner would have it
    element_bytes: int
    writable: bool


def _owner(array: Array) -> Array:
    """The array whose memory a view looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def check_array(value: Any, label: str) -> Array:
    """An array that can be an argument.

    Raises PtxError for one that is not contiguous or holds objects.
    """
    if not isinstance(value, np.ndarray):
        raise PtxError(f"{label}: expected a NumPy array, got {type(value).__name__}")
    if value.dtype.hasobject:
        raise PtxError(f"{label}: an array of Python objects cannot be an argument")
    if not value.flags.c_contiguous:
        raise PtxError(f"{label}: the array is not C-contiguous; pass np.ascontiguousarray(...)")
    if not value.dtype.isnative:
        raise PtxError(f"{label}: the array is not in this machine's byte order")
    return value


def regions(arrays: Sequence[tuple[str, Array]]) -> list[Region]:
    """Group named arrays by the host memory they share, in order of first use."""
    merged: list[Region] = []
    for name, array in arrays:
        owner = _owner(array)
        start = _address(array)
        region = Region(
            name,
            start,
            start + array.nbytes,
            (start - _address(owner)) % ALIGNMENT,
            max(array.itemsize, 1),
            bool(array.flags.writeable),
        )
        shared = [r for r in merged if region.start < r.end and r.start < region.end]
        for other in shared:
            region = _union(other, region)
        merged = [r for r in merged if r not in shared] + [region]
    return merged


def _union(one: Region, two: Region) -> Region:
    first = min(one, two, key=lambda r: r.start)
    return Region(
        one.name if one.name == two.name else f"{one.name}={two.name}",
        first.start,
        max(one.end, two.end),
        first.residue,
        min(one.element_bytes, two.element_bytes),
        one.writable or two.writable,
    )


def label_of(param: Param, index: int, kernel: Kernel) -> str:
    return f"argument {index} of {kernel.name} ({param.name}, .{param.type})"


def collect_arrays(value: Any, name: str, label: str) -> list[tuple[str, Array]]:
    """Every array inside an argument, with the name that errors call it by."""
    if isinstance(value, Pointer):
        return [(name, check_array(value.array, label))]
    if isinstance(value, np.ndarray):
        return [(name, check_array(value, label))] if value.nbytes else []
    if isinstance(value, Struct):
        found = []
        for position, member in enumerate(value.members):
            found += collect_arrays(member, f"{name}.{position}", label)
        return found
    return []


class Encoder:
    """Arguments to the bytes of parameter space, once arrays have addresses."""

    def __init__(self, placed: Sequence[tuple[Region, int]]) -> None:
        """``placed``: regions with their base addresses."""
        self._placed = placed

    def encode(self, value: Any, param: Param, label: str) -> bytes:
        """Exactly ``param.size`` bytes."""
        if isinstance(value, Struct):
            raw, _ = self._struct(value, label)
        elif isinstance(value, bytes | bytearray | memoryview):
            raw = bytes(value)
        elif isinstance(value, np.ndarray | Pointer) or value is None:
            if param.size != 8 or param.type not in ("u64", "b64", "s64"):
                raise PtxError(f"{label}: got a pointer for a parameter of {param.size} bytes")
            raw = self._pointer(value)
        elif param.is_array:
            raw = _raw_scalar(value, label)
        else:
            raw = _scalar(value, param, label)
        if len(raw) != param.size:
            raise PtxError(f"{label}: takes {param.size} bytes, got {len(raw)}")
        return raw

    def _pointer(self, value: Any) -> bytes:
        return self.address(value).to_bytes(8, "little")

    def address(self, value: Any) -> int:
        """Emulated address of an array, a Pointer or None."""
        if value is None:
            return 0
        array, offset = (value.array, value.offset) if isinstance(value, Pointer) else (value, 0)
        host = _address(array)
        for region, base in self._placed:
            if region.start <= host < region.end:
                return base + host - region.start + offset * array.itemsize
        return 0  # an empty array

    def _struct(self, value: Struct, label: str) -> tuple[bytes, int]:
        """The bytes of a struct, padded at its end, and its alignment."""
        raw = bytearray()
        widest = 1
        for member in value.members:
            if isinstance(member, np.ndarray | Pointer) or member is None:
                part, align = self._pointer(member), 8
            elif isinstance(member, Struct):
                part, align = self._struct(member, label)
            elif isinstance(member, bytes):
                part, align = member, 1
            else:
                part = _raw_scalar(member, label)
                align = len(part)
            widest = max(widest, align)
            raw += bytes(-len(raw) % align) + part
        raw += bytes(-len(raw) % widest)
        return bytes(raw), widest


def _raw_scalar(value: Any, label: str) -> bytes:
    if isinstance(value, np.generic):
        return value.tobytes()
    raise PtxError(
        f"{label}: is passed by value; give bytes, a NumPy scalar or a Struct, "
        f"not {type(value).__name__}"
    )


def _scalar(value: Any, param: Param, label: str) -> bytes:
    """A number as the parameter's own type; refuses what would lose its meaning."""
    is_float = param.type[0] == "f" and param.type != "f16x2"
    if not isinstance(value, int | float | np.integer | np.floating | np.bool_):
        raise PtxError(f"{label}: cannot take a {type(value).__name__}")
    if is_float:
        return np.array(value, f"f{param.size}").tobytes()
    if isinstance(value, float | np.floating):
        if param.type[0] == "b" and isinstance(value, np.floating):
            return value.tobytes()
        raise PtxError(f"{label}: takes an integer, got {value!r}")
    number = int(value)
    bits = 8 * param.size
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise PtxError(f"{label}: {number} does not fit {bits} bits")
    return (number & ((1 << bits) - 1)).to_bytes(param.size, "little")
