"""Cheap questions about a batch's lane masks, asked once per event by several observers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP

_WORDS = WARP // 8  # a warp's 32 bools as four 8-byte words


def busy_warps(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which warps have a lane in a (lanes,) mask: (warps,) bool."""
    words = np.ascontiguousarray(mask).view(np.uint64).reshape(-1, _WORDS)
    return np.asarray((words[:, 0] | words[:, 1] | words[:, 2] | words[:, 3]) != 0)


def count_busy_warps(mask: NDArray[np.bool_]) -> int:
    """How many warps have a lane in a (lanes,) mask."""
    return int(np.count_nonzero(busy_warps(mask)))


class MaskCounts:
    """Lanes and warps of a mask, remembered while the machine passes the same array again.

    Only the batch's own ``exists`` array is known not to change between events; every other mask is
    counted anew.
    """

    def __init__(self, exists: NDArray[np.bool_]) -> None:
        self._exists = exists
        self._all = (int(np.count_nonzero(exists)), count_busy_warps(exists))

    def of(self, mask: NDArray[np.bool_]) -> tuple[int, int]:
        """(lanes, warps) of a (lanes,) mask."""
        if mask is self._exists:
            return self._all
        return int(np.count_nonzero(mask)), count_busy_warps(mask)
