"""The self-test tells a harness that measures right from one that does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fakes.gpu import INFO, FakeBackend, Work
from kernelbook.compiler import Compiled
from kernelbook.experiment import Arrays, Experiment, Kernel, Shape, Target
from kernelbook.gpu.backend import Launch
from kernelbook.runner import selftest
from kernelbook.runner.cli import main
from kernelbook.runner.selftest import Check
from kernelbook.runner.selftest_gpu import device_checks

EMPTY_US = 2.5
IN_GRAPH_US = 1.0
MEMORY_US, L2_US, DIRTY_US = 9.0, 5.0, 8.0


class Clockwork(FakeBackend):
    """A card whose times follow from which buffers were read since they were last flushed.

    ``stretch`` falsifies its clock; with ``leaky`` its flush leaves everything in L2.
    """

    stretch = 1.0
    leaky = False

    def __init__(self, device_index: int) -> None:
        super().__init__(device_index)
        self._cached: list[int] = []
        self._dirty = False

    def bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        def bind_to(arrays: Arrays) -> Launch:
            if kernel.entry == "wait_ns":
                return Work(lambda: self._wait(arrays, shape["ns"]), 0.0)
            if kernel.entry == "fill":
                return Work(self._fill, 0.0)
            return Work(lambda: self._read(id(arrays["x"])), 0.0)

        return bind_to

    def _wait(self, arrays: Arrays, ns: int) -> None:
        arrays["took"][0] = ns + 32
        self._time = (ns + 32) / 1e3

    def _read(self, which: int) -> None:
        self._time = L2_US if which in self._cached else MEMORY_US + DIRTY_US * self._dirty
        self._dirty = False
        self._cached = [*self._cached, which][-4:]  # four buffers fit

    def _fill(self) -> None:
        self._cached, self._dirty = [], True

    def empty(self) -> Launch:
        def nothing() -> None:
            self._time = 0.0

        return Work(nothing, 0.0)

    def batch(self, launches: Sequence[Launch]) -> Launch:
        def run() -> None:
            total = 0.0
            for launch in launches:
                launch()
                total += self._time + IN_GRAPH_US
            self._time = total - EMPTY_US  # which every sample adds

        return Work(run, 0.0)

    def sample(
        self,
        launch: Launch,
        *,
        cold: bool,
        before: Launch | None = None,
        observe: Callable[[], None] | None = None,
    ) -> float:
        if not cold:
            launch()
        elif not self.leaky:
            self._cached, self._dirty = [], False
        if before is not None:
            before()
        launch()
        return (self._time + EMPTY_US) * self.stretch


class Stretched(Clockwork):
    stretch = 1.02


class Leaky(Clockwork):
    leaky = True


def checks(backend: type[Clockwork]) -> dict[str, Check]:
    return {c.name: c for c in device_checks(backend(0))}


def test_the_rules_hold_on_synthetic_series() -> None:
    assert [c.name for c in selftest.policies() if not c.passed] == []


def test_a_card_that_keeps_time_passes_and_its_figures_are_reported() -> None:
    found = checks(Clockwork)
    assert all(c.passed for c in found.values()), found
    floor = found["floor of the method"].figures
    assert floor["empty_kernel_us"] == pytest.approx(EMPTY_US)
    assert floor["empty_kernel_in_graph_us"] == pytest.approx(IN_GRAPH_US)
    assert found["a kernel of 1,000 µs"].figures["timed_us"] == pytest.approx(1000.032 + EMPTY_US)
    flush = found["the L2 flush leaves nothing behind"].figures
    assert flush["warm_us"] == L2_US + EMPTY_US
    assert flush["fresh_us"] == MEMORY_US + EMPTY_US
    assert flush["write_and_read_flush_us"] == MEMORY_US + EMPTY_US
    assert flush["write_only_flush_us"] == MEMORY_US + DIRTY_US + EMPTY_US


def test_a_clock_two_percent_off_fails() -> None:
    found = checks(Stretched)
    known = [c for name, c in found.items() if name.startswith("a kernel of")]
    assert len(known) == 4
    assert not any(c.passed for c in known)


def test_a_flush_that_leaves_data_in_l2_fails() -> None:
    found = checks(Leaky)
    assert not found["the L2 flush leaves nothing behind"].passed
    assert found["a kernel of 1,000 µs"].passed


def test_without_a_gpu_the_command_tests_the_rules_and_says_what_it_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--selftest", "--no-gpu"]) == 0
    out = capsys.readouterr().out
    assert "GPU not used (--no-gpu): its clock and its L2 flush were not tested." in out
    assert "FAIL" not in out


@pytest.mark.parametrize(("backend", "code"), [("Clockwork", 0), ("Stretched", 1)])
def test_the_command_ends_as_its_checks_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    backend: str,
    code: int,
) -> None:
    from kernelbook.runner.options import parse
    from kernelbook.runner.progress import Display

    monkeypatch.setenv("FAKE_GPU_IDENTITY", tmp_path.name)
    file = tmp_path / "selftest.json"
    options = parse(tmp_path, ["--selftest", "--json", str(file)])
    assert selftest.selftest(Display(), options, f"test_selftest:{backend}") == code
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert found["passed"] == (code == 0)
    assert found["device"]["name"] == INFO.name
    assert np.isfinite([v for c in found["checks"] for v in c["figures"].values()]).all()
