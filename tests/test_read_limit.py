"""The read limit: every word once, whatever the way of reading, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelbook import ptx
from kernelbook.compiler import compile_source
from kernelbook.errors import ExperimentError
from kernelbook.gpu.read_limit import SOURCE, Reading


def test_a_name_says_how_to_read() -> None:
    assert Reading.parse("read_limit 512x8 4/SM") == Reading(512, 8, 4, 0, False)
    assert Reading.parse("read_limit 256x4 stretch 2 cached") == Reading(256, 4, 0, 2, True)
    with pytest.raises(ExperimentError, match="'read_limit 512' is no way of reading"):
        Reading.parse("read_limit 512")


def test_a_grid_never_has_more_blocks_than_there_are_rounds() -> None:
    by_sm = Reading.parse("read_limit 256x4 8/SM")  # a round is 16 KiB
    assert by_sm.grid((1 << 20,), 132) == 64
    assert by_sm.grid((1 << 28,), 132) == 1056
    assert by_sm.grid((16,), 132) == 1
    stretched = Reading.parse("read_limit 256x4 stretch 2")
    assert stretched.grid((1 << 20,), 132) == 32
    assert stretched.grid((1 << 20, 5 << 14), 132) == 35  # 64 + 5 rounds, the last block has one


@pytest.mark.parametrize("how", ["64x2 2/SM", "64x2 stretch 1", "128x1 stretch 3 cached"])
@pytest.mark.parametrize(("na", "nb"), [(4003, 0), (512, 512), (1, 16_389), (16_384, 15), (3, 2)])
def test_every_word_of_both_arrays_is_read_once(
    how: str, na: int, nb: int, compile_cache: Path
) -> None:
    reading = Reading.parse(f"read_limit {how}")
    text = compile_source(SOURCE, "sm_90", macros=reading.macros, cache_dir=compile_cache).ptx
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 2**32, n, dtype=np.uint32) for n in (na, nb))
    grid = reading.grid((a.nbytes, b.nbytes), sms=3)
    sums = np.zeros(grid * reading.threads, np.uint32)
    second = b if nb else a  # an empty array's place is never read
    arguments = [a, np.int64(na), second, np.int64(nb), sums, np.int32(1)]
    done = ptx.run(text, "read_limit", grid, reading.threads, arguments)
    assert not done.findings
    assert int(sums.sum(dtype=np.uint32)) == (int(a.sum()) + int(b.sum())) % 2**32
    assert done.counts.to_dict()["global_load_bytes"] == a.nbytes + b.nbytes


def test_nothing_is_stored_unless_it_is_asked_for(compile_cache: Path) -> None:
    reading = Reading.parse("read_limit 64x2 1/SM")
    text = compile_source(SOURCE, "sm_90", macros=reading.macros, cache_dir=compile_cache).ptx
    a, sums = np.ones(2400, np.uint32), np.zeros(1, np.uint32)
    arguments = [a, np.int64(a.size), a, np.int64(0), sums, np.int32(0)]
    counts = ptx.run(text, "read_limit", 3, 64, arguments).counts.to_dict()
    assert counts["global_load_bytes"] == a.nbytes
    assert counts["global_store_requests"] == 0
