"""What the runner needs of a device. `cupy_backend` gives it; tests give a small fake.

A backend is made by ``module:Class`` in the process that measures, after `probe` found a device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from ..compiler import Compiled
from ..errors import DeviceError
from ..experiment import Arrays, Experiment, Kernel, Library, Shape, Target
from ..records import DeviceInfo

CUPY = "kernelbook.gpu.cupy_backend:CupyBackend"
Launch = Callable[[], None]  # enqueues work on the backend's stream


@dataclass(frozen=True)
class ClockReading:
    """The card's state at one moment. ``throttle`` names reasons that lower the clocks."""

    sm_mhz: float | None
    memory_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    throttle: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """An error of the device as a sentence; ``fatal`` when no later launch can succeed."""

    reason: str
    fatal: bool


@dataclass(frozen=True)
class Routine:
    """A library routine bound to buffers.

    ``check`` is None where the routine computes the experiment's outputs (they are verified like a
    kernel's); else it says what is wrong with what the routine did, "" for nothing.
    """

    launch: Launch
    check: Callable[[], str] | None = None


@dataclass(frozen=True)
class Copies:
    """Host-device copies: ``run`` returns when they are done; ``check`` as in `Routine`."""

    run: Callable[[], None]
    check: Callable[[], str]


class Backend(Protocol):
    """One device, used by one process and one thread."""

    xp: Any  # the array module: NumPy's interface
    info: DeviceInfo
    arch: str  # what to compile for, such as "sm_90"
    flush: str  # how L2 is flushed before a cold sample, in words
    notes: dict[str, str]  # facts of the device for the record

    @staticmethod
    def probe(device_index: int) -> DeviceInfo | str:
        """The device, or a sentence why there is none. Must leave no context behind."""
        ...

    @staticmethod
    def identity(device_index: int) -> str:
        """A name of the physical device that is the same for every process."""
        ...

    def __init__(self, device_index: int) -> None: ...

    def bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        """Load a kernel; the result binds it to buffers."""
        ...

    def routine(
        self, library: Library, experiment: Experiment, shape: Shape, arrays: Arrays
    ) -> Routine:
        """A library baseline on these buffers; raises DeviceError where it cannot be had."""
        ...

    def copies(
        self, direction: Literal["h2d", "d2h"], pinned: bool, arrays: Sequence[Any]
    ) -> Copies:
        """Copies of device arrays from or to memory of the host."""
        ...

    def empty(self) -> Launch:
        """A kernel that does nothing."""
        ...

    def batch(self, launches: Sequence[Launch]) -> Launch:
        """Many launches as one (a CUDA graph)."""
        ...

    def sample(
        self,
        launch: Launch,
        *,
        cold: bool,
        before: Launch | None = None,
        observe: Callable[[], None] | None = None,
    ) -> float:
        """Time of one launch in µs. ``observe`` is called while the device works."""
        ...

    def synchronize(self) -> None: ...

    def read_clocks(self) -> ClockReading | None: ...

    def to_host(self, array: Any) -> Any: ...

    def free_bytes(self) -> int: ...

    def release(self) -> None:
        """Give unused memory back."""
        ...

    def forget(self) -> None:
        """Drop what an experiment that is done has left: its kernels, its memory, its notes."""
        ...

    def fault_of(self, error: BaseException) -> Fault | None:
        """What a caught exception says of the device; None for one that is not its fault."""
        ...


def sm_mhz(backend: Backend) -> float | None:
    """The SM clock right now; None where it cannot be read."""
    reading = backend.read_clocks()
    return reading.sm_mhz if reading else None


def backend_class(name: str) -> type[Backend]:
    """The class named ``module:Class``; raises DeviceError where there is none."""
    module, _, attribute = name.partition(":")
    try:
        return cast("type[Backend]", getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise DeviceError(f"no measuring backend {name!r}: {error}") from error
