"""The smallest project there is: one chapter, one experiment, one kernel."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TINY_CU = """// [scale]
extern "C" __global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 2.0f * x[i];  // doubled
    }
}
// [/scale]
"""

TINY_EXPERIMENTS = """from kernelbook.experiment import *

EXPERIMENTS = [
    Experiment(
        name="scale_1k",
        title=Text("加倍", "Doubling"),
        shape={"n": 1024},
        emulator_shape={"n": 256},
        ragged=({"n": 1}, {"n": 33}),
        buffers=(
            Buffer("x", "in", lambda s: (s["n"],)),
            Buffer("y", "out", lambda s: (s["n"],)),
        ),
        reference=lambda xp, inputs, shape: {"y": 2.0 * inputs["x"].astype(xp.float64)},
        flops=lambda s: s["n"],
        tolerance=Tolerance(relative=0.0, absolute=0.0),
        variants=(
            Kernel(
                name="scale",
                source="scale.cu",
                entry="scale",
                args=("x", "y", "n"),
                grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1),
                block=lambda s, t: (128, 1, 1),
                title=Text("每线程一个元素", "one element a thread"),
            ),
        ),
    )
]
"""
