"""How many 32-byte sectors warp-wide global or local accesses touch.

Global memory moves in sectors of 32 bytes. A warp-wide load or store is one request; it touches
each sector once, however many of its lanes lie in it (``l1tex__t_requests_pipe_lsu_mem_global_op``
and ``l1tex__t_sectors_pipe_lsu_mem_global_op`` count the same). A lane's access is aligned to its
size and at most 32 bytes, so it never straddles two sectors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP

SECTOR = 32  # bytes
_SHIFT = 5


def sectors(addresses: NDArray[np.int64], active: NDArray[np.bool_]) -> int:
    """Sectors touched by the warps of one instruction, each warp's distinct sectors added up.

    Parameters
    ----------
    addresses : (lanes,) byte addresses; meaningless where ``active`` is False.
    active : (lanes,) bool; lanes come in whole warps of 32.
    """
    sector = (addresses >> _SHIFT).reshape(-1, WARP)
    mask = active.reshape(-1, WARP)
    if not active.all():
        some = np.where(mask, sector, -1).max(axis=1)
        used = some >= 0
        sector, mask, some = sector[used], mask[used], some[used]
        sector = np.where(mask, sector, some[:, None])
    if sector.size and not (sector[:, 1:] >= sector[:, :-1]).all():
        # Most accesses rise with the lane; the others are sorted first.
        sector = np.sort(sector, axis=1)
    return sector.shape[0] + int(np.count_nonzero(sector[:, 1:] != sector[:, :-1]))
