"""What the GPU room does without a GPU: architectures, throttle bits, ncu's answers, flushing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fakes.gpu import INFO
from kernelbook.compiler import compile_source
from kernelbook.errors import DeviceError
from kernelbook.gpu import clocks, ncu
from kernelbook.gpu.backend import backend_class
from kernelbook.gpu.cupy_backend import CupyBackend, arch_for
from kernelbook.gpu.device_info import slug_of, target_of
from kernelbook.gpu.flush import SOURCE, Flush
from kernelbook.metrics import METRICS
from kernelbook.profiler import ProfiledLaunch


def test_the_harnesss_own_kernels_compile_for_old_and_new_cards(compile_cache: Path) -> None:
    for arch in ("sm_75", "sm_90", "sm_120"):
        found = compile_source(SOURCE, arch, cache_dir=compile_cache).resources
        assert set(found) == {"flush_write", "flush_read", "spin", "empty"}
        assert all(r.spill_store_bytes == 0 for r in found.values())


@pytest.mark.parametrize(
    ("cc", "arch"), [((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_90"), ((12, 0), "sm_120")]
)
def test_a_card_gets_its_own_architecture(cc: tuple[int, int], arch: str) -> None:
    assert arch_for(cc) == arch


def test_a_card_newer_than_the_compiler_gets_the_newest_of_its_generation() -> None:
    assert arch_for((8, 9)) == "sm_89"
    assert arch_for((7, 9)) == "sm_75"


def test_a_card_of_a_generation_unknown_to_the_compiler_is_refused_by_name() -> None:
    with pytest.raises(DeviceError, match=r"knows no architecture of compute capability 99\.0"):
        arch_for((99, 0))


def test_only_what_slows_a_card_counts_as_throttling() -> None:
    assert clocks.throttle_reasons(0x1 | 0x2 | 0x100) == ()  # idle, settings, display
    assert clocks.throttle_reasons(0x4 | 0x20) == ("power cap", "thermal (software)")


class Nvml:
    """A driver that knows the SM clock and nothing else."""

    class NVMLError(Exception):
        pass

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:
        if kind != 1:
            raise self.NVMLError
        return 1980

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        raise self.NVMLError

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int:
        return 0x40


def test_what_a_card_does_not_tell_is_none_and_the_rest_is_read() -> None:
    found = clocks.Clocks(Nvml(), object()).read()
    assert found.sm_mhz == 1980.0
    assert found.memory_mhz is None
    assert found.power_w is None
    assert found.throttle == ("thermal (hardware)",)


def test_device_names_become_folder_names() -> None:
    assert slug_of("NVIDIA H200") == "nvidia-h200"
    assert slug_of("NVIDIA GeForce RTX 4090") == "nvidia-geforce-rtx-4090"
    assert slug_of("../../etc") == "etc"


def test_a_target_is_the_cards_own() -> None:
    target = target_of(replace(INFO, cc=(8, 9), sms=128))
    assert (target.sms, target.max_threads_per_sm) == (128, 1536)


def test_a_backend_that_does_not_exist_is_named() -> None:
    assert backend_class("kernelbook.gpu.cupy_backend:CupyBackend") is CupyBackend
    with pytest.raises(DeviceError, match="no measuring backend 'nowhere:Nothing'"):
        backend_class("nowhere:Nothing")


def test_a_flush_writes_one_l2_and_then_reads_three_others() -> None:
    launched: list[tuple[str, Any]] = []

    def load(entry: str) -> Any:
        return lambda grid, block, args: launched.append((entry, args))

    flush = Flush(np, load, replace(INFO, l2_bytes=4 << 20))
    flush.flush()
    (first, write), (second, read) = launched
    assert (first, second) == ("flush_write", "flush_read")
    assert int(write[1]) * 16 == 4 << 20
    assert int(read[1]) * 16 == 12 << 20
    assert read[0] is not write[0]


# ---- ncu -----------------------------------------------------------------------------------


def test_every_counter_answers_a_metric_that_the_site_knows() -> None:
    assert set(ncu.COUNTERS) <= set(METRICS)


def launches(*names: str, **values: float) -> list[ProfiledLaunch]:
    return [ProfiledLaunch(name, "", "", dict(values)) for name in names]


ROWS = (("row_a", "kernel_a"), ("row_b", "kernel_b"))


def test_counters_are_given_to_rows_in_the_order_of_their_launches() -> None:
    def run(command: Sequence[str], metrics: Sequence[str], **_: Any) -> list[ProfiledLaunch]:
        first = ProfiledLaunch("kernel_a", "", "", {"dram__bytes_read.sum": 1.0})
        second = ProfiledLaunch("kernel_b", "", "", {"dram__bytes_read.sum": 2.0})
        return [first, second]

    found = ncu.read(["child"], ROWS, timeout_s=1, run=run)
    assert found.counters == {"row_a": {"dram_read_bytes": 1.0}, "row_b": {"dram_read_bytes": 2.0}}
    assert found.note == ""


def test_only_the_kernels_of_the_rows_are_profiled() -> None:
    asked: list[str] = []

    def run(command: Sequence[str], metrics: Sequence[str], **said: Any) -> list[ProfiledLaunch]:
        asked.append(said["kernel_regex"])
        return launches("kernel_a", "kernel_b")

    ncu.read(["child"], ROWS, timeout_s=1, run=run)
    assert asked == ["^(kernel_a|kernel_b)$"]


def test_flops_follow_from_the_instructions() -> None:
    prefix, suffix = "smsp__sass_thread_inst_executed_op_", "_pred_on.sum"
    values = {
        f"{prefix}{op}{suffix}": n for op, n in (("ffma", 10.0), ("fadd", 3.0), ("fmul", 1.0))
    }
    found = ncu.counters_of(ProfiledLaunch("k", "", "", values))
    assert found["flops"] == 24.0


def test_a_counter_that_ncu_does_not_know_is_left_out_and_the_rest_is_read() -> None:
    asked: list[Sequence[str]] = []

    def run(command: Sequence[str], metrics: Sequence[str], **_: Any) -> list[ProfiledLaunch]:
        asked.append(metrics)
        if "lts__t_bytes.sum" in metrics:
            raise DeviceError("ncu failed: ==ERROR== Failed to find metric lts__t_bytes.sum")
        return launches("kernel_a", "kernel_b", **{"dram__bytes_read.sum": 5.0})

    found = ncu.read(["child"], ROWS, timeout_s=1, run=run)
    assert len(asked) == 2
    assert found.counters["row_b"] == {"dram_read_bytes": 5.0}
    assert found.note == "not known to this ncu: lts__t_bytes.sum"


@pytest.mark.parametrize(
    ("error", "note"),
    [
        ("ncu failed: ==ERROR== ERR_NVGPUCTRPERM - The user does not have", "no permission"),
        ("Nsight Compute's command line (ncu) is not installed", "not installed"),
        ("ncu did not finish within 240 s", "did not finish"),
    ],
)
def test_what_ncu_cannot_do_is_a_note_and_no_error(error: str, note: str) -> None:
    def run(*_: Any, **__: Any) -> list[ProfiledLaunch]:
        raise DeviceError(error)

    found = ncu.read(["child"], ROWS, timeout_s=1, run=run)
    assert found.counters == {}
    assert note in found.note


def test_counters_of_other_launches_than_asked_for_are_not_guessed_at() -> None:
    def run(*_: Any, **__: Any) -> list[ProfiledLaunch]:
        return launches("kernel_b")

    found = ncu.read(["child"], ROWS, timeout_s=1, run=run)
    assert found.counters == {}
    assert found.note == "ncu saw 1 launches where 2 were made"
