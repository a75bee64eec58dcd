"""How many 32-byte sectors one warp-wide global or local access touches.

Global memory moves in sectors of 32 bytes. A warp-wide load or store is one request; it touches
each sector once, however many of its lanes lie in it (``l1tex__t_requests_pipe_lsu_mem_global_op``
and ``l1tex__t_sectors_pipe_lsu_mem_global_op`` count the same). A lane's access is aligned to its
size and at most 32 bytes, so it never straddles two sectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SECTOR = 32  # bytes


def sectors(addresses: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Distinct sectors a warp touches, for each warp.

    Parameters
    ----------
    addresses : (warps, 32) byte addresses; meaningless where ``active`` is False.
    active : (warps, 32) bool.

    Returns
    -------
    (warps,) int64; 0 for a warp without an active lane.
    """
    sector = addresses // SECTOR
    if not active.all():
        some = np.where(active, sector, np.iinfo(np.int64).min).max(axis=1, keepdims=True)
        sector = np.where(active, sector, some)
    step = np.diff(sector, axis=1)
    unsorted = (step < 0).any(axis=1)
    if unsorted.any():  # most accesses rise with the lane: sort the others only
        sector[unsorted] = np.sort(sector[unsorted], axis=1)
        step = np.diff(sector, axis=1)
    return (1 + np.count_nonzero(step, axis=1)) * active.any(axis=1)
