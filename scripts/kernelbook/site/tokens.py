"""Finding ``{= … =}`` and ``{? … ?}`` in a page's text, with their lines.

Tokens are taken out before anything else reads the text: a ``|`` in one must not split a table
cell, a ``*`` must not start emphasis, and Python-Markdown forgets line numbers at once. Each is
replaced by a placeholder of private-use characters; what is left of them at the end stood in
code, and gets its text back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OPEN, CLOSE = "\ue0f0", "\ue0f1"
PLACEHOLDER = re.compile(f"{OPEN}([0-9]+){CLOSE}")

_FENCE = re.compile(r"^[ \t>]*(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_TOKEN = r"(?<![\\{])\{[=?]\s"
_CODE_OR_TOKEN = re.compile(
    r"(?P<code>(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<math>(?<![\\$A-Za-z0-9])\$(?![\s$])(?:\\.|[^\\$\n])*?(?<!\s)\$(?![$A-Za-z0-9]))"
    r"|(?<![\\{])\{(?P<kind>[=?])(?=\s)(?P<body>(?:(?!\n[ \t]*\n|\{[=?]\s).)+?)(?<=\s)(?P=kind)\}",
    re.S,
)
_PARAGRAPH_BREAK = re.compile(r"\n[ \t>]*\n|\n[ \t>]*(?=[-*+] |\d+\. |#|\||///)")
_STOPS = ("。", "！", "？", ".", "!", "?")
_STOP = re.compile(r"[。！？]|[.!?](?=\s|$)")
SENTENCE_LENGTH = 160


@dataclass(frozen=True)
class Token:
    """``{= body =}`` (kind "=") or ``{? body ?}`` (kind "?"); lines are those of its file.

    A formula that holds one is a token of kind "$": what is wrong with it is said where it stands.
    """

    kind: str
    body: str
    text: str  # as it stands in the page, delimiters included
    line: int
    sentence: str  # the paragraph or list item around it, for the message of a false claim


def extract(text: str, first_line: int = 1) -> tuple[str, tuple[Token, ...]]:
    """The text with placeholders for its tokens, and the tokens in order.

    ``first_line`` is the line of the page's file on which ``text`` begins.
    """
    found: list[Token] = []
    pieces: list[str] = []
    for start, stretch, is_code in stretches(text):
        if is_code:
            pieces.append(stretch)
            continue

        def replace(match: re.Match[str], stretch: str = stretch, start: int = start) -> str:
            if match["code"] is not None:
                return match.group()
            if match["math"] is not None and not re.search(_TOKEN, match["math"]):
                return match.group()
            line = first_line + text.count("\n", 0, start + match.start())
            sentence = _sentence(stretch, match.start(), match.end())
            body = " ".join((match["body"] or match["math"]).split())
            found.append(Token(match["kind"] or "$", body, match.group(), line, sentence))
            return f"{OPEN}{len(found) - 1}{CLOSE}"

        pieces.append(_CODE_OR_TOKEN.sub(replace, stretch))
    return "".join(pieces), tuple(found)


def restore(text: str, tokens: tuple[Token, ...], quote: Callable[[str], str] = str) -> str:
    """Text whose placeholders are replaced by what the author wrote."""

    def original(match: re.Match[str]) -> str:
        number = int(match[1])
        return quote(tokens[number].text) if number < len(tokens) else match.group()

    return PLACEHOLDER.sub(original, text)


def stretches(text: str) -> Iterator[tuple[int, str, bool]]:
    """(offset, text, is code) of the parts of a page inside and outside of fenced code."""
    start = position = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line.rstrip("\r\n"))
        if match and not fence:
            if position > start:
                yield start, text[start:position], False
            start, fence = position, match["fence"]
        elif match and match["fence"].startswith(fence) and not match["info"].strip():
            yield start, text[start : position + len(line)], True
            start, fence = position + len(line), ""
        position += len(line)
    if position > start:
        yield start, text[start:], bool(fence)


def _sentence(text: str, start: int, end: int) -> str:
    """The sentence a token belongs to, without tokens, shortened.

    A token right behind a full stop belongs to the sentence before it.
    """
    top = max((m.end() for m in _PARAGRAPH_BREAK.finditer(text, 0, start)), default=0)
    below = _PARAGRAPH_BREAK.search(text, end)
    before = _plain(text[top:start])
    after = _plain(text[end : below.start() if below else len(text)])
    if not before.endswith(_STOPS):
        parts = _STOP.split(after, maxsplit=1)
        before += parts[0] if len(parts) == 1 else after[: len(after) - len(parts[1])]
    starts = [m.end() for m in _STOP.finditer(before) if m.end() < len(before)]
    sentence = before[starts[-1] :] if starts else before
    sentence = sentence.strip("*_- ")
    if len(sentence) <= SENTENCE_LENGTH:
        return sentence
    return "…" + sentence[len(sentence) - SENTENCE_LENGTH + 1 :]


def _plain(text: str) -> str:
    without = _CODE_OR_TOKEN.sub(lambda m: m["code"] or m["math"] or "", text)
    return " ".join(without.split())
