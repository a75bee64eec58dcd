"""Print how fast the emulator is: time, memory and cost per lane-instruction.

    PYTHONPATH=scripts python scripts/bench_emulator.py

A tiled GEMM of 256 x 256 x 256 (32 x 32 tiles, one product and sum a step) without observers, with
the race check only, and with all observers; then its cost per lane-instruction by batch size.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelbook.compiler import compile_source
from kernelbook.errors import KernelbookError
from kernelbook.ptx import DEFAULT_BATCH_LANES, Module, Observer, Run, parse, run
from kernelbook.ptx.observers import SharedRaceObserver, default_observers

_SIZE = 256
_REPEATS = 5
_SOURCE = """extern "C" __global__ void tiled(const float* A, const float* B, float* C, int n) {
    __shared__ float As[32][32], Bs[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0;
    for (int t = 0; t < n; t += 32) {
        As[y][x] = A[row * n + t + x];
        Bs[y][x] = B[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 32; k++) sum += As[y][k] * Bs[k][x];
        __syncthreads();
    }
    C[row * n + col] = sum;
}
"""
Observers = Callable[[], tuple[Observer, ...]]


def _module() -> Module:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "bench.cu"
        source.write_text(_SOURCE, encoding="utf-8")
        return parse(compile_source(source, "sm_90").ptx)


def _best(module: Module, observers: Observers, batch_lanes: int) -> tuple[float, Run]:
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((2, _SIZE, _SIZE), dtype=np.float32)
    c = np.zeros_like(a)
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.perf_counter()
        done = run(module, "tiled", (8, 8), (32, 32), [a, b, c, _SIZE], observers=observers(),
                   batch_lanes=batch_lanes)  # fmt: skip
        best = min(best, time.perf_counter() - started)
    if not np.allclose(c, a @ b, atol=1e-3):
        raise SystemExit("bench_emulator: the product is wrong")
    return best, done


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    try:
        module = _module()
    except KernelbookError as error:
        print(f"bench_emulator: {error}", file=sys.stderr)
        return 1
    sets: dict[str, Observers] = {
        "no observers": tuple,
        "shared race check": lambda: (SharedRaceObserver(),),
        "all observers": default_observers,
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"compiled and parsed: peak so far {before:.0f} MB")
    print(f"tiled GEMM {_SIZE}x{_SIZE}x{_SIZE}, best of {_REPEATS}")
    for name, observers in sets.items():
        seconds, _ = _best(module, observers, DEFAULT_BATCH_LANES)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name:20s}{seconds:8.3f} s    peak so far {peak:4.0f} MB")
    print("cost of a lane-instruction, no observers")
    for lanes in (1024, 4096, 16384, 32768, 65536):
        seconds, done = _best(module, tuple, lanes)
        executed = done.steps / done.batches * _SIZE * _SIZE
        print(f"  {lanes:6d} lanes a batch{seconds / executed * 1e9:8.2f} ns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
