"""Operands: registers, literals, symbols, addresses, vectors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from .lexer import Token
from .module import (
    Address,
    Immediate,
    Label,
    Negated,
    Opaque,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from .stream import Stream, parse_integer

_U64 = (1 << 64) - 1
SPECIAL_REGISTERS = frozenset(
    {
        *(f"{r}.{axis}" for r in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
        "laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "clock", "clock64", "clock_hi",
        "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
        "globaltimer", "globaltimer_lo", "globaltimer_hi",
        "dynamic_smem_size", "total_smem_size",
    }
)  # fmt: skip


class OperandReader:
    """Reads the comma-separated operands of one instruction up to its semicolon."""

    def __init__(
        self,
        stream: Stream,
        find_register: Callable[[str], Register | None],
        params: Collection[str],
        module_variables: Collection[str],
        body_variables: Collection[str],
    ) -> None:
        self._stream = stream
        self._find_register = find_register
        self._symbols = (params, module_variables, body_variables)

    def read_all(self) -> tuple[Operand, ...]:
        stream = self._stream
        operands: list[Operand] = []
        while stream.peek().text != ";":
            if operands:
                stream.expect(",")
            operand = self._operand()
            if stream.accept("|"):
                operand = Pair(operand, self._operand())
            operands.append(operand)
        return tuple(operands)

    def _operand(self) -> Operand:
        stream = self._stream
        token = stream.next()
        if token.text == "[":
            return self._address(token)
        if token.text == "{":
            return self._vector()
        if token.text == "(":
            return self._opaque(token, "(", ")")
        if token.text == "!":
            operand = self._named(stream.expect_kind("name", "a predicate"))
            if not isinstance(operand, Register):
                raise stream.error_at(token, "'!' needs a predicate register")
            return Negated(operand)
        if token.text in ("-", "+", "~"):
            number = stream.expect_kind("number", "a number")
            return self._number(number, token.text)
        if token.kind == "number":
            return self._number(token, "")
        if token.kind == "name":
            return self._named(token)
        raise stream.error_at(token, f"unexpected {token.text!r}")

    def _vector(self) -> Operand:
        elements: list[Operand] = []
        while not self._stream.accept("}"):
            if elements:
                self._stream.expect(",")
            elements.append(self._operand())
        return Vector(tuple(elements))

    def _opaque(self, opening: Token, left: str, right: str) -> Operand:
        stream = self._stream
        depth = 1
        while depth:
            token = stream.next()
            if token.text == ";":
                raise stream.error_at(opening, f"{left!r} is never closed")
            depth += (token.text == left) - (token.text == right)
        return Opaque(stream.text[opening.start : token.end])

    def _address(self, opening: Token) -> Operand:
        """``[reg+imm]``, ``[symbol]``, ``[imm]``; other forms (textures, tensors) stay opaque."""
        stream = self._stream
        base: Register | Symbol | None = None
        offset = 0
        token = stream.peek()
        if token.kind == "name":
            stream.next()
            named = self._named(token)
            if isinstance(named, Symbol):
                base, offset = Symbol(named.name), named.offset
            elif isinstance(named, Register):
                base = named
            else:
                raise stream.error_at(token, f"{token.text!r} is no address")
        if base is None or stream.peek().text in ("+", "-"):
            stream.accept("+")
            if stream.peek().kind == "number" or stream.peek().text == "-":
                offset += stream.integer()
        if stream.accept("]"):
            return Address(base, offset)
        return self._opaque(opening, "[", "]")

    def _number(self, token: Token, sign: str) -> Operand:
        text = token.text
        if text[:2] in ("0f", "0F") and len(text) == 10:
            bits = int(text[2:], 16) ^ (0x80000000 if sign == "-" else 0)
            return Immediate(struct.unpack("<f", struct.pack("<I", bits))[0], bits, "f32")
        if text[:2] in ("0d", "0D") and len(text) == 18:
            bits = int(text[2:], 16) ^ ((1 << 63) if sign == "-" else 0)
            return Immediate(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, "f64")
        value = parse_integer(text)
        if value is None:
            try:
                number = float(text)
            except ValueError:
                raise self._stream.error_at(token, f"{text!r} is not a number") from None
            number = -number if sign == "-" else number
            bits = struct.unpack("<Q", struct.pack("<d", number))[0]
            return Immediate(number, bits, "f64")
        value = -value if sign == "-" else ~value if sign == "~" else value
        if not -(1 << 63) <= value <= _U64:
            raise self._stream.error_at(token, f"{text} does not fit 64 bits")
        return Immediate(value, value & _U64, "int")

    def _named(self, token: Token) -> Operand:
        stream = self._stream
        name = token.text
        if name == "_":
            return Sink()
        register = self._find_register(name)
        if register is not None:
            return register
        if name.startswith("%"):
            return self._special(token)
        if any(name in names for names in self._symbols):
            offset = 0
            if stream.peek().text in ("+", "-"):
                stream.accept("+")
                offset = stream.integer()
            return Symbol(name, offset)
        if name == "WARP_SZ":
            return Immediate(32, 32, "int")
        # A label, a function or a branch table; branches resolve it, others are refused by name.
        return Label(name, -1)

    def _special(self, token: Token) -> Operand:
        stream = self._stream
        name = token.text[1:]
        if stream.peek().kind == "dot":
            name += stream.next().text
        if name in SPECIAL_REGISTERS or name in ("tid", "ntid", "ctaid", "nctaid"):
            return Special(name)
        if name.split(".")[0].rstrip("0123456789") in ("pm", "envreg", "cluster_ctaid", "clusterid",
                                                      "nclusterid", "cluster_nctaid",
                                                      "cluster_ctarank", "cluster_nctarank",
                                                      "is_explicit_cluster", "current_graph_exec",
                                                      "reserved_smem_offset_begin",
                                                      "reserved_smem_offset_end",
                                                      "reserved_smem_offset_cap",
                                                      "aggr_smem_size"):  # fmt: skip
            return Opaque(f"%{name}")
        raise stream.error_at(token, f"register %{name} is not declared")
