"""Chapter 04: its kernels on the emulator, the table of configurations, and choosing from it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelbook.devices import sheets
from kernelbook.experiment import Experiment, Kernel, Shape
from kernelbook.records import Result
from kernelbook.runner.counting import count_kernel
from kernelbook.runner.tuning_table import shape_key
from tiny import ROOT

FOLDER = ROOT / "kernels" / "04_gemm"
H200 = sheets().device("nvidia-h200")
SHARED_LIMIT = 227 * 1024  # bytes a block of a Hopper card can have
WARP_FMA = 128 * 128 * 16 // 32  # of the product that `counted` counts


@pytest.fixture(scope="module")
def chapter() -> Iterator[ModuleType]:
    path = FOLDER / "experiments.py"
    spec = importlib.util.spec_from_file_location(
        "chapter_04", path, submodule_search_locations=[str(FOLDER)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chapter_04"] = module
    spec.loader.exec_module(module)
    yield module
    for name in [m for m in sys.modules if m.split(".")[0] == "chapter_04"]:
        del sys.modules[name]


def emulate(
    chapter: ModuleType, kernel: Kernel, cache: Path, shape: Shape, *ragged: Shape
) -> Result:
    experiment: Experiment = replace(
        chapter.product("emulated", kernel.title, shape, (kernel,), shape, ragged), folder=FOLDER
    )
    return count_kernel(experiment, kernel, cache, H200.target, "sm_90")


@pytest.fixture(scope="module")
def counted(chapter: ModuleType, compile_cache: Path) -> Callable[[str], Mapping[str, Any]]:
    """Counts of a kernel of the ladder by name: one block's 128x128 tile, sixteen steps deep."""
    kernels = {k.name: k for k in chapter.ladder(1024).kernels}

    def counts(name: str) -> Mapping[str, Any]:
        row = emulate(chapter, kernels[name], compile_cache, chapter.dims(128, 16, 128))
        assert row.status == "ok", row.reason
        return row.counts

    return counts


# ---- kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["register_tiling_gemm_padded_b", "coarse_gemm_keeps_a", "vectorized_gemm_whole_warps",
     "double_buffer_gemm_async", "fragments_gemm", "async_gemm"],
)  # fmt: skip
def test_a_step_of_the_ladder_is_right_beside_the_edges(
    chapter: ModuleType, compile_cache: Path, name: str
) -> None:
    kernel = next(k for k in chapter.ladder(1024).kernels if k.name == name)
    row = emulate(chapter, kernel, compile_cache, chapter.dims(5, 36, 132), chapter.dims(3, 9, 7))
    assert (row.status, row.reason, row.findings) == ("ok", "", ())


def first_of(chapter: ModuleType, **wanted: bool) -> str:
    """The first configuration that the emulator runs with these macros above one (STREAM: 0)."""
    return next(
        name
        for name, c in chapter.CONFIGURATIONS.items()
        if c.get("SPLIT_K") == 1
        and all((c[macro] > (macro != "STREAM")) == large for macro, large in wanted.items())
    )


@pytest.mark.parametrize(
    "wanted",
    [
        {"SLICES": False, "STREAM": False},
        {"SLICES": True, "STREAM": False},
        {"SLICES": False, "STREAM": True},
        {"SLICES": True, "STREAM": True},
    ],
)
def test_the_last_kernel_is_right_for_whole_tiles_remainders_and_unaligned_rows(
    chapter: ModuleType, compile_cache: Path, wanted: dict[str, bool]
) -> None:
    configuration = first_of(chapter, **wanted)
    kernel = chapter.fast(configuration, configuration, chapter.Text("", ""))
    row = emulate(
        chapter, kernel, compile_cache,
        chapter.dims(70, 68, 132), chapter.dims(1, 1, 1), chapter.dims(33, 37, 35),
    )  # fmt: skip
    assert (row.status, row.reason, row.findings) == ("ok", "", ())


@pytest.mark.parametrize("change", [{"EPILOGUE": 0}, {"ORDER": 0}, {"GROUP": 1}, {"STREAM": 0}])
def test_the_last_kernel_with_one_thing_taken_back_still_adds_up_its_ranges(
    chapter: ModuleType, compile_cache: Path, change: dict[str, int]
) -> None:
    # Two ranges meet within the only tile; its rows do not start at multiples of 16 bytes.
    configuration = first_of(chapter, SLICES=False, STREAM=True)
    kernel = chapter.fast(configuration, "changed", chapter.Text("", ""), **change)
    row = emulate(chapter, kernel, compile_cache, chapter.dims(100, 65, 31))
    assert (row.status, row.reason, row.findings) == ("ok", "", ())


def test_wavefronts_of_shared_loads_fall_from_step_to_step(
    counted: Callable[[str], Mapping[str, Any]],
) -> None:
    # Per step of the reduction and warp. As published: eight floats of A, both rows of threads in
    # one bank, 2 each; eight floats of B from four banks, 4 each. The pitch of A + 1 cures the
    # first. Columns 4c and 64 + 4c: two 128-bit loads of 4. Transposed: two for A as well, 2 each.
    # Warp tiles, neighbours at one address: four loads of 2.
    steps = 128 * 128 // 64 // 32 * 16
    for name, wavefronts in {
        "register_tiling_gemm": 8 * 2 + 8 * 4,
        "register_tiling_gemm_padded_a": 8 * 1 + 8 * 4,
        "conflict_free_gemm": 8 * 1 + 2 * 4,
        "transposed_gemm": 2 * 2 + 2 * 4,
        "warp_tiled_gemm": 4 * 2,
    }.items():
        counts = counted(name)
        assert counts["ffma"] == WARP_FMA * 32
        # What NVRTC 12.9 makes of a large unrolled loop depends on what the process compiled
        # before: now and then it reads one float again, once a warp and tile of eight steps, for
        # up to four wavefronts.
        again = counts["shared_load_wavefronts"] - wavefronts * steps
        assert 0 <= again <= 4 * steps // 8, name


def test_the_published_epilogue_stores_an_eighth_of_each_sector(
    counted: Callable[[str], Mapping[str, Any]],
) -> None:
    useful = 128 * 128 * 4 // 32
    assert counted("register_tiling_gemm")["global_store_sectors"] == 8 * useful
    assert counted("transposed_gemm")["global_store_sectors"] == useful


def test_the_loop_of_multiply_adds_does_nothing_else(
    chapter: ModuleType, compile_cache: Path
) -> None:
    loop = chapter.FFMA_LOOP
    row = count_kernel(
        replace(loop, folder=FOLDER), loop.kernels[0], compile_cache, H200.target, "sm_90"
    )
    # Two blocks of 256 threads, 16 chains of 40 steps each; a load and a store a thread.
    assert (row.status, row.reason, row.findings) == ("ok", "", ())
    assert row.counts["ffma"] == 512 * 16 * 40 == loop.flops(loop.emulator_shape) // 2
    assert row.counts["global_load_sectors"] == row.counts["global_store_sectors"] == 512 * 4 // 32
    assert row.counts.get("shared_load_instructions", 0) == row.counts.get("barriers", 0) == 0


# ---- the table ------------------------------------------------------------------------------


def test_the_table_gives_every_shape_of_the_sweeps_a_configuration_it_has(
    chapter: ModuleType,
) -> None:
    choices = chapter.configurations.TABLE["choices"]
    assert {shape_key(s) for s in chapter.TUNING.shapes} <= set(choices)
    assert set(choices.values()) <= set(chapter.CONFIGURATIONS)
    assert len(chapter.TUNING.shapes) == 32 + 5**3 - 1


def test_a_shape_outside_the_table_gets_the_choice_of_the_nearest(chapter: ModuleType) -> None:
    choices = chapter.configurations.TABLE["choices"]
    assert chapter.configuration_of(chapter.dims(2049, 2047, 2048)) == choices["2048x2048x2048"]
    assert chapter.configuration_of(chapter.dims(1, 1, 1)) == choices["128x128x128"]


def test_every_configuration_fits_a_block_and_covers_the_product(chapter: ModuleType) -> None:
    shape = chapter.dims(1037, 300, 1000)
    for name, c in chapter.CONFIGURATIONS.items():
        kernel = chapter.fast(name, name, chapter.Text("", ""))
        assert kernel.block(shape, H200.target)[0] <= 1024
        assert c["MIN_BLOCKS"] * (kernel.dynamic_shared(shape) + 1024) <= SHARED_LIMIT + 1024
        blocks, adders, parts = kernel.grid(shape, H200.target)
        if c.get("STREAM"):  # a block waits for others, so all of them have to be resident
            assert 1 <= blocks * parts <= H200.sms * c["MIN_BLOCKS"]
        else:
            assert blocks * c["BM"] * c["BN"] >= 1037 * 1000
        assert "PARTS" in c or (adders, parts) == (1, c["SPLIT_K"])
        assert bool(kernel.gpu_only) == ("PARTS" not in c and parts > 1)


# ---- parts that add up at once --------------------------------------------------------------


@pytest.mark.parametrize("rounds", [(1, 1), (2, 1), (1, 3), (2, 2)])
def test_parts_of_a_tile_add_up_in_whatever_rounds_they_start(
    chapter: ModuleType, compile_cache: Path, rounds: tuple[int, int]
) -> None:
    # The first shape has two by three tiles and four to five steps; rows of the others do not
    # start at multiples of 16 bytes.
    name = "64x64_slices2_parts"
    kernel = chapter.fast(name, name, chapter.Text("", ""))
    in_parts = replace(kernel, grid=lambda s, t: (kernel.grid(s, t)[0], *rounds))
    row = emulate(
        chapter, in_parts, compile_cache, chapter.dims(70, 68, 132), chapter.dims(65, 64, 67)
    )
    assert (row.status, row.reason, row.findings) == ("ok", "", ())


@pytest.mark.parametrize("name", ["96x96_slices4_one_part_12x8", "128x96_one_part"])
def test_tiles_of_96_columns_are_right_for_whole_and_unaligned_rows(
    chapter: ModuleType, compile_cache: Path, name: str
) -> None:
    kernel = chapter.fast(name, name, chapter.Text("", ""))
    row = emulate(
        chapter, kernel, compile_cache,
        chapter.dims(100, 40, 100), chapter.dims(1, 1, 1), chapter.dims(33, 70, 97),
    )  # fmt: skip
    assert (row.status, row.reason, row.findings) == ("ok", "", ())


def test_parts_fill_the_card_in_whole_waves(chapter: ModuleType) -> None:
    c = chapter.CONFIGURATIONS

    def parts(name: str, m: int, n: int, k: int) -> tuple[int, int, int]:
        kernel: Kernel = chapter.fast(name, name, chapter.Text("", ""))
        return kernel.grid(chapter.dims(m, n, k), H200.target)

    # Four tiles of 128x256, one block an SM: 33 parts each for 132 SMs.
    assert parts("128x256_parts", 128, 11008, 1000) == (4, 33, 1)
    # 8 x 11 tiles of 128x96, three blocks an SM: four parts each leave 44 of 396 places empty,
    # nine fill 792 = 2 * 396, of which those of the last third wait for the others.
    assert parts("128x96_parts", 1000, 11008, 1037) == (88, 3, 3)
    # Seven steps are too few for two parts of four.
    assert parts("128x96_parts", 1000, 112, 1037)[1:] == (1, 1)
    # More tiles than places.
    assert parts("128x256_parts", 4096, 4096, 4096) == (512, 1, 1)
    # Never more waiting blocks than places, nor more parts than steps or rooms.
    for name in (n for n in c if c[n].get("PARTS")):
        rooms = int(chapter.fast(name, name, chapter.Text("", "")).macros["MAX_PARTS"])
        for shape in chapter.TUNING.shapes:
            tiles, adders, rounds = parts(name, shape["m"], shape["n"], shape["k"])
            steps = shape["n"] / (c[name]["BK"] * c[name]["SLICES"])
            if adders * rounds > 1:
                assert tiles * adders <= H200.sms * c[name]["MIN_BLOCKS"]
                assert adders * rounds <= steps
                assert tiles * adders * rounds <= rooms


@pytest.mark.parametrize(
    ("name", "blocks"),  # a block of 64.5 KiB: one in 100 KiB; of 48.5 KiB: two; of 128.5 KiB: none
    [("128x128_parts", 1), ("128x96_parts", 2), ("64x64_slices2_parts", 2), ("128x256_parts", 0)],
)
def test_parts_that_wait_fit_on_a_card_with_less_shared_memory(
    chapter: ModuleType, name: str, blocks: int
) -> None:
    card = sheets().device("nvidia-geforce-rtx-4090").target
    kernel = chapter.fast(name, "", chapter.Text("", ""))
    for shape in chapter.TUNING.shapes:
        tiles, adders, rounds = kernel.grid(chapter.dims(*(shape[d] for d in "mnk")), card)
        assert adders * rounds == 1 or tiles * adders <= card.sms * blocks


def test_a_card_with_more_sms_than_rooms_gets_no_more_parts(chapter: ModuleType) -> None:
    large = replace(H200.target, sms=1000)
    kernel = chapter.fast("128x256_parts", "", chapter.Text("", ""))
    tiles, adders, rounds = kernel.grid(chapter.dims(128, 11008, 1000), large)
    assert tiles * adders * rounds <= int(kernel.macros["MAX_PARTS"])
