"""PTX as data: what a module, a kernel and an instruction are once the text has been read.

Nothing here executes. ``parse.py`` builds these from text; ``machine.py`` executes them; observers
read them to say which instruction and which source line an event belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Bytes of a PTX type. A predicate has no size in memory.
TYPE_BYTES = {
    "pred": 0,
    "b8": 1, "s8": 1, "u8": 1,
    "b16": 2, "s16": 2, "u16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "s32": 4, "u32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "s16x2": 4, "u16x2": 4,
    "b64": 8, "s64": 8, "u64": 8, "f64": 8,
    "b128": 16,
}  # fmt: skip
SPACES = ("global", "shared", "local", "const", "param")


@dataclass(frozen=True)
class Register:
    """A virtual register of one kernel.

    ``index`` is dense within the kernel; ``name`` is as written (two scopes may reuse a name).
    """

    index: int
    name: str
    type: str  # "pred", "b16", "b32", "f32", "b64", "f64", ...


@dataclass(frozen=True)
class Immediate:
    """A literal. ``value`` is an int, or a float for 0f/0d literals; ``bits`` is its bit pattern.

    ``bits`` of an integer is its value modulo 2**64; of 0f literals the 32 bits; of 0d the 64 bits.
    """

    value: int | float
    bits: int
    kind: str  # "int", "f32", "f64"


@dataclass(frozen=True)
class Special:
    """A special register, without the percent sign: "tid.x", "laneid", "clock64"."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The address of a module or kernel variable, a parameter or a function, plus ``offset``."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Label:
    """A branch target; ``pc`` is the index of the instruction it names."""

    name: str
    pc: int


@dataclass(frozen=True)
class Address:
    """``[base + offset]``; without a base the offset is an absolute address."""

    base: Register | Symbol | None
    offset: int


@dataclass(frozen=True)
class Vector:
    """``{a, b, ...}``: a vector of a load, store or move."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """``d|p``: a destination and the predicate written with it."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Negated:
    """``!p``: a predicate operand read inverted."""

    operand: Register


@dataclass(frozen=True)
class Sink:
    """``_``: a destination whose value is thrown away."""


@dataclass(frozen=True)
class Opaque:
    """An operand of a form the emulator gives no meaning to; kept as text for the refusal."""

    text: str


Operand = (
    Register
    | Immediate
    | Special
    | Symbol
    | Label
    | Address
    | Vector
    | Pair
    | Negated
    | Sink
    | Opaque
)


@dataclass(frozen=True)
class Location:
    """A source position: ``file`` indexes ``Module.files`` (0: unknown), ``line`` is 1-based."""

    file: int
    line: int
    column: int


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction.

    ``line`` and ``file`` name the source line to show a reader: the innermost position that lies in
    the file the kernel itself is written in, following ``inlined_at`` out of headers. ``location``
    is what the compiler said of the instruction itself. 0 means that the compiler did not say.
    """

    pc: int  # index in Kernel.instructions
    opcode: str  # "ld", "fma", "bar"
    modifiers: tuple[str, ...]  # ("global", "nc", "v4", "f32"): the dotted parts, in order
    operands: tuple[Operand, ...]
    text: str  # as written, white space collapsed, without the guard
    ptx_line: int  # 1-based line of the PTX text
    guard: Register | None = None
    guard_negated: bool = False
    space: str | None = None  # "global", ...; None: generic, or not a memory instruction
    types: tuple[str, ...] = ()  # types among the modifiers: destination first
    vector: int = 1  # 1, 2, 4 or 8 elements
    line: int = 0
    file: int = 0
    location: Location = field(default=Location(0, 0, 0))
    targets: tuple[int, ...] = ()  # pcs a branch may go to (not counting fall-through)

    @property
    def type(self) -> str:
        """The (destination) type, "" when the instruction has none."""
        return self.types[0] if self.types else ""

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of ``type``; 0 without a type."""
        return TYPE_BYTES.get(self.type, 0)

    @property
    def name(self) -> str:
        """Opcode with modifiers, as written: ``ld.global.nc.v4.f32``."""
        return ".".join((self.opcode, *self.modifiers))

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def __str__(self) -> str:
        guard = ""
        if self.guard is not None:
            guard = f"@{'!' if self.guard_negated else ''}{self.guard.name} "
        return f"{guard}{self.text}"


@dataclass(frozen=True)
class Variable:
    """A variable in memory: module scope, or declared in a kernel's body.

    ``relocations`` are (byte offset, symbol, addend, generic): an address to be written there when
    the variable is placed.
    """

    name: str
    space: str
    align: int
    type: str
    size: int  # bytes; 0 for ``extern`` arrays without a length (dynamic shared memory)
    initial: bytes = b""
    relocations: tuple[tuple[int, str, int, bool], ...] = ()
    extern: bool = False
    ptx_line: int = 0


@dataclass(frozen=True)
class Param:
    """A kernel parameter: ``size`` bytes at ``offset`` of the parameter space."""

    name: str
    type: str  # "u64", "f32", "b8" for structs
    size: int
    align: int
    offset: int
    is_array: bool  # a struct passed by value


@dataclass(frozen=True)
class Kernel:
    """One ``.entry``."""

    name: str
    params: tuple[Param, ...]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]  # shared, local and param variables of the body
    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...]
    file: int = 0  # index of the source file it is written in
    line: int = 0  # first source line
    ptx_line: int = 0
    max_threads: tuple[int, int, int] | None = None  # .maxntid
    required_threads: tuple[int, int, int] | None = None  # .reqntid

    @property
    def param_bytes(self) -> int:
        return max((p.offset + p.size for p in self.params), default=0)


@dataclass(frozen=True)
class Module:
    """One PTX translation unit."""

    version: tuple[int, int]
    target: str
    kernels: tuple[Kernel, ...]
    variables: tuple[Variable, ...]
    functions: tuple[str, ...]  # device functions declared or defined; calls are refused by name
    files: tuple[tuple[int, str], ...]  # .file index and path

    def kernel(self, name: str) -> Kernel | None:
        """The kernel of that name, or None."""
        return next((k for k in self.kernels if k.name == name), None)

    def file_name(self, index: int) -> str:
        """Path of a ``.file`` index, "" when unknown."""
        return dict(self.files).get(index, "")
