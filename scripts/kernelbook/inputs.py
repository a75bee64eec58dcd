"""Seeded random numbers for a kernel's inputs: the same bits on every machine.

Works on NumPy and on CuPy arrays alike (``xp`` is the module). An element depends on the seed, the
name of its buffer and its place only, so that any part of an array can be had without the rest.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .experiment import Buffer, Experiment, Shape

CHUNK = 1 << 22  # elements handled at a time: bounds the temporaries of large problems


def make_inputs(xp: Any, experiment: Experiment, shape: Shape, seed: int) -> dict[str, Any]:
    """The inputs of an experiment at a shape, without bands."""
    out = {}
    for buffer in experiment.inputs:
        out[buffer.name] = xp.empty(buffer.dims(shape), dtype=np.dtype(buffer.dtype))
        fill_random(xp, out[buffer.name], buffer, seed)
    return out


def fill_random(xp: Any, out: Any, buffer: Buffer, seed: int) -> None:
    """Fill a contiguous array with numbers uniform in [low, high), from a seed and the name."""
    for start, part in chunks(out):
        part[...] = random_part(xp, start, part.size, buffer, seed)


def random_part(xp: Any, start: int, count: int, buffer: Buffer, seed: int) -> Any:
    """Elements ``start`` to ``start + count`` of a buffer's random sequence."""
    first = zlib.crc32(f"{seed}/{buffer.name}".encode())
    second = zlib.crc32(f"{buffer.name}/{seed}".encode())
    x = xp.arange(start, start + count, dtype=xp.uint32)
    x ^= np.uint32(first)
    x = _mix(x)
    x ^= np.uint32(second)
    x = _mix(x)
    dtype = np.dtype(buffer.dtype)
    if dtype.kind != "f":
        span = max(int(buffer.high) - int(buffer.low), 1)
        return ((x % np.uint32(span)).astype(xp.int64) + np.int64(buffer.low)).astype(dtype)
    unit = (x >> np.uint32(8)).astype(xp.float32) * np.float32(2.0**-24)
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    value = unit.astype(wide) * wide(buffer.high - buffer.low) + wide(buffer.low)
    below = np.nextafter(dtype.type(buffer.high), dtype.type(buffer.low))
    return xp.minimum(value.astype(dtype), below)  # rounding may reach the excluded end


def _mix(x: Any) -> Any:
    """A bijective 32-bit mixer: every output bit depends on every input bit."""
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def chunks(array: Any) -> Iterator[tuple[int, Any]]:
    """Flat parts of an array that are small enough to be handled at a time, and their starts."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        yield start, flat[start : start + CHUNK]
