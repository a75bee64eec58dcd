"""What each arithmetic instruction computes: pure functions over arrays, one lane an element."""

from __future__ import annotations

from ..module import Instruction
from . import bits, compare, convert, floating, integer, packed
from .alu import Alu, Builder

_ROOMS: tuple[dict[str, Builder], ...] = (
    floating.BUILDERS,
    integer.BUILDERS,
    bits.BUILDERS,
    compare.BUILDERS,
    convert.BUILDERS,
    packed.BUILDERS,
)


def alu_of(instruction: Instruction) -> Alu | None:
    """The operation of an arithmetic instruction; None when it is not one that is known."""
    for room in _ROOMS:
        builder = room.get(instruction.opcode)
        if builder is not None:
            found = builder(instruction)
            if found is not None:
                return found
    return None
