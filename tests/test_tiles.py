"""Pictures of tiles: each lane of them is the one that stores those elements on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.compiler import compile_source
from kernelbook.constants import constants
from kernelbook.errors import PageError
from kernelbook.experiment import Kernel
from kernelbook.pictures.tiles import LANE, Tiling, panels
from kernelbook.ptx.events import WARP, Batch, Event
from tiny import ROOT

FAST = {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 8, "TN": 16}


class Stores:
    """The lane of warp 0 that stores each element of C."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lane: dict[tuple[int, int], int] = {}

    def begin_batch(self, batch: Batch) -> None:
        """Nothing to prepare."""

    def on_event(self, event: Event) -> None:
        if event.address is None or event.space != "global" or event.access != "write":
            return
        base = next(a.base for a in event.batch.launch.arrays if a.name == "c")
        for lane in np.flatnonzero(event.active[:WARP]):
            for word in range(event.size // 4):
                place = (int(event.address[lane]) - base) // 4 + word
                self.lane[divmod(place, self.columns)] = int(lane)

    def on_barrier(self, batch: Batch, blocks: object, barrier: int) -> None:
        """Nothing of interest."""

    def end_batch(self, batch: Batch) -> None:
        """Nothing to finish."""


# The last kernel as the ablation has it, which stores what it computes without exchanging it.
@pytest.mark.parametrize(
    "name", ["register_tiling_gemm", "warp_tiled_gemm", "fast_gemm_direct_stores"]
)
def test_the_lanes_of_a_picture_are_those_that_store(compile_cache: Path, name: str) -> None:
    experiment = catalog.load(ROOT).experiment("ladder_4096")
    kernel = experiment.variant(name)
    assert isinstance(kernel, Kernel)
    source = experiment.folder / kernel.source
    tiling = Tiling.of(constants(source, kernel.macros))
    rows, columns = tiling.block
    shape = {"m": rows, "n": 4, "k": columns}
    target = catalog_target()
    compiled = compile_source(source, "sm_90", macros=kernel.macros, cache_dir=compile_cache)
    arrays = [np.zeros(size, np.float32) for size in ((rows, 4), (4, columns), (rows, columns))]
    seen = Stores(columns)
    ptx.run(
        compiled.ptx, kernel.entry, 1, kernel.block(shape, target)[0],
        [*arrays, *(np.int32(shape[d]) for d in "mnk")],
        shared=kernel.dynamic_shared(shape), observers=(seen,), names=kernel.args,
    )  # fmt: skip
    high, wide = tiling.footprint
    assert len(seen.lane) == high * wide
    assert seen.lane == {(y, x): tiling.lane_of(y, x) for y in range(high) for x in range(wide)}


def catalog_target() -> object:
    from kernelbook.devices import sheets

    return sheets().device("nvidia-h200").target


def test_the_picture_says_the_shapes_of_the_constants() -> None:
    block, warp, thread = panels(Tiling.of(FAST), "en")
    assert "128×256 elements of C, shared by 8 warps" in block
    assert "64×64 elements" in warp
    assert "8+16 numbers for 8×16 = 128 multiply-adds" in thread
    # 16 by 16 cells of 4x4; a lane has 2 by 4 of them.
    assert warp.count("<rect") == 256
    assert len(re.findall(rf">{LANE}</text>", warp)) == 8
    assert thread.count("<rect") == 8 * 16 + 8 + 16
    changed = panels(Tiling.of({**FAST, "BN": 128, "TM": 16, "TN": 8}), "zh")
    assert "C 的 128×128 个元素" in changed[0]
    assert "16+8 个数做 16×8 = 128 次乘加" in changed[2]


def test_threads_in_rows_of_tiles_have_a_warp_as_wide_as_the_block() -> None:
    tiling = Tiling.of({"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8})
    assert tiling.footprint == (16, 128)
    assert [tiling.lane_of(7, 127), tiling.lane_of(8, 0)] == [15, 16]


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"TILE": 32}, "the kernel has no constant BM"),
        ({**FAST, "TM": 4}, "no tiling"),
        ({**FAST, "WN": 48}, "no tiling"),
        ({"BM": 128, "BN": 96, "BK": 8, "TM": 8, "TN": 8}, "no tiling"),
    ],
)
def test_constants_that_make_no_known_layout_have_no_picture(
    constants: dict[str, int], said: str
) -> None:
    with pytest.raises(PageError, match=said):
        Tiling.of(constants)
