"""A tree of its own for each test: the kernels copied, results empty."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelbook import catalog, devices
from kernelbook.records import Result

from .made_up import HOSTILE, Tree, compiled, counted, measured

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    shutil.copytree(REPOSITORY / "kernels" / "01_basics", tmp_path / "kernels" / "01_basics")
    return Tree(tmp_path, catalog.load(tmp_path), devices.sheets())


@pytest.fixture
def full_tree(tree: Tree) -> Tree:
    """Everything at once: two devices, warm and cold, failures, counts, counters, citations."""
    c, s = tree.catalog, tree.sheets
    ours = {e.name for e in c.experiments}
    shutil.copytree(
        REPOSITORY / "results" / "data" / "cited", tree.results / "data" / "cited",
        ignore=lambda _, names: [
            n for n in names if n.endswith(".json") and n.removesuffix(".json") not in ours
        ],
    )  # fmt: skip
    failed = (
        Result("matrix_mul_tiled_8", "kernel", status="failed", reason="timed out | after <60 s>"),
        Result("cublas_sgemm", "library", status="not built", reason="cuBLAS is not installed"),
    )
    tree.save(
        measured(
            c, s, "gemm_1024",
            {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 200.0, "numpy_matmul": 50_000.0},
            warm=True, others=failed,
            counters={"matrix_mul_naive": {"l1_hit_rate": 87.5, "dram_read_bytes": 8.4e6}},
        )
    )  # fmt: skip
    for n, naive, tiled, cublas in (
        (2048, 3200.0, 1700.0, 360.0), (4096, 26_000.0, 14_000.0, 2700.0),
        (8192, 210_000.0, 118_000.0, 21_500.0),
    ):  # fmt: skip
        times = {"matrix_mul_naive": naive, "matrix_mul_tiled": tiled, "cublas_sgemm": cublas}
        tree.save(measured(c, s, f"gemm_{n}", times))
    tree.save(
        measured(
            c, s, "vector_add_64m",
            {
                "vector_add": 234.0, "vector_add_float4x4": 190.0, "device_copy": 189.0,
                "h2d_pinned": 10_100.0,
            },
        )
    )  # fmt: skip
    tree.save(
        measured(c, s, "gemm_1024", {"matrix_mul_naive": 900.0, "matrix_mul_tiled": 800.0},
                 device=HOSTILE),
        local=True,
    )  # fmt: skip
    tree.save(compiled(c, s, "gemm_1024"))
    counts = {"ffma": 256**3, "global_load_sectors": 131_072, "atomics": 0}
    tree.save(counted(c, s, "gemm_1024", {"matrix_mul_tiled": counts}))
    return tree
