"""The card's clocks, power, temperature and throttle reasons through NVML. Reads, never sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .backend import ClockReading

T = TypeVar("T")

# NVML's clocks-event bits that mean "slower than it could be". Idle and settings are not listed.
THROTTLE_BITS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}
_SM, _MEMORY, _GPU_TEMPERATURE = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU


class Clocks:
    """One card in NVML. Every reading is None where the card or the driver does not give it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def read(self) -> ClockReading:
        """The state at this moment; a few hundred µs."""
        nvml, handle = self._nvml, self._handle
        power = _try(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return ClockReading(
            sm_mhz=_float(_try(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, _SM))),
            memory_mhz=_float(_try(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, _MEMORY))),
            power_w=None if power is None else power / 1000,
            temperature_c=_float(
                _try(nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, _GPU_TEMPERATURE))
            ),
            throttle=throttle_reasons(self._event_bits()),
        )

    def _event_bits(self) -> int:
        """The bits under NVML's newer name for them, else under its older one."""
        nvml, handle = self._nvml, self._handle
        bits = _try(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        if bits is None:
            bits = _try(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return int(bits or 0)

    def power_limit_w(self) -> float | None:
        limit = _try(self._nvml, lambda: self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle))
        return None if limit is None else limit / 1000

    def mig(self) -> bool | None:
        mode = _try(self._nvml, lambda: self._nvml.nvmlDeviceGetMigMode(self._handle))
        return None if mode is None else bool(mode[0])

    def driver(self) -> str:
        version = _try(self._nvml, self._nvml.nvmlSystemGetDriverVersion)
        return version.decode() if isinstance(version, bytes) else str(version or "")

    def processes(self) -> int:
        """Compute processes that have a context on the card now."""
        found = _try(
            self._nvml, lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        )
        return len(found or ())


def open_clocks(pci_bus_id: str) -> Clocks | None:
    """NVML's view of a card; None where NVML or its Python module is missing."""
    try:
        import pynvml as nvml
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        return Clocks(nvml, nvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode()))
    except nvml.NVMLError:
        return None


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Names of the set bits that lower the clocks."""
    return tuple(name for bit, name in THROTTLE_BITS.items() if bits & bit)


def _try(nvml: Any, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (nvml.NVMLError, AttributeError):  # not supported by this card, driver or module
        return None


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
