"""Shared fixtures: this repository, and small projects made for one test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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


@pytest.fixture(scope="session")
def root() -> Path:
    """This repository."""
    return ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one chapter with one experiment of one kernel, no records, no articles."""
    chapter = tmp_path / "kernels" / "01_tiny"
    chapter.mkdir(parents=True)
    (chapter / "scale.cu").write_text(TINY_CU, encoding="utf-8")
    (chapter / "experiments.py").write_text(TINY_EXPERIMENTS, encoding="utf-8")
    (tmp_path / "results").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compile-cache")


def copy_tree(source: Path, target: Path, *names: str) -> None:
    """Copy files and folders of the repository into a project made for a test."""
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)
