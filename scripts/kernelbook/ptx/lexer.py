"""PTX text to tokens, each with the line it stands on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import PtxError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+)
  | (?P<newline>\n)
  | (?P<comment>//[^\n]*)
  | (?P<block>/\*.*?\*/)
  | (?P<string>"[^"\n]*")
  | (?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b
      |0[bB][01]+U?\b|\d+\.\d+(?:[eE][-+]?\d+)?\b|\d+[eE][-+]?\d+\b|\d+U?\b)
  | (?P<dot>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
  | (?P<name>[A-Za-z_$%][A-Za-z0-9_$]*)
  | (?P<punct>[{}()\[\],;:+\-@!|<>=*&~/^%?])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # "string", "number", "dot", "name", "punct", "end"
    text: str
    line: int
    start: int  # offset in the text
    end: int


def tokenize(text: str) -> list[Token]:
    """All tokens of ``text``, then one of kind "end".

    Raises PtxError, with the line, at the first character that begins no token.
    """
    tokens: list[Token] = []
    position, line = 0, 1
    match = _TOKEN.match
    while position < len(text):
        found = match(text, position)
        if found is None:
            raise PtxError(
                f"PTX line {line}: unexpected character {text[position]!r}; "
                "the text is not PTX, or is damaged"
            )
        kind = found.lastgroup or ""
        end = found.end()
        if kind == "newline":
            line += 1
        elif kind == "block":
            line += found.group().count("\n")
        elif kind not in ("space", "comment"):
            tokens.append(Token(kind, found.group(), line, position, end))
        position = end
    tokens.append(Token("end", "", line, position, position))
    return tokens
