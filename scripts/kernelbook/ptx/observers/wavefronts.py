"""How many passes ("wavefronts") shared memory needs for one warp-wide instruction.

Shared memory is 32 banks of 4 bytes; word ``w`` lives in bank ``w % 32``. One pass serves each bank
once: any number of lanes may read the same word in it, two different words of one bank may not.
So the passes of a group of lanes are the largest number of distinct words they want of one bank.

What hardware takes as one group depends on the width a lane accesses:

* up to 4 bytes: the whole warp;
* 8 bytes: each half-warp by itself;
* 16 bytes: each quarter-warp by itself;
* loads take two such groups at once when the lanes of the warp *pair up*: when every active lane
  ``i`` has a partner, ``i ^ 1`` for all or ``i ^ 2`` for all, that is inactive or loads from the
  same address. Stores never do.

A load of one address by the whole warp therefore takes one pass at 4 and 8 bytes and two at 16, a
store one, two and four. ``tests/golden/patterns.json`` holds what a GPU's own counter
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

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def wavefronts(addresses: Integers, active: Mask, size: int, *, store: bool) -> Integers:
    """Passes of one shared-memory instruction, for each warp.

    Parameters
    ----------
    addresses : (warps, 32) byte addresses; meaningless where ``active`` is False.
    active : (warps, 32) bool.
    size : bytes a lane accesses: 1, 2, 4, 8 or 16.
    store : whether it stores (or updates atomically) rather than loads.

    Returns
    -------
    (warps,) int64; 0 for a warp without an active lane.
    """
    return passes_and_groups(addresses, active, size, store=store)[0]


def lanes_at_once(addresses: Integers, active: Mask, size: int, *, store: bool) -> int:
    """How many lanes of one warp are served together; shapes (32,), else as `wavefronts`."""
    if size <= WORD:
        return WARP
    lanes = WARP * WORD // size
    paired = not store and bool(_pair_up(addresses[None, :], active[None, :])[0])
    return 2 * lanes if paired else lanes


def passes_and_groups(
    addresses: Integers, active: Mask, size: int, *, store: bool
) -> tuple[Integers, Integers]:
    """Passes, and how many they would be without bank conflicts (one for each group of lanes).

    Parameters and shapes as for :func:`wavefronts`. The ratio of the two is the conflict degree.
    """
    if size <= WORD:
        busy = np.asarray(active.any(axis=1), dtype=np.int64)
        return _passes(addresses, active, 1), busy
    words = size // WORD
    passes, groups = _by_groups(addresses, active, words, WARP // words)
    paired = np.zeros(addresses.shape[0], dtype=np.bool_)
    if not store:
        paired = _pair_up(addresses, active)
    if paired.any():
        found = _by_groups(addresses[paired], active[paired], words, 2 * WARP // words)
        passes[paired], groups[paired] = found
    return passes, groups


def _by_groups(
    addresses: Integers, active: Mask, words: int, lanes: int
) -> tuple[Integers, Integers]:
    """Passes and busy groups of each warp when so many lanes are served together."""
    warps = addresses.shape[0]
    rows, mask = addresses.reshape(-1, lanes), active.reshape(-1, lanes)
    busy = np.asarray(mask.any(axis=1), dtype=np.int64)
    passes = _passes(rows, mask, words)
    return passes.reshape(warps, -1).sum(axis=1), busy.reshape(warps, -1).sum(axis=1)


def _pair_up(addresses: Integers, active: Mask) -> Mask:
    """Whether all lanes of each warp agree with a neighbour, one way or the other: (warps,)."""
    lanes = np.arange(addresses.shape[1])
    result = np.zeros(addresses.shape[0], dtype=np.bool_)
    for distance in (1, 2):
        other = lanes ^ distance
        alone = ~(active & active[:, other])
        result |= (alone | (addresses == addresses[:, other])).all(axis=1)
    return result


def _passes(addresses: Integers, active: Mask, words: int) -> Integers:
    """Largest number of distinct words of one bank, for each row: (rows,) int64."""
    rows, lanes = addresses.shape
    first = addresses.astype(np.int64) >> 2  # addresses may be unsigned, and -1 is below them all
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
    return np.asarray(per_bank.max(axis=1) * active.any(axis=1), dtype=np.int64)
