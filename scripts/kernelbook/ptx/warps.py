"""What the lanes of a warp exchange: shfl, vote, match, redux, activemask, elect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alu_steps import Step, assign, flatten
from .events import WARP
from .isa.alu import DTYPES
from .lanes import Lanes, pack_warps
from .module import Instruction, Operand, Pair
from .state import Source, State, bad_operand, refuse

Array = NDArray[Any]
_U32 = np.uint32


def member_operand(instruction: Instruction) -> Operand | None:
    """The membermask of a ``.sync`` instruction; None when it has none."""
    if "sync" not in instruction.modifiers or not instruction.operands:
        return None
    return instruction.operands[-1]


def _value(source: Source) -> Array:
    return source() if callable(source) else source


def shuffle_step(state: State, instruction: Instruction) -> Step:
    """``shfl.sync.mode.b32 d|p, a, b, c, membermask`` (PTX manual's own pseudo-code)."""
    mode = next((m for m in ("up", "down", "bfly", "idx") if instruction.has(m)), "")
    if not mode or len(instruction.operands) != 5:
        raise bad_operand(instruction, "takes d|p, a, b, c and a membermask")
    written = flatten(instruction.operands[0])
    data, amount, clamp = (state.source(o, "u4", instruction) for o in instruction.operands[1:4])
    target = state.destination(written[0], "u4", instruction)
    flag = state.destination(written[1], "?", instruction) if len(written) > 1 else None
    lane = np.arange(state.size) % WARP
    base = np.arange(state.size) - lane
    registers = [t.register for t in (target, flag) if t is not None and t.register is not None]

    def step(lanes: Lanes) -> None:
        b = (_value(amount) & _U32(31)).astype(np.int64)
        c = _value(clamp)
        segment = ((c >> _U32(8)) & _U32(31)).astype(np.int64)
        limit = (c & _U32(31)).astype(np.int64)
        highest = (lane & segment) | (limit & ~segment)
        if mode == "up":
            source = lane - b
            inside = source >= highest
        elif mode == "down":
            source = lane + b
            inside = source <= highest
        elif mode == "bfly":
            source = lane ^ b
            inside = source <= highest
        else:
            source = (lane & segment) | (b & ~segment)
            inside = source <= highest
        source = np.where(inside, source, lane) + base
        assign(target, lanes, _value(data)[source])
        if flag is not None:
            assign(flag, lanes, inside)
        for register in registers:
            state.versions[register] += 1

    return step


def _members(state: State, instruction: Instruction) -> Source:
    operand = member_operand(instruction)
    if operand is None:
        raise bad_operand(instruction, "needs a membermask")
    return state.source(operand, "u4", instruction)


def vote_step(state: State, instruction: Instruction) -> Step:
    """``vote.sync.{all,any,uni,ballot}``: over the lanes of the membermask."""
    mode = next((m for m in ("all", "any", "uni", "ballot") if instruction.has(m)), "")
    if not mode or len(instruction.operands) != 3:
        raise bad_operand(instruction, "takes a result, a predicate and a membermask")
    predicate = state.source(instruction.operands[1], "?", instruction)
    members = _members(state, instruction)
    target = state.destination(
        instruction.operands[0], "u4" if mode == "ballot" else "?", instruction
    )

    def step(lanes: Lanes) -> None:
        own = _value(predicate) & lanes.mask
        yes = np.repeat(pack_warps(own), WARP) & _value(members)
        asked = np.repeat(lanes.ballots, WARP) & _value(members)
        if mode == "ballot":
            result = yes
        elif mode == "all":
            result = yes == asked
        elif mode == "any":
            result = yes != 0
        else:
            result = (yes == asked) | (yes == 0)
        assign(target, lanes, result)
        if target.register is not None:
            state.versions[target.register] += 1

    return step


def match_step(state: State, instruction: Instruction) -> Step:
    """``match.{any,all}.sync``: which lanes of the membermask hold the same value."""
    wide = instruction.type == "b64"
    if instruction.type not in ("b32", "b64") or len(instruction.operands) != 3:
        raise bad_operand(instruction, "takes a result, a value and a membermask")
    every = instruction.has("all")
    value = state.source(instruction.operands[1], "u8" if wide else "u4", instruction)
    members = _members(state, instruction)
    written = flatten(instruction.operands[0])
    target = state.destination(written[0], "u4", instruction)
    flag = state.destination(written[1], "?", instruction) if len(written) > 1 else None
    weights = _U32(1) << np.arange(WARP, dtype=np.uint32)

    def step(lanes: Lanes) -> None:
        rows = _value(value).reshape(-1, WARP)
        mask = _value(members).reshape(-1, WARP)
        present = lanes.mask.reshape(-1, WARP)
        equal = np.empty(rows.shape, np.uint32)
        for lane in range(WARP):
            same = (rows == rows[:, lane : lane + 1]) & present
            equal[:, lane] = (same * weights).sum(axis=1, dtype=np.uint32)
        equal &= mask
        if every:
            asked = lanes.ballots[:, None] & mask
            holds = equal == asked
            assign(target, lanes, np.where(holds, asked, _U32(0)).reshape(-1))
            if flag is not None:
                assign(flag, lanes, holds.reshape(-1))
        else:
            assign(target, lanes, equal.reshape(-1))
        for written_to in (target, flag):
            if written_to is not None and written_to.register is not None:
                state.versions[written_to.register] += 1

    return step


def reduce_step(state: State, instruction: Instruction) -> Step:
    """``redux.sync``: reduce over the lanes of the membermask."""
    operations: dict[str, tuple[np.ufunc, Callable[[np.dtype[Any]], int]]] = {
        "add": (np.add, lambda d: 0),
        "and": (np.bitwise_and, lambda d: int(np.iinfo(d).max)),
        "or": (np.bitwise_or, lambda d: 0),
        "xor": (np.bitwise_xor, lambda d: 0),
        "min": (np.minimum, lambda d: int(np.iinfo(d).max)),
        "max": (np.maximum, lambda d: int(np.iinfo(d).min)),
    }
    name = next((m for m in instruction.modifiers if m in operations), "")
    if not name or instruction.type not in ("u32", "s32", "b32"):
        raise refuse(state.setup.module, instruction)
    dtype = np.dtype(DTYPES[instruction.type])
    ufunc, neutral_of = operations[name]
    neutral = dtype.type(neutral_of(dtype))
    value = state.source(instruction.operands[1], dtype.str[1:], instruction)
    members = _members(state, instruction)
    target = state.destination(instruction.operands[0], dtype.str[1:], instruction)
    lane = np.arange(state.size, dtype=np.uint32) % _U32(WARP)

    def step(lanes: Lanes) -> None:
        mask = _value(members)
        # Lanes of one warp may name different (disjoint) masks: reduce each set by itself.
        result = np.zeros(state.size, dtype)
        index = lanes.index
        warp = index // WARP
        groups, which = np.unique(
            warp.astype(np.uint64) << np.uint64(32) | mask[index], return_inverse=True
        )
        totals = np.full(groups.size, neutral, dtype)
        member = (mask[index] >> lane[index]) & _U32(1) != 0
        ufunc.at(totals, which[member], _value(value)[index][member])
        result[index] = totals[which]
        assign(target, lanes, result)
        if target.register is not None:
            state.versions[target.register] += 1

    return step


def active_mask_step(state: State, instruction: Instruction) -> Step:
    """``activemask``: the lanes of the warp that execute this together."""
    target = state.destination(instruction.operands[0], "u4", instruction)

    def step(lanes: Lanes) -> None:
        assign(target, lanes, np.repeat(lanes.ballots, WARP))
        if target.register is not None:
            state.versions[target.register] += 1

    return step


def elect_step(state: State, instruction: Instruction) -> Step:
    """``elect.sync d|p, membermask``: the lowest lane of the mask leads."""
    written = instruction.operands[0]
    if not isinstance(written, Pair):
        raise bad_operand(instruction, "takes d|p and a membermask")
    target = state.destination(written.first, "u4", instruction)
    flag = state.destination(written.second, "?", instruction)
    members = _members(state, instruction)
    lane = np.arange(state.size, dtype=np.uint32) % _U32(WARP)

    def step(lanes: Lanes) -> None:
        mask = _value(members) & np.repeat(lanes.ballots, WARP)
        lowest = mask & (~mask + _U32(1))
        leader = np.bitwise_count(lowest - _U32(1)).astype(np.uint32)
        assign(target, lanes, leader)
        assign(flag, lanes, leader == lane)
        for written_to in (target, flag):
            if written_to.register is not None:
                state.versions[written_to.register] += 1

    return step


WARP_STEPS: dict[str, Callable[[State, Instruction], Step]] = {
    "shfl": shuffle_step,
    "vote": vote_step,
    "match": match_step,
    "redux": reduce_step,
    "activemask": active_mask_step,
    "elect": elect_step,
}
