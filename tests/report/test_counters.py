"""results/counters.md: every difference is on the page with both numbers and its machine code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelbook.errors import RecordError
from kernelbook.report.counters import (
    COUNTERS,
    EXECUTED,
    Comparison,
    load,
    page,
    pages,
    pairs,
    save,
)

EQUAL = Comparison(
    experiment="gemm",
    variant="tiled",
    entry="matmul",
    shape={"n": 256},
    grid=(8, 8, 1),
    block=(32, 32, 1),
    dynamic_shared=0,
    device="NVIDIA H200",
    nvrtc="13.0",
    ncu="2025.3",
    ptx_hash="0" * 16,
    counted={"barriers": 6, "shared_store_instructions": 10, "ffma": 320, "fmul": 0},
    profiled={
        "smsp__sass_inst_executed_op_shared_st.sum": 8,
        "smsp__sass_inst_executed_op_ldgsts.sum": 2,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 320,
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 0,
    },
    executed={"BAR.SYNC.DEFER_BLOCKING": 4, "BAR.RED": 2, "BARNONE": 9},
    code={"BAR.SYNC.DEFER_BLOCKING": 2, "FFMA": 8},
)
MERGED = replace(
    EQUAL,
    variant="merged",
    counted={"shared_load_instructions": 64, "ffma": 32},
    profiled={
        "smsp__sass_inst_executed_op_shared_ld.sum": 16,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 96,
    },
    executed={},
    code={"LDS.128": 2, "LDS": 3, "LDSM.16": 1, "MUFU.RCP": 1, "FFMA": 3},
)


def test_counters_that_neither_side_has_are_left_out() -> None:
    names = [p.counter.name for p in pairs(EQUAL)]
    assert names == ["barriers", "shared_store_instructions", "ffma"]


def test_metrics_of_one_counter_are_added_and_barriers_come_from_executed_opcodes() -> None:
    assert [(p.emulator, p.gpu, p.equal) for p in pairs(EQUAL)] == [
        (6, 6, True),
        (10, 10, True),
        (320, 320, True),
    ]


def test_a_counter_ncu_did_not_give_is_not_equal() -> None:
    (barriers,) = (p for p in pairs(replace(EQUAL, executed={})) if p.counter.name == "barriers")
    assert barriers.gpu is None
    assert not barriers.equal


def test_without_differences_the_page_says_so() -> None:
    assert "There are none." in page([EQUAL], "en")
    assert "没有差异" in page([EQUAL], "zh")
    assert "| barriers (warps) | yes | 1 | 1 | 0 |" in page([EQUAL], "en")


def test_each_difference_is_listed_with_both_numbers_reason_and_machine_code() -> None:
    text = page([EQUAL, MERGED], "en")
    rows = [line for line in text.splitlines() if "gemm/merged" in line and "LDS" in line]
    assert len(rows) == 1
    assert "| 64 | 16 | ptxas merged neighbouring accesses |" in rows[0]
    assert "`LDS.128`: 2, `LDS`: 3" in rows[0]
    assert "LDSM" not in rows[0]
    assert "| 32 | 96 | a division, root or transcendental expanded |" in text


def test_passes_repeated_under_contention_are_told_from_wrong_counts() -> None:
    noisy = replace(
        EQUAL,
        counted={"shared_load_wavefronts": 64},
        profiled={
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 65,
            "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 64,
        },
        executed={},
    )
    assert "| 64 | 65 | counted by instruction it is equal;" in page([noisy], "en")


def test_copies_that_are_among_the_loads_are_not_added_once_more() -> None:
    copied = replace(
        EQUAL,
        counted={"global_load_requests": 256},
        profiled={
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 256,
            "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum": 256,
        },
        executed={},
    )
    assert [p.gpu for p in pairs(copied)] == [256]


def test_copies_that_were_not_made_and_negations_are_explained() -> None:
    odd = replace(
        EQUAL,
        counted={"shared_store_wavefronts": 8192, "fadd": 0},
        profiled={
            "smsp__sass_inst_executed_op_ldgsts.sum": 2048,
            "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum": 24832,
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 4096,
        },
        executed={"LDGSTS.E.BYPASS.128": 2816, "FADD": 128},
        code={"LDGSTS.E.BYPASS.128": 8, "FADD": 1},
    )
    text = page([odd], "en")
    assert "| 8,192 | 24,832 | ncu also counts copies (LDGSTS) whose predicate was false" in text
    assert "| 0 | 4,096 | a negation is an FADD in machine code |" in text
    made = replace(odd, executed={"LDGSTS.E.BYPASS.128": 2048, "FADD": 128})
    assert "predicate was false" not in page([made], "en")


def test_comparisons_come_back_as_they_were_saved(tmp_path: Path) -> None:
    save(tmp_path, "01_basics", [EQUAL, MERGED])
    assert load(tmp_path) == (EQUAL, MERGED)
    assert set(pages(tmp_path)) == {"counters.md", "counters.en.md"}


def test_without_data_the_page_says_so(tmp_path: Path) -> None:
    assert load(tmp_path) == ()
    assert pages(tmp_path) == {}
    assert "No comparison" in page((), "en")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "counters"
    folder.mkdir(parents=True)
    (folder / "01_basics.json").write_text('[{"experiment": "x"}]')
    with pytest.raises(RecordError, match=r"01_basics\.json"):
        load(tmp_path)


def test_counters_are_named_once() -> None:
    names = [c.name for c in COUNTERS]
    assert len(set(names)) == len(names)
    assert EXECUTED not in {m for c in COUNTERS for m in c.metrics}


def test_what_has_been_taken_keeps_its_promise(root: Path) -> None:
    comparisons = load(root / "results")
    if not comparisons:
        pytest.skip("no comparison yet: scripts/golden_counters.py takes them on a GPU")
    for name, text in pages(root / "results").items():
        assert (root / "results" / name).read_text(encoding="utf-8") == text
    wrong = [
        (p.comparison.variant, p.counter.name, p.emulator, p.gpu)
        for c in comparisons
        for p in pairs(c)
        if p.counter.exact and not p.equal
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("counted", {"ffma": 1e308}), ("profiled", {"x": -1.0}), ("executed", {"BAR": "8"}),
        ("code", []), ("grid", [1, 1]), ("grid", [1, 1, "1"]), ("shape", {"n": None}),
        ("variant", 7), ("surprise", 1), ("device", "\ud800"),
    ],
)  # fmt: skip
def test_a_comparison_that_no_run_can_have_given_is_refused_by_name(
    tmp_path: Path, field: str, value: object
) -> None:
    path = save(tmp_path, "01_basics", [EQUAL])
    (row,) = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([{**row, field: value}]), encoding="utf-8")
    with pytest.raises(RecordError, match=r"^\S*01_basics\.json: ") as caught:
        pages(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
