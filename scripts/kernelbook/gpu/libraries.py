"""Library baselines by name: what `Library.routine` in an experiments.py may say.

Every routine writes into buffers that exist before timing starts, so that no allocation is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..experiment import Arrays, Experiment, Library, Shape, model
from .backend import Routine
from .baselines import find_nvcc, function, launcher, nvcc_version

CUBLAS_DEFAULT_MATH = 0  # FP32 stays FP32: tensor cores would need CUBLAS_TF32_TENSOR_OP_MATH


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
        make = ROUTINES[name]
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


def _cupy_cumsum(context: Context) -> Routine:
    (x,) = context.inputs
    (y,) = context.outputs
    return Routine(lambda: context.cupy.cumsum(x, out=y))


def _cublas_sgemm(context: Context) -> Routine:
    """C = A B in FP32, row-major: A is m x n, B is n x k.

    cuBLAS is column-major, so it computes the transposed product B^T A^T of the same memory.
    """
    cublas, handle = _cublas()
    a, b = context.inputs
    (c,) = context.outputs
    (m, n), k = a.shape, b.shape[1]
    one, zero = np.array(1.0, np.float32), np.array(0.0, np.float32)

    def launch() -> None:
        cublas.sgemm(
            handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, k, m, n, one.ctypes.data,
            b.data.ptr, k, a.data.ptr, n, zero.ctypes.data, c.data.ptr, k,
        )  # fmt: skip

    return Routine(launch)


@cache
def _cublas() -> tuple[Any, int]:
    """cuBLAS with a handle of our own, so with nobody else's math mode, pointer mode, workspace."""
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError as error:
        raise DeviceError(f"cuBLAS cannot be loaded: {str(error).splitlines()[0]}") from error
    handle = cublas.create()
    cublas.setMathMode(handle, CUBLAS_DEFAULT_MATH)
    return cublas, handle


ROUTINES: dict[str, Callable[[Context], Routine]] = {
    "device_copy": _device_copy,
    "cupy_add": _cupy_add,
    "cupy_cumsum": _cupy_cumsum,
    "cublas_sgemm": _cublas_sgemm,
}
