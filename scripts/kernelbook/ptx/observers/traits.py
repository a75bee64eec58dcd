"""What an instruction is, as far as counting cares: its class and the arithmetic it does."""

from __future__ import annotations

from dataclasses import dataclass

from ..module import Instruction

CLASSES = (
    "global", "shared", "local", "constant", "generic", "fp16", "fp32", "fp64", "integer",
    "convert", "move", "special", "control", "barrier", "fence", "atomic", "warp",
)  # fmt: skip

_FLOAT_CLASS = {"f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16",
                "f32": "fp32", "f64": "fp64"}  # fmt: skip
_FLOAT_KIND = {"f16": "f16", "f16x2": "f16", "bf16": "f16", "bf16x2": "f16",
               "f32": "f32", "f64": "f64"}  # fmt: skip
_FLOPS = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2}
_NAMED = {"add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma"}
_SPECIAL = {"div", "sqrt", "rsqrt", "rcp", "sin", "cos", "lg2", "ex2", "tanh"}
_SPACE_CLASS = {"global": "global", "shared": "shared", "local": "local",
                "const": "constant", "param": "constant", None: "generic"}  # fmt: skip


@dataclass(frozen=True)
class Traits:
    """``category`` is one of CLASSES; the rest is empty unless it is floating-point arithmetic.

    ``operation`` is "add", "mul" or "fma" (a subtraction adds), ``kind`` "f16", "f32" or "f64",
    ``flops`` the floating-point operations of one thread: a fused multiply-add does two, packed
    halves twice as many. Division, square root and the other approximate functions are "special"
    and count no FLOP: hardware expands them into sequences of its own.
    """

    category: str
    operation: str = ""
    kind: str = ""
    flops: int = 0


def traits(instruction: Instruction) -> Traits:
    """Class and arithmetic of an instruction, from its opcode and types."""
    opcode = instruction.opcode
    if opcode == "cp":
        waits = instruction.has("wait_group") or instruction.has("wait_all")
        return Traits("barrier" if waits or instruction.has("commit_group") else "global")
    if opcode in ("ld", "ldu", "st", "prefetch", "prefetchu"):
        return Traits(_SPACE_CLASS.get(instruction.space, "generic"))
    if opcode in ("atom", "red"):
        return Traits("atomic")
    if opcode in ("bra", "brx", "ret", "exit", "trap", "call", "brkpt", "nanosleep"):
        return Traits("control")
    if opcode in ("bar", "barrier", "mbarrier"):
        return Traits("barrier")
    if opcode in ("membar", "fence"):
        return Traits("fence")
    if opcode in ("shfl", "vote", "match", "redux", "activemask", "elect"):
        return Traits("warp")
    if opcode in ("mov", "cvta", "isspacep", "selp", "slct"):
        return Traits("move")
    if opcode == "cvt":
        return Traits("convert")
    return _arithmetic(instruction)


def _arithmetic(instruction: Instruction) -> Traits:
    opcode = instruction.opcode
    # setp and set name the destination's type first; what is compared comes last.
    type_ = (instruction.types or ("",))[-1 if opcode in ("set", "setp") else 0]
    if type_ not in _FLOAT_CLASS:
        return Traits("integer")
    if opcode in _SPECIAL:
        return Traits("special")
    category = _FLOAT_CLASS[type_]
    if opcode not in _FLOPS:
        return Traits(category)
    packed = 2 if type_.endswith("x2") else 1
    return Traits(category, _NAMED[opcode], _FLOAT_KIND[type_], _FLOPS[opcode] * packed)
