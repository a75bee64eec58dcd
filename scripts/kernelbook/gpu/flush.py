"""Flushing L2 between samples, and keeping the device busy while the host queues the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..records import DeviceInfo

SOURCE = Path(__file__).with_name("flush.cu")
READ_L2S = 3  # reads this many times the L2: its replacement is no perfect LRU, twice is the least
SPIN_S = 60e-6  # longer than the host needs to queue flush, event, launch and event
THREADS = 256
BLOCKS_PER_SM = 8
VECTOR_BYTES = 16
NEVER = np.float32(-1.0)  # no sum of the scratch memory, which holds zeros

Load = Callable[[str], Callable[..., None]]  # entry name -> callable(grid, block, args)


class Flush:
    """The harness's own kernels with their scratch memory.

    ``load`` gives a callable ``(grid, block, args)`` by entry name; ``xp`` allocates.
    """

    def __init__(self, xp: Any, load: Load, info: DeviceInfo) -> None:
        size = max(info.l2_bytes, 1 << 20)
        self._grid = (info.sms * BLOCKS_PER_SM, 1, 1)
        self._write = load("flush_write")
        self._read = load("flush_read")
        self._spin = load("spin")
        self._empty = load("empty")
        self._cycles = np.int64(SPIN_S * info.sm_clock_max_mhz * 1e6)
        self._written = xp.zeros(size // 4, dtype=xp.float32)
        self._unread = xp.zeros(READ_L2S * size // 4, dtype=xp.float32)
        self._sink = xp.zeros(1, dtype=xp.float32)
        mib = size / 2**20
        self.words = f"write {mib:.0f} MiB, then read {READ_L2S * mib:.0f} MiB of other memory"

    def flush(self) -> None:
        """Write scratch memory once, then read other memory: L2 holds neither data nor dirt."""
        block = (THREADS, 1, 1)
        written = np.int64(self._written.nbytes // VECTOR_BYTES)
        unread = np.int64(self._unread.nbytes // VECTOR_BYTES)
        self._write(self._grid, block, (self._written, written, np.float32(0.0)))
        self._read(self._grid, block, (self._unread, unread, NEVER, self._sink))

    def spin(self) -> None:
        """Occupy the device for about `SPIN_S`."""
        self._spin((1, 1, 1), (1, 1, 1), (self._cycles,))

    def empty(self) -> None:
        """Launch a kernel that does nothing."""
        self._empty((1, 1, 1), (1, 1, 1), ())
