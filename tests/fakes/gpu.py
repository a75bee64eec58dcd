"""A GPU made of NumPy and made-up times: what a kernel does is looked up by its name.

Only the device is fake. Compiling, verifying, sampling, the child process and the record are real.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelbook.compiler import Compiled
from kernelbook.errors import DeviceError, NotBuilt
from kernelbook.experiment import Arrays, Experiment, Kernel, Library, Shape, Target
from kernelbook.gpu.backend import ClockReading, Copies, Fault, Launch, Routine
from kernelbook.records import DeviceInfo

INFO = DeviceInfo(
    name="Fake GPU", slug="fake-gpu", cc=(9, 0), sms=4, l2_bytes=1 << 20, memory_bytes=1 << 30,
    memory_clock_mhz=1000.0, memory_bus_bits=256, sm_clock_max_mhz=1000.0, power_limit_w=100.0,
    ecc=False, mig=False, driver="1.0", cuda="13.0", cupy="none",
)  # fmt: skip


class FakeFault(Exception):
    """What a CUDA error would be."""

    def __init__(self, reason: str, fatal: bool) -> None:
        super().__init__(reason)
        self.fatal = fatal


def right(arrays: Arrays) -> None:
    np.multiply(arrays["x"], np.float32(2), out=arrays["y"])


def writes_nothing(arrays: Arrays) -> None:
    pass


def faults(arrays: Arrays) -> None:
    raise FakeFault("cudaErrorIllegalAddress: an illegal memory access was encountered", True)


def out_of_memory(arrays: Arrays) -> None:
    raise FakeFault("out of GPU memory: 99 bytes", False)


def hangs(arrays: Arrays) -> None:
    time.sleep(3600)


def forges(arrays: Arrays) -> None:
    """Prints what a measuring process would say of another row."""
    os.write(1, b'@kernelbook ["fault", "fast", "forged"]\n@kernelbook ["done", "", ""]\n')
    right(arrays)


def crashes(arrays: Arrays) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def breaks_after(calls: int) -> Callable[[Arrays], None]:
    """Right for so many launches, then writes nothing: wrong only once it has been timed."""
    count = [0]

    def body(arrays: Arrays) -> None:
        count[0] += 1
        if count[0] <= calls:
            right(arrays)

    return body


@dataclass
class Work:
    """A launch with its made-up time."""

    run: Callable[[], None]
    time_us: float
    parts: int = field(default=1)

    def __call__(self) -> None:
        self.run()


# Kernel name -> (what it does, time in µs).
BEHAVIOUR: dict[str, tuple[Callable[[Arrays], None], float]] = {
    "fast": (right, 50.0),
    "slow": (right, 200.0),
    "tiny": (right, 2.0),
    "impossible": (right, 0.0001),
    "writes_nothing": (writes_nothing, 50.0),
    "vanishing": (writes_nothing, 0.05),
    "faults": (faults, 50.0),
    "out_of_memory": (out_of_memory, 50.0),
    "hangs": (hangs, 50.0),
    "crashes": (crashes, 50.0),
    "forges": (forges, 50.0),
    "breaks_later": (breaks_after(12), 50.0),
}


FORGOTTEN = range(20, 60)  # of the buffers bound to it: within the first batch, of 64


class FakeBackend:
    """See `kernelbook.gpu.backend.Backend`."""

    def __init__(self, device_index: int) -> None:
        self.xp: Any = np
        self.info = INFO
        self.arch = "sm_90"
        self.flush = "pretended"
        self.notes: dict[str, str] = {
            "clock_settings": "none to leave alone",
            "process": str(os.getpid()),
        }
        self._samples = 0
        self._copies_bound = 0
        self._log = os.environ.get("FAKE_GPU_LOG")

    @staticmethod
    def probe(device_index: int) -> DeviceInfo | str:
        return INFO if device_index == 0 else f"there is no GPU {device_index}"

    @staticmethod
    def identity(device_index: int) -> str:
        return f"fake-{os.environ.get('FAKE_GPU_IDENTITY', 'card')}"

    def bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        body, time_us = BEHAVIOUR[kernel.name]
        return lambda arrays: Work(lambda: self._launch(kernel.name, body, arrays), time_us)

    def _launch(self, name: str, body: Callable[[Arrays], None], arrays: Arrays) -> None:
        if self._log:
            with Path(self._log).open("a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        body(arrays)

    def routine(
        self, library: Library, experiment: Experiment, shape: Shape, arrays: Arrays
    ) -> Routine:
        if library.routine == "double":
            return Routine(Work(lambda: right(arrays), 80.0))
        if library.routine == "needs_nvcc":
            raise NotBuilt("not built: there is no nvcc")
        if library.routine in ("tiny_copy", "forgetful_copy"):
            return self._copy(library.routine, arrays["x"])
        if library.routine == "bad_copy":
            return Routine(Work(lambda: None, 80.0), lambda: "the copy differs from its source")
        raise DeviceError(f"there is no library routine {library.routine!r}")

    def _copy(self, name: str, source: Any) -> Routine:
        """Into a buffer of its own; the forgetful one does not, for some launches of a batch."""
        target = np.zeros_like(source)
        self._copies_bound += name == "forgetful_copy"
        works = name == "tiny_copy" or self._copies_bound not in FORGOTTEN

        def check() -> str:
            return "" if np.array_equal(source, target) else "the copy differs from its source"

        return Routine(Work(lambda: np.copyto(target, source) if works else None, 2.0), check)

    def copies(
        self, direction: Literal["h2d", "d2h"], pinned: bool, arrays: Sequence[Any]
    ) -> Copies:
        host = [np.empty_like(a) for a in arrays]

        def run() -> None:
            for here, there in zip(host, arrays, strict=True):
                np.copyto(here, there)

        return Copies(run, lambda: "")

    def empty(self) -> Launch:
        return Work(lambda: None, 3.0)

    def batch(self, launches: Sequence[Launch]) -> Launch:
        works = [w for w in launches if isinstance(w, Work)]

        def run() -> None:
            for work in works:
                work()

        return Work(run, sum(w.time_us for w in works))

    def sample(
        self,
        launch: Launch,
        *,
        cold: bool,
        before: Launch | None = None,
        observe: Callable[[], None] | None = None,
    ) -> float:
        assert isinstance(launch, Work)
        if before is not None:
            before()
        launch()
        if observe is not None:
            observe()
        self._samples += 1
        wobble = 1 + 0.001 * (self._samples % 3)
        return launch.time_us * wobble * (1.0 if cold else 0.5)

    def synchronize(self) -> None:
        pass

    def read_clocks(self) -> ClockReading | None:
        return ClockReading(990.0, 1000.0, 55.0, 40.0, ("power cap",))

    def to_host(self, array: Any) -> Any:
        return np.array(array)

    def free_bytes(self) -> int:
        return int(os.environ.get("FAKE_GPU_FREE", str(1 << 30)))

    def release(self) -> None:
        pass

    def forget(self) -> None:
        pass

    def fault_of(self, error: BaseException) -> Fault | None:
        return Fault(str(error), error.fatal) if isinstance(error, FakeFault) else None
