"""The body of a kernel: scopes, registers, labels, source positions and instructions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .declarations import parse_variable
from .lexer import Token
from .module import (
    SPACES,
    TYPE_BYTES,
    Instruction,
    Label,
    Location,
    Operand,
    Param,
    Register,
    Variable,
)
from .operands import OperandReader
from .stream import Stream

_MAX_REGISTERS = 1_000_000
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_BODY_SPACES = {".shared", ".local", ".param", ".const", ".global"}


@dataclass(frozen=True)
class Body:
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...]
    file: int
    line: int


class _Scope:
    """Names declared between one pair of braces."""

    def __init__(self) -> None:
        self.registers: dict[str, Register] = {}
        self.families: list[tuple[str, int, str]] = []  # prefix, count, type of ``%r<20>``


class BodyParser:
    """Reads one ``{ ... }`` and resolves registers, labels and source lines."""

    def __init__(
        self,
        stream: Stream,
        kernel: str,
        params: tuple[Param, ...],
        module_variables: dict[str, Variable],
    ) -> None:
        self.stream = stream
        self.kernel = kernel
        self.scopes: list[_Scope] = []
        self.registers: list[Register] = []
        self.variables: dict[str, Variable] = {}
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}  # .branchtargets
        self.locations = _Locations()
        self._operands = OperandReader(
            stream, self._find_register, {p.name for p in params}, module_variables, self.variables
        )

    def parse(self) -> Body:
        stream = self.stream
        stream.expect("{")
        self.scopes.append(_Scope())
        while self.scopes:
            token = stream.peek()
            if token.kind == "end":
                raise stream.error(f"the text ends inside kernel {self.kernel}")
            self._statement(token)
        file, line = self.locations.first
        return Body(
            registers=tuple(self.registers),
            variables=tuple(self.variables.values()),
            instructions=tuple(self._resolve(i) for i in self.instructions),
            labels=tuple(self.labels.items()),
            file=file,
            line=line,
        )

    def _statement(self, token: Token) -> None:
        stream = self.stream
        if token.text == "{":
            stream.next()
            self.scopes.append(_Scope())
        elif token.text == "}":
            stream.next()
            self.scopes.pop()
        elif token.text == ";":
            stream.next()
        elif token.kind == "dot":
            self._directive(token)
        elif token.kind == "name" and stream.peek(1).text == ":":
            self._label()
        else:
            self._instruction()

    def _directive(self, token: Token) -> None:
        stream = self.stream
        if token.text == ".reg":
            stream.next()
            self._registers()
        elif token.text in _BODY_SPACES:
            variable = parse_variable(stream)
            self.variables[variable.name] = variable
        elif token.text == ".loc":
            stream.next()
            self.locations.read(stream)
        elif token.text == ".pragma":
            stream.skip_to(";")
        else:
            raise stream.error(f"unknown directive {token.text!r}")

    def _registers(self) -> None:
        stream = self.stream
        type_name = ""
        while stream.peek().kind == "dot":
            word = stream.next().text[1:]
            if word in TYPE_BYTES:
                type_name = word
        if not type_name:
            raise stream.error("a register declaration without a type")
        scope = self.scopes[-1]
        while True:
            name = stream.expect_kind("name", "a register name")
            if stream.accept("<"):
                count = stream.integer()
                stream.expect(">")
                if not 0 <= count <= _MAX_REGISTERS:
                    raise stream.error_at(name, f"{count} registers {name.text}")
                scope.families.append((name.text, count, type_name))
            else:
                scope.registers[name.text] = self._new_register(name.text, type_name)
            if not stream.accept(","):
                break
        stream.expect(";")

    def _new_register(self, name: str, type_name: str) -> Register:
        register = Register(len(self.registers), name, type_name)
        self.registers.append(register)
        return register

    def _find_register(self, name: str) -> Register | None:
        """The register of the innermost scope; families make their members when first used."""
        for scope in reversed(self.scopes):
            if name in scope.registers:
                return scope.registers[name]
            for prefix, count, type_name in scope.families:
                number = name[len(prefix) :]
                if name.startswith(prefix) and number.isdecimal() and int(number) < count:
                    register = self._new_register(name, type_name)
                    scope.registers[name] = register
                    return register
        return None

    def _label(self) -> None:
        stream = self.stream
        name = stream.next()
        stream.expect(":")
        if stream.peek().text == ".branchtargets":
            stream.next()
            targets = [stream.expect_kind("name", "a label").text]
            while stream.accept(","):
                targets.append(stream.expect_kind("name", "a label").text)
            stream.expect(";")
            self.tables[name.text] = tuple(targets)
        elif stream.peek().text in (".callprototype", ".calltargets"):
            stream.skip_to(";")
        elif name.text in self.labels:
            raise stream.error_at(name, f"label {name.text} is defined twice")
        else:
            self.labels[name.text] = len(self.instructions)

    def _instruction(self) -> None:
        stream = self.stream
        guard: Register | None = None
        negated = False
        if stream.accept("@"):
            negated = stream.accept("!")
            name = stream.expect_kind("name", "a predicate")
            guard = self._find_register(name.text)
            if guard is None or guard.type != "pred":
                raise stream.error_at(name, f"{name.text!r} is not a declared predicate")
        opcode = stream.expect_kind("name", "an instruction")
        modifiers: list[str] = []
        while stream.peek().kind == "dot":
            modifiers.append(stream.next().text[1:])
        operands = self._operands.read_all()
        end = stream.expect(";")
        text = " ".join(stream.text[opcode.start : end.start].split())
        self.instructions.append(
            Instruction(
                pc=len(self.instructions),
                opcode=opcode.text,
                modifiers=tuple(modifiers),
                operands=operands,
                text=text,
                ptx_line=opcode.line,
                guard=guard,
                guard_negated=negated,
                space=_space(modifiers),
                types=tuple(m for m in modifiers if m in TYPE_BYTES),
                vector=next((_VECTORS[m] for m in modifiers if m in _VECTORS), 1),
                line=self.locations.line,
                file=self.locations.file,
                location=self.locations.current,
            )
        )

    def _resolve(self, instruction: Instruction) -> Instruction:
        """Turn label names into pcs, now that every label of the body is known."""
        if instruction.opcode not in ("bra", "brx"):
            return instruction
        operands: list[Operand] = []
        targets: list[int] = []
        for operand in instruction.operands:
            if isinstance(operand, Label):
                names = self.tables.get(operand.name, (operand.name,))
                for name in names:
                    if name not in self.labels:
                        line = instruction.ptx_line
                        token = Token("name", name, line, 0, 0)
                        raise self.stream.error_at(token, f"no label {name} in {self.kernel}")
                    targets.append(self.labels[name])
                operand = replace(operand, pc=targets[-1])
            operands.append(operand)
        return replace(instruction, operands=tuple(operands), targets=tuple(targets))


def _space(modifiers: list[str]) -> str | None:
    for modifier in modifiers:
        base = modifier.split("::")[0]
        if base in SPACES:
            return base
    return None


class _Locations:
    """Follows ``.loc`` and says which line of the kernel's own file an instruction belongs to."""

    def __init__(self) -> None:
        self.current = Location(0, 0, 0)
        self.first = (0, 0)
        self.file = 0
        self.line = 0
        self._callers: dict[Location, Location] = {}

    def read(self, stream: Stream) -> None:
        """``.loc file line column [, function_name label, inlined_at file line column]``."""
        location = Location(stream.integer(), stream.integer(), stream.integer())
        while stream.accept(","):
            word = stream.expect_kind("name", "function_name or inlined_at").text
            if word == "inlined_at":
                caller = Location(stream.integer(), stream.integer(), stream.integer())
                if caller != location:
                    self._callers[location] = caller
            elif word == "function_name":
                stream.next()
                if stream.accept("+"):
                    stream.integer()
            else:
                raise stream.error(f"unknown .loc attribute {word!r}")
        if self.first == (0, 0):
            self.first = (location.file, location.line)
        self.current = location
        self._show(location)

    def _show(self, location: Location) -> None:
        """Walk out of headers; a cycle (which the compiler never writes) ends the walk."""
        seen = set()
        shown = location
        while shown.file != self.first[0] and shown in self._callers and shown not in seen:
            seen.add(shown)
            shown = self._callers[shown]
        self.file, self.line = shown.file, shown.line
