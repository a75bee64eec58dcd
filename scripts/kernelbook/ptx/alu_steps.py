"""Arithmetic and moves as steps: which lanes compute, where the results go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .isa.alu import DTYPES, Alu
from .lanes import Lanes
from .module import TYPE_BYTES, Instruction, Operand, Pair, Vector
from .state import Destination, Source, State, bad_operand, refuse

Array = NDArray[Any]
Step = Callable[[Lanes], None]


def flatten(operand: Operand) -> tuple[Operand, ...]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand,)


def assign(target: Destination, lanes: Lanes, value: Array) -> None:
    """Write a full-length result to the lanes that are active."""
    value = target.fit(value)
    if lanes.whole:
        np.copyto(target.bits, value)
    else:
        np.copyto(target.bits, np.where(lanes.mask, value, target.bits))


def alu_step(state: State, instruction: Instruction, alu: Alu) -> Step:
    """The step of an arithmetic instruction."""
    if not instruction.operands:
        raise bad_operand(instruction, "operands are missing")
    written = flatten(instruction.operands[0])
    read = list(instruction.operands[1:])
    expected = len(alu.results) - alu.carry_out
    dtypes = list(alu.sources)
    if alu.carry_in:
        dtypes.pop()
    if len(written) != expected or len(read) != len(dtypes):
        raise bad_operand(instruction, f"takes {expected} result(s) and {len(dtypes)} source(s)")
    targets = [
        state.destination(operand, dtype, instruction)
        for operand, dtype in zip(written, alu.results, strict=False)
    ]
    sources = [
        state.source(operand, dtype, instruction)
        for operand, dtype in zip(read, dtypes, strict=True)
    ]
    if alu.carry_in:
        sources.append(state.carry)
    if alu.carry_out:
        targets.append(Destination(state.carry, None, None))
    if alu.ufunc is not None and targets[0].narrow is None:
        return _ufunc_step(state, alu.ufunc, targets[0], sources)
    return _function_step(state, alu.function, targets, sources)


def _evaluated(sources: Sequence[Source]) -> Callable[[], list[Array]] | None:
    """What evaluates computed sources; None when all are plain arrays."""
    if not any(callable(s) for s in sources):
        return None
    return lambda: [s() if callable(s) else s for s in sources]


def _bump(state: State, targets: Sequence[Destination]) -> list[int]:
    return [t.register for t in targets if t.register is not None]


def _ufunc_step(
    state: State, ufunc: np.ufunc, target: Destination, sources: Sequence[Source]
) -> Step:
    evaluate = _evaluated(sources)
    fixed = tuple(s for s in sources if not callable(s))
    bits, versions = target.bits, state.versions
    register = target.register

    def step(lanes: Lanes) -> None:
        values = fixed if evaluate is None else evaluate()
        if lanes.whole:
            ufunc(*values, out=bits)
        elif lanes.dense:
            np.copyto(bits, np.where(lanes.mask, ufunc(*values), bits))
        else:
            index = lanes.index
            bits[index] = ufunc(*(v[index] for v in values))
        if register is not None:
            versions[register] += 1

    return step


def _function_step(
    state: State,
    function: Callable[..., Any],
    targets: Sequence[Destination],
    sources: Sequence[Source],
) -> Step:
    evaluate = _evaluated(sources)
    fixed = tuple(s for s in sources if not callable(s))
    versions = state.versions
    registers = _bump(state, targets)
    several = len(targets) > 1

    def step(lanes: Lanes) -> None:
        values = fixed if evaluate is None else evaluate()
        if lanes.whole or lanes.dense:
            results = function(*values)
            for target, result in zip(targets, results if several else (results,), strict=True):
                assign(target, lanes, result)
        else:
            index = lanes.index
            results = function(*(v[index] for v in values))
            for target, result in zip(targets, results if several else (results,), strict=True):
                target.bits[index] = target.fit(result)
        for register in registers:
            versions[register] += 1

    return step


def copy_step(state: State, target: Destination, source: Source) -> Step:
    """``mov``: no arithmetic."""
    return _function_step(state, lambda a: a, [target], [source])


def move_step(state: State, instruction: Instruction) -> Step:
    """mov in all its forms: plain, packing ``{a, b}`` into one register, unpacking."""
    if len(instruction.operands) != 2 or not instruction.types:
        raise bad_operand(instruction, "takes a result and a source")
    to, source = instruction.operands
    kind = instruction.type
    if kind == "b128":
        raise refuse(state.setup.module, instruction)
    dtype = DTYPES[kind]
    if isinstance(source, Vector):
        return _pack_step(state, instruction, to, source)
    if isinstance(to, Vector):
        return _unpack_step(state, instruction, to, source)
    bits = "?" if kind == "pred" else "u" + dtype[1:]
    return copy_step(
        state,
        state.destination(to, bits, instruction),
        state.source(source, dtype if dtype[0] == "f" else bits, instruction)
        if dtype[0] != "f"
        else _as_bits(state.source(source, dtype, instruction), bits),
    )


def _as_bits(source: Source, bits: str) -> Source:
    if callable(source):
        return lambda: np.ascontiguousarray(source()).view(bits)
    return source.view(bits)


def _element_dtype(instruction: Instruction, count: int) -> str:
    size = TYPE_BYTES[instruction.type]
    if count not in (2, 4) or size % count:
        raise bad_operand(instruction, "cannot be split into that many parts")
    return f"u{size // count}"


def _pack_step(state: State, instruction: Instruction, to: Operand, source: Vector) -> Step:
    count = len(source.elements)
    part = _element_dtype(instruction, count)
    whole = f"u{TYPE_BYTES[instruction.type]}"
    sources = [state.source(e, part, instruction) for e in source.elements]

    def pack(*parts: Array) -> Array:
        joined = np.empty((parts[0].size, count), part)
        for position, value in enumerate(parts):
            joined[:, position] = value
        return joined.view(whole).reshape(-1)

    return _function_step(state, pack, [state.destination(to, whole, instruction)], sources)


def _unpack_step(state: State, instruction: Instruction, to: Vector, source: Operand) -> Step:
    count = len(to.elements)
    part = _element_dtype(instruction, count)
    whole = f"u{TYPE_BYTES[instruction.type]}"
    targets = [state.destination(e, part, instruction) for e in to.elements]

    def unpack(value: Array) -> Any:
        parts = np.ascontiguousarray(value).view(part)
        return tuple(parts[position::count] for position in range(count))

    return _function_step(state, unpack, targets, [state.source(source, whole, instruction)])
