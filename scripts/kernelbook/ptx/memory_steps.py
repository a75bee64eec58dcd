"""Loads, stores and prefetches as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .access import Resolved, Resolver
from .alu_steps import copy_step
from .isa.alu import DTYPES
from .lanes import Lanes
from .module import TYPE_BYTES, Address, Instruction, Operand, Symbol, Vector
from .state import Destination, Source, State, bad_operand, refuse

Array = NDArray[Any]
# A memory step also gets the lanes that reached it, guarded or not, to tell the observers.
MemoryStep = Callable[[Lanes, Lanes], None]
# Loads that a loop may poll memory with, and instructions found in loops that do.
_STRONG = {"volatile", "relaxed", "acquire", "mmio", "cv", "cg"}
_IN_POLLING_LOOPS = {"membar", "fence", "nanosleep"}


def _space(state: State, instruction: Instruction, address: Operand) -> str | None:
    """The window of an access; parameters of a call sequence are locals of the caller."""
    if instruction.space == "param" and isinstance(address, Address):
        base = address.base
        if isinstance(base, Symbol) and any(v.name == base.name for v in state.kernel.variables):
            return "local"
    return instruction.space


def _elements(instruction: Instruction, operand: Operand) -> tuple[Operand, ...]:
    found = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(found) != instruction.vector:
        raise bad_operand(instruction, f"needs {instruction.vector} element(s)")
    return found


def _memory_type(state: State, instruction: Instruction) -> str:
    if instruction.element_bytes not in (1, 2, 4, 8):
        raise refuse(state.setup.module, instruction)
    return instruction.type


def load_step(state: State, instruction: Instruction) -> MemoryStep:
    """``ld``: gather elements of one window into registers."""
    kind = _memory_type(state, instruction)
    if len(instruction.operands) < 2:
        raise bad_operand(instruction, "takes a result and an address")
    size = TYPE_BYTES[kind]
    signed = f"{'i' if kind[0] == 's' else 'u'}{size}"
    targets = [
        state.destination(e, signed, instruction)
        for e in _elements(instruction, instruction.operands[0])
    ]
    address = instruction.operands[1]
    space = _space(state, instruction, address)
    if space == "param" and isinstance(address, Address):
        constant = _parameter_step(state, instruction, targets, address, signed)
        if constant is not None:
            return constant
    resolver = Resolver(state, instruction, address, space)
    reader = _reader(resolver, targets, size, state)
    total = size * instruction.vector
    strong = bool(_STRONG & set(instruction.modifiers))
    emits = bool(state.observers)

    def step(lanes: Lanes, reached: Lanes) -> None:
        if emits:
            for window, space, at in resolver.resolve(lanes):
                resolver.check(window, space, at, total, False)
            resolver.emit(lanes, reached, total, "read")
        reader(lanes)
        if strong:
            state.polled = True

    return step


def _parameter_step(
    state: State,
    instruction: Instruction,
    targets: list[Destination],
    address: Address,
    dtype: str,
) -> MemoryStep | None:
    """A parameter at a known offset is a constant of the launch."""
    if not isinstance(address.base, Symbol):
        return None
    symbol = state.setup.symbols.get(address.base.name, -1)
    first = symbol - state.setup.symbols[""] + address.offset
    size = np.dtype(dtype).itemsize
    raw = state.setup.param_bytes[first : first + size * len(targets)]
    if first < 0 or len(raw) < size * len(targets):
        raise bad_operand(instruction, "reads beyond the parameters")
    copies = []
    address_of_all = np.broadcast_to(np.int64(first), (state.size,))
    for value, target in zip(np.frombuffer(raw, dtype), targets, strict=True):
        source: Source = np.broadcast_to(value, (state.size,))
        copies.append(copy_step(state, target, source))

    def step(lanes: Lanes, reached: Lanes) -> None:
        if state.observers:
            state.emit(
                instruction,
                reached,
                lanes,
                address=address_of_all,
                size=size * len(targets),
                space="param",
                access="read",
            )
        for copy in copies:
            copy(lanes)

    return step


def _reader(
    resolver: Resolver, targets: list[Destination], size: int, state: State
) -> Callable[[Lanes], None]:
    shift = size.bit_length() - 1
    total = size * len(targets)
    offset = resolver.offset
    aligned = offset >= 0 and offset % size == 0
    start, rest = (offset >> shift, 0) if aligned else (0, offset)
    versions = state.versions
    registers = [t.register for t in targets if t.register is not None]

    def read(lanes: Lanes) -> None:
        for window, space, at in resolver.resolve(lanes):
            resolver.check(window, space, at, total, False)
            view = window.view(size)
            first, index = _place(at, shift, start, rest, offset)
            for element, target in enumerate(targets):
                cells = view[first + element :]
                if at.lanes.all and target.bits.dtype.itemsize == size:
                    cells.take(index, out=target.bits.view(cells.dtype), mode="wrap")
                    continue
                value = cells.take(index, mode="wrap")
                if target.narrow is not None:
                    value = target.fit(value.view(target.narrow))
                if at.lanes.all:
                    target.bits[:] = value
                else:
                    target.bits.view(value.dtype)[at.lanes.index] = value
        for register in registers:
            versions[register] += 1

    return read


def _place(at: Resolved, shift: int, start: int, rest: int, offset: int) -> tuple[int, Array]:
    """First element to index from, and the indices: ``start`` is what of the offset is whole
    elements, ``rest`` what is not.

    A base below its window (``p - 4 * t`` with an offset that brings it back) has no index there.
    """
    if at.low < 0:
        return 0, at.elements(shift, offset)
    return start, at.elements(shift, rest)


def store_step(state: State, instruction: Instruction) -> MemoryStep:
    """``st``: scatter registers into elements of one window; the highest lane wins a collision."""
    kind = _memory_type(state, instruction)
    if len(instruction.operands) < 2:
        raise bad_operand(instruction, "takes an address and a value")
    size = TYPE_BYTES[kind]
    dtype = DTYPES[kind]
    sources = [
        _bits(state.source(e, dtype if dtype[0] == "f" else f"u{size}", instruction), size)
        for e in _elements(instruction, instruction.operands[1])
    ]
    address = instruction.operands[0]
    resolver = Resolver(state, instruction, address, _space(state, instruction, address))
    shift = size.bit_length() - 1
    total = size * len(sources)
    offset = resolver.offset
    aligned = offset >= 0 and offset % size == 0
    start, rest = (offset >> shift, 0) if aligned else (0, offset)
    emits = bool(state.observers)

    def step(lanes: Lanes, reached: Lanes) -> None:
        found = resolver.resolve(lanes)
        for window, space, at in found:
            resolver.check(window, space, at, total, True)
        if emits:
            resolver.emit(lanes, reached, total, "write")
        for window, _, at in found:
            view = window.view(size)
            first, index = _place(at, shift, start, rest, offset)
            for element, source in enumerate(sources):
                value = source() if callable(source) else source
                view[first + element :][index] = value if at.lanes.all else value[at.lanes.index]
        state.progress += 1

    return step


def _bits(source: Source, size: int) -> Source:
    if callable(source):
        return lambda: np.ascontiguousarray(source()).view(f"u{size}")
    return source.view(f"u{size}") if source.dtype.kind == "f" else source


def nothing_step(state: State, instruction: Instruction) -> MemoryStep:
    """Fences, prefetches and hints: the lockstep execution is already sequentially consistent."""

    polls = instruction.opcode in _IN_POLLING_LOOPS

    def step(lanes: Lanes, reached: Lanes) -> None:
        if state.observers:
            state.emit(instruction, reached, lanes)
        if polls:
            state.polled = True

    return step


def address_step(
    state: State, target: Destination, source: Source, function: Callable[[Array], Array]
) -> Callable[[Lanes], None]:
    """``cvta``: a register moved between windows."""
    return copy_step(state, target, lambda: function(source() if callable(source) else source))
