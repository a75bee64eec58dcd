"""Measuring through the real child process, on a fake device: rows, faults, limits, locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.gpu import INFO, FakeBackend
from kernelbook import catalog, records
from kernelbook.devices import sheets
from kernelbook.errors import DeviceError
from kernelbook.experiment import Experiment
from kernelbook.gpu import device_info, ncu
from kernelbook.records import Record
from kernelbook.report.rows import is_stale, rows
from kernelbook.runner import child
from kernelbook.runner.lock import gpu_lock
from kernelbook.runner.measure_stage import failures, has_what_is_asked
from kernelbook.runner.measuring import MeasureSettings, measure
from kernelbook.runner.options import Options, parse
from kernelbook.runner.request import Request

TESTS = Path(__file__).resolve().parent

DOUBLE_CU = """extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""

EXPERIMENTS = """
import time

import numpy as np

from kernelbook.experiment import *


def kernel(name, **changes):
    return Kernel(name=name, source="twice.cu", entry="twice", args=("x", "y", "n"),
                  grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1), block=lambda s, t: (128, 1, 1),
                  title=Text(name, name), **changes)


def slow_cpu(inputs, outputs, shape):
    time.sleep(0.002)
    np.multiply(inputs["x"], 2, out=outputs["y"])


EXPERIMENTS = [
    Experiment(
        name="doubling",
        title=Text("", ""),
        shape={"n": 4096},
        emulator_shape={"n": 256},
        ragged=({"n": 1}, {"n": 33}),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=lambda xp, inputs, shape: {"y": inputs["x"].astype(xp.float64) * 2},
        flops=lambda s: s["n"],
        tolerance=Tolerance(relative=0.0, absolute=1e-30),
        variants=(
            kernel("fast"), kernel("slow"), kernel("tiny"), kernel("impossible"),
            kernel("writes_nothing"), kernel("faults"), kernel("out_of_memory"), kernel("hangs"),
            kernel("crashes"), kernel("forges"), kernel("breaks_later"),
            kernel("too_new", min_cc=(12, 0)),
            Kernel(name="broken_source", source="broken.cu", entry="twice", args=("x", "y", "n"),
                   grid=lambda s, t: (1, 1, 1), block=lambda s, t: (32, 1, 1), title=Text("", "")),
            Library("library", "double", Text("", ""), note=Text("注", "noted")),
            Library("bad_copy", "bad_copy", Text("", "")),
            Library("tiny_copy", "tiny_copy", Text("", "")),
            Library("forgetful_copy", "forgetful_copy", Text("", "")),
            Library("no_such", "no_such_routine", Text("", "")),
            Library("needs_nvcc", "needs_nvcc", Text("", "")),
            Cpu("cpu", slow_cpu, Text("", "")),
            Cpu("cpu_wrong", lambda i, o, s: np.multiply(i["x"], 3, out=o["y"]), Text("", "")),
            Cpu("cpu_raises", lambda i, o, s: 1 / 0, Text("", "")),
            Transfer("h2d", "h2d", True, Text("", "")),
            Transfer("d2h", "d2h", False, Text("", "")),
        ),
    )
]
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Experiment]:
    root = tmp_path_factory.mktemp("measured")
    chapter = root / "kernels" / "01_fake"
    chapter.mkdir(parents=True)
    (chapter / "twice.cu").write_text(DOUBLE_CU)
    (chapter / "broken.cu").write_text("this is no CUDA\n")
    (chapter / "experiments.py").write_text(EXPERIMENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS))
        patch.setenv("FAKE_GPU_IDENTITY", f"{os.getpid()}-{root.name}")
        yield catalog.load(root).experiment("doubling")


@pytest.fixture(scope="module")
def settings(experiment: Experiment, compile_cache: Path) -> MeasureSettings:
    return MeasureSettings(
        root=experiment.folder.parents[1],
        quick=True,
        cache_dir=compile_cache,
        backend="fakes.gpu:FakeBackend",
    )


Run = Callable[..., Record]


@pytest.fixture(scope="module")
def run(experiment: Experiment, settings: MeasureSettings) -> Run:
    def run_variants(*variants: str, **changes: object) -> Record:
        said: list[str] = []
        changed = replace(settings, **changes)  # type: ignore[arg-type]
        return measure(experiment, variants or None, changed, said.append)

    return run_variants


@pytest.fixture(scope="module")
def mixed(run: Run) -> Record:
    """One run of everything that fails without losing the device, and of one row that is right."""
    record = run(
        "fast", "tiny", "impossible", "writes_nothing", "out_of_memory", "breaks_later", "too_new",
        "broken_source", "bad_copy", "no_such", "needs_nvcc", "cpu_wrong", "h2d",
    )  # fmt: skip
    for name in ("fast", "tiny", "h2d"):
        assert ok(record, name)
    return record


def ok(record: Record, variant: str) -> bool:
    found = record.result(variant)
    return found is not None and found.status == "ok" and found.timings != ()


def reason(record: Record, variant: str) -> str:
    found = record.result(variant)
    assert found is not None
    assert found.status == "failed"
    assert found.timings == ()
    return found.reason


def test_a_record_holds_everything_a_reader_needs_to_judge_a_number(
    run: Run, experiment: Experiment, tmp_path: Path
) -> None:
    record = run("fast", "slow", "library", "cpu", "h2d", "d2h", quick=False)
    assert [r.variant for r in record.results] == ["fast", "slow", "library", "cpu", "h2d", "d2h"]
    assert {r.status for r in record.results} == {"ok"}
    assert record.device == INFO
    fast = record.result("fast")
    assert fast is not None
    assert (fast.grid, fast.block) == ((32, 1, 1), (128, 1, 1))
    assert (fast.flops, fast.bytes_read, fast.bytes_written) == (4096, 16384, 16384)
    assert fast.compilations[0].arch == "sm_90"
    # Two ragged shapes and the full one, and the full one twice after timing.
    assert [v.shape["n"] for v in fast.verifications] == [1, 33, 4096, 4096, 4096]
    cold, warm = fast.timings
    assert (cold.cache, cold.method, cold.flush) == ("cold", "event", "pretended")
    assert (warm.cache, warm.flush) == ("warm", "")
    assert len(cold.samples_us) >= 30
    assert cold.median_us == pytest.approx(50.05, rel=0.002)
    assert cold.stop == "95 % interval of the median under 0.5%"
    assert (cold.sm_clock_mhz, cold.power_w, cold.throttle) == (990.0, 55.0, "power cap")
    # 16 KiB at 256 bit * 2 GHz = 64 GB/s take 0.256 µs; what is written fits into L2.
    assert cold.floor_us == pytest.approx(0.256)
    library = record.result("library")
    assert library is not None
    assert library.note == {"zh": "注", "en": "noted"}
    for name in ("cpu", "h2d", "d2h"):
        row = record.result(name)
        assert row is not None
        assert row.timings[0].method == "host"
        assert len(row.timings[0].samples_us) >= 3
    assert {"empty_kernel_us", "warm_up", "order", "cpu", "cpu_threads"} <= set(record.notes)
    path = records.save(tmp_path / "results", record)
    assert records.load(path) == record


def test_the_rows_of_a_fresh_record_are_current(
    run: Run, experiment: Experiment, settings: MeasureSettings
) -> None:
    record = run("fast", "library", "cpu", "h2d")
    tree = catalog.load(settings.root)
    assert not any(is_stale(record, r, tree, sheets()) for r in record.results)


def test_a_readers_own_record_becomes_rows_of_their_own_card(
    mixed: Record, settings: MeasureSettings, tmp_path: Path
) -> None:
    records.save(tmp_path, mixed, local=True)
    tree = catalog.load(settings.root)
    found = [
        r
        for r in rows(records.load_all(tmp_path), tree, sheets())
        if (r.variant, r.metric, r.cache) == ("fast", "bandwidth", "cold")
    ]
    assert [(r.device, r.evidence, r.local, r.stale) for r in found] == [
        ("fake-gpu", "measured", True, False)
    ]
    # 32 KiB in 50 µs and a bit of wobble.
    assert found[0].value == pytest.approx(0.655, rel=0.005)


def test_launches_below_ten_microseconds_are_timed_in_batches(mixed: Record) -> None:
    tiny = mixed.result("tiny")
    assert tiny is not None
    assert tiny.timings[0].method == "graph"
    assert tiny.timings[0].launches_per_sample == 64  # 200 µs / 2 µs, at most 64
    assert tiny.timings[0].median_us == pytest.approx(2.0, rel=0.01)


def test_rows_are_timed_in_turn(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GPU_LOG", str(tmp_path / "log"))
    run("fast", "slow", quick=False)
    launched = (tmp_path / "log").read_text().split()
    middle = launched[len(launched) // 2 - 20 : len(launched) // 2 + 20]
    assert 18 <= middle.count("fast") <= 22


def test_a_wrong_kernel_is_not_timed_and_says_where_it_is_wrong(mixed: Record) -> None:
    said = reason(mixed, "writes_nothing")
    assert said.startswith("wrong at n=1: 1 of 1 elements are wrong")


def test_a_kernel_that_goes_wrong_while_timed_fails(mixed: Record) -> None:
    assert reason(mixed, "breaks_later").startswith("wrong after timing at n=4096")


def test_a_time_that_cannot_be_fails_its_row(mixed: Record) -> None:
    assert "is under the floor of 0.26 µs" in reason(mixed, "impossible")


def test_a_kernel_that_runs_out_of_memory_costs_its_own_row(mixed: Record) -> None:
    assert "out of GPU memory: 99 bytes" in reason(mixed, "out_of_memory")


def test_a_source_that_does_not_compile_fails_its_row_with_the_compilers_words(
    mixed: Record,
) -> None:
    assert reason(mixed, "broken_source") == "broken.cu:1: expected a declaration"


def test_a_card_too_old_for_a_kernel_skips_it(mixed: Record) -> None:
    found = mixed.result("too_new")
    assert found is not None
    assert found.status == "skipped"
    assert found.reason == "needs compute capability 12.0, the card has 9.0"


def test_a_batch_of_a_row_that_checks_itself_is_held_to_its_own_check(run: Run) -> None:
    record = run("tiny_copy", "forgetful_copy")
    copied = record.result("tiny_copy")
    assert copied is not None
    assert copied.status == "ok", copied.reason
    assert copied.timings[0].method == "graph"
    said = reason(record, "forgetful_copy")
    assert said.startswith("wrong as timed at n=4096: launch ")
    assert said.endswith("of a batch: the copy differs from its source")


def test_baselines_that_are_wrong_or_missing_fail_their_rows(mixed: Record) -> None:
    assert "the copy differs from its source" in reason(mixed, "bad_copy")
    assert "no library routine 'no_such_routine'" in reason(mixed, "no_such")
    assert "wrong at n=4096" in reason(mixed, "cpu_wrong")


def test_a_baseline_that_cannot_be_built_here_is_left_out_and_is_no_failure(mixed: Record) -> None:
    row = next(r for r in mixed.results if r.variant == "needs_nvcc")
    assert (row.status, row.reason) == ("skipped", "not built: there is no nvcc")
    assert not any("needs_nvcc" in said for said in failures(mixed, options()))


def test_a_kernel_that_loses_the_device_costs_its_own_row(run: Run) -> None:
    record = run("fast", "faults", "slow")
    assert "illegal memory access" in reason(record, "faults")
    assert [r.variant for r in record.results] == ["fast", "slow", "faults"]  # the author's order
    for name in ("fast", "slow"):
        assert len(record.result(name).timings) == 2  # type: ignore[union-attr]


def test_a_kernel_that_hangs_is_stopped_and_named(run: Run) -> None:
    record = run("fast", "hangs", step_limit_s=3.0)
    assert reason(record, "hangs") == "stopped: no end of 'verify at n=1' after 3 s"
    assert ok(record, "fast")


def test_a_kernel_that_kills_its_process_is_named(run: Run) -> None:
    record = run("crashes", "fast")
    assert reason(record, "crashes").startswith("the measuring process died of SIGSEGV at")
    assert ok(record, "fast")


def test_what_a_kernel_prints_is_not_taken_for_a_message(run: Run) -> None:
    record = run("fast", "forges", "slow")
    assert [ok(record, name) for name in ("fast", "forges", "slow")] == [True] * 3


def test_an_experiment_whose_rows_are_all_lost_is_still_a_record(run: Run) -> None:
    record = run("crashes", "faults")
    assert [r.status for r in record.results] == ["failed", "failed"]
    assert record.device == INFO


def test_a_card_too_small_for_the_problem_skips_every_row(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU_FREE", "1000")
    record = run("fast", "cpu")
    assert {r.status for r in record.results} == {"skipped"}
    assert "GiB of GPU memory" in record.results[0].reason


def test_the_profiled_child_launches_each_kernel_once_in_the_order_of_the_request(
    experiment: Experiment,
    settings: MeasureSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_GPU_LOG", str(tmp_path / "log"))
    child.launch_once(Request.of(settings, experiment.name, ("slow", "fast")))
    assert (tmp_path / "log").read_text().split() == ["slow", "fast"]


def test_counters_of_ncu_join_the_rows_that_are_right(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def read(command: Sequence[str], rows: object, **_: object) -> ncu.Profiled:
        asked.append(rows)
        return ncu.Profiled({"fast": {"dram_read_bytes": 16384.0}}, "not known to this ncu: x")

    monkeypatch.setattr(ncu, "read", read)
    record = run("fast", "writes_nothing", "library", profile=True)
    assert asked == [[("fast", "twice")]]
    assert [dict(r.counters) for r in record.results] == [{"dram_read_bytes": 16384.0}, {}, {}]
    assert record.notes["ncu"] == "not known to this ncu: x"


def test_a_cpu_baseline_that_raises_costs_its_own_row(run: Run) -> None:
    record = run("cpu_raises", "fast")
    assert "division by zero" in reason(record, "cpu_raises")
    assert ok(record, "fast")


def test_no_device_is_one_sentence(run: Run) -> None:
    with pytest.raises(DeviceError, match="there is no GPU 3"):
        run("fast", device_index=3)


def test_two_runs_do_not_share_a_card(run: Run) -> None:
    with gpu_lock(FakeBackend.identity(0)), pytest.raises(DeviceError, match="another run"):
        run("fast")


def test_a_lock_is_free_again_when_its_holder_is_done(tmp_path: Path) -> None:
    for _ in range(2):
        with gpu_lock("card", tmp_path):
            pass


def options(*arguments: str) -> Options:
    return parse(Path(), list(arguments))


def test_a_quick_record_is_no_result_and_counters_are_read_where_asked_for(
    mixed: Record, experiment: Experiment
) -> None:
    assert "quick" in mixed.notes
    assert has_what_is_asked(mixed, experiment, options("--quick"))
    assert not has_what_is_asked(mixed, experiment, options())
    slow = replace(mixed, notes={})
    assert has_what_is_asked(slow, experiment, options())
    assert not has_what_is_asked(slow, experiment, options("--profile"))
    read = replace(slow, results=tuple(replace(r, counters={"x": 1.0}) for r in slow.results))
    assert has_what_is_asked(read, experiment, options("--profile"))


def test_counters_that_could_not_be_read_fail_the_run_that_asked_for_them(mixed: Record) -> None:
    denied = replace(mixed, notes={"ncu": "no permission"})
    assert "doubling: ncu: no permission" in failures(denied, options("--profile"))
    assert failures(denied, options()) == failures(mixed, options("--profile"))
    assert any(f.startswith("doubling/writes_nothing: ") for f in failures(mixed, options()))


def test_a_machine_without_a_driver_says_so_without_loading_cupy() -> None:
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    found = device_info.probe(0)
    assert isinstance(found, str)
    assert "driver" in found
    assert not device_info.present()


def test_the_peaks_of_an_unknown_card_follow_from_what_its_driver_says() -> None:
    peaks = device_info.peaks_of(INFO)
    assert peaks.fp32_flops == 4 * 128 * 2 * 1e9
    assert peaks.bandwidth == 256 / 8 * 2e9
    known = device_info.peaks_of(replace(INFO, slug="nvidia-h200"))
    assert known.bandwidth == pytest.approx(4.814e12, rel=1e-3)
