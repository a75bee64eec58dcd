"""How many passes ("wavefronts") shared memory needs for one warp-wide instruction.

Shared memory is 32 banks of 4 bytes; word ``w`` lives in bank ``w % 32``. One pass serves each bank
once: any number of lanes may read the same word in it, two different words of one bank may not.
So the passes of a group of lanes are the largest number of distinct words they want of one bank.

What hardware takes as one group depends on the width a lane accesses:

* up to 4 bytes: the whole warp;
* 8 bytes: each half-warp by itself, but the whole warp at once when lanes pair up (below);
* 16 bytes: each quarter-warp by itself, but a half-warp at once when its lanes pair up.

Lanes *pair up* when every active lane ``i`` has a partner, ``i ^ 1`` for all or ``i ^ 2`` for all,
that is inactive or asks for the same address. One address for the whole warp therefore takes one
pass at 4 and 8 bytes and two at 16. ``tests/golden/patterns.json`` holds what a GPU's own counter
(``l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}``) said of several hundred patterns; the
rule here reproduces each of them.

The result depends on differences of word addresses only: it does not change when all lanes of a
warp move by a common multiple of 4 bytes, which lets a caller reuse it for another offset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..events import WARP

BANKS = 32
WORD = 4  # bytes


def wavefronts(
    addresses: NDArray[np.int64], active: NDArray[np.bool_], size: int
) -> NDArray[np.int64]:
    """Passes of one shared-memory instruction, for each warp.

    Parameters
    ----------
    addresses : (warps, 32) byte addresses; meaningless where ``active`` is False.
    active : (warps, 32) bool.
    size : bytes a lane accesses: 1, 2, 4, 8 or 16.

    Returns
    -------
    (warps,) int64; 0 for a warp without an active lane.
    """
    if size <= WORD:
        return _passes(addresses, active, 1)
    words = size // WORD
    group = WARP // words  # lanes served together when they do not pair up
    wide = 2 * group
    single = _passes(addresses.reshape(-1, group), active.reshape(-1, group), words)
    single = single.reshape(-1, 2).sum(axis=1)
    pair_addresses = addresses.reshape(-1, wide)
    pair_active = active.reshape(-1, wide)
    paired = _pair_up(pair_addresses, pair_active)
    if paired.any():
        single[paired] = _passes(pair_addresses[paired], pair_active[paired], words)
    return single.reshape(addresses.shape[0], -1).sum(axis=1)


def ideal_wavefronts(active: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Passes the same lanes would take if each asked for its own word and no bank conflicted.

    That is the bytes asked for over the 128 bytes a pass can deliver, rounded up. A warp that
    shares words (a broadcast) can take fewer.

    Parameters
    ----------
    active : (warps, 32) bool.
    size : bytes a lane accesses.

    Returns
    -------
    (warps,) int64.
    """
    lanes = np.count_nonzero(active, axis=1)
    return (lanes * max(size, WORD) + BANKS * WORD - 1) // (BANKS * WORD)


def _pair_up(addresses: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all lanes of each row agree with a neighbour, one way or the other: (rows,) bool."""
    lanes = np.arange(addresses.shape[1])
    result = np.zeros(addresses.shape[0], dtype=np.bool_)
    for distance in (1, 2):
        other = lanes ^ distance
        alone = ~(active & active[:, other])
        result |= (alone | (addresses == addresses[:, other])).all(axis=1)
    return result


def _passes(
    addresses: NDArray[np.int64], active: NDArray[np.bool_], words: int
) -> NDArray[np.int64]:
    """Largest number of distinct words of one bank, for each row: (rows,) int64."""
    rows, lanes = addresses.shape
    first = addresses // WORD
    wanted = (first[:, :, None] + np.arange(words)).reshape(rows, lanes * words)
    # Inactive lanes ask for what an active lane of the row asks for anyway.
    some = np.where(active, first, -1).max(axis=1, keepdims=True)
    wanted = np.where(np.repeat(active, words, axis=1), wanted, some)
    wanted.sort(axis=1)
    distinct = np.ones(wanted.shape, dtype=np.bool_)
    distinct[:, 1:] = wanted[:, 1:] != wanted[:, :-1]
    row, column = np.nonzero(distinct)
    bank = wanted[row, column] % BANKS
    per_bank = np.bincount(row * BANKS + bank, minlength=rows * BANKS).reshape(rows, BANKS)
    return per_bank.max(axis=1) * active.any(axis=1)
