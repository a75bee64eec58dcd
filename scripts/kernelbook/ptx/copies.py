"""cp.async: copies from global to shared memory that land at the wait.

The source is read when the copy is issued and the bytes appear in shared memory when a wait of the
issuing lane covers their group, so that a kernel that forgets the wait reads stale data. Hardware
may do either at any time in between; a correct kernel cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Resolver
from .lanes import Lanes
from .memory_steps import MemoryStep
from .module import Immediate, Instruction, Register
from .state import Source, State, bad_operand

Array = NDArray[Any]


@dataclass
class _Pending:
    """Copies one instruction issued: ``cells[lane]`` words to element ``index[lane]``."""

    mask: NDArray[np.bool_]  # lanes of the batch whose copy has not landed
    group: Array  # (lanes,) the group each lane's copy belongs to
    index: Array  # (active,) first 4-byte element of shared memory
    lanes: Array  # (active,) lane of each copy
    words: Array  # (active, size // 4) uint32


class AsyncCopies:
    """The copies in flight of a batch, and how many groups each lane has committed."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.pending: list[_Pending] = []
        self.committed = np.zeros(state.size, np.int32)

    def begin(self) -> None:
        self.pending.clear()
        self.committed[:] = 0

    def commit(self, lanes: Lanes) -> None:
        self.committed += lanes.mask

    def wait(self, lanes: Lanes, keep: int | None) -> None:
        """Land all but the ``keep`` latest groups of these lanes; None: land everything."""
        left = []
        for copy in self.pending:
            ready = copy.mask & lanes.mask
            if keep is not None:
                ready &= copy.group < self.committed - keep
            if ready.any():
                chosen = ready[copy.lanes]
                cells = self.state.shared_window.view(4)
                for word in range(copy.words.shape[1]):
                    cells[copy.index[chosen] + word] = copy.words[chosen, word]
                copy.mask &= ~ready
            if copy.mask.any():
                left.append(copy)
        self.pending = left


def copy_step(state: State, copies: AsyncCopies, instruction: Instruction) -> MemoryStep:
    """``cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size | ignore}``."""
    operands = instruction.operands
    if len(operands) < 3 or not isinstance(operands[2], Immediate):
        raise bad_operand(instruction, "takes two addresses and a size")
    size = int(operands[2].value)
    if size not in (4, 8, 16) or (instruction.has("cg") and size != 16):
        raise bad_operand(instruction, f"cannot copy {size} bytes")
    shared = Resolver(state, instruction, operands[0], "shared")
    source = Resolver(state, instruction, operands[1], "global")
    limit = _read_bytes(state, instruction, size)

    def step(lanes: Lanes, reached: Lanes) -> None:
        ((window, _, to),) = shared.resolve(lanes)
        shared.check(window, "shared", to, size, True)
        words = np.zeros((lanes.count, size // 4), np.uint32)
        reading = _read(state, source, lanes, limit, size, words)
        if state.observers:
            if reading is not None:
                source.emit(reading, reached, size, "read")
            shared.emit(lanes, reached, size, "write", first_part=1 if reading else 0)
        copies.pending.append(
            _Pending(
                lanes.mask.copy(),
                copies.committed.copy(),
                to.elements(2, shared.offset),
                lanes.index,
                words,
            )
        )

    return step


def _read_bytes(state: State, instruction: Instruction, size: int) -> Source | None:
    """How many bytes each lane reads, when that can be fewer than it writes."""
    if len(instruction.operands) < 4 or instruction.has("L2::cache_hint"):
        return None
    operand = instruction.operands[3]
    if isinstance(operand, Register) and operand.type == "pred":
        ignore = state.storage(operand)
        return lambda: np.where(ignore, np.uint32(0), np.uint32(size))
    return state.source(operand, "u4", instruction)


def _read(
    state: State, source: Resolver, lanes: Lanes, limit: Source | None, size: int, words: Array
) -> Lanes | None:
    """Fill ``words`` from global memory; returns the lanes that read anything."""
    if limit is None:
        _gather(source, lanes, size, words, np.arange(lanes.count))
        return lanes
    counts = (limit() if callable(limit) else limit)[lanes.index]
    octets = words.view(np.uint8)
    octets_left = np.minimum(counts, np.uint32(size))
    for count in np.unique(octets_left):
        if count == 0:
            continue
        mask = np.zeros(state.size, bool)
        rows = np.flatnonzero(octets_left == count)
        mask[lanes.index[rows]] = True
        part = Lanes(mask, -1)
        if count == size:
            _gather(source, part, size, words, rows)
        else:
            ((window, space, at),) = source.resolve(part)
            source.check(window, space, at, 1, False)
            first = at.elements(0, source.offset)
            for byte in range(int(count)):
                octets[rows, byte] = window.view(1)[first + byte]
    if not octets_left.any():
        return None
    mask = np.zeros(state.size, bool)
    mask[lanes.index[octets_left > 0]] = True
    return Lanes(mask, -1)


def _gather(source: Resolver, lanes: Lanes, size: int, words: Array, rows: Array) -> None:
    ((window, space, at),) = source.resolve(lanes)
    source.check(window, space, at, size, False)
    index = at.elements(2, source.offset)
    for word in range(size // 4):
        words[rows, word] = window.view(4)[index + word]
