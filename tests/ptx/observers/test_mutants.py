"""Mutants of the repository's own tiled GEMM: every planted fault is found, and counted exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelbook import ptx
from kernelbook.errors import PtxError

from .conftest import Launch, races

N, TILE = 16, 8  # two tiles along the sum
BLOCKS = (N // TILE) ** 2
FIRST = "__syncthreads();  // nobody reads"
SECOND = "__syncthreads();  // nobody overwrites"


@pytest.fixture(scope="module")
def tiled(root: Path) -> str:
    source = (root / "kernels" / "01_basics" / "matrix_mul_tiled.cu").read_text(encoding="utf-8")
    assert FIRST in source
    assert SECOND in source
    return source


def gemm(launch: Launch, source: str, n: int = N, tile: int = TILE) -> ptx.Run:
    generator = np.random.default_rng(7)
    a, b = (generator.random((n, n), dtype=np.float32) for _ in range(2))
    across = -(-n // tile)
    arguments = [a, b, np.zeros((n, n), np.float32), n, n, n]
    macros = {"TILE_WIDTH": tile}
    return launch(source, (across, across), (tile, tile), arguments, macros=macros)


@pytest.mark.parametrize("n", [N, 24, 13])
def test_the_kernel_as_it_is_has_no_findings(launch: Launch, tiled: str, n: int) -> None:
    assert not gemm(launch, tiled, n).findings


@pytest.mark.parametrize("n", [N, 13])
def test_without_the_first_barrier_tiles_are_read_too_early(
    launch: Launch, tiled: str, n: int
) -> None:
    found = races(gemm(launch, tiled.replace(FIRST, "// nobody reads"), n))
    assert {(f.detail, f.array) for f in found} == {
        ("write-read", "tile_a"),
        ("write-read", "tile_b"),
    }
    # Every lane reads 8 words of each tile in each of 2 steps; one of the 8 it has written itself.
    assert all(f.count == BLOCKS * 2 * TILE * TILE * (TILE - 1) for f in found)


def test_without_the_second_barrier_tiles_are_overwritten_too_early(
    launch: Launch, tiled: str
) -> None:
    found = races(gemm(launch, tiled.replace(SECOND, "// nobody overwrites")))
    assert {(f.detail, f.array) for f in found} == {
        ("read-write", "tile_a"),
        ("read-write", "tile_b"),
    }


def test_with_one_tile_the_second_barrier_is_redundant(launch: Launch, tiled: str) -> None:
    source = tiled.replace(SECOND, "// nobody overwrites")
    assert not gemm(launch, source, n=TILE).findings


def test_without_both_barriers_both_races_are_reported(launch: Launch, tiled: str) -> None:
    source = tiled.replace(FIRST, "// nobody reads").replace(SECOND, "// nobody overwrites")
    details = {f.detail for f in races(gemm(launch, source))}
    assert details >= {"write-read", "read-write"}


DOUBLE = """extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[2][8][8], tb[2][8][8];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
    float sum = 0.0f;
    ta[0][y][x] = a[row * n + x];
    tb[0][y][x] = b[y * n + col];
    __syncthreads();
    for (int step = 0; step < n / 8; ++step) {
        int now = step & 1;
        if (step + 1 < n / 8) {
            ta[now ^ 1][y][x] = a[row * n + (step + 1) * 8 + x];
            tb[now ^ 1][y][x] = b[((step + 1) * 8 + y) * n + col];
        }
        MIDDLE
        for (int i = 0; i < 8; ++i) sum += ta[now][y][i] * tb[now][i][x];
        END
    }
    c[row * n + col] = sum;
}"""


@pytest.mark.parametrize(("middle", "end"), [(True, True), (False, True), (True, False)])
def test_a_double_buffer_needs_only_one_barrier_a_step(
    launch: Launch, middle: bool, end: bool
) -> None:
    source = DOUBLE.replace("MIDDLE", "__syncthreads();" * middle)
    source = source.replace("END", "__syncthreads();" * end)
    n = 32  # four steps
    arguments = [np.ones((n, n), np.float32) for _ in range(3)]
    run = launch(source, (4, 4), (8, 8), [*arguments, n])
    assert (arguments[2] == n).all()
    # The barrier at the end makes the one in the middle redundant. The one in the middle alone
    # does not let the tile be overwritten that a slow warp still reads.
    assert {f.detail for f in races(run)} == (set() if end else {"read-write"})


def test_a_planted_bank_conflict_is_counted_exactly(launch: Launch, tiled: str) -> None:
    straight = gemm(launch, tiled, n=64, tile=32).counts.to_dict()
    column = tiled.replace("tile_b[i][tx]", "tile_b[tx][i]")
    planted = gemm(launch, column, n=64, tile=32).counts.to_dict()
    reads = 4 * 2 * 32 * 32  # blocks, steps, products of a lane, warps
    assert straight["shared_load_wavefronts"] == 2 * reads
    assert planted["shared_load_wavefronts"] == reads + 32 * reads


def test_a_planted_stride_is_counted_exactly(launch: Launch, tiled: str) -> None:
    straight = gemm(launch, tiled, n=64, tile=32).counts.to_dict()
    # Blocks of 32 columns read B by columns instead of by rows: a sector for every lane.
    planted_source = tiled.replace("b[(start + ty) * k + col]", "b[col * k + start + ty]")
    planted = gemm(launch, planted_source, n=64, tile=32).counts.to_dict()
    requests = 4 * 2 * 32  # blocks, steps, warps
    assert straight["global_load_sectors"] == requests * (4 + 4)
    assert planted["global_load_sectors"] == requests * (4 + 32)
    assert planted["global_load_requests"] == straight["global_load_requests"]


def test_planted_divergence_is_counted_exactly(launch: Launch, tiled: str) -> None:
    def divergent(source: str) -> float:
        return gemm(launch, source, n=64, tile=32).counts.to_dict()["divergent_branches"]

    branch = (
        "if (tx & 1) { c[row * k + col] = sum; } else { c[row * k + col] = -sum; __nanosleep(0); }"
    )
    assert divergent(tiled) == 0
    planted = tiled.replace("c[row * k + col] = sum;", branch)
    assert divergent(planted) == 4 * 32  # every warp, once


def test_a_planted_overrun_names_array_and_line(launch: Launch, tiled: str) -> None:
    for planted, array in (
        (tiled.replace("row < m && col < k", "row < m"), "argument 2"),
        (tiled.replace("start + tx < n) ?", "true) ?"), "argument 0"),
    ):
        with pytest.raises(PtxError) as caught:
            gemm(launch, planted, n=13)
        assert array in str(caught.value)
        assert "k.cu:" in str(caught.value)


def test_a_tile_that_is_not_filled_is_reported_as_uninitialised(launch: Launch, tiled: str) -> None:
    source = tiled.replace("tile_a[ty][tx] =", "if (tx != 3) tile_a[ty][tx] =")
    found = gemm(launch, source).findings
    assert [(f.kind, f.what) for f in found] == [("uninitialised", "tile_a[3]")]
    assert found[0].count == BLOCKS * 2 * TILE * TILE  # each lane reads column 3 once a step
