"""Chapter 03: rows of several launches, scans of every length, and what the race check says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.catalog import Catalog
from kernelbook.devices import sheets
from kernelbook.errors import ExperimentError
from kernelbook.experiment import Experiment, Kernel
from kernelbook.records import Result
from kernelbook.resources import compile_kernel
from kernelbook.runner.counting import count_kernel, device_state
from kernelbook.staleness import kernel_key
from tiny import ROOT

H200 = sheets().device("nvidia-h200")
N = 5000  # a tile and a bit of the three launches


@pytest.fixture(scope="module")
def chapters() -> Catalog:
    return catalog.load(ROOT)


@pytest.fixture(scope="module")
def scan(chapters: Catalog) -> Experiment:
    found = chapters.experiment("scan_1g")
    return replace(found, emulator_shape={"n": N}, ragged=({"n": 0}, {"n": 1}, {"n": 4097}))


def kernel_of(experiment: Experiment, name: str) -> Kernel:
    found = experiment.variant(name)
    assert isinstance(found, Kernel)
    return found


def counted(experiment: Experiment, kernel: Kernel, cache: Path) -> Result:
    return count_kernel(experiment, kernel, cache, H200.target, H200.arch.name)


@pytest.mark.parametrize(
    "name",
    [
        "segmented_scan",
        "lookback_scan",
        "lookback_scan_fixed",
        "pipelined_scan",
        "lookback_scan_large",
        "pipelined_scan_lockstep",
        "pipelined_scan_nearest",
        "pipelined_scan_tickets",
    ],
)
def test_any_length_is_scanned(scan: Experiment, name: str, tmp_path: Path) -> None:
    row = counted(scan, kernel_of(scan, name), tmp_path)
    assert row.status == "ok", row.reason


def test_three_launches_move_the_elements_twice(scan: Experiment, tmp_path: Path) -> None:
    one = counted(scan, kernel_of(scan, "lookback_scan"), tmp_path).counts
    three = counted(scan, kernel_of(scan, "segmented_scan"), tmp_path).counts
    tail = N - 4096  # elements that the third launch reads and writes again
    assert one["global_store_bytes"] == 4 * N + 3 * 8  # a state of tile 0, then two of tile 1
    # Besides the elements: two sums written, scanned in place, and one of them read.
    assert three["global_store_bytes"] == 4 * (N + tail + 2 + 2)
    assert three["global_load_bytes"] == 4 * (N + tail + 2 + 256)
    assert three["barriers"] == 8 * (2 * 2 + 2)  # warps of two blocks, then of one


def test_the_key_of_a_row_covers_its_later_launches(scan: Experiment) -> None:
    kernel = kernel_of(scan, "segmented_scan")
    shorter = replace(kernel, then=kernel.then[:1])
    keys = {kernel_key(scan, k, "sm_90", scan.shape, H200.target) for k in (kernel, shorter)}
    assert len(keys) == 2


def test_launches_of_one_row_come_from_one_compilation(scan: Experiment) -> None:
    kernel = kernel_of(scan, "segmented_scan")
    other = replace(kernel.then[0], macros={"THREADS": 128})
    with pytest.raises(ExperimentError, match="not of one source compiled in one way"):
        replace(scan, variants=(replace(kernel, then=(other,)),))


def test_a_later_launch_that_does_not_exist_is_named(scan: Experiment, tmp_path: Path) -> None:
    kernel = kernel_of(scan, "segmented_scan")
    wrong = replace(kernel, then=(replace(kernel.then[0], entry="nothing"),))
    with pytest.raises(ExperimentError, match="launches 'nothing'"):
        compile_kernel(scan, wrong, "sm_90", tmp_path)


def test_a_scan_with_one_buffer_races(chapters: Catalog, tmp_path: Path) -> None:
    experiment = chapters.experiment("scan_buffers")
    row = counted(experiment, kernel_of(experiment, "kogge_stone_one_buffer"), tmp_path)
    assert row.status == "ok"  # as a counter-example: something was found
    assert any(f.startswith("race (read-write) on buffer") for f in row.findings)


@pytest.mark.parametrize(
    ("name", "additions", "barriers"),
    [
        # n log2(n) - n + 1, and a selected carry for every element; a barrier more than steps.
        ("kogge_stone_scan", 10 * 1024 + 1, 11),
        ("brent_kung_scan", 2 * 1024 - 2 - 10, 10 + 9 + 1),
    ],
)
def test_work_and_depth_are_those_of_the_textbook(
    chapters: Catalog, name: str, additions: int, barriers: int, tmp_path: Path
) -> None:
    experiment = replace(chapters.experiment("scan_rows"), ragged=())
    kernel = kernel_of(experiment, name)
    row = counted(experiment, kernel, tmp_path)
    rows = experiment.emulator_shape["rows"]
    warps = kernel.block(experiment.shape, H200.target)[0] // 32
    assert row.counts["fadd"] == rows * additions
    assert row.counts["barriers"] == rows * warps * barriers


@pytest.mark.parametrize("name", ["pipelined_scan", "pipelined_scan_tickets"])
def test_bits_do_not_depend_on_how_many_blocks_share_the_tiles(
    scan: Experiment, name: str, tmp_path: Path
) -> None:
    """In the fixed order: one block alone finds every prefix ready, many blocks look back."""
    kernel = kernel_of(scan, name)
    small = {"CONSUMERS": 32, "VECTORS": 1, "WINDOW": 1}
    kernel = replace(kernel, macros={**kernel.macros, **small})
    module = ptx.parse(compile_kernel(scan, kernel, "sm_90", tmp_path).ptx)
    n = 128 * 70 + 5  # more than two groups of 32 tiles
    x = np.random.default_rng(3).uniform(-1, 1, n).astype(np.float32)
    outputs = []
    for blocks in (1, 7, 40):
        y = np.full(n, np.nan, np.float32)
        ptx.run(
            module, kernel.entry, blocks, 64, [x, y, np.int32(n)],
            shared=5 * 128 * 4, variables=device_state(module), observers=(),
        )  # fmt: skip
        outputs.append(y)
    assert np.abs(outputs[0] - np.cumsum(x, dtype=np.float64)).max() < 1e-4
    assert all((y.view(np.uint32) == outputs[0].view(np.uint32)).all() for y in outputs)


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("lookback_scan", {"THREADS": 32, "VECTORS": 1}),
        ("lookback_scan_fixed", {"THREADS": 32, "VECTORS": 1, "WINDOW": 1}),
        ("pipelined_scan", {"CONSUMERS": 32, "VECTORS": 1, "WINDOW": 1}),
        ("pipelined_scan_tickets", {"CONSUMERS": 32, "VECTORS": 1, "WINDOW": 1}),
    ],
)
def test_words_of_earlier_launches_are_not_taken_for_new_ones(
    scan: Experiment, name: str, tile: dict[str, int], tmp_path: Path
) -> None:
    """Nothing clears the states between launches, whose inputs and sizes differ."""
    kernel = kernel_of(scan, name)
    kernel = replace(kernel, macros={**kernel.macros, **tile})
    module = ptx.parse(compile_kernel(scan, kernel, "sm_90", tmp_path).ptx)
    pipelined = "CONSUMERS" in tile
    state = device_state(module)
    for scale, n in ((1, 128 * 70 + 5), (-3, 128 * 68), (7, 128 * 70)):
        x = np.full(n, scale, np.float32)  # sums are whole numbers below 2^24: exact
        y = np.full(n, np.nan, np.float32)
        ptx.run(
            module, kernel.entry, 7 if pipelined else -(-n // 128), 64 if pipelined else 32,
            [x, y, np.int32(n)],
            shared=5 * 128 * 4 if pipelined else 0, variables=state, observers=(),
        )  # fmt: skip
        assert (y == scale * np.arange(1, n + 1)).all()
