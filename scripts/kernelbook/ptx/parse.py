"""PTX text to a Module: directives, declarations, scopes. Statements are read in ``statements``."""

from __future__ import annotations

from ..errors import PtxError
from .declarations import parse_parameters, parse_variable
from .lexer import Token, tokenize
from .module import Kernel, Module, Variable
from .statements import BodyParser
from .stream import Stream

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_MINIMUM_VERSION = (7, 8)


def parse(text: str | bytes) -> Module:
    """Parse one PTX translation unit.

    Raises
    ------
    PtxError : the text is malformed or truncated, or older than version 7.8; names the PTX line.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    if not isinstance(text, str):
        raise PtxError(f"PTX must be text, not {type(text).__name__}")
    text = text.rstrip("\0")
    return _ModuleParser(text, tokenize(text)).parse()


class _ModuleParser:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.stream = Stream(text, tokens)
        self.version = (0, 0)
        self.target = ""
        self.kernels: list[Kernel] = []
        self.variables: dict[str, Variable] = {}
        self.functions: list[str] = []
        self.files: dict[int, str] = {}

    def parse(self) -> Module:
        stream = self.stream
        self._header()
        while stream.peek().kind != "end":
            self._top_level()
        return Module(
            version=self.version,
            target=self.target,
            kernels=tuple(self.kernels),
            variables=tuple(self.variables.values()),
            functions=tuple(self.functions),
            files=tuple(sorted(self.files.items())),
        )

    def _header(self) -> None:
        stream = self.stream
        if stream.peek().text != ".version":
            raise stream.error("PTX must begin with .version")
        stream.next()
        number = stream.expect_kind("number", "a version number").text
        major, dot, minor = number.partition(".")
        if not dot or not major.isdigit() or not minor.isdigit():
            raise stream.error(f"{number!r} is not a PTX version")
        self.version = (int(major), int(minor))
        if self.version < _MINIMUM_VERSION:
            raise stream.error(f"PTX version {number} is older than 7.8; compile with CUDA 11.8+")

    def _top_level(self) -> None:
        stream = self.stream
        token = stream.next()
        word = token.text
        if word == ".target":
            self.target = stream.expect_kind("name", "a target").text
            while stream.accept(","):
                stream.next()
        elif word == ".address_size":
            if stream.expect_kind("number", "an address size").text != "64":
                raise stream.error("only 64-bit addresses are supported")
        elif word == ".file":
            index = stream.integer()
            self.files[index] = stream.expect_kind("string", "a path").text[1:-1]
            while stream.accept(","):
                stream.next()
        elif word == ".section":
            while stream.peek().text != "{":
                stream.next()
            stream.skip_braces()
        elif word == ".alias" or word == ".pragma":
            stream.skip_to(";")
        elif word in _LINKAGE:
            self._linked(extern=word == ".extern")
        elif token.kind == "dot":
            stream.back()
            self._linked(extern=False)
        else:
            raise stream.error_at(token, f"expected a directive, found {word!r}")

    def _linked(self, extern: bool) -> None:
        stream = self.stream
        word = stream.peek().text
        if word == ".entry":
            stream.next()
            self.kernels.append(self._entry())
        elif word == ".func":
            stream.next()
            self._function()
        else:
            variable = parse_variable(stream, extern)
            self.variables[variable.name] = variable

    def _entry(self) -> Kernel:
        stream = self.stream
        name = stream.expect_kind("name", "a kernel name")
        params = parse_parameters(stream) if stream.peek().text == "(" else ()
        bounds: dict[str, tuple[int, int, int]] = {}
        while stream.peek().text != "{":
            directive = stream.next()
            if directive.kind != "dot":
                raise stream.error_at(
                    directive, f"expected a kernel body, found {directive.text!r}"
                )
            numbers = []
            while stream.peek().kind == "number":
                numbers.append(stream.integer())
                stream.accept(",")
            if directive.text in (".maxntid", ".reqntid"):
                x, y, z = (*numbers, 1, 1, 1)[:3]
                bounds[directive.text] = (x, y, z)
        body = BodyParser(stream, name.text, params, self.variables).parse()
        return Kernel(
            name=name.text,
            params=params,
            registers=body.registers,
            variables=body.variables,
            instructions=body.instructions,
            labels=body.labels,
            file=body.file,
            line=body.line,
            ptx_line=name.line,
            max_threads=bounds.get(".maxntid"),
            required_threads=bounds.get(".reqntid"),
        )

    def _function(self) -> None:
        """Keep the name only: calls are refused, and inlined functions are not here at all."""
        stream = self.stream
        if stream.peek().text == "(":
            stream.skip_parentheses()
        self.functions.append(stream.expect_kind("name", "a function name").text)
        while stream.peek().text not in ("{", ";"):
            if stream.next().kind == "end":
                raise stream.error("the text ends inside a function declaration")
        if not stream.accept(";"):
            stream.skip_braces()
