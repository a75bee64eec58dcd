"""Spec sheets: what a card's documents promise, and the theory that follows from it.

Nothing here is measured. Every figure in devices.toml names its source; what is derived
(peaks, ridge points, theoretical occupancy) is computed, never typed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .errors import DeviceError
from .experiment import Target, ceil_div
from .quantities import Grade, Quantity, Source

WARP = 32
REGISTERS_PER_SM = 65536  # 32-bit; every architecture from sm_70 on
REGISTERS_PER_WARP_GRANULE = 256  # registers are handed to a warp in this many
WARP_SLOTS = 4  # schedulers of an SM; warps are allocated in multiples of them
SHARED_BANK_BYTES = 128  # 32 banks of 4 bytes a cycle


@dataclass(frozen=True)
class Arch:
    """Limits of one SM of an architecture."""

    name: str
    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_bytes_per_sm: int
    reserved_shared_bytes_per_block: int
    shared_granularity: int
    fp32_lanes_per_sm: int

    @property
    def cc(self) -> tuple[int, int]:
        number = int(self.name.removeprefix("sm_"))
        return number // 10, number % 10

    def target(self, sms: int, l2_bytes: int) -> Target:
        """What launch shapes may depend on, of a card with so many such SMs."""
        return Target(
            sms,
            self.max_threads_per_sm,
            l2_bytes,
            self.shared_bytes_per_sm,
            self.reserved_shared_bytes_per_block,
        )


@dataclass(frozen=True)
class Device:
    """One card's spec sheet, in base units."""

    slug: str
    name: str
    arch: Arch
    sms: int
    clock_hz: float
    l2_bytes: int
    memory: str
    memory_bytes: int
    memory_bus_bits: int
    memory_bit_rate_hz: float
    sources: Mapping[str, str]

    @property
    def bandwidth(self) -> float:
        """DRAM bandwidth in bytes/s: bus width times bit rate."""
        return self.memory_bus_bits * self.memory_bit_rate_hz / 8

    @property
    def fp32_flops(self) -> float:
        """Peak FP32 FLOP/s, a fused multiply-add counted as two."""
        return self.sms * self.arch.fp32_lanes_per_sm * 2 * self.clock_hz

    @property
    def fp32_adds(self) -> float:
        """Peak FP32 FLOP/s of a kernel of additions only: one a lane and cycle."""
        return self.fp32_flops / 2

    @property
    def ridge(self) -> float:
        """FLOP/byte above which DRAM is not the limit (FMA counted as two)."""
        return self.fp32_flops / self.bandwidth

    @property
    def shared_bandwidth(self) -> float:
        """Bytes/s of all SMs' shared memory: 32 banks of 4 bytes a cycle each."""
        return self.sms * SHARED_BANK_BYTES * self.clock_hz

    @property
    def shared_ridge(self) -> float:
        """FLOP per byte of shared memory above which shared memory is not the limit."""
        return self.fp32_flops / self.shared_bandwidth

    @property
    def target(self) -> Target:
        return self.arch.target(self.sms, self.l2_bytes)

    def figure(self, name: str) -> Quantity:
        """A figure of the sheet as a theory quantity; raises DeviceError for an unknown name."""
        if name in SHEET:
            unit, attribute = SHEET[name]
            label = f"{self.name}: {name} ({self.sources.get(attribute, 'derived')})"
            source = Source(Grade.THEORY, label, anchor="devices")
            value = getattr(self, attribute, None)
            value = getattr(self.arch, attribute) if value is None else value
            return Quantity.of(float(value), unit, Grade.THEORY, (source,))
        raise DeviceError(f"no figure {name!r} in a spec sheet", hint="known: " + ", ".join(SHEET))


# Name in an article -> (unit of the attribute, attribute of Device or Arch).
SHEET: dict[str, tuple[str, str]] = {
    "bandwidth": ("B/s", "bandwidth"),
    "fp32_flops": ("FLOP/s", "fp32_flops"),
    "fp32_adds": ("FLOP/s", "fp32_adds"),
    "ridge": ("FLOP/B", "ridge"),
    "shared_bandwidth": ("B/s", "shared_bandwidth"),
    "shared_ridge": ("FLOP/B", "shared_ridge"),
    "sms": ("", "sms"),
    "clock": ("Hz", "clock_hz"),
    "l2": ("B", "l2_bytes"),
    "memory_bytes": ("B", "memory_bytes"),
    "memory_bus_bits": ("", "memory_bus_bits"),
    "memory_bit_rate": ("Hz", "memory_bit_rate_hz"),
    "max_threads_per_sm": ("", "max_threads_per_sm"),
    "max_blocks_per_sm": ("", "max_blocks_per_sm"),
    "shared_per_sm": ("B", "shared_bytes_per_sm"),
    "fp32_lanes_per_sm": ("", "fp32_lanes_per_sm"),
}


@dataclass(frozen=True)
class Sheets:
    """All of devices.toml."""

    reference: str
    devices: Mapping[str, Device]
    archs: Mapping[str, Arch]
    sources: Mapping[str, str]

    def device(self, slug: str) -> Device:
        """The sheet of a card; raises DeviceError naming the known ones."""
        try:
            return self.devices[slug]
        except KeyError:
            known = ", ".join(self.devices)
            raise DeviceError(f"no spec sheet for {slug!r}", hint=f"known: {known}") from None

    def arch(self, name: str) -> Arch:
        """Limits of an architecture; an unlisted one takes the nearest listed below it."""
        if name in self.archs:
            return self.archs[name]
        number = _number(name)
        below = [a for a in self.archs if _number(a) <= number]
        if not below:
            raise DeviceError(f"architecture {name!r} is older than any supported one (sm_75)")
        return self.archs[max(below, key=_number)]


def _number(arch: str) -> int:
    return int("".join(c for c in arch if c.isdigit()) or 0)


@cache
def sheets() -> Sheets:
    """The spec sheets shipped with the package."""
    data = tomllib.loads((files("kernelbook") / "devices.toml").read_text(encoding="utf-8"))
    archs = {name: Arch(name=name, **limits) for name, limits in data["arch"].items()}
    devices = {
        slug: Device(
            slug=slug,
            **{k: v for k, v in d.items() if k not in ("arch", "sources")},
            arch=archs[d["arch"]],
            sources={k: data["sources"][v] for k, v in d["sources"].items()},
        )
        for slug, d in data["device"].items()
    }
    return Sheets(data["reference"], devices, archs, data["sources"])


@dataclass(frozen=True)
class Occupancy:
    """Theoretical occupancy of one SM and what limits it."""

    blocks: int
    warps: int
    fraction: float
    limit: str  # "threads", "registers", "shared memory", "blocks" or "does not fit"


def occupancy(arch: Arch, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Resident blocks of one SM, by NVIDIA's occupancy rules.

    threads: threads a block; registers: a thread; shared_bytes: static plus dynamic, a block.
    """
    warps = ceil_div(threads, WARP)
    max_warps = arch.max_threads_per_sm // WARP
    per_warp = ceil_div(max(registers, 1) * WARP, REGISTERS_PER_WARP_GRANULE)
    warps_by_registers = REGISTERS_PER_SM // (per_warp * REGISTERS_PER_WARP_GRANULE)
    warps_by_registers -= warps_by_registers % WARP_SLOTS
    needed = shared_bytes + arch.reserved_shared_bytes_per_block
    granule = arch.shared_granularity
    by = {
        "blocks": arch.max_blocks_per_sm,
        "threads": max_warps // warps,
        "registers": warps_by_registers // warps,
    }
    if needed:
        by["shared memory"] = arch.shared_bytes_per_sm // (ceil_div(needed, granule) * granule)
    blocks = min(by.values())
    if blocks == 0:
        return Occupancy(0, 0, 0.0, "does not fit")
    order = ("threads", "registers", "shared memory", "blocks")
    limit = next(name for name in order if by.get(name) == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / max_warps, limit)
