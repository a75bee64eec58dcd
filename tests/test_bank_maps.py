"""Bank maps: what a warp asks for is seen by the emulator, and conflicts are worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.compiler import compile_source
from kernelbook.experiment import Kernel
from kernelbook.pictures.bank_map import BankMap
from kernelbook.ptx.observers import Request
from tiny import ROOT

COLUMN = 5  # the warp that is followed reads column 5 of the tile

# transpose_shared's LAYOUT: where row r keeps column 5 in rows of 32, in rows of 33, and at 5 ^ r.
LAYOUTS = {
    0: [32 * r + COLUMN for r in range(32)],
    1: [33 * r + COLUMN for r in range(32)],
    2: [32 * r + (COLUMN ^ r) for r in range(32)],
}


def test_a_column_of_rows_of_32_words_is_one_bank() -> None:
    drawn = BankMap.of(LAYOUTS[0], 4, store=False)
    assert drawn.banks == ((5,),) * 32
    assert (drawn.passes, drawn.ideal, drawn.degree, drawn.different) == (32, 1, 32.0, 1)
    assert all(drawn.conflicts(lane, 5) for lane in range(32))


def test_a_column_of_rows_of_33_words_moves_on_by_a_bank_a_row() -> None:
    drawn = BankMap.of(LAYOUTS[1], 4, store=False)
    assert drawn.banks == tuple(((5 + lane) % 32,) for lane in range(32))
    assert (drawn.passes, drawn.degree, drawn.different) == (1, 1.0, 32)
    assert not any(drawn.conflicts(lane, (5 + lane) % 32) for lane in range(32))


def test_a_swizzled_column_is_in_every_bank_once() -> None:
    drawn = BankMap.of(LAYOUTS[2], 4, store=False)
    assert [bank for (bank,) in drawn.banks[:8]] == [5, 4, 7, 6, 1, 0, 3, 2]
    assert sorted(bank for (bank,) in drawn.banks) == list(range(32))
    assert (drawn.passes, drawn.degree) == (1, 1.0)


def test_lanes_that_want_the_same_word_do_not_conflict() -> None:
    drawn = BankMap.of([7] * 32, 4, store=False)
    assert (drawn.passes, drawn.different) == (1, 1)
    assert not drawn.conflicts(3, 7)


def test_only_lanes_that_are_served_together_conflict() -> None:
    """Quads down a column of 32 words: eight lanes at once, all eight in the same four banks."""
    drawn = BankMap.of([32 * lane for lane in range(32)], 16, store=True)
    assert drawn.banks[9] == (0, 1, 2, 3)
    assert (drawn.together, drawn.passes, drawn.ideal, drawn.degree) == (8, 32, 4, 8.0)
    # One quad after another: each eighth of 128 words is a pass of its own, as it should be.
    dense = BankMap.of([4 * lane for lane in range(32)], 16, store=True)
    assert (dense.passes, dense.degree) == (4, 1.0)
    assert not any(dense.conflicts(lane, bank) for lane in range(32) for bank in dense.banks[lane])


def test_inactive_lanes_hit_no_bank() -> None:
    drawn = BankMap.of([0, 32, *[-1] * 30], 4, store=False)
    assert (drawn.lanes, drawn.different, drawn.passes) == (2, 1, 2)
    assert drawn.svg("en", "two").count("<rect") == 1 + 2  # the frame and two cells


@pytest.mark.parametrize(("layout", "degree", "colour"), [(0, 32, "#b4530a"), (1, 1, "#2468d8")])
def test_the_picture_has_a_cell_a_lane_and_says_the_degree(
    layout: int, degree: int, colour: str
) -> None:
    drawn = BankMap.of(LAYOUTS[layout], 4, store=False)
    for language, way in (("en", f"{degree}-way conflict"), ("zh", f"{degree} 路冲突")):
        svg = drawn.svg(language, "transpose")
        assert svg.count(f'fill="{colour}"') == 32
        assert (way in svg) == (degree > 1)
        said = re.findall(r'aria-label="([^"]*)"', svg)[0]
        assert (f"wavefronts: {degree}," if language == "en" else f"{degree} 个 wavefront") in said
        assert ", ".join(str(bank) for (bank,) in drawn.banks) in said


@pytest.mark.parametrize("layout", [0, 1, 2])
def test_the_emulator_sees_the_words_that_the_layout_says(compile_cache: Path, layout: int) -> None:
    """The followed warp of `transpose_shared` reads column 5 and writes row 5 of its tile."""
    experiment = catalog.load(ROOT).experiment("transpose_8192")
    kernel = next(
        k for k in experiment.kernels
        if k.source == "transpose_shared.cu" and k.macros == {"THREAD_ROWS": 32, "LAYOUT": layout}
    )  # fmt: skip
    read, write = requests_of(experiment.folder, kernel, compile_cache)
    assert read.words == tuple(LAYOUTS[layout])
    rows = {0: [160 + c for c in range(32)], 1: [165 + c for c in range(32)],
            2: [160 + (c ^ 5) for c in range(32)]}  # fmt: skip
    assert write.words == tuple(rows[layout])
    assert BankMap.of(write.words, write.size, store=True).degree == 1.0


def requests_of(folder: Path, kernel: Kernel, cache: Path) -> tuple[Request, Request]:
    """The read and the write that were remembered."""
    source = folder / kernel.source
    compiled = compile_source(source, "sm_90", macros=kernel.macros, cache_dir=cache)
    arrays = [np.zeros(32 * 32, np.float32), np.zeros(32 * 32, np.float32)]
    done = ptx.run(
        compiled.ptx, kernel.entry, 1, (32, 32), [*arrays, np.int32(32), np.int32(32)],
        names=kernel.args,
    )  # fmt: skip
    found = {r.access: r for requests in done.requests.values() for r in requests}
    assert all(re.fullmatch(r".*transpose_shared\.cu:\d+", place) for place in done.requests)
    return found["read"], found["write"]
