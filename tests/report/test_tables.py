from dataclasses import replace

import pytest

from kernelbook.errors import PageError
from kernelbook.experiment import Library
from kernelbook.quantities import Grade
from kernelbook.records import Result
from kernelbook.report import markdown
from kernelbook.report.model import Line, Table
from kernelbook.report.tables import (
    compiled_table,
    counters_table,
    counts_table,
    hardware,
    kernels_table,
    results_table,
)

from .made_up import Tree, measured, timing


def column(table: Table, key: str) -> int:
    return [h.key for h in table.header].index(key)


def line(table: Table, variant: str, device: str = "nvidia-h200") -> Line:
    return next(x for x in table.lines if (x.variant, x.device) == (variant, device))


def text(table: Table, variant: str, key: str, device: str = "nvidia-h200") -> str:
    return line(table, variant, device).cells[column(table, key)].text.en


def test_rates_follow_from_time_and_model(tree: Tree) -> None:
    times = {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 200.0}
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", times))
    table = results_table(
        tree.book(), "gemm_1024",
        columns=["time", "throughput", "bandwidth", "spread", "samples", "error", "max_error"],
    )  # fmt: skip
    # 2 * 1024^3 FLOP / 400 µs = 5.3687 TFLOPS; 3 * 4 MiB / 400 µs = 31.457 GB/s
    assert text(table, "matrix_mul_naive", "time") == "400.0"
    assert text(table, "matrix_mul_naive", "throughput") == "5.37"
    assert text(table, "matrix_mul_naive", "bandwidth") == "31"
    assert text(table, "matrix_mul_naive", "spread") == "396.0–408.0"
    assert text(table, "matrix_mul_naive", "samples") == "5"
    assert text(table, "matrix_mul_naive", "error") == "0.25"
    assert text(table, "matrix_mul_naive", "max_error") == "1.5e-05"
    named = [r.value for r in tree.book().rows if r.metric == "max_error"]
    assert named == [1.5e-05, 1.5e-05]  # what an article's expression finds
    cell = line(table, "matrix_mul_naive").cells[column(table, "throughput")]
    # the slow quartile of the time is the low quartile of the rate: 2147.48 / 408 and / 396
    assert (cell.spread, cell.samples, cell.grade) == ("5.26–5.42", 5, Grade.MEASURED)


def test_a_ratio_is_taken_within_one_record(full_tree: Tree) -> None:
    table = results_table(
        full_tree.book(), "gemm_1024", columns=["throughput/matrix_mul_naive"],
        variants=["matrix_mul_tiled"],
    )  # fmt: skip
    key = "throughput/matrix_mul_naive"
    title = table.header[column(table, key)].title  # the other row by its title, as in its own line
    assert title.en == "throughput ÷ naive, 16×16 threads"
    assert text(table, "matrix_mul_tiled", key) == "2.00"
    assert text(table, "matrix_mul_tiled", key, "gtx-9000") == "1.12"  # 900 / 800 = 1.125
    assert text(table, "matrix_mul_tiled", key, "nvidia-geforce-rtx-4090") == "1.32"  # 6.89 / 5.23
    assert [x.variant for x in table.lines] == ["matrix_mul_tiled"] * 3


def test_devices_come_in_a_fixed_order_and_say_what_they_are(full_tree: Tree) -> None:
    table = results_table(full_tree.book(), "gemm_1024", variants=["matrix_mul_naive"])
    seen = [(x.device, x.evidence, x.local) for x in table.lines]
    assert seen == [
        ("nvidia-h200", "measured", False),
        ("gtx-9000", "measured", True),
        ("nvidia-geforce-rtx-4090", "cited", False),
    ]
    devices = [x.cells[1].text.en for x in table.lines]
    assert devices[0] == "NVIDIA H200"
    assert devices[1].endswith("(this machine)")
    assert devices[2] == "NVIDIA GeForce RTX 4090 (cited from psmarter)"


def test_only_the_best_of_our_kernels_is_marked_per_device(full_tree: Tree) -> None:
    table = results_table(full_tree.book(), "gemm_2048", columns=["time", "throughput"])
    best = {x.variant for x in table.lines for c in x.cells if c.best}
    assert best == {"matrix_mul_tiled"}  # cuBLAS is faster, and a baseline
    table = results_table(full_tree.book(), "gemm_1024")
    marked = [(x.device, x.variant) for x in table.lines if x.cells[2].best]
    assert marked == [
        ("nvidia-h200", "matrix_mul_tiled"),
        ("gtx-9000", "matrix_mul_tiled"),
        ("nvidia-geforce-rtx-4090", "matrix_mul_tiled"),
    ]


def test_a_column_has_one_unit_and_cited_figures_keep_their_digits(full_tree: Tree) -> None:
    table = results_table(full_tree.book(), "gemm_1024", columns=["time", "throughput"])
    assert table.header[2].unit == "µs"
    card = "nvidia-geforce-rtx-4090"
    assert text(table, "matrix_mul_naive", "time", card) == "410"  # printed as 0.41 ms
    assert text(table, "cpu_serial", "time", card) == "2,090,490"  # 2090.49 ms
    assert text(table, "cpu_serial", "throughput", card) == "0.00103"  # 1.03 GFLOPS
    long = results_table(full_tree.book(), "gemm_8192", columns=["time"])
    assert long.header[2].unit == "ms"
    assert text(long, "matrix_mul_tiled", "time") == "118.000"


def test_rows_without_numbers_say_why(full_tree: Tree) -> None:
    table = results_table(full_tree.book(), "gemm_1024")
    failed = line(table, "matrix_mul_tiled_8")
    assert failed.reason is not None
    assert failed.reason.zh == "失败：timed out | after <60 s>"
    assert [c.text.en for c in failed.cells[2:]] == ["—", "—"]
    built = line(table, "cublas_sgemm")
    assert built.reason is not None
    assert built.reason.en == "not built: cuBLAS is not installed"


def test_warm_is_a_table_of_its_own(full_tree: Tree) -> None:
    warm = results_table(
        full_tree.book(), "gemm_1024", columns=["time"], evidence=["measured"], cache="warm"
    )
    assert text(warm, "matrix_mul_naive", "time") == "360.0"
    assert all(x.device == "nvidia-h200" for x in warm.lines)  # the other card has none


def test_throttling_is_labelled(tree: Tree) -> None:
    record = measured(tree.catalog, tree.sheets, "gemm_1024", {"matrix_mul_naive": 400.0})
    hot = Result(
        "matrix_mul_tiled", "kernel", flops=1, timings=(timing(200.0, throttle="power cap"),)
    )
    tree.save(type(record)(**{**vars(record), "results": (*record.results, hot)}))
    table = results_table(tree.book(), "gemm_1024")
    note = line(table, "matrix_mul_tiled").note
    assert note is not None
    assert note.en == "throttled: power cap"


def test_a_comment_leaves_rows_current_and_a_token_makes_them_stale(full_tree: Tree) -> None:
    source = full_tree.root / "kernels/01_basics/matrix_mul_naive.cu"
    before = source.read_text(encoding="utf-8")
    source.write_text("// another remark\n" + before, encoding="utf-8")
    assert not results_table(full_tree.book(), "gemm_1024").stale
    source.write_text(before + "\n__device__ int another;\n", encoding="utf-8")
    table = results_table(
        full_tree.book(), "gemm_1024", columns=["time", "throughput/matrix_mul_naive"]
    )
    stale = {(x.variant, x.device): [c.stale for c in x.cells[2:]] for x in table.lines}
    assert stale["matrix_mul_naive", "nvidia-h200"] == [True, True]
    assert stale["matrix_mul_tiled", "nvidia-h200"] == [False, True]  # its ratio is to a stale row
    assert stale["matrix_mul_naive", "nvidia-geforce-rtx-4090"] == [False, False]
    # Only the row whose own kernel has changed is a stale row.
    marked = {x.variant for x in table.lines if x.stale}
    assert marked == {"matrix_mul_naive"}
    shown = "\n".join(markdown.table(table, "en", anchors=set()))
    assert "`matrix_mul_naive` ⚠ stale |" in shown
    assert "`matrix_mul_tiled` |" in shown
    assert "| **2.00** ⚠ |" in shown
    assert compiled_table(full_tree.book(), "gemm_1024").stale


def test_counts_show_what_occurs_at_the_emulators_shape(full_tree: Tree) -> None:
    table = counts_table(full_tree.book(), "gemm_1024")
    # No atomic ever: no column.
    assert [h.key for h in table.header] == ["variant", "global_load_sectors", "ffma"]
    assert table.lines[0].cells[2].text.en == "16,777,216"
    assert table.lines[0].cells[2].grade == Grade.COUNTED
    assert "m=256 n=256 k=256" in table.notes[0].en
    asked = counts_table(full_tree.book(), "gemm_1024", columns=["atomics"])
    assert asked.lines[0].cells[1].text.en == "0"


def test_counters_of_ncu_are_measured(full_tree: Tree) -> None:
    table = counters_table(full_tree.book(), "gemm_1024")
    assert text(table, "matrix_mul_naive", "l1_hit_rate") == "87.5"
    assert text(table, "matrix_mul_naive", "dram_read_bytes") == "8,400,000"
    assert line(table, "matrix_mul_naive").cells[2].grade == Grade.MEASURED
    assert len(table.lines) == 1


def test_compilations_by_architecture(full_tree: Tree) -> None:
    table = compiled_table(
        full_tree.book(), "gemm_1024", archs=["sm_89"], variants=["matrix_mul_tiled"]
    )
    (only,) = table.lines
    cells = {h.key: c.text.en for h, c in zip(table.header, only.cells, strict=True)}
    # 1024 threads: one block of an SM's 1536
    assert cells["arch"] == "sm_89"
    assert (cells["blocks_per_sm"], cells["occupancy"]) == ("1", "66.7")
    assert (cells["registers"], cells["limit"]) == ("32", "threads")


def test_code_paths_come_from_the_tree(tree: Tree) -> None:
    table = kernels_table(tree.book(), "01_basics", variants=["matrix_mul_naive"])
    (only,) = table.lines
    assert [c.text.en for c in only.cells] == [
        "matrix_mul_naive.cu",
        "matrix_mul_naive",
        "naive, 16×16 threads",
        "(64, 64) × (16, 16)",
        "m = n = k = 1,024; 1,056; 2,048; 4,096; 8,192",
    ]
    assert only.cells[0].source == "01_basics/matrix_mul_naive.cu"


def test_boxes_for_every_card_with_records(full_tree: Tree) -> None:
    boxes = hardware(full_tree.book())
    assert [(b.slug, b.role) for b in boxes] == [
        ("nvidia-h200", "reference"),
        ("gtx-9000", "local"),
        ("nvidia-geforce-rtx-4090", "cited"),
    ]
    local = {f.key: f.cell.text.en for f in boxes[1].figures}
    # 192 bit * 7501 MHz * 2 / 8 = 360.0 GB/s; 30 SMs * 128 lanes * 2 * 1.8 GHz = 13.8 TFLOPS
    assert (local["bandwidth"], local["fp32_flops"], local["ridge"]) == ("360", "13.8", "38.4")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"columns": ["speed"]}, "no metric 'speed'"),
        ({"columns": ["time/nobody"]}, "no variant 'nobody'"),
        ({"variants": ["nobody"]}, "no variant 'nobody'"),
    ],
)
def test_asking_for_what_does_not_exist_is_an_error(
    tree: Tree, arguments: dict[str, list[str]], says: str
) -> None:
    with pytest.raises(PageError, match=says):
        results_table(tree.book(), "gemm_1024", **arguments)
    with pytest.raises(PageError, match="there is no experiment"):
        results_table(tree.book(), "gem_1024")
    with pytest.raises(PageError, match="there is no chapter"):
        kernels_table(tree.book(), "99_none")


def test_what_is_said_of_our_baseline_is_not_said_of_a_cited_one(full_tree: Tree) -> None:
    own = full_tree.catalog.experiment("gemm_1024").variant("cublas_sgemm")
    cited = full_tree.results / "data" / "cited" / "nvidia-geforce-rtx-4090" / "gemm_1024.json"
    text = cited.read_text(encoding="utf-8").replace('"cpu_serial"', '"cublas_sgemm"')
    cited.write_text(text.replace('"kind": "cpu"', '"kind": "library"'), encoding="utf-8")
    table = results_table(full_tree.book(), "gemm_1024", variants=["cublas_sgemm"])
    note = line(table, "cublas_sgemm", "nvidia-geforce-rtx-4090").note
    assert isinstance(own, Library)
    assert own.note.en
    assert note is not None
    assert own.note.en not in note.en
    assert "triple loop" in note.en


def test_what_a_run_notes_of_itself_is_said_in_words(tree: Tree) -> None:
    record = measured(tree.catalog, tree.sheets, "gemm_1024", {"matrix_mul_naive": 400.0})
    notes = {"clock_settings": "as found", "empty_kernel_us": "2.66", "of its own": "x"}
    tree.save(replace(record, notes=notes))
    (note,) = results_table(tree.book(), "gemm_1024").notes
    assert note.en.endswith(", clock settings: as found, empty kernel (µs): 2.66, of its own: x")
    assert note.zh.endswith("，时钟设置：as found，空核函数（µs）：2.66，of its own：x")
