"""cuBLAS by its C interface: CuPy's wrapper refuses calls while a stream records a graph.

CuPy finds and loads the library; the calls that are timed go to it directly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..errors import DeviceError

DEFAULT_MATH = 0  # FP32 stays FP32: tensor cores would need CUBLAS_TF32_TENSOR_OP_MATH
NOT_TRANSPOSED = 0
ON_HOST, ON_DEVICE = 0, 1  # where scalars lie


class Cublas:
    """One handle, with nobody else's math mode, pointer mode or workspace."""

    def __init__(self) -> None:
        try:
            from cupy_backends.cuda.libs import cublas
        except ImportError as error:
            raise DeviceError(f"cuBLAS cannot be loaded: {str(error).splitlines()[0]}") from error
        handle = cublas.create()
        cublas.setMathMode(handle, DEFAULT_MATH)
        self._handle = ctypes.c_void_p(handle)
        self._library = ctypes.CDLL(f"libcublas.so.{cublas.getVersion(handle) // 10000}")
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)

    def sgemm(
        self, stream: int, sizes: Sequence[int], a: tuple[int, int], b: tuple[int, int],
        c: tuple[int, int],
    ) -> None:  # fmt: skip
        """C = A B, column-major: sizes are rows of C, columns of C and the length of the sum.

        ``a``, ``b`` and ``c`` are each an address and a leading dimension, in floats.
        """
        flat = (
            ctypes.byref(self._one), *_matrix(*a), *_matrix(*b), ctypes.byref(self._zero),
            *_matrix(*c),
        )  # fmt: skip
        self._call("cublasSetPointerMode_v2", ON_HOST)
        self._call("cublasSetStream_v2", ctypes.c_void_p(stream))
        self._call("cublasSgemm_v2", NOT_TRANSPOSED, NOT_TRANSPOSED, *sizes, *flat)

    def sdot(self, stream: int, n: int, x: int, y: int, out: int) -> None:
        """The dot product of n floats at x and at y, written to device memory at out."""
        self._call("cublasSetPointerMode_v2", ON_DEVICE)
        self._call("cublasSetStream_v2", ctypes.c_void_p(stream))
        self._call("cublasSdot_v2", n, *_matrix(x, 1), *_matrix(y, 1), ctypes.c_void_p(out))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(self._handle, *arguments)
        if status != 0:
            raise DeviceError(f"{name} failed with status {status}")


def _matrix(address: int, pitch: int) -> tuple[ctypes.c_void_p, int]:
    return ctypes.c_void_p(address), pitch


@cache
def cublas() -> Cublas:
    """The process's handle, made at first use. Raises DeviceError where the library is missing."""
    return Cublas()
