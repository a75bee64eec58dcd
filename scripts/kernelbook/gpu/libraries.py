"""Library baselines by name: what `Library.routine` in an experiments.py may say.

What follows the first space of a name are the routine's own words.

Every routine writes into buffers that exist before timing starts, so that no allocation is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..experiment import Arrays, Experiment, Library, Shape, model
from . import read_limit
from .backend import Routine
from .baselines import find_nvcc, function, launcher, nvcc_version
from .cublas import cublas


@dataclass(frozen=True)
class Context:
    """What a routine is made from. ``stream`` is a CuPy stream, current on this thread.

    ``arch`` is what to compile for; ``notes`` takes facts of the run for its record.
    """

    cupy: Any
    stream: Any
    library: Library
    experiment: Experiment
    shape: Shape
    arrays: Arrays
    arch: str
    notes: dict[str, str]

    @property
    def inputs(self) -> list[Any]:
        """The experiment's inputs in its order."""
        return [self.arrays[b.name] for b in self.experiment.inputs]

    @property
    def outputs(self) -> list[Any]:
        return [self.arrays[b.name] for b in self.experiment.outputs]


def routine(context: Context) -> Routine:
    """Bind the routine that the library row names; raises DeviceError for an unknown one."""
    name = context.library.routine
    if context.library.source:
        return _host_code(context)
    try:
        make = ROUTINES[name.partition(" ")[0]]
    except KeyError:
        known = ", ".join(sorted(ROUTINES))
        raise DeviceError(f"there is no library routine {name!r}", hint=f"known: {known}") from None
    return make(context)


def _device_copy(context: Context) -> Routine:
    """cudaMemcpyAsync within the card: reads what the row's model says, writes as much."""
    cupy, stream = context.cupy, context.stream
    _, size, _ = model(context.experiment, context.library, context.shape)
    # Random bits, as everywhere: copying zeros can be faster than copying data.
    source = cupy.arange((size + 3) // 4, dtype=cupy.uint32)
    source *= np.uint32(2654435761)
    target = cupy.zeros_like(source)
    kind = cupy.cuda.runtime.memcpyDeviceToDevice

    def launch() -> None:
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, size, kind, stream.ptr)

    def check() -> str:
        whole = size // 4
        same = bool((source[:whole] == target[:whole]).all())
        return "" if same else "the copy differs from its source"

    return Routine(launch, check)


def _host_code(context: Context) -> Routine:
    """A function of the chapter's own host code (see `baselines`)."""
    cupy, experiment = context.cupy, context.experiment
    source = experiment.folder / context.library.source
    cache_dir = experiment.folder.parents[1] / ".cache" / "kernelbook" / "baselines"
    found = function(source, context.library.routine, context.arch, cache_dir)
    if (nvcc := find_nvcc()) is not None:
        context.notes["host_baselines"] = f"nvcc {nvcc_version(nvcc)}"
    return Routine(
        launcher(
            found,
            [context.arrays[b.name].data.ptr for b in experiment.buffers],
            list(context.shape.values()),
            context.stream.ptr,
            cupy.cuda.alloc,
            cupy.cuda.runtime.CUDARuntimeError,
        )
    )


def _cupy_add(context: Context) -> Routine:
    a, b = context.inputs
    (out,) = context.outputs
    return Routine(lambda: context.cupy.add(a, b, out=out))


def _cupy_relu(context: Context) -> Routine:
    (x,), (y,) = context.inputs, context.outputs
    return Routine(lambda: context.cupy.maximum(x, np.float32(0), out=y))


def _cupy_transpose(context: Context) -> Routine:
    """A copy of the transposed view of the one input, which has two dimensions."""
    (x,), (y,) = context.inputs, context.outputs
    return Routine(lambda: context.cupy.copyto(y, x.T))


def _cupy_cumsum(context: Context) -> Routine:
    (x,) = context.inputs
    (y,) = context.outputs
    return Routine(lambda: context.cupy.cumsum(x, out=y))


def _cupy_sum(context: Context) -> Routine:
    (x, *_), (out,) = context.inputs, context.outputs
    total = out.reshape(())
    return Routine(lambda: x.sum(out=total))


def _read_limit(context: Context) -> Routine:
    """Reads the experiment's inputs once and keeps nothing (see `read_limit`)."""
    inputs = (context.arrays[b.name] for b in context.experiment.buffers if b.role == "in")
    return Routine(
        *read_limit.bind(context.cupy, context.library.routine, context.arch, tuple(inputs))
    )


def _cublas_sdot(context: Context) -> Routine:
    """The dot product of two vectors in FP32, written to device memory."""
    blas = cublas()
    a, b, *_ = context.inputs
    (out,) = context.outputs
    stream = context.stream.ptr
    return Routine(lambda: blas.sdot(stream, a.size, a.data.ptr, b.data.ptr, out.data.ptr))


def _cublas_sgemm(context: Context) -> Routine:
    """C = A B in FP32, row-major: A is m x n, B is n x k.

    cuBLAS is column-major, so it computes the transposed product B^T A^T of the same memory.
    """
    blas = cublas()
    a, b = context.inputs
    (c,) = context.outputs
    (m, n), k = a.shape, b.shape[1]
    places = (b.data.ptr, k), (a.data.ptr, n), (c.data.ptr, k)
    stream = context.stream.ptr
    return Routine(lambda: blas.sgemm(stream, (k, m, n), *places))


ROUTINES: dict[str, Callable[[Context], Routine]] = {
    "device_copy": _device_copy,
    "cupy_add": _cupy_add,
    "cupy_cumsum": _cupy_cumsum,
    "cupy_relu": _cupy_relu,
    "cupy_sum": _cupy_sum,
    "cupy_transpose": _cupy_transpose,
    "read_limit": _read_limit,
    "cublas_sdot": _cublas_sdot,
    "cublas_sgemm": _cublas_sgemm,
}
