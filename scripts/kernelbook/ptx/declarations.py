"""Declarations of variables and parameters: sizes, alignment, initial bytes."""

from __future__ import annotations

import struct
from itertools import count

from ..errors import PtxError
from .module import TYPE_BYTES, Param, Variable
from .stream import Stream, parse_integer

_VARIABLE_SPACES = {".global", ".const", ".shared", ".local", ".param"}
_IGNORED_ATTRIBUTES = {".volatile", ".managed", ".unified"}
_MAX_BYTES = 1 << 40


def _type_bytes(stream: Stream, word: str) -> int:
    size = TYPE_BYTES.get(word, 0)
    if not size:
        raise stream.error(f"{word!r} is not a type a variable can have")
    return size


def _dimensions(stream: Stream) -> tuple[int | None, bool]:
    """Product of ``[n][m]``; (None, True) for a first dimension left open."""
    total, is_array, is_open = 1, False, False
    while stream.accept("["):
        is_array = True
        if stream.accept("]"):
            is_open = True
            continue
        length = stream.integer()
        if length < 0:
            raise stream.error("an array length is negative")
        total *= length
        stream.expect("]")
    if total > _MAX_BYTES:
        raise stream.error("an array is too large")
    return (None if is_open else total), is_array


def parse_parameters(stream: Stream) -> tuple[Param, ...]:
    """The parenthesised parameter list of an entry, laid out in parameter space."""
    stream.expect("(")
    params: list[Param] = []
    offset = 0
    while not stream.accept(")"):
        if params:
            stream.expect(",")
        stream.expect(".param")
        align, type_name = 0, ""
        while stream.peek().kind == "dot":
            word = stream.next().text
            if word == ".align":
                align = max(stream.integer(), align)
            elif word == ".ptr":
                # What the pointer points to: an alignment promise, not the parameter's own.
                while stream.peek().kind == "dot":
                    if stream.next().text == ".align":
                        stream.integer()
            elif word[1:] in TYPE_BYTES:
                type_name = word[1:]
        size = _type_bytes(stream, type_name)
        name = stream.expect_kind("name", "a parameter name").text
        length, is_array = _dimensions(stream)
        if length is None:
            raise stream.error(f"parameter {name} has no length")
        align = max(align, size)
        offset = -(-offset // align) * align
        params.append(Param(name, type_name, size * length, align, offset, is_array))
        offset += size * length
    return tuple(params)


def parse_variable(stream: Stream, extern: bool = False) -> Variable:
    """One ``.global``, ``.const``, ``.shared`` ... declaration, through its semicolon."""
    space_token = stream.next()
    if space_token.text not in _VARIABLE_SPACES:
        raise stream.error_at(space_token, f"unknown directive {space_token.text!r}")
    align, type_name = 0, ""
    while stream.peek().kind == "dot":
        word = stream.next().text
        if word == ".align":
            align = stream.integer()
        elif word == ".attribute":
            stream.skip_parentheses()
        elif word[1:] in TYPE_BYTES:
            type_name = word[1:]
        elif word in (".texref", ".samplerref", ".surfref"):
            raise stream.error(f"{word[1:]} variables are not supported")
        elif word not in _IGNORED_ATTRIBUTES:
            raise stream.error(f"unexpected {word!r} in a variable declaration")
    size = _type_bytes(stream, type_name)
    name = stream.expect_kind("name", "a variable name")
    length, _ = _dimensions(stream)
    initial = b""
    relocations: tuple[tuple[int, str, int, bool], ...] = ()
    if stream.accept("="):
        initial, relocations = _Initialiser(stream, type_name).parse()
        if length is None:
            length = len(initial) // size
    stream.expect(";")
    total = size * (length or 0)
    if len(initial) > total:
        raise stream.error_at(name, f"{name.text} has more initial values than elements")
    return Variable(
        name=name.text,
        space=space_token.text[1:],
        align=max(align, size) if align <= 0 or align & (align - 1) else align,
        type=type_name,
        size=total,
        initial=initial,
        relocations=relocations,
        extern=extern,
        ptx_line=name.line,
    )


class _Initialiser:
    """``= 3`` or ``= {1, 2, generic(x)+4}``: bytes, and places where an address must go."""

    def __init__(self, stream: Stream, type_name: str) -> None:
        self.stream = stream
        self.type = type_name
        self.size = TYPE_BYTES[type_name]
        self.data = bytearray()
        self.relocations: list[tuple[int, str, int, bool]] = []

    def parse(self) -> tuple[bytes, tuple[tuple[int, str, int, bool], ...]]:
        self._value()
        return bytes(self.data), tuple(self.relocations)

    def _value(self) -> None:
        stream = self.stream
        if stream.accept("{"):
            for index in count():
                if stream.accept("}"):
                    return
                if index:
                    stream.expect(",")
                self._value()
        elif stream.peek().kind == "name":
            self._symbol()
        else:
            self._number()

    def _symbol(self) -> None:
        stream = self.stream
        name = stream.next().text
        generic = False
        if name == "generic" and stream.accept("("):
            generic = True
            name = stream.expect_kind("name", "a variable name").text
            stream.expect(")")
        addend = 0
        if stream.peek().text in ("+", "-"):
            stream.accept("+")
            addend = stream.integer()
        self.relocations.append((len(self.data), name, addend, generic))
        self.data += bytes(self.size)

    def _number(self) -> None:
        stream = self.stream
        negative = stream.accept("-")
        token = stream.expect_kind("number", "an initial value")
        self.data += literal_bytes(stream, token.text, self.type, negative)


def literal_bytes(stream: Stream, text: str, type_name: str, negative: bool) -> bytes:
    """Little-endian bytes of a literal as an element of ``type_name``."""
    size = TYPE_BYTES[type_name]
    if text[:2] in ("0f", "0F", "0d", "0D"):
        raw = int(text[2:], 16).to_bytes(4 if text[1] in "fF" else 8, "little")
        if len(raw) == size:
            return raw
        value = float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])
        if type_name == "f64":
            return struct.pack("<d", value)
        raise stream.error(f"{text} does not fit type {type_name}")
    integer = parse_integer(text)
    if integer is None:
        if type_name not in ("f32", "f64"):
            raise stream.error(f"{text} does not fit type {type_name}")
        value = -float(text) if negative else float(text)
        try:
            return struct.pack("<f" if type_name == "f32" else "<d", value)
        except OverflowError as error:
            raise PtxError(f"{text} does not fit type {type_name}") from error
    integer = -integer if negative else integer
    return (integer & ((1 << 8 * size) - 1)).to_bytes(size, "little")
