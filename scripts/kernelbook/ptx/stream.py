"""A cursor over tokens, with the errors and skips that every part of the parser needs."""

from __future__ import annotations

from ..errors import PtxError
from .lexer import Token

_CLOSING = {"{": "}", "(": ")", "[": "]"}


class Stream:
    """Tokens read one by one; every error names the PTX line it stands on."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        if token.kind == "end":
            raise self.error_at(token, "the text ends in the middle of a statement")
        self._at += 1
        return token

    def back(self) -> None:
        self._at -= 1

    def accept(self, text: str) -> bool:
        """Consume the next token if it is ``text``."""
        if self.peek().text == text and self.peek().kind != "string":
            self._at += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        token = self.next()
        if token.text != text:
            raise self.error_at(token, f"expected {text!r}, found {token.text!r}")
        return token

    def expect_kind(self, kind: str, what: str) -> Token:
        token = self.next()
        if token.kind != kind:
            raise self.error_at(token, f"expected {what}, found {token.text!r}")
        return token

    def integer(self) -> int:
        """A decimal, hexadecimal or binary integer with an optional sign."""
        negative = self.accept("-")
        token = self.expect_kind("number", "an integer")
        value = parse_integer(token.text)
        if value is None:
            raise self.error_at(token, f"expected an integer, found {token.text!r}")
        return -value if negative else value

    def skip_to(self, text: str) -> None:
        while self.next().text != text:
            pass

    def skip_braces(self) -> None:
        self._skip_nested("{")

    def skip_parentheses(self) -> None:
        self._skip_nested("(")

    def _skip_nested(self, opening: str) -> None:
        self.expect(opening)
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == opening) - (text == _CLOSING[opening])

    def error(self, what: str) -> PtxError:
        return self.error_at(self.peek(), what)

    def error_at(self, token: Token, what: str) -> PtxError:
        return PtxError(f"PTX line {token.line}: {what}")


def parse_integer(text: str) -> int | None:
    """The value of a PTX integer literal, or None if it is not one."""
    digits = text.rstrip("U")
    try:
        if digits[:2] in ("0x", "0X"):
            return int(digits[2:], 16)
        if digits[:2] in ("0b", "0B"):
            return int(digits[2:], 2)
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            return int(digits, 8)
        return int(digits)
    except ValueError:
        return None
