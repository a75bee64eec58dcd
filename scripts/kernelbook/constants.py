"""The constants of a kernel: its macros, and what its source makes of them with #define.

A small preprocessor: conditions, object-like macros and integer expressions over them, which is
what kernels here are shaped with. The value of a macro is the one at the end of the source.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import PageError

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(?P<word>\w+)[ \t]*(?P<rest>.*)")
_DEFINE = re.compile(r"(?P<name>[A-Za-z_]\w*)(?P<call>\()?[ \t]*(?P<body>.*)")
_INCLUDE = re.compile(r'"(?P<file>[^"]+)"')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][\da-fA-F]+|\d+)[uUlL]*(?![\w.])|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><=|>=|==|!=|&&|\|\||[-+*/%()<>!?:]))"
)
_DEPTH = 64  # of macros that name macros


class _NotANumber(Exception):
    """A macro's body is no integer expression, or names something that is none."""


def constants(source: Path, macros: Mapping[str, int | str]) -> dict[str, int]:
    """Every macro of a source that is an integer, compiled with ``macros``; by name.

    Project includes are read, too. Raises PageError where the source or a condition in it cannot
    be read.
    """
    defined = {name: str(value) for name, value in macros.items()}
    _read(source, defined)
    found = {}
    for name in defined:
        try:
            found[name] = _value(name, defined)
        except _NotANumber:
            continue
    return found


def _read(source: Path, defined: dict[str, str]) -> None:
    """Follow a file's directives, adding to ``defined``."""
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=source) from error
    # Of each open condition: whether its branch is read, and whether one has been.
    open_: list[tuple[bool, bool]] = []
    text = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text).replace("\\\n", " ")
    for number, line in enumerate(text.split("\n"), 1):
        match = _DIRECTIVE.match(line)
        if match is None:
            continue
        word, rest = match["word"], match["rest"].strip()
        try:
            if word in ("if", "ifdef", "ifndef"):
                holds = _reading(open_) and _condition(word, rest, defined)
                open_.append((holds, holds or not _reading(open_)))
            elif word in ("elif", "else", "endif"):
                _, done = open_.pop()
                if word != "endif":
                    holds = not done and (word == "else" or _condition("if", rest, defined))
                    open_.append((holds, done or holds))
            elif _reading(open_):
                _obey(word, rest, source, defined)
        except (_NotANumber, IndexError):
            what = f"the preprocessor's line cannot be read: {line.strip()}"
            raise PageError(what, file=source, line=number) from None


def _reading(open_: list[tuple[bool, bool]]) -> bool:
    return all(holds for holds, _ in open_)


def _obey(word: str, rest: str, source: Path, defined: dict[str, str]) -> None:
    if word == "define" and (match := _DEFINE.match(rest)) and not match["call"]:
        defined[match["name"]] = match["body"].strip()
    elif word == "undef":
        defined.pop(rest, None)
    elif word == "include" and (match := _INCLUDE.match(rest)):
        file = source.parent / match["file"]
        if file.is_file():  # else a toolkit's header
            _read(file, defined)


def _condition(word: str, rest: str, defined: Mapping[str, str]) -> bool:
    if word != "if":
        return (rest in defined) == (word == "ifdef")
    # In a condition a name that is no macro is zero.
    names = {m["name"] for m in _TOKEN.finditer(rest) if m["name"]}
    asked = re.sub(
        r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))",
        lambda m: str(int((m[1] or m[2]) in defined)),
        rest,
    )
    return bool(_evaluate(asked, {**dict.fromkeys(names, "0"), **defined}, 0))


def _value(name: str, defined: Mapping[str, str], depth: int = 0) -> int:
    if name not in defined or depth > _DEPTH:
        raise _NotANumber
    return _evaluate(defined[name], defined, depth + 1)


_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: _divide(a, b), "%": lambda a, b: a - _divide(a, b) * b},
)


def _divide(a: int, b: int) -> int:
    """C's division, towards zero."""
    if b == 0:
        raise _NotANumber
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _evaluate(text: str, defined: Mapping[str, str], depth: int) -> int:
    words: list[str] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _NotANumber
        words.append(match["number"] or match["name"] or match["sign"])
        place = match.end()
    value = _choice(words, defined, depth)
    if words:
        raise _NotANumber
    return value


def _choice(words: list[str], defined: Mapping[str, str], depth: int) -> int:
    value = _level(0, words, defined, depth)
    if words[:1] != ["?"]:
        return value
    words.pop(0)
    yes = _choice(words, defined, depth)
    if words[:1] != [":"]:
        raise _NotANumber
    words.pop(0)
    no = _choice(words, defined, depth)
    return yes if value else no


def _level(level: int, words: list[str], defined: Mapping[str, str], depth: int) -> int:
    if level == len(_LEVELS):
        return _single(words, defined, depth)
    value = _level(level + 1, words, defined, depth)
    while words and words[0] in _LEVELS[level]:
        sign = words.pop(0)
        value = int(_LEVELS[level][sign](value, _level(level + 1, words, defined, depth)))
    return value


def _single(words: list[str], defined: Mapping[str, str], depth: int) -> int:
    if not words:
        raise _NotANumber
    word = words.pop(0)
    if word == "(":
        value = _choice(words, defined, depth)
        if words[:1] != [")"]:
            raise _NotANumber
        words.pop(0)
        return value
    if word in ("-", "+", "!"):
        value = _single(words, defined, depth)
        return -value if word == "-" else value if word == "+" else int(not value)
    if word[0].isdigit():
        return int(word, 16) if word[:2] in ("0x", "0X") else int(word)
    return _value(word, defined, depth)
