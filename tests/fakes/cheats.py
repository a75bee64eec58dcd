"""Kernels that cheat (tests/adversarial/cheats.cu) as NumPy, and fake cards that run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fakes.gpu import FakeBackend, Work
from kernelbook.compiler import Compiled
from kernelbook.experiment import (
    Arrays,
    Buffer,
    Experiment,
    Kernel,
    Library,
    Shape,
    Target,
    Text,
    Tolerance,
)
from kernelbook.gpu.backend import Launch, Routine
from kernelbook.inputs import make_inputs
from kernelbook.verify import TIMING_SEED_OFFSET

FOLDER = Path(__file__).resolve().parents[1] / "adversarial"
SEED = 1


def cheat(name: str, macros: Mapping[str, str] | None = None) -> Kernel:
    return Kernel(
        name=name, source="cheats.cu", entry=name.split(":")[0], args=("x", "y", "m", "n"),
        grid=lambda s, t: (1, 1, 1), block=lambda s, t: (256, 1, 1), title=Text("", ""),
        macros=macros or {},
    )  # fmt: skip


def experiment(*variants: Kernel | Library, **changes: Any) -> Experiment:
    """y = 2 x on an m x n matrix, exactly."""
    dims = lambda s: (s["m"], s["n"])  # noqa: E731
    whole = Experiment(
        name="doubling", title=Text("", ""), shape={"m": 64, "n": 64},
        emulator_shape={"m": 8, "n": 64}, ragged=({"m": 1, "n": 1}, {"m": 3, "n": 33}),
        buffers=(Buffer("x", "in", dims), Buffer("y", "out", dims)),
        reference=lambda xp, inputs, shape: {"y": inputs["x"].astype(xp.float64) * 2},
        flops=lambda s: s["m"] * s["n"], tolerance=Tolerance(relative=0.0, absolute=1e-30),
        variants=variants, seed=SEED, chapter="01_cheats", folder=FOLDER,
    )  # fmt: skip
    return replace(whole, **changes)


def first_input(seed: int) -> str:
    """Bits of the first element of x at a seed, as a C literal; they do not depend on the size."""
    x = make_inputs(np, experiment(), {"m": 1, "n": 1}, seed)["x"]
    return hex(int(x.view(np.uint32)[0, 0]))


def kernel(name: str) -> Kernel:
    if name == "one_seed:verified":
        return cheat(name, {"SEEN": first_input(SEED)})
    if name == "one_seed:timed":
        return cheat(name, {"SEEN": first_input(SEED + TIMING_SEED_OFFSET)})
    return cheat(name)


Body = Callable[[Arrays], None]


def double(arrays: Arrays) -> None:
    np.multiply(arrays["x"], np.float32(2), out=arrays["y"])


WORK_US, IDLE_US = 50.0, 12.0


class CheatingWork(Work):
    """A launch whose time is what the kernel took when it last ran."""

    def __init__(self, state: Cheats, body: Body, arrays: Arrays) -> None:
        self.state = state
        super().__init__(lambda: body(arrays), WORK_US)

    def __getattribute__(self, name: str) -> Any:
        return self.state.time_us if name == "time_us" else super().__getattribute__(name)


class Cheats:
    """What the kernels of cheats.cu do, in NumPy; state lasts as long as the object."""

    def __init__(self) -> None:
        self.calls = 0
        self.time_us = WORK_US  # of the last launch
        self.left: tuple[float, float] | None = None
        self.answers: dict[Any, Any] = {}

    def body(self, name: str) -> Body:
        found: Body = getattr(self, name.split(":")[0])
        if name.startswith("one_seed"):
            seen = kernel(name).macros["SEEN"]
            return lambda arrays: self.one_seed(arrays, int(str(seen), 16))
        return found

    def right(self, arrays: Arrays) -> None:
        double(arrays)

    def writes_nothing(self, arrays: Arrays) -> None:
        pass

    def writes_zeros(self, arrays: Arrays) -> None:
        arrays["y"].fill(0.0)

    def writes_nan(self, arrays: Arrays) -> None:
        arrays["y"].fill(np.nan)

    def past_the_end(self, arrays: Arrays) -> None:
        double(arrays)
        slab = arrays["y"].base
        while slab.base is not None:
            slab = slab.base
        at = arrays["y"].ctypes.data - slab.ctypes.data + arrays["y"].nbytes
        slab[at] = 0

    def wrong_last_row(self, arrays: Arrays) -> None:
        double(arrays)
        arrays["y"][-1] *= np.float32(1.5)

    def ragged_only(self, arrays: Arrays) -> None:
        whole = arrays["x"].size // 4 * 4
        arrays["y"].reshape(-1)[:whole] = arrays["x"].reshape(-1)[:whole] * 2

    def changes_input(self, arrays: Arrays) -> None:
        double(arrays)
        arrays["x"] *= -1

    def first_call_only(self, arrays: Arrays) -> None:
        self.calls += 1
        if self.calls == 1:
            double(arrays)

    def every_other_call(self, arrays: Arrays) -> None:
        self.calls += 1
        if self.calls % 2:
            double(arrays)

    def remembers(self, arrays: Arrays) -> None:
        answer = self.answers.setdefault(arrays["x"].size, arrays["x"] * 2)
        np.copyto(arrays["y"], answer)

    def previous_result(self, arrays: Arrays) -> None:
        now = arrays["x"] * 2
        np.copyto(arrays["y"], self.answers.get(now.size, now))
        self.answers[now.size] = now

    def works_on_poison(self, arrays: Arrays) -> None:
        if np.isnan(arrays["y"].flat[0]):
            double(arrays)

    def leaves_what_is_done(self, arrays: Arrays) -> None:
        found = float(arrays["x"].flat[0]), float(arrays["y"].flat[0])
        self.time_us = IDLE_US if found == self.left else WORK_US
        double(arrays)
        self.left = float(arrays["x"].flat[0]), float(arrays["y"].flat[0])

    def answers_from_a_table(self, arrays: Arrays) -> None:
        key = arrays["x"].size, float(arrays["x"].flat[0])
        self.time_us = IDLE_US if key in self.answers else WORK_US
        np.copyto(arrays["y"], self.answers.setdefault(key, arrays["x"] * 2))

    def one_seed(self, arrays: Arrays, seen: int) -> None:
        if int(arrays["x"].view(np.uint32)[0, 0]) == seen:
            double(arrays)


class CheatingCard(FakeBackend):
    """Runs `Cheats`, 50 µs a launch; its library routine hides work on another stream.

    ``hidden``: "late" work is done after whoever waits has stopped waiting, "early" work before
    anybody looks; both seem to take no time.
    """

    hidden = "late"

    def bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        state = self.__dict__.setdefault(f"state {kernel.name}", Cheats())
        body = state.body(kernel.name)
        return lambda arrays: CheatingWork(state, body, arrays)

    def routine(
        self, library: Library, experiment: Experiment, shape: Shape, arrays: Arrays
    ) -> Routine:
        if self.hidden == "early":
            return Routine(Work(lambda: double(arrays), 0.01))
        return Routine(Work(lambda: None, 0.01))


class BatchingCard(CheatingCard):
    """Its kernel is short, and works only as the first launch of a batch."""

    place = 0  # in the batch that is being launched

    def bind(self, *_: Any) -> Callable[[Arrays], Launch]:
        def body(arrays: Arrays) -> None:
            if self.place == 0:
                double(arrays)

        return lambda arrays: Work(lambda: body(arrays), 4.0)

    def batch(self, launches: Sequence[Launch]) -> Launch:
        def run() -> None:
            for self.place, launch in enumerate(launches):
                launch()
            self.place = 0

        return Work(run, 4.0 * len(launches))
