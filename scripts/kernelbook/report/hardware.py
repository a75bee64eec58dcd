"""Boxes that describe the cards whose numbers are shown."""

from __future__ import annotations

from typing import Literal

from ..devices import Device, Sheets
from ..experiment import Text
from ..quantities import Grade
from ..records import DeviceInfo
from .book import Book
from .model import Box, Cell, Figure, both
from .show import convert

# key, attribute of Device, base unit, shown unit, format, words
_FIGURES = (
    ("sms", "sms", "", "", ",.0f", Text("SM 数", "SMs")),
    ("clock", "clock_hz", "Hz", "MHz", ",.0f", Text("最高 SM 时钟", "highest SM clock")),
    ("fp32_flops", "fp32_flops", "FLOP/s", "TFLOPS", ",.1f", Text("FP32 峰值", "FP32 peak")),
    ("bandwidth", "bandwidth", "B/s", "GB/s", ",.0f", Text("显存带宽", "DRAM bandwidth")),
    ("memory_bytes", "memory_bytes", "B", "GiB", ",.0f", Text("显存容量", "DRAM size")),
    ("l2", "l2_bytes", "B", "MiB", ",.0f", Text("L2 容量", "L2 size")),
    ("ridge", "ridge", "FLOP/B", "FLOP/B", ",.1f", Text("显存拐点", "DRAM ridge point")),
    (
        "shared_ridge", "shared_ridge", "FLOP/B", "FLOP/B", ",.1f",
        Text("共享内存拐点", "shared-memory ridge point"),
    ),
)  # fmt: skip
# What is computed and not on any sheet, by the names of `devices.SHEET`.
FORMULAS = {
    "fp32_flops": "sms · fp32_lanes_per_sm · 2 · clock",
    "bandwidth": "memory_bus_bits · memory_bit_rate / 8",
    "shared_bandwidth": "sms · 128 B · clock",
    "ridge": "fp32_flops / bandwidth",
    "shared_ridge": "fp32_flops / shared_bandwidth",
}
_REPORTED = (
    "sms",
    "clock_hz",
    "l2_bytes",
    "memory_bytes",
    "memory_bus_bits",
    "memory_bit_rate_hz",
)
DDR = 2  # transfers a clock of the memory clock the driver names


def hardware(book: Book) -> tuple[Box, ...]:
    """A box for the reference device and for each card with records; cited cards last."""
    boxes: dict[str, Box] = {}
    reference = book.sheets.device(book.sheets.reference)
    boxes[reference.slug] = _box(reference, "reference")
    for item in (*book.records_of("measured"), *book.records_of("cited")):
        record = item.record
        if record.slug in boxes or not record.slug:
            continue
        sheet = book.sheets.devices.get(record.slug)
        if sheet is None and record.device is not None:
            sheet = device_of(record.device, book.sheets)
        if record.evidence == "cited":
            role: Literal["published", "local", "cited"] = "cited"
        else:
            role = "local" if item.local else "published"
        if sheet is None:
            boxes[record.slug] = Box(record.slug, record.slug, role, ())
        else:
            boxes[record.slug] = _box(sheet, role)
    return tuple(boxes.values())


def device_of(info: DeviceInfo, sheets: Sheets) -> Device:
    """A sheet for a card without one, from what its driver reported."""
    driver = f"driver {info.driver}, CUDA {info.cuda}"
    return Device(
        slug=info.slug,
        name=info.name,
        arch=sheets.arch(f"sm_{info.cc[0]}{info.cc[1]}"),
        sms=info.sms,
        clock_hz=info.sm_clock_max_mhz * 1e6,
        l2_bytes=info.l2_bytes,
        memory="",
        memory_bytes=info.memory_bytes,
        memory_bus_bits=info.memory_bus_bits,
        memory_bit_rate_hz=info.memory_clock_mhz * 1e6 * DDR,
        sources=dict.fromkeys(_REPORTED, driver),
    )


def _box(device: Device, role: Literal["reference", "published", "local", "cited"]) -> Box:
    figures = [Figure("arch", Text("架构", "architecture"), Cell(both(device.arch.name)))]
    if device.memory:
        kind = Cell(both(device.memory), detail=device.sources.get("memory", ""))
        figures.append(Figure("memory", Text("显存类型", "DRAM type"), kind))
    for key, attribute, base, unit, spec, title in _FIGURES:
        try:
            text = format(convert(float(getattr(device, attribute)), base, unit), spec)
        except ZeroDivisionError:
            continue  # a driver that reports no memory clock: no bandwidth, no ridge
        source = device.sources.get(attribute, "") or FORMULAS.get(key, "")
        figures.append(Figure(key, title, Cell(both(text), Grade.THEORY, detail=source), unit))
    return Box(device.slug, device.name, role, tuple(figures))
