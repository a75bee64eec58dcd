"""A kernel compiled to steps and controls over the arrays of one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .alu_steps import Step, alu_step, move_step
from .atomics import atomic_step
from .control import build_control
from .copies import copy_step
from .isa import alu_of
from .isa.alu import Alu
from .lanes import Lanes
from .memory import LOCAL_WINDOW, SHARED_WINDOW
from .memory_steps import MemoryStep, address_step, load_step, nothing_step, store_step
from .module import Instruction
from .state import State, bad_operand, refuse

if TYPE_CHECKING:
    from .machine import Control, Machine

_NO_EFFECT = {"membar", "fence", "prefetch", "prefetchu", "discard", "applypriority", "pmevent",
              "nanosleep", "createpolicy"}  # fmt: skip
_MEMORY: dict[str, Callable[[State, Instruction], MemoryStep]] = {
    "ld": load_step,
    "ldu": load_step,
    "st": store_step,
    "atom": atomic_step,
    "red": atomic_step,
    **dict.fromkeys(_NO_EFFECT, nothing_step),
}
# Modifiers whose presence makes a known opcode another instruction, one of clusters or TMA.
_FOREIGN = ("cluster", "bulk", "tensor", "multimem", "mbarrier", "async_bulk")


@dataclass(frozen=True)
class Program:
    """One step or control for every instruction, and an exit after the last."""

    steps: list[Step]
    controls: list[Control | None]
    instructions: tuple[Instruction, ...]

    def instruction(self, pc: int) -> Instruction:
        return self.instructions[min(pc, len(self.instructions) - 1)]


def _impossible(lanes: Lanes) -> None:
    raise AssertionError("a control was run as a step")


def compile_program(machine: Machine) -> Program:
    """Compile every instruction of the machine's kernel.

    Raises
    ------
    UnsupportedPtx : for the first instruction that is not known, by name and source line.
    PtxError : for operands that do not fit their instruction.
    """
    instructions = machine.setup.launch.kernel.instructions
    steps: list[Step] = []
    controls: list[Control | None] = []
    for instruction in instructions:
        control = build_control(machine, instruction)
        controls.append(control)
        steps.append(_impossible if control is not None else _step(machine, instruction))
    steps.append(_impossible)

    def finish(lanes: Lanes, pc: int) -> None:
        machine.exit(lanes)

    controls.append(finish)
    return Program(steps, controls, instructions)


def _step(machine: Machine, instruction: Instruction) -> Step:
    """The step of an instruction that does not move its lanes, with guard and events around it."""
    state = machine.state
    if any(f in part for m in instruction.modifiers for f in _FOREIGN for part in m.split("::")):
        raise refuse(state.setup.module, instruction)
    memory = _MEMORY.get(instruction.opcode)
    if memory is not None:
        return _guarded(machine, instruction, memory(state, instruction))
    if instruction.opcode == "cp":
        return _copy(machine, instruction)
    plain = _plain(machine, instruction)
    if not state.observers:
        return _guarded_plain(machine, instruction, plain)

    def observed(lanes: Lanes, reached: Lanes) -> None:
        state.emit(instruction, reached, lanes)
        plain(lanes)

    return _guarded(machine, instruction, observed)


def _copy(machine: Machine, instruction: Instruction) -> Step:
    state, copies = machine.state, machine.copies
    modifiers = instruction.modifiers
    if modifiers[:1] != ("async",):
        raise refuse(state.setup.module, instruction)
    if modifiers[1:2] in (("ca",), ("cg",)):
        return _guarded(machine, instruction, copy_step(state, copies, instruction))
    if modifiers[1:] == ("commit_group",):
        action = copies.commit
    elif modifiers[1:] == ("wait_all",):

        def action(lanes: Lanes) -> None:
            copies.wait(lanes, None)

    elif modifiers[1:] == ("wait_group",) and len(instruction.operands) == 1:
        keep = int(getattr(instruction.operands[0], "value", -1))
        if keep < 0:
            raise bad_operand(instruction, "takes a number of groups")

        def action(lanes: Lanes) -> None:
            copies.wait(lanes, keep)

    else:
        raise refuse(state.setup.module, instruction)

    def step(lanes: Lanes, reached: Lanes) -> None:
        if state.observers:
            state.emit(instruction, reached, lanes)
        action(lanes)

    return _guarded(machine, instruction, step)


def _plain(machine: Machine, instruction: Instruction) -> Step:
    state = machine.state
    opcode = instruction.opcode
    if opcode == "mov":
        return move_step(state, instruction)
    if opcode == "cvta":
        return _convert_address(state, instruction)
    if opcode == "isspacep":
        return _is_space(state, instruction)
    alu = alu_of(instruction)
    if alu is None:
        raise refuse(state.setup.module, instruction)
    return alu_step(state, instruction, alu)


def _convert_address(state: State, instruction: Instruction) -> Step:
    if len(instruction.operands) != 2 or instruction.type not in ("u32", "u64"):
        raise bad_operand(instruction, "takes a result and an address")
    dtype = "u4" if instruction.type == "u32" else "u8"
    start = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(instruction.space or "", 0)
    offset = -start if instruction.has("to") else start
    target = state.destination(instruction.operands[0], dtype, instruction)
    source = state.source(instruction.operands[1], dtype, instruction)
    if dtype == "u4" and start:
        raise bad_operand(instruction, "32-bit generic addresses are not supported")
    return address_step(state, target, source, lambda a: (a.astype("i8") + offset).astype(dtype))


def _is_space(state: State, instruction: Instruction) -> Step:
    low, high = {
        "shared": (SHARED_WINDOW, LOCAL_WINDOW),
        "local": (LOCAL_WINDOW, 1 << 62),
        "global": (0, SHARED_WINDOW),
    }.get(instruction.space or "", (0, 0))
    if not high or len(instruction.operands) != 2:
        raise refuse(state.setup.module, instruction)
    alu = Alu(("u8",), ("?",), lambda a: (a >= low) & (a < high))
    return alu_step(state, instruction, alu)


def _guarded_plain(machine: Machine, instruction: Instruction, step: Step) -> Step:
    if instruction.guard is None:
        return step
    predicate = machine.state.storage(instruction.guard)
    negated = instruction.guard_negated
    select = machine.scheduler.select

    def guarded(lanes: Lanes) -> None:
        chosen = select(lanes, predicate, negated)
        if chosen is not None:
            step(chosen)

    return guarded


def _guarded(machine: Machine, instruction: Instruction, step: MemoryStep) -> Step:
    """Run on the lanes whose guard holds; observers also hear of those that only reached it."""
    if instruction.guard is None:
        return lambda lanes: step(lanes, lanes)
    state = machine.state
    predicate = state.storage(instruction.guard)
    negated = instruction.guard_negated
    select = machine.scheduler.select

    def guarded(lanes: Lanes) -> None:
        chosen = select(lanes, predicate, negated)
        if chosen is not None:
            step(chosen, lanes)
        elif state.observers:
            state.emit_idle(instruction, lanes)

    return guarded
