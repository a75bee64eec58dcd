"""``{= … =}`` shown with grade and provenance, ``{? … ?}`` held against the records.

A number becomes a link to its row in results; where it came from is in the page itself (shown
on hover and focus by the style sheet), so it works by keyboard and without JavaScript.
"""

from __future__ import annotations

import re
from html import escape

from markdown.inlinepatterns import InlineProcessor
from markdown.postprocessors import Postprocessor
from markdown.preprocessors import Preprocessor

from kernelbook.errors import KernelbookError, PageError
from kernelbook.quantities import SCALAR, UNITS, Quantity, Source, describe, format_number
from kernelbook.site import expressions, provenance
from kernelbook.site.page import PageState
from kernelbook.site.place import page_of
from kernelbook.site.tokens import CLOSE, OPEN, PLACEHOLDER, Token, extract, restore

# Units that follow a number without a space.
_CLOSE_UNITS = ("×", "%")
_SHOWN_SOURCES = 3
_LONG = re.compile(r"\d{3}")
_NO_BREAK = "\u00a0"

# What a block may stand behind: items of lists and quotations.
_MARKERS = re.compile(r"^(?:[ \t]*(?:[-*+>]|\d+[.)])(?=[ \t]|$))+")


class TokenPreprocessor(Preprocessor):
    """Takes the tokens out of the page before anything else reads it."""

    def __init__(self, page: PageState, tokens: list[Token]) -> None:
        super().__init__(page.md)
        self.page = page
        self.tokens = tokens

    def run(self, lines: list[str]) -> list[str]:
        first_line = 1 + front_matter_lines(self.page, len(lines))
        text, found = extract("\n".join(lines), first_line)
        self.tokens[:] = found
        for number, line in enumerate(lines, first_line):
            inner = _MARKERS.sub("", line).strip()
            if inner.startswith("///"):
                self.page.lines.setdefault(" ".join(inner.split()), []).append(number)
        return text.split("\n")


def front_matter_lines(page: PageState, lines: int) -> int:
    """How many lines MkDocs cut from the top of the file before it was converted."""
    path = page_of(page.md)
    if path is None:
        return 0
    try:
        return max(0, path.read_text(encoding="utf-8-sig").count("\n") + 1 - lines)
    except (OSError, UnicodeDecodeError):
        return 0


class TokenInline(InlineProcessor):
    """Puts a number, or nothing for a claim, in a token's place."""

    def __init__(self, page: PageState, tokens: list[Token]) -> None:
        super().__init__(PLACEHOLDER.pattern, page.md)
        self.page = page
        self.tokens = tokens

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str | None, int | None, int | None]:
        number = int(m[1])
        if number >= len(self.tokens):
            return None, None, None
        token = self.tokens[number]
        try:
            if token.kind == "$":
                hint = "close the formula first: $N =$ {= … =}"
                raise PageError(f"a number cannot stand in a formula: {token.body}", hint=hint)
            if token.kind == "?":
                check(token, self.page)
                return "", m.start(0), m.end(0)
            html = render(token.body, self.page)
        except KernelbookError as error:
            self.page.note(self.page.error(error, token.line))
            return "", m.start(0), m.end(0)
        return self.page.stash(html), m.start(0), m.end(0)


class TokenPostprocessor(Postprocessor):
    """Gives code back the tokens that stood in it."""

    def __init__(self, page: PageState, tokens: list[Token]) -> None:
        super().__init__(page.md)
        self.page = page
        self.tokens = tokens

    def run(self, text: str) -> str:
        self.page.finish()
        if OPEN not in text or CLOSE not in text:
            return text
        return restore(text, tuple(self.tokens), escape)


def check(token: Token, page: PageState) -> None:
    """Raises PageError that quotes the sentence where the claim is false."""
    if not expressions.holds(token.body, page.scope):
        raise PageError(f"the claim {token.body!r} is false; it stands in: {token.sentence}")


def render(body: str, page: PageState) -> str:
    """The HTML of ``EXPR | SPEC UNIT``; raises KernelbookError."""
    expression, _, display = body.partition("|")
    expression = expression.strip()
    resolved = expressions.number(expression, page.scope)
    quantity = resolved.quantity
    text = shown(resolved, display)
    is_name = resolved.unit is not None
    return number_html(text, quantity, page, "" if is_name else expression)


def shown(resolved: expressions.Resolved, display: str) -> str:
    """The number as text; ``display`` is "", a format spec, a unit, or both."""
    quantity = resolved.quantity
    spec, unit = _display(display)
    if unit is None:
        unit = resolved.unit
        if unit is None:
            unit = describe(quantity.dims) if quantity.dims != SCALAR else ""
        if unit not in UNITS:
            raise PageError(f"a number in {unit} needs a unit", hint="write {= EXPR | SPEC UNIT =}")
        spec = spec or resolved.show
    try:
        if _LONG.search(spec):  # a width or precision of which no line would be left
            raise ValueError(spec)
        text = format_number(quantity.to(unit), spec)
    except ValueError:
        raise PageError(f"{spec!r} is no format for a number", hint="for example .2f") from None
    if not unit:
        return text
    return text + unit if unit in _CLOSE_UNITS else f"{text}{_NO_BREAK}{unit}"


def _display(display: str) -> tuple[str, str | None]:
    words = display.split()
    if len(words) == 2:
        return words[0], words[1]
    if len(words) > 2:
        raise PageError(f"{display.strip()!r} is more than a format and a unit")
    if not words:
        return "", None
    return ("", words[0]) if words[0] in UNITS else (words[0], None)


def number_html(text: str, quantity: Quantity, page: PageState, expression: str = "") -> str:
    """A number with its badge and provenance, as a link to its row where it has one."""
    grade = quantity.grade
    label = provenance.grade_name(grade, page.language)
    classes = f"kb-number kb-{grade.label}" + (" kb-stale" if quantity.stale else "")
    tip_id = page.new_id("kb-tip")
    href = _row_link(quantity, page)
    tip = tip_html(quantity, page, expression, linked=bool(href))
    inner = (
        f'<span class="kb-value">{escape(text)}</span>'
        f'<sup class="kb-badge" data-search-exclude="">{escape(label)}</sup>'
    )
    return provenance.noted(inner, tip, classes, tip_id, href)


def tip_html(
    quantity: Quantity, page: PageState, expression: str = "", *, linked: bool = False
) -> str:
    """Grade, expression and sources: one source line by line, several in a line each."""
    language = page.language
    tip = [f"<b>{escape(provenance.grade_name(quantity.grade, language))}</b>"]
    if quantity.stale:
        tip.append(f"<em>{escape(provenance.word(language, 'stale'))}</em>")
    if expression:
        tip.append(f"<code>{escape(expression)}</code>")
    # The weakest source decides the grade, so it comes first.
    ordered = sorted(quantity.sources, key=lambda source: source.grade)
    if len(ordered) == 1:
        tip.append(provenance.lines_html((ordered[0].label, *_details(ordered[0]))))
    else:
        shown = (" · ".join((s.label, *_details(s))) for s in ordered[:_SHOWN_SOURCES])
        tip.append(provenance.lines_html(shown))
    if len(ordered) > _SHOWN_SOURCES:
        more = provenance.word(language, "more").format(len(ordered) - _SHOWN_SOURCES)
        tip.append(provenance.lines_html((more,)))
    if linked:
        tip.append(f"<i>{escape(provenance.word(language, 'go'))}</i>")
    return "".join(tip)


def _details(source: Source) -> tuple[str, ...]:
    return tuple(filter(None, source.detail.split(provenance.BETWEEN)))


def _row_link(quantity: Quantity, page: PageState) -> str:
    for source in sorted(quantity.sources, key=lambda source: source.grade):
        chapter, _, row = source.anchor.partition("#")
        uri = f"results/{chapter}.md"
        if chapter and row and page.has_page(uri):
            return page.link(uri, row)
    return ""
