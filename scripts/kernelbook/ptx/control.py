"""Instructions that move lanes: branches, exits, barriers, and those that wait for their warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .barriers import Reduction
from .events import WARP
from .lanes import Lanes, pack_warps
from .module import Immediate, Instruction, Negated, Operand, Register
from .state import Source, bad_operand, refuse
from .warps import WARP_STEPS, member_operand

if TYPE_CHECKING:
    from .machine import Control, Machine

Array = NDArray[Any]


def build_control(machine: Machine, instruction: Instruction) -> Control | None:
    """The control of an instruction; None when it leaves its lanes where they are."""
    opcode = instruction.opcode
    if opcode == "bra":
        return _branch(machine, instruction)
    if opcode in ("bar", "barrier") and not instruction.has("cluster"):
        if instruction.has("warp"):
            return _guarded(machine, instruction, _warp_barrier(machine, instruction))
        return _guarded(machine, instruction, _barrier(machine, instruction))
    if opcode in ("ret", "exit"):
        return _guarded(machine, instruction, _exit(machine, instruction))
    if opcode == "trap":
        return _guarded(machine, instruction, _trap(machine, instruction, "executed trap"))
    if opcode == "brx":
        return _guarded(machine, instruction, _indexed_branch(machine, instruction))
    if opcode == "call":
        return _guarded(machine, instruction, _call(machine, instruction))
    if opcode in WARP_STEPS:
        return _guarded(machine, instruction, _warp_exchange(machine, instruction))
    return None


def _guarded(machine: Machine, instruction: Instruction, control: Control) -> Control:
    """Lanes whose guard fails go on at once, without the others."""
    if instruction.guard is None:
        return control
    state, scheduler = machine.state, machine.scheduler
    predicate = state.storage(instruction.guard)
    negated = instruction.guard_negated

    def guarded(lanes: Lanes, pc: int) -> int | None:
        chosen = scheduler.select(lanes, predicate, negated)
        if chosen is lanes:
            return control(lanes, pc)
        if chosen is None:
            if state.observers:
                state.emit_idle(instruction, lanes)
            return pc + 1
        scheduler.push_mask(pc + 1, lanes.mask & ~chosen.mask)
        following = control(chosen, pc)
        if following is not None:
            scheduler.push(following, chosen)
        return None

    return guarded


def _branch(machine: Machine, instruction: Instruction) -> Control:
    """``bra``: all, none or some of the lanes jump."""
    state, scheduler = machine.state, machine.scheduler
    if len(instruction.targets) != 1:
        raise bad_operand(instruction, "takes one label")
    target = instruction.targets[0]
    is_backward = target <= instruction.pc
    predicate = None if instruction.guard is None else state.storage(instruction.guard)
    negated = instruction.guard_negated
    emits = bool(state.observers)

    def branch(lanes: Lanes, pc: int) -> int | None:
        taken = lanes if predicate is None else scheduler.select(lanes, predicate, negated)
        if emits:
            if taken is None:
                state.emit_idle(instruction, lanes)
            else:
                state.emit(instruction, lanes, taken)
        if taken is None:
            return pc + 1
        if taken is lanes:
            if is_backward and scheduler.backward(target, lanes):
                return None
            return target
        scheduler.push_mask(pc + 1, lanes.mask & ~taken.mask)
        if not (is_backward and scheduler.backward(target, taken)):
            scheduler.push(target, taken)
        return None

    return branch


def _indexed_branch(machine: Machine, instruction: Instruction) -> Control:
    """``brx.idx``: the index chooses from a table of labels."""
    state, scheduler = machine.state, machine.scheduler
    if not instruction.targets:
        raise bad_operand(instruction, "has no table of labels")
    index = state.source(instruction.operands[0], "u4", instruction)
    targets = np.array(instruction.targets)

    def branch(lanes: Lanes, pc: int) -> None:
        if state.observers:
            state.emit(instruction, lanes, lanes)
        chosen = np.minimum(_value(index), np.uint32(targets.size - 1)).astype(np.int64)
        goes = targets[chosen]
        for target in np.unique(goes[lanes.index]):
            scheduler.push_mask(int(target), lanes.mask & (goes == target))

    return branch


def _exit(machine: Machine, instruction: Instruction) -> Control:
    def leave(lanes: Lanes, pc: int) -> None:
        if machine.state.observers:
            machine.state.emit(instruction, lanes, lanes)
        machine.exit(lanes)

    return leave


def _trap(machine: Machine, instruction: Instruction, what: str) -> Control:
    def stop(lanes: Lanes, pc: int) -> None:
        who = machine.state.thread_name(int(lanes.index[0]))
        raise machine.state.error(instruction, f"{who} {what}")

    return stop


def _call(machine: Machine, instruction: Instruction) -> Control:
    """Calls are refused when loaded, except of functions that only report a failure."""
    for name in ("vprintf", "__assertfail"):
        if name in instruction.text:
            return _trap(machine, instruction, f"called {name}, which is not executed")
    raise refuse(machine.setup.module, instruction, ": device functions must be inlined")


def _value(source: Source) -> Array:
    return source() if callable(source) else source


# block barriers


def _barrier(machine: Machine, instruction: Instruction) -> Control:
    """``bar`` and ``barrier``: .sync, .arrive and .red, with a name and a thread count."""
    state = machine.state
    arrive = instruction.has("arrive")
    reduction, vote = None, None
    operands = list(instruction.operands)
    if instruction.has("red"):
        reduction, vote = _reduction(machine, instruction)
        operands = operands[1:-1]
    elif not (arrive or instruction.has("sync")):
        raise bad_operand(instruction, "is neither .sync, .arrive nor .red")
    name: Operand = operands[0] if operands else Immediate(0, 0, "int")
    names = state.source(name, "u4", instruction)
    counts = state.source(operands[1], "u4", instruction) if len(operands) > 1 else None
    whole_block = counts is None and vote is None and not arrive

    def barrier(lanes: Lanes, pc: int) -> int | None:
        number = _uniform(_value(names), lanes)
        if number is None:
            _split_by(machine, _value(names), lanes, pc)
            return None
        if state.observers:
            state.emit(instruction, lanes, lanes, barrier=number)
        if whole_block and lanes.whole and machine.barriers.idle(number):
            state.progress += 1
            _everyone(machine, lanes, number)
            return pc + 1
        count = 0 if counts is None else int(_value(counts)[lanes.index[0]])
        machine.barriers.arrive(
            number,
            instruction,
            lanes,
            count,
            machine.scheduler.alive,
            wait=not arrive,
            predicate=None if vote is None else _value(vote).copy(),
            reduction=reduction,
        )
        if arrive:
            machine.scheduler.push(pc + 1, lanes)
        machine.release()
        return None

    return barrier


def _reduction(machine: Machine, instruction: Instruction) -> tuple[Reduction, Source]:
    """The result and the predicate of ``barrier.red d, name{, count}, predicate``."""
    state, operands = machine.state, instruction.operands
    operation = next((m for m in ("popc", "and", "or") if instruction.has(m)), "")
    if len(operands) < 3 or not operation or not isinstance(operands[-1], Register | Negated):
        raise bad_operand(instruction, "takes a result, a barrier and a predicate")
    kind = "u4" if operation == "popc" else "?"
    target = state.destination(operands[0], kind, instruction)
    return Reduction(operation, target), state.source(operands[-1], "?", instruction)


def _uniform(values: Array, lanes: Lanes) -> int | None:
    """The value all active lanes share, or None."""
    if values.strides == (0,):
        return int(values[0])
    active = values[lanes.index]
    first = int(active[0])
    return first if bool((active == first).all()) else None


def _split_by(machine: Machine, values: Array, lanes: Lanes, pc: int) -> None:
    """Lanes that name different barriers arrive one name after the other."""
    control = machine.program.controls[pc]
    assert control is not None
    for value in np.unique(values[lanes.index]):
        part = machine.scheduler.make(lanes.mask & (values == value))
        following = control(part, pc)
        if following is not None:
            machine.scheduler.push(following, part)


def _everyone(machine: Machine, lanes: Lanes, number: int) -> None:
    """All lanes of all blocks that still run are here: the barrier completes at once."""
    observers = machine.state.observers
    if observers:
        blocks = np.flatnonzero(lanes.mask.reshape(machine.state.blocks, -1).any(axis=1))
        for observer in observers:
            observer.on_barrier(machine.state.batch, blocks, number)


# warps


def _gather(
    machine: Machine, lanes: Lanes, pc: int, members: Callable[[], Array], across: tuple[int, ...]
) -> list[tuple[int, Lanes]]:
    """Lanes whose whole membermask has come, with the pc each waits at; the others stay waiting.

    ``across``: pcs of the instructions that may wait for each other (bar.warp.sync), this included.
    """
    if lanes.whole:
        return [(pc, lanes)]
    waiting = machine.waiting
    here = {at: waiting.pop(at) for at in across if at in waiting}
    here[pc] = here[pc] | lanes.mask if pc in here else lanes.mask
    present = np.zeros_like(lanes.mask)
    for mask in here.values():
        present |= mask
    ballots = np.repeat(pack_warps(present), WARP)
    alive = np.repeat(pack_warps(machine.scheduler.alive), WARP)
    missing = (members() & alive & ~ballots) != 0
    missing &= present
    if not missing.any() and len(here) == 1:
        same = here[pc] is lanes.mask
        return [(pc, lanes if same else machine.scheduler.make(here[pc]))]
    ready = []
    for at, mask in here.items():
        stays = mask & missing
        if stays.any():
            waiting[at] = stays
        goes = mask & ~missing
        if goes.any():
            ready.append((at, machine.scheduler.make(goes)))
    return ready


def _members(machine: Machine, instruction: Instruction) -> Callable[[], Array]:
    """The membermask of every lane: (lanes,) uint32."""
    operand = member_operand(instruction)
    if operand is None:
        raise bad_operand(instruction, "needs a membermask")
    source = machine.state.source(operand, "u4", instruction)
    return lambda: _value(source)


def _warp_exchange(machine: Machine, instruction: Instruction) -> Control:
    """shfl, vote, match, redux: run when the lanes of the membermask have come."""
    state, scheduler = machine.state, machine.scheduler
    step = WARP_STEPS[instruction.opcode](state, instruction)
    if instruction.opcode != "activemask" and not instruction.has("sync"):
        raise refuse(machine.setup.module, instruction, " without .sync")
    members = None if instruction.opcode == "activemask" else _members(machine, instruction)

    def exchange(lanes: Lanes, pc: int) -> int | None:
        ready = [(pc, lanes)] if members is None else _gather(machine, lanes, pc, members, (pc,))
        for at, group in ready:
            if state.observers:
                state.emit(instruction, group, group)
            step(group)
            if group is lanes:
                return pc + 1
            scheduler.push(at + 1, group)
        return None

    return exchange


def _warp_barrier(machine: Machine, instruction: Instruction) -> Control:
    """``bar.warp.sync``: lanes may come to it at different instructions."""
    state, scheduler = machine.state, machine.scheduler
    members = _members(machine, instruction)
    instructions = machine.setup.launch.kernel.instructions
    across = tuple(i.pc for i in instructions if i.opcode in ("bar", "barrier") and i.has("warp"))

    def synchronise(lanes: Lanes, pc: int) -> int | None:
        for at, group in _gather(machine, lanes, pc, members, across):
            if state.observers:
                state.emit(instructions[at], group, group, members=members())
            if group is lanes:
                return pc + 1
            scheduler.push(at + 1, group)
        return None

    return synchronise
