"""Shared memory: the wavefront rule on patterns worked out by hand, and on what a GPU counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import golden_patterns
from kernelbook.ptx.observers.sectors import sectors
from kernelbook.ptx.observers.wavefronts import passes_and_groups, wavefronts

from .conftest import Launch, kernel

LANE = np.arange(32, dtype=np.int64)
EVERY = np.ones(32, dtype=bool)


def passes(
    addresses: np.ndarray, size: int, active: np.ndarray = EVERY, *, store: bool = False
) -> int:
    return int(wavefronts(addresses[None], active[None], size, store=store)[0])


@pytest.mark.parametrize(
    ("words_apart", "expected"),
    [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (31, 1), (32, 32), (33, 1)],
)
def test_a_stride_conflicts_as_often_as_it_shares_factors_with_32(
    words_apart: int, expected: int
) -> None:
    assert passes(LANE * words_apart * 4, 4) == expected


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint64])
def test_lanes_that_do_not_take_part_ask_for_nothing(dtype: type) -> None:
    """Lane 0 alone asks for bank 31: the inactive ones must not add a second word to that bank."""
    only_the_first = LANE == 0
    assert passes((LANE * 4 + 124).astype(dtype), 4, only_the_first) == 1


def test_lanes_of_one_word_share_a_pass() -> None:
    assert passes(LANE // 8 * 4, 4) == 1
    assert passes(LANE // 16 * 128, 4) == 2  # two words of bank 0


def test_a_padded_column_does_not_conflict() -> None:
    assert passes(LANE * 33 * 4 + 20, 4) == 1


def test_bytes_and_halves_of_one_word_share_a_pass() -> None:
    assert passes(LANE, 1) == 1
    assert passes(LANE * 2, 2) == 1


def test_wide_accesses_are_served_by_groups_of_lanes() -> None:
    assert passes(LANE * 8, 8) == 2
    assert passes(LANE * 16, 16) == 4


def test_loading_one_address_takes_one_pass_and_two_at_16_bytes() -> None:
    assert [passes(LANE * 0 + 64, size) for size in (4, 8, 16)] == [1, 1, 2]


def test_storing_to_one_address_takes_a_pass_for_every_group() -> None:
    assert [passes(LANE * 0 + 64, size, store=True) for size in (4, 8, 16)] == [1, 2, 4]


def test_neighbours_that_load_one_address_are_served_together() -> None:
    for partner in (LANE // 2, LANE // 4 * 2 + LANE % 2):  # lanes i ^ 1, lanes i ^ 2
        assert passes(partner * 8, 8) == 1
        assert passes(partner * 16, 16) == 2
    assert passes(LANE // 2 * 16, 16, store=True) == 4


def test_one_lane_that_goes_its_own_way_parts_them_all() -> None:
    apart = LANE // 2 * 16
    apart[3] += 16
    assert passes(apart, 16) == 4


def test_inactive_lanes_take_no_part() -> None:
    assert passes(LANE * 128, 4, LANE == 5) == 1
    assert passes(LANE * 128, 4, LANE < 3) == 3
    assert passes(LANE * 0, 4, LANE < 0) == 0
    assert passes(LANE * 16, 16, LANE < 8) == 1


def test_a_common_shift_of_whole_words_changes_nothing() -> None:
    generator = np.random.default_rng(3)
    for size in (4, 8, 16):
        addresses = generator.integers(0, 64, 32) * size
        assert passes(addresses + 4 * 13, size) == passes(addresses, size)


def test_the_conflict_degree_is_one_without_conflicts() -> None:
    for addresses, size in ((LANE * 4, 4), (LANE * 8, 8), (LANE * 16, 16), (LANE * 0, 16)):
        found, ideal = passes_and_groups(addresses[None], EVERY[None], size, store=False)
        assert found[0] == ideal[0]


def test_a_column_of_a_square_tile_conflicts_32_times(launch: Launch) -> None:
    source = """extern "C" __global__ void k(float* out) {
        __shared__ float tile[32][32 + PAD];
        int x = threadIdx.x, y = threadIdx.y;
        tile[y][x] = x;
        __syncthreads();
        out[y * 32 + x] = tile[x][y];
    }"""
    for pad, ways in ((0, 32), (1, 1)):
        run = launch(source, 2, (32, 32), [np.zeros(1024, np.float32)], macros={"PAD": pad})
        shared = run.counts.total.shared_memory
        assert shared is not None
        assert (shared.store.instructions, shared.store.wavefronts) == (64, 64)
        assert (shared.load.instructions, shared.load.wavefronts) == (64, 64 * ways)
        assert shared.load.conflict_degree == shared.load.worst == ways
        assert shared.load.bytes == 2 * 1024 * 4


def test_blocks_that_differ_are_counted_one_by_one(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[1024]; s[t * (blockIdx.x + 1) & 1023] = t; __syncthreads();out[t] = s[t];"
    )
    shared = launch(source, 4, 32, [np.zeros(32, np.int32)]).counts.total.shared_memory
    assert shared is not None
    assert shared.store.wavefronts == 1 + 2 + 1 + 4  # strides 1, 2, 3 and 4


def test_golden_patterns_are_the_same_on_every_machine() -> None:
    every = golden_patterns.patterns()
    assert len(every) == len(set(every)) >= 360
    assert sum(p.space == "shared" for p in every) >= 300
    assert golden_patterns.elements("random", 256, 9)[:4].tolist() == RANDOM_9
    for pattern in every:
        assert (pattern.addresses() % pattern.size == 0).all()


RANDOM_9 = [35, 55, 184, 15]


@pytest.fixture(scope="module")
def golden(root: Path) -> list[tuple[golden_patterns.Pattern, list[int]]]:
    file = root / "tests" / "golden" / "patterns.json"
    if not file.exists():
        pytest.skip("no golden patterns yet: scripts/golden_patterns.py takes them on a GPU")
    return golden_patterns.read(file)


def test_the_rules_reproduce_every_pattern_a_gpu_counted(
    golden: list[tuple[golden_patterns.Pattern, list[int]]],
) -> None:
    wrong = []
    for pattern, counted in golden:
        addresses, active = pattern.addresses(), pattern.active()
        if pattern.space == "shared":
            ours = [passes(addresses, pattern.size, active, store=pattern.op == "st")]
        else:
            ours = [int(active.any()), sectors(addresses, active)]
        if ours != counted:
            wrong.append((pattern, ours, counted))
    assert not wrong
