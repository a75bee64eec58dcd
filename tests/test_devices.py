"""Spec sheets and the theory computed from them."""

import pytest

from kernelbook.devices import occupancy, sheets
from kernelbook.errors import DeviceError


def test_the_peaks_of_the_reference_device_follow_from_its_sheet() -> None:
    h200 = sheets().device("nvidia-h200")
    assert h200.fp32_flops == 132 * 128 * 2 * 1.98e9
    assert h200.bandwidth == pytest.approx(4.814304e12)
    assert h200.ridge == pytest.approx(13.9, abs=0.01)
    assert h200.shared_ridge == 2.0


def test_the_4090_has_the_peaks_its_maker_prints() -> None:
    card = sheets().device("nvidia-geforce-rtx-4090")
    assert card.fp32_flops == pytest.approx(82.6e12, rel=1e-3)
    assert card.bandwidth == 1008e9


def test_every_figure_names_its_source() -> None:
    for device in sheets().devices.values():
        for name in ("sms", "clock_hz", "l2_bytes", "memory_bus_bits", "memory_bit_rate_hz"):
            assert device.sources[name]


def test_a_figure_knows_its_unit() -> None:
    assert sheets().device("nvidia-h200").figure("l2").to("MiB") == 60.0
    with pytest.raises(DeviceError, match="no figure 'speed'"):
        sheets().device("nvidia-h200").figure("speed")


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "fraction", "limit"),
    [
        # 2048 threads an SM, 32 registers: two blocks of 1024 fill it.
        ("sm_90", 1024, 32, 8192, 2, 1.0, "threads"),
        # 1536 threads an SM hold one block of 1024.
        ("sm_89", 1024, 38, 8192, 1, 2 / 3, "threads"),
        # 94 registers round to 96 a thread: 96 * 256 = 24,576 of 65,536, two blocks of 8 warps.
        ("sm_89", 256, 94, 8192, 2, 1 / 3, "registers"),
        ("sm_90", 256, 94, 8192, 2, 0.25, "registers"),
        # 100 KiB and the reserved 1 KiB a block: two blocks in 228 KiB.
        ("sm_90", 128, 32, 102400, 2, 8 / 64, "shared memory"),
        # 32 blocks an SM at most.
        ("sm_90", 32, 16, 0, 32, 0.5, "blocks"),
        ("sm_75", 1024, 80, 0, 0, 0.0, "does not fit"),
    ],
)
def test_theoretical_occupancy(
    arch: str, threads: int, registers: int, shared: int, blocks: int, fraction: float, limit: str
) -> None:
    found = occupancy(sheets().arch(arch), threads, registers, shared)
    assert (found.blocks, found.fraction, found.limit) == (blocks, pytest.approx(fraction), limit)


def test_an_unlisted_architecture_takes_the_nearest_older_one() -> None:
    assert sheets().arch("sm_103").name == "sm_100"
    with pytest.raises(DeviceError):
        sheets().arch("sm_60")
