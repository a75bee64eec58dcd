"""Global and local memory: requests, sectors and bytes, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kernelbook.ptx.observers.sectors import sectors

from .conftest import Launch, kernel

LANE = np.arange(32, dtype=np.int64)
EVERY = np.ones(32, dtype=bool)


@pytest.mark.parametrize(
    ("bytes_apart", "expected"),
    [
        (0, 1),  # a broadcast
        (4, 4),  # 128 contiguous bytes
        (8, 8),  # every other word
        (16, 16),  # 16 bytes a lane, contiguous
        (32, 32),  # a sector each
        (512, 32),
    ],
)
def test_a_warp_touches_each_sector_once(bytes_apart: int, expected: int) -> None:
    assert sectors(LANE * bytes_apart, EVERY) == expected


def test_a_misaligned_row_touches_one_sector_more() -> None:
    assert sectors(LANE * 4 + 4, EVERY) == 5


def test_the_order_of_lanes_does_not_matter() -> None:
    assert sectors((31 - LANE) * 4, EVERY) == 4
    assert sectors((LANE * 7 % 32) * 4, EVERY) == 4


def test_inactive_lanes_touch_nothing() -> None:
    even = LANE % 2 == 0
    assert sectors(np.where(even, LANE * 4, 1 << 40), even) == 4
    assert sectors(LANE, np.zeros(32, dtype=bool)) == 0


def test_warps_are_counted_one_by_one() -> None:
    addresses = np.concatenate([LANE * 4, LANE * 0, LANE * 32])
    assert sectors(addresses, np.ones(96, dtype=bool)) == 4 + 1 + 32


def test_loads_and_stores_are_counted_apart(launch: Launch) -> None:
    source = kernel("int i = blockIdx.x * 64 + t; y[i] = x[2 * i];", "const float* x, float* y")
    run = launch(source, 3, 64, [np.zeros(384, np.float32), np.zeros(192, np.float32)])
    counted = run.counts.total.global_memory
    assert counted is not None
    # 3 blocks of 2 warps: one request each; every other float is 8 sectors, contiguous ones are 4.
    load, store = counted.load, counted.store
    assert (load.requests, load.sectors, load.bytes) == (6, 48, 3 * 64 * 4)
    assert (store.requests, store.sectors, store.bytes) == (6, 24, 3 * 64 * 4)
    assert load.sectors_per_request == 8


def test_a_16_byte_load_is_one_request_of_16_sectors(launch: Launch) -> None:
    source = kernel("y[t] = x[t];", "const float4* x, float4* y")
    run = launch(source, 1, 32, [np.zeros(128, np.float32), np.zeros(128, np.float32)])
    counts = run.counts.to_dict()
    assert counts["global_load_requests"] == 1
    assert counts["global_load_sectors"] == 16
    assert counts["global_load_bytes"] == 512


def test_a_warp_with_no_active_lane_makes_no_request(launch: Launch) -> None:
    source = kernel("if (t < 40) out[t] = t;")
    counts = launch(source, 1, 128, [np.zeros(40, np.int32)]).counts.to_dict()
    assert counts["global_store_requests"] == 2
    assert counts["global_store_sectors"] == 4 + 1
    assert counts["global_store_bytes"] == 160


def test_atomics_are_neither_loads_nor_stores(launch: Launch) -> None:
    source = kernel("atomicAdd(&out[t % 8], 1);")
    counts = launch(source, 2, 64, [np.zeros(8, np.int32)]).counts.to_dict()
    assert counts["global_atomic_requests"] == 4
    assert counts["global_atomic_sectors"] == 4
    assert counts["global_load_requests"] == counts["global_store_requests"] == 0
    assert counts["atomics"] == 4


def test_counts_come_by_source_line(launch: Launch) -> None:
    source = kernel("float a = x[t];\nfloat b = x[32 * t];\ny[t] = a + b;", "float* x, float* y")
    run = launch(source, 1, 32, [np.zeros(1024, np.float32), np.zeros(32, np.float32)])
    by_line = {row.line: row.counts.to_dict() for row in run.counts.lines}
    assert by_line[2]["global_load_sectors"] == 4
    assert by_line[3]["global_load_sectors"] == 32
    assert by_line[4]["global_store_sectors"] == 4
    assert by_line[4]["fadd"] == 32


def test_local_memory_is_interleaved_by_lane(launch: Launch) -> None:
    source = kernel("int a[8]; for (int i = 0; i < 8; ++i) a[i] = out[i];\nout[t] = a[out[t] & 7];")
    counts = launch(source, 1, 32, [np.zeros(32, np.int32)]).counts.to_dict()
    # The same element of every lane's array: 32 words side by side.
    assert counts["local_load_requests"] == 1
    assert counts["local_load_sectors"] == 4
    assert counts["local_store_sectors"] == 4 * (8 * 4 // 4)
