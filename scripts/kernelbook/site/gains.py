"""What a technique gains: docs/gains.toml, one entry a technique, read on every card with records.

An entry names two rows of results, the slow and the fast one, and a metric; the gain is the ratio
that says how many times better the fast one is. Nothing in the file is a result.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelbook.errors import KernelbookError, PageError
from kernelbook.experiment import Text
from kernelbook.metrics import METRICS
from kernelbook.report.book import Book
from kernelbook.site import cards, expressions
from kernelbook.site.cards import Card, CardScope
from kernelbook.site.context import Project
from kernelbook.site.scope import ProjectScope

FILE = "gains.toml"
_MEASURED = re.compile(r"\bmeasured\.")


@dataclass(frozen=True)
class Gain:
    """``fast`` and ``slow`` are EXPERIMENT.VARIANT; ``bound`` is an expression as in an article.

    A ``measured`` of the bound is read on the card whose gain it bounds. ``why`` says what it
    counts.
    """

    title: Text
    when: Text
    fast: str
    slow: str
    metric: str
    bound: str
    why: Text

    def expression(self, evidence: str) -> str:
        """The gain as an article would write it."""
        fast, slow = (f"{evidence}.{name}.{self.metric}" for name in (self.fast, self.slow))
        rises = METRICS[self.metric].better > 0
        return f"{fast} / {slow}" if rises else f"{slow} / {fast}"


@dataclass(frozen=True)
class Reading:
    """A gain on a card, with its bound; None of either: no records."""

    gain: expressions.Resolved | None
    bound: expressions.Resolved | None
    gain_expression: str
    bound_expression: str


def load(root: Path) -> tuple[Gain, ...]:
    """All entries of docs/gains.toml; raises PageError."""
    file = root / "docs" / FILE
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        found = tuple(_gain(entry) for entry in data["gain"])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PageError(f"cannot be read: {error}", file=file) from None
    except (KeyError, TypeError) as error:
        raise PageError(f"an entry lacks {error}", file=file) from None
    for gain in found:
        if gain.metric not in METRICS or not METRICS[gain.metric].better:
            what = f"{gain.title.en}: {gain.metric!r} is no metric of which more or less is better"
            raise PageError(what, file=file)
    return found


def _gain(entry: dict[str, str]) -> Gain:
    return Gain(
        title=Text(entry["zh"], entry["en"]),
        when=Text(entry["when_zh"], entry["when_en"]),
        fast=entry["fast"],
        slow=entry["slow"],
        metric=entry["metric"],
        bound=entry["bound"],
        why=Text(entry["bound_zh"], entry["bound_en"]),
    )


def check(book: Book, gain: Gain, root: Path) -> None:
    """Raises PageError where an experiment or a variant is not in the tree."""
    for name in (gain.fast, gain.slow):
        experiment, _, variant = name.partition(".")
        try:
            book.catalog.experiment(experiment).variant(variant)
        except KernelbookError as error:
            what = f"{gain.title.en}: {error}"
            raise PageError(what, file=root / "docs" / FILE) from None


def compared(book: Book, gain: Gain) -> tuple[Text, Text]:
    """What the slow and the fast row are called: by what tells them apart."""
    found = []
    for name in (gain.slow, gain.fast):
        experiment, _, variant = name.partition(".")
        title = book.variant_title(experiment, variant)
        found.append((book.catalog.experiment(experiment), title))
    (slow, slow_title), (fast, fast_title) = found
    if slow is fast or slow.title == fast.title:
        return slow_title, fast_title
    if slow_title == fast_title:
        return slow.title, fast.title
    return _joined(slow.title, slow_title), _joined(fast.title, fast_title)


def _joined(one: Text, other: Text) -> Text:
    return Text(f"{one.zh}：{other.zh}", f"{one.en}: {other.en}")


@dataclass(frozen=True)
class Column:
    """A card of the table. ``having``: evidence, EXPERIMENT.VARIANT and metric of its numbers."""

    card: Card
    scope: CardScope
    having: frozenset[tuple[str, str, str]]

    def evidence(self, gain: Gain) -> str:
        """ "measured" or "cited" where the card has both rows of a gain, else ""."""
        for evidence in ("measured", "cited"):
            if {(evidence, name, gain.metric) for name in (gain.fast, gain.slow)} <= self.having:
                return evidence
        return ""


def columns(
    project: Project, gains: tuple[Gain, ...], language: str, *, strict: bool
) -> Iterator[Column]:
    """Cards with records for any of the gains, the reference first."""
    for card in (*cards.published(project), *cards.own(project)):
        having = frozenset(
            (row.evidence, f"{row.experiment}.{row.variant}", row.metric) for row in card.rows
        )
        column = Column(card, CardScope.of(project, card, language, strict), having)
        if any(column.evidence(gain) for gain in gains):
            yield column


def read(column: Column, gain: Gain) -> Reading:
    """The gain on a card, with its bound.

    A bound that the card lacks records for is left out, but on the reference device it is a
    KernelbookError.
    """
    card, scope, evidence = column.card, column.scope, column.evidence(gain)
    if not evidence:
        return Reading(None, bound_alone(gain, scope), "", gain.bound)
    expression = gain.expression(evidence)
    bound = _MEASURED.sub(f"{evidence}.", gain.bound)
    most: expressions.Resolved | None = None
    try:
        most = expressions.number(bound, scope)
    except KernelbookError:
        if card.slug == scope.project.reference and not card.local:
            raise
    return Reading(expressions.number(expression, scope), most, expression, bound)


def bound_alone(gain: Gain, scope: ProjectScope) -> expressions.Resolved | None:
    """The bound where nothing is measured: None where it takes measurements."""
    if _MEASURED.search(gain.bound):
        return None
    return expressions.number(gain.bound, scope)
