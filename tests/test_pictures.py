"""Pictures of what one warp touches: the facts under them are counted, not drawn from hope."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernelbook import pictures
from kernelbook.errors import CompileError, UsageError
from kernelbook.ptx import Run

COPY = """
extern "C" __global__ void copy(const float* in, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1000) out[i] = in[STEP * i];
}
"""
TILE = """
extern "C" __global__ void tile(float* out) {
    __shared__ float rows[32][WIDE];
    rows[threadIdx.x][0] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = rows[31 - threadIdx.x][0];
}
"""


def copy(step: int, language: str = "en", warp: int = 0) -> pictures.Seen:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(1024, np.float32)
    source = COPY.replace("STEP", str(step))
    return pictures.run(source, "copy", 4, 256, [x, y], language=language, warp=warp)


def tile(width: int) -> pictures.Seen:
    source = TILE.replace("WIDE", str(width))
    return pictures.run(source, "tile", 1, 32, [np.zeros(32, np.float32)])


@pytest.mark.parametrize(("step", "sectors"), [(1, 4), (2, 8), (4, 16)])
def test_sectors_are_those_a_warp_touches(step: int, sectors: int) -> None:
    html = copy(step).sectors(line=3).html
    facts = r"<figcaption>32 lanes ask for 128 B; (\d+) sectors are touched, (\d+) B"
    reads, writes = re.findall(facts, html)
    assert reads == (str(sectors), str(32 * sectors))
    assert writes == ("4", "128")
    assert "in + 0 B" in html  # arrays go by the names of the source


def test_a_column_of_a_square_tile_queues_at_one_bank_and_padding_ends_it() -> None:
    assert "32 wavefronts; up to 32 different words" in tile(32).banks(line=5).html
    assert "1 wavefronts; up to 1 different words" in tile(33).banks(line=5).html


def test_divergence_shows_the_lanes_a_guard_keeps_out() -> None:
    # Block 3, elements 768 to 1023, is not watched; block 0 is whole. Watch a partial warp instead.
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    source = COPY.replace("STEP", "1").replace("1000", "20").replace("out[i] =", "out[i] +=")
    seen = pictures.run(source, "copy", 1, 32, [x, y])
    lanes = {int(step.active.sum()) for step in seen.recorder.steps}
    assert lanes == {20, 32}
    assert y[19] == 19
    assert y[20] == 0


def test_what_differs_is_set_side_by_side() -> None:
    html = pictures.beside(copy(1), copy(2)).html
    # 1000 elements of 1024: 31 full warps of 4 sectors and one of 1; twice that with stride 2
    assert re.search(r"global load sectors</code></td><td[^>]*>125</td><td[^>]*>250<", html)
    assert "global store sectors" not in html


def test_lines_carry_their_own_counts_and_code() -> None:
    html = copy(1).lines().html
    assert re.search(r"3: if \(i &lt; 1000\) out\[i\] = in\[1 \* i\];", html)


def test_words_are_those_of_the_language() -> None:
    assert "个扇区" in copy(1, language="zh").sectors().html


def test_asking_for_what_is_not_there_says_what_is() -> None:
    seen = copy(1)
    with pytest.raises(UsageError, match="no shared memory"):
        seen.banks()
    with pytest.raises(UsageError, match=r"no global memory on line 2.*lines? 3"):
        seen.sectors(line=2)


def test_source_that_does_not_compile_is_said() -> None:
    with pytest.raises(CompileError, match=r"kernel\.cu:1"):
        pictures.run("int x = ;", "x", 1, 32, [])


def test_a_launch_shows_its_counts_in_a_notebook() -> None:
    seen = copy(1)
    assert isinstance(seen.run, Run)
    assert "global_load_sectors" in seen._repr_html_()
