"""What card is there, asked of the driver itself: no CuPy, no context, a few milliseconds."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from ..devices import sheets
from ..errors import DeviceError
from ..experiment import Target
from ..records import DeviceInfo
from ..sampling import Peaks
from .clocks import open_clocks

CUPY_WHEELS = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
OLDEST = (7, 5)  # the oldest architecture that current compilers and the spec sheets know

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
# CUdevice_attribute
_CLOCK_KHZ, _SMS, _ECC, _MEMORY_KHZ, _BUS_BITS, _L2, _MAJOR, _MINOR = 13, 16, 32, 36, 37, 38, 75, 76


class NoDevice(DeviceError):
    """There is no GPU, or no driver that could see one."""


@dataclass(frozen=True)
class _Driver:
    """libcuda and one of its devices."""

    library: Any
    device: int

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def text(self, function: str, size: int = 256) -> str:
        buffer = ctypes.create_string_buffer(size)
        self.call(function, buffer, size, self.device)
        return buffer.value.decode(errors="replace")

    def call(self, function: str, *arguments: Any) -> None:
        _call(self.library, function, *arguments)


def present() -> bool:
    """Whether this machine has an NVIDIA GPU, though it may be one that cannot be used."""
    try:
        _open(0)
    except NoDevice:
        return False
    except DeviceError:
        return True
    return True


def probe(device_index: int = 0) -> DeviceInfo | str:
    """The card, or a sentence why nothing can be measured on it."""
    try:
        driver = _open(device_index)
        if importlib.util.find_spec("cupy") is None:
            return "there is a GPU, but CuPy is not installed (pip install cupy-cuda12x)"
        info = _describe(driver)
    except DeviceError as error:
        return str(error)
    if info.cc < OLDEST:
        return (
            f"{info.name} has compute capability {info.cc[0]}.{info.cc[1]}, "
            f"the kernels need {OLDEST[0]}.{OLDEST[1]}"
        )
    needed = re.search(r"cupy-cuda(\d+)x", info.cupy)
    if needed and int(info.cuda.split(".")[0]) < int(needed[1]):
        return (
            f"the driver {info.driver} is too old: it supports CUDA {info.cuda}, the installed "
            f"CuPy needs CUDA {needed[1]}"
        )
    return info


def identity(device_index: int = 0) -> str:
    """The card's UUID, as hexadecimal digits; raises DeviceError where there is no card."""
    driver = _open(device_index)
    uuid = (ctypes.c_ubyte * 16)()
    driver.call("cuDeviceGetUuid", ctypes.byref(uuid), driver.device)
    return bytes(uuid).hex()


def pci_bus_id(device_index: int = 0) -> str:
    """PCI bus id, by which NVML knows the card whatever CUDA_VISIBLE_DEVICES says."""
    return _open(device_index).text("cuDeviceGetPCIBusId", 64)


def target_of(info: DeviceInfo) -> Target:
    """What launch shapes on this card may depend on."""
    arch = sheets().arch(f"sm_{info.cc[0]}{info.cc[1]}")
    return arch.target(info.sms, info.l2_bytes)


def peaks_of(info: DeviceInfo) -> Peaks:
    """The card's peak rates: by its spec sheet where there is one, else by its driver."""
    known = sheets().devices.get(info.slug)
    if known is not None:
        return Peaks(known.fp32_flops, known.bandwidth, known.l2_bytes)
    lanes = sheets().arch(f"sm_{info.cc[0]}{info.cc[1]}").fp32_lanes_per_sm
    flops = info.sms * lanes * 2 * info.sm_clock_max_mhz * 1e6
    # Two transfers a clock on every memory these cards have.
    bandwidth = info.memory_bus_bits / 8 * 2 * info.memory_clock_mhz * 1e6
    return Peaks(flops, bandwidth, info.l2_bytes)


def slug_of(name: str) -> str:
    """A card's name as it appears in folder names: ``nvidia-geforce-rtx-4090``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "unnamed"


def _open(device_index: int) -> _Driver:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoDevice("no NVIDIA driver here (libcuda.so.1 cannot be loaded)") from None
    _call(library, "cuInit", 0)
    count = ctypes.c_int()
    _call(library, "cuDeviceGetCount", ctypes.byref(count))
    if count.value == 0:
        raise NoDevice("the NVIDIA driver sees no GPU")
    if not 0 <= device_index < count.value:
        raise DeviceError(f"there is no GPU {device_index}, only 0 to {count.value - 1}")
    device = ctypes.c_int()
    _call(library, "cuDeviceGet", ctypes.byref(device), device_index)
    return _Driver(library, device.value)


def _describe(driver: _Driver) -> DeviceInfo:
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    memory = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(memory), driver.device)
    name = driver.text("cuDeviceGetName")
    clocks = open_clocks(driver.text("cuDeviceGetPCIBusId", 64))
    return DeviceInfo(
        name=name,
        slug=slug_of(name),
        cc=(driver.attribute(_MAJOR), driver.attribute(_MINOR)),
        sms=driver.attribute(_SMS),
        l2_bytes=driver.attribute(_L2),
        memory_bytes=memory.value,
        memory_clock_mhz=driver.attribute(_MEMORY_KHZ) / 1000,
        memory_bus_bits=driver.attribute(_BUS_BITS),
        sm_clock_max_mhz=driver.attribute(_CLOCK_KHZ) / 1000,
        power_limit_w=clocks.power_limit_w() if clocks else None,
        ecc=bool(driver.attribute(_ECC)),
        mig=clocks.mig() if clocks else None,
        driver=(clocks.driver() if clocks else "") or _module_version(),
        cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
        cupy=cupy_version(),
    )


def _module_version() -> str:
    """The driver's version as its kernel module states it, for a machine without NVML's module."""
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def cupy_version() -> str:
    """Version of whichever CuPy wheel is installed, with the wheel's name."""
    for wheel in CUPY_WHEELS:
        try:
            return f"{metadata.version(wheel)} ({wheel})"
        except metadata.PackageNotFoundError:
            continue
    return ""


def _call(library: Any, function: str, *arguments: Any) -> None:
    status = getattr(library, function)(*arguments)
    if status == 0:
        return
    text = ctypes.c_char_p()
    library.cuGetErrorString(status, ctypes.byref(text))
    said = text.value.decode() if text.value else f"error {status}"
    if status == _NO_DEVICE:
        raise NoDevice("the NVIDIA driver sees no GPU")
    raise DeviceError(f"the NVIDIA driver cannot be used: {function} says {said!r}")
