"""atom and red: read-modify-write, in lane order within a batch.

Lanes that hit one address take turns in ascending order. When no two lanes collide, one gather and
one scatter do. Otherwise the turns of each address are evaluated as a running result:
``accumulate`` of a NumPy ufunc rounds after every step exactly as the turns would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import floats as fp
from .access import Resolver
from .alu_steps import flatten
from .isa.alu import DTYPES
from .lanes import Lanes
from .memory_steps import MemoryStep
from .module import TYPE_BYTES, Instruction, Sink, Vector
from .state import Source, State, bad_operand, refuse

Array = NDArray[Any]
Update = Callable[..., Array]
# Up to this many turns at one address, all addresses are updated together, turn by turn.
_FEW_TURNS = 16


def _increment(old: Array, bound: Array) -> Array:
    following: Array = np.add(old, old.dtype.type(1))
    return np.where(old >= bound, old.dtype.type(0), following)


def _decrement(old: Array, bound: Array) -> Array:
    return np.where((old == 0) | (old > bound), bound, old - old.dtype.type(1))


def _compare_and_swap(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _exchange(old: Array, new: Array) -> Array:
    return new


def _add_flushing(old: Array, value: Array) -> Array:
    """float32 addition in global memory flushes subnormals (PTX manual, atom)."""
    return fp.flush32(fp.add32(fp.flush32(old), fp.flush32(value)))


def _half(operation: Update) -> Update:
    def update(old: Array, value: Array) -> Array:
        result = operation(
            np.ascontiguousarray(old).view(np.float16), np.ascontiguousarray(value).view(np.float16)
        )
        return result.view(old.dtype)

    return update


def _brain(old: Array, value: Array) -> Array:
    x, y = (fp.widen_bf16(np.ascontiguousarray(v).view(np.uint16)) for v in (old, value))
    odd = fp.to_odd(*fp.two_sum(x.astype(np.float64), y.astype(np.float64)))
    return fp.round_bf16(odd).view(old.dtype)


def _add_in_cache64(old: Array, value: Array) -> Array:
    """In global memory: a NaN that is added, else one that is there, stays as it is, signalling or
    not (read off an H200)."""
    total: Array = old + value
    bad = np.isnan(total)
    if bad.any():
        given = np.isnan(value) | np.isnan(old)
        kept = np.where(np.isnan(value), value.view(np.uint64), old.view(np.uint64))
        total.view(np.uint64)[bad] = np.where(given, kept, fp.NAN64)[bad]
    return total


def _add_in_block64(old: Array, value: Array) -> Array:
    """In shared memory, an ordinary addition to what is there: its NaN comes first."""
    return fp.add64(value, old)


def _update(instruction: Instruction, flushes: bool) -> tuple[Update, np.ufunc | None, str] | None:
    """The update, the ufunc it equals if any, and the dtype it works on."""
    kind = instruction.type
    dtype = DTYPES.get(kind, "")
    table: dict[str, tuple[Update, np.ufunc | None]] = {
        "and": (np.bitwise_and, np.bitwise_and),
        "or": (np.bitwise_or, np.bitwise_or),
        "xor": (np.bitwise_xor, np.bitwise_xor),
        "min": (np.minimum, np.minimum),
        "max": (np.maximum, np.maximum),
        "exch": (_exchange, None),
        "cas": (_compare_and_swap, None),
        "inc": (_increment, None),
        "dec": (_decrement, None),
    }
    name = next((m for m in instruction.modifiers if m in table or m == "add"), None)
    if name is None or not dtype:
        return None
    if name != "add":
        if dtype[0] == "f" or (kind.endswith("x2") or kind == "bf16"):
            return None
        return (*table[name], dtype)
    if kind == "f32":
        return (_add_flushing, None, dtype) if flushes else (fp.add32, np.add, dtype)
    if kind == "f64":
        return (_add_in_cache64 if flushes else _add_in_block64), np.add, dtype
    if kind in ("f16", "f16x2"):
        return _half(fp.add16), None, "u2" if kind == "f16" else "u4"
    if kind in ("bf16", "bf16x2"):
        return _brain, None, dtype
    return np.add, np.add, dtype


def atomic_step(state: State, instruction: Instruction) -> MemoryStep:
    """The step of ``atom`` (which returns the old value) or ``red`` (which does not)."""
    returns = instruction.opcode == "atom"
    operands = list(instruction.operands)
    if len(operands) < (3 if returns else 2):
        raise bad_operand(instruction, "operands are missing")
    if any(isinstance(o, Vector) for o in operands):
        raise refuse(state.setup.module, instruction)
    result = operands.pop(0) if returns else Sink()
    found = _update(instruction, instruction.space != "shared")
    if found is None:
        raise refuse(state.setup.module, instruction)
    update, ufunc, dtype = found
    size = TYPE_BYTES[instruction.type]
    target = state.destination(flatten(result)[0], f"u{size}", instruction)
    count = 2 if instruction.has("cas") else 1
    sources = [state.source(o, dtype, instruction) for o in operands[1 : 1 + count]]
    if len(sources) != count:
        raise bad_operand(instruction, "operands are missing")
    resolver = Resolver(state, instruction, operands[0], instruction.space)
    shift = size.bit_length() - 1
    wants_old = returns and not isinstance(result, Sink)

    def step(lanes: Lanes, reached: Lanes) -> None:
        places = resolver.resolve(lanes)
        for window, space, at in places:
            resolver.check(window, space, at, size, True)
        if state.observers:
            resolver.emit(lanes, reached, size, "atomic")
        for window, _, at in places:
            index = at.elements(shift, resolver.offset)
            cells = window.view(size).view(dtype)
            values = [_at(s, at.lanes) for s in sources]
            old = _apply(cells, index, values, update, ufunc)
            if returns and (cells[index] != old).any():
                state.changes += 1
            if wants_old:
                bits = old.view(f"u{size}")
                if at.lanes.all:
                    target.bits[:] = target.fit(bits)
                else:
                    target.bits[at.lanes.index] = target.fit(bits)
        if target.register is not None:
            state.versions[target.register] += 1
        if returns:
            state.polled = True
        else:
            state.progress += 1

    return step


def _at(source: Source, lanes: Lanes) -> Array:
    value = source() if callable(source) else source
    return value if lanes.all else value[lanes.index]


def _apply(
    cells: Array, index: Array, values: list[Array], update: Update, ufunc: np.ufunc | None
) -> Array:
    """Update ``cells[index]`` turn by turn; returns what each lane found there."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.ones(ordered.size, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    lengths = np.diff(starts, append=ordered.size)
    longest = int(lengths.max())
    if longest == 1:
        old = cells[index]
        cells[index] = update(old, *values)
        return old
    sorted_values = [v[order] for v in values]
    old = np.empty(ordered.size, cells.dtype)
    if longest <= _FEW_TURNS or (ufunc is None and starts.size > longest):
        _turn_by_turn(cells, ordered, sorted_values, starts, lengths, update, old)
    else:
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            part = slice(start, start + length)
            cell = int(ordered[start])
            own = [v[part] for v in sorted_values]
            before, after = _run(cells[cell], own, update, ufunc)
            old[part] = before
            cells[cell] = after
    result = np.empty_like(old)
    result[order] = old
    return result


def _turn_by_turn(
    cells: Array,
    ordered: Array,
    values: list[Array],
    starts: Array,
    lengths: Array,
    update: Update,
    old: Array,
) -> None:
    for turn in range(int(lengths.max())):
        at = starts[lengths > turn] + turn
        place = ordered[at]
        before = cells[place]
        old[at] = before
        cells[place] = update(before, *(v[at] for v in values))


def _run(
    start: Any, values: list[Array], update: Update, ufunc: np.ufunc | None
) -> tuple[Array, Any]:
    """All turns at one address: what each found, and what is left."""
    if ufunc is not None:
        running = np.empty(values[0].size + 1, values[0].dtype)
        running[0] = start
        running[1:] = values[0]
        running = ufunc.accumulate(running)
        if running.dtype == np.float32:
            fp.canonical32(running)
        return running[:-1], running[-1]
    before = np.empty(values[0].size, values[0].dtype)
    current = np.array([start], values[0].dtype)
    for turn in range(values[0].size):
        before[turn] = current[0]
        current = update(current, *(v[turn : turn + 1] for v in values))
    return before, current[0]
