"""The fastest way to read inputs once, as a baseline: what no kernel that needs them all can beat.

A library row says how to read: ``read_limit 512x8 4/SM`` is 512 threads a block, 8 vectors of 16
bytes a thread and round, 4 blocks an SM that take rounds in turn; ``read_limit 512x8 stretch 2``
is a block for every 2 rounds that lie side by side. ``cached`` at the end lets L1 keep what is
read. Which way is the fastest depends on the size and the card: a chapter times several and
names the best.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler import compile_source
from ..errors import DeviceError, ExperimentError

SOURCE = Path(__file__).with_name("read_limit.cu")
WORD_BYTES, VECTOR_BYTES = 4, 16
_NAME = re.compile(
    r"read_limit (?P<threads>\d+)x(?P<vectors>\d+) "
    r"(?:(?P<blocks>\d+)/SM|stretch (?P<stretch>\d+))(?P<cached> cached)?"
)


@dataclass(frozen=True)
class Reading:
    """A way of reading; either ``blocks`` an SM or ``stretch`` rounds a block, the other is 0."""

    threads: int
    vectors: int
    blocks: int
    stretch: int
    cached: bool

    @staticmethod
    def parse(name: str) -> Reading:
        """The way that a row's routine names; raises ExperimentError."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise ExperimentError(
                f"{name!r} is no way of reading", hint="such as 'read_limit 512x8 4/SM'"
            )
        number = {k: int(v) if v else 0 for k, v in found.groupdict().items() if k != "cached"}
        return Reading(**number, cached=bool(found["cached"]))

    @property
    def macros(self) -> Mapping[str, int]:
        return {
            "THREADS": self.threads,
            "VECTORS": self.vectors,
            "STRETCH": self.stretch,
            "ALLOCATE": int(self.cached),
        }

    def grid(self, bytes_each: tuple[int, ...], sms: int) -> int:
        """Blocks for arrays of so many bytes: never more than there are rounds, at least one."""
        per_round = self.threads * self.vectors * VECTOR_BYTES
        rounds = sum(-(-size // per_round) for size in bytes_each)
        wanted = -(-rounds // self.stretch) if self.stretch else min(rounds, sms * self.blocks)
        return max(wanted, 1)


@cache
def _function(reading: Reading, arch: str, module: Callable[[], Any]) -> Any:
    loaded = module()
    loaded.load(compile_source(SOURCE, arch, macros=reading.macros).cubin)
    return loaded.get_function("read_limit")


def bind(
    cupy: Any, name: str, arch: str, arrays: tuple[Any, ...]
) -> tuple[Callable[[], None], Callable[[], str]]:
    """(launch, check) of reading one or two CuPy arrays in the way that ``name`` says.

    The check holds the sum of all words, modulo 2^32, to CuPy's. Raises ExperimentError for other
    arrays than one or two of whole words, DeviceError where they do not start on 16 bytes.
    """
    reading = Reading.parse(name)
    sizes = tuple(int(a.nbytes) for a in arrays)
    if not 1 <= len(arrays) <= 2 or any(size % WORD_BYTES for size in sizes):
        raise ExperimentError(f"{name!r} reads one or two arrays of whole words of 4 bytes")
    if any(a.data.ptr % VECTOR_BYTES for a in arrays):
        raise DeviceError(f"{name!r} reads arrays that start on 16 bytes")
    function = _function(reading, arch, cupy.cuda.function.Module)
    sms = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    grid, block = (reading.grid(sizes, sms), 1, 1), (reading.threads, 1, 1)
    first, second = arrays[0], arrays[-1]
    counts = np.int64(sizes[0] // WORD_BYTES), np.int64(sum(sizes[1:]) // WORD_BYTES)
    nowhere = cupy.zeros(1, dtype=cupy.uint32)

    def read(sums: Any, keep: int) -> None:
        function(grid, block, (first, counts[0], second, counts[1], sums, np.int32(keep)))

    def check() -> str:
        sums = cupy.zeros(grid[0] * reading.threads, dtype=cupy.uint32)
        read(sums, 1)
        words = [a.reshape(-1).view(cupy.uint32).sum(dtype=cupy.uint32) for a in arrays]
        same = int(sums.sum(dtype=cupy.uint32)) == sum(map(int, words)) % 2**32
        return "" if same else "not everything was read, or something twice"

    return lambda: read(nowhere, 0), check
