"""``/// gains |``: technique, when to use it, measured gain and theoretical bound on each card."""

from __future__ import annotations

from html import escape

from kernelbook.experiment import Text
from kernelbook.quantities import Grade
from kernelbook.site import expressions, gains, numbers
from kernelbook.site.blocks import BookBlock
from kernelbook.site.cards import Card
from kernelbook.site.gains import Gain
from kernelbook.site.scope import ProjectScope
from kernelbook.site.switch import device_key

_TITLE = Text("技术", "technique")
_WHEN = Text("何时用", "when")
_GAIN = Text("收益 / 理论", "gain / in theory")
_MISSING = Text("尚未测量", "not measured yet")
_LABEL = Text("各项技术的收益", "what each technique gains")
_THEORY = Text("理论", "in theory")
_AT_MOST = Text("上限", "at most")  # of a bound that is itself measured


class GainsBlock(BookBlock):
    """The closing table of the guide; its entries are docs/gains.toml."""

    NAME = "gains"

    def html(self) -> str:
        project, language = self.page.project, self.page.language
        found = gains.load(project.root)
        for gain in found:
            gains.check(project.book, gain, project.root)
        shown = tuple(gains.shown_cards(project, found))
        names = [(card.name, f' data-device="{_key(card)}"') for card in shown]
        if not names:
            names = [(project.book.sheets.device(project.reference).name, "")]
        heads = "".join(
            f'<th scope="col"{title}>{escape(text.of(language))}</th>'
            for text, title in ((_TITLE, ""), (_WHEN, ""))
        ) + "".join(
            f'<th scope="col" class="kb-num"{key}>{escape(name)}'
            f"<small>{escape(_GAIN.of(language))}</small></th>"
            for name, key in names
        )
        body = "".join(self._row(gain, shown) for gain in found)
        label = escape(_LABEL.of(language))
        return (
            '<div class="kb-table kb-table--gains">'
            f'<div class="kb-scroll" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="kb-data"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
            "</div></div>"
        )

    def _row(self, gain: Gain, shown: tuple[Card, ...]) -> str:
        language = self.page.language
        slow, fast = gains.compared(self.page.project.book, gain)
        pair = f"{escape(slow.of(language))} → {escape(fast.of(language))}"
        cells = "".join(self._on_card(gain, card) for card in shown)
        if not shown:
            scope = ProjectScope(self.page.project, language, self.page.strict)
            bound = gains.bound_alone(gain, scope)
            cells = self._cell(None, bound, "", gain.bound, gain, "")
        return (
            f'<tr><th scope="row">{escape(gain.title.of(language))}<small>{pair}</small></th>'
            f"<td>{escape(gain.when.of(language))}</td>{cells}</tr>"
        )

    def _on_card(self, gain: Gain, card: Card) -> str:
        page = self.page
        seen = gains.read(page.project, card, gain, page.language, strict=page.strict)
        key = f' data-device="{_key(card)}"'
        return self._cell(
            seen.gain, seen.bound, seen.gain_expression, seen.bound_expression, gain, key
        )

    def _cell(
        self,
        gain: expressions.Resolved | None,
        bound: expressions.Resolved | None,
        gain_expression: str,
        bound_expression: str,
        entry: Gain,
        key: str,
    ) -> str:
        language = self.page.language
        shown = escape(_MISSING.of(language))
        if gain is not None:
            shown = f"<b>{self._times(gain, gain_expression)}</b>"
        below = ""
        if bound is not None:
            number = self._times(bound, bound_expression)
            known = bound.quantity.grade >= Grade.COUNTED
            called = _THEORY if known else _AT_MOST
            below = (
                f"<small>{escape(called.of(language))} {number}"
                f"<br>{escape(entry.why.of(language))}</small>"
            )
        return f'<td class="kb-num"{key}>{shown}{below}</td>'

    def _times(self, resolved: expressions.Resolved, expression: str) -> str:
        spec = ".2f ×" if resolved.quantity.value < 10 else ".1f ×"
        text = numbers.shown(resolved, spec)
        return numbers.number_html(text, resolved.quantity, self.page, expression)


def _key(card: Card) -> str:
    return escape(device_key(card.slug, card.local), quote=True)
