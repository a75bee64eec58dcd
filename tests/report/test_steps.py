"""Ladders: each step over the one before, and what every level of memory would allow."""

from __future__ import annotations

import re

import pytest

from kernelbook.errors import PageError
from kernelbook.report.levels import ladders, levels_table
from kernelbook.report.levels_picture import levels_svg
from kernelbook.report.model import Table
from kernelbook.report.steps import steps_table

from .made_up import HOSTILE, Tree, measured

CHAIN = ["matrix_mul_naive", "matrix_mul_tiled", "cublas_sgemm"]
FLOP = 2 * 1024**3


def texts(table: Table) -> list[list[str]]:
    return [[cell.text.en for cell in line.cells] for line in table.lines]


def test_factors_multiply_up_to_the_whole(tree: Tree) -> None:
    times = {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 250.0, "cublas_sgemm": 50.0}
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", times))
    table = steps_table(tree.book(), "gemm_1024", CHAIN)
    # 400 / 250 = 1.6, 250 / 50 = 5, 400 / 50 = 8; 2 * 1024^3 FLOP / 250 µs = 8.59 TFLOPS
    rows = [row[1:] for row in texts(table)]
    assert rows == [
        ["400.0", "5.37", "—", "—", "12.5"],
        ["250.0", "8.59", "1.600", "1.60", "20.0"],
        ["50.0", "42.95", "5.000", "8.00", "100.0"],
        ["—", "—", "8.000", "—", "—"],
    ]
    assert table.lines[1].cells[3].over == "matrix_mul_naive"
    assert table.lines[1].cells[5].over == "cublas_sgemm"


def test_each_card_has_a_ladder_of_its_own_and_a_column_tells_them_apart(tree: Tree) -> None:
    times = {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 250.0}
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", times))
    slow = {"matrix_mul_naive": 900.0, "matrix_mul_tiled": 300.0}
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", slow, device=HOSTILE), local=True)
    table = steps_table(tree.book(), "gemm_1024", CHAIN[:2])
    assert [h.key for h in table.header][:2] == ["variant", "device"]
    assert [row[4] for row in texts(table)] == ["—", "1.600", "1.600", "—", "3.000", "3.000"]


def test_a_record_without_one_of_the_steps_is_left_out(tree: Tree) -> None:
    times = {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 250.0}
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", times))
    assert steps_table(tree.book(), "gemm_1024", CHAIN).lines == ()
    assert len(steps_table(tree.book(), "gemm_1024", CHAIN[:2]).lines) == 3


def test_a_ladder_needs_steps_that_exist(tree: Tree) -> None:
    with pytest.raises(PageError, match="at least two variants"):
        steps_table(tree.book(), "gemm_1024", CHAIN[:1])
    with pytest.raises(PageError, match="has no variant 'nope'"):
        steps_table(tree.book(), "gemm_1024", ["nope", "cublas_sgemm"])
    with pytest.raises(PageError, match="has no variant 'nope'"):
        ladders(tree.book(), "gemm_1024", ["nope"])


@pytest.fixture
def profiled(tree: Tree) -> Tree:
    """A kernel held by shared memory, and one held by nothing but its instructions."""
    lines = FLOP / 128  # wavefronts, where a FLOP takes a byte of shared memory
    common = {"flops": float(FLOP), "dram_write_bytes": 0.0, "shared_store_wavefronts": lines / 2}
    tree.save(
        measured(
            tree.catalog, tree.sheets, "gemm_1024",
            {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 200.0, "cublas_sgemm": 50.0},
            counters={
                "matrix_mul_naive": {
                    **common, "shared_load_wavefronts": lines * 1.5, "l2_bytes": FLOP / 8,
                    "dram_read_bytes": FLOP / 10, "warp_instructions": FLOP / 64 * 4,
                },
                "matrix_mul_tiled": {
                    **common, "shared_load_wavefronts": 0.0, "l2_bytes": FLOP / 16,
                    "dram_read_bytes": FLOP / 100, "warp_instructions": FLOP / 64 * 1.25,
                },
            },
        )
    )  # fmt: skip
    return tree


def test_the_lowest_roof_is_found_from_counters_and_the_sheet(profiled: Tree) -> None:
    (ladder,) = ladders(profiled.book(), "gemm_1024", CHAIN)
    naive, tiled = ladder.steps  # cuBLAS has no counters
    sheet = ladder.sheet
    # Two bytes of shared memory a FLOP: half of its bandwidth, 33.45 TB/s, and a quarter of the
    # instructions are multiply-adds.
    assert naive.per_shared_byte == pytest.approx(0.5)
    assert naive.shared_roof == pytest.approx(132 * 128 * 1.98e9 / 2)
    assert naive.issue_roof == pytest.approx(sheet.fp32_flops / 4)
    assert naive.dram_roof == pytest.approx(10 * sheet.bandwidth)
    assert naive.lowest == naive.issue_roof
    # Half a byte a FLOP: twice the bandwidth, the peak itself. No roof but instructions is left.
    assert tiled.shared_roof == pytest.approx(sheet.fp32_flops)
    assert tiled.lowest == pytest.approx(sheet.fp32_flops / 1.25)
    rows = [row[1:] for row in texts(levels_table(profiled.book(), (ladder,)))]
    # 66.9 / 4 = 16.7 and 5.37 of it; 66.9 / 1.25 = 53.5 and 10.74 of it
    assert rows == [
        ["5.37", "16.7", "16.7", "48.1", "32.1"],
        ["10.74", "53.5", "—", "—", "20.1"],
    ]


def test_the_picture_has_three_numbered_points_a_step(profiled: Tree) -> None:
    (ladder,) = ladders(profiled.book(), "gemm_1024", CHAIN)
    svg = levels_svg(ladder, "en", "a <label>")
    assert 'aria-label="a &lt;label&gt;"' in svg
    # One more of each in the legend.
    assert [svg.count(f"<{mark}") for mark in ("circle", "rect", "polygon")] == [3, 3, 3]
    for number in ("1", "2"):
        assert len(re.findall(rf'text-anchor="middle"[^>]*>{number}</text>', svg)) >= 3
    assert "FP32 peak: 66.9" in svg
    assert "FP32 峰值：66.9" in levels_svg(ladder, "zh", "")
