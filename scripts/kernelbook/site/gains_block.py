"""``/// gains |``: technique, when to use it, measured gain and theoretical bound on each card."""

from __future__ import annotations

from html import escape

from kernelbook.experiment import Text
from kernelbook.quantities import Grade
from kernelbook.site import expressions, gains, numbers
from kernelbook.site.blocks import BookBlock
from kernelbook.site.cards import Card
from kernelbook.site.gains import Column, Gain, Reading
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
        shown = tuple(gains.columns(project, found, language, strict=self.page.strict))
        heads = "".join(
            f'<th scope="col">{escape(text.of(language))}</th>' for text in (_TITLE, _WHEN)
        )
        heads += (
            "".join(
                f'<th scope="col" class="kb-num"{key}>{escape(name)}'
                f"<small>{escape(_GAIN.of(language))}</small></th>"
                for name, key in ((column.card.name, _key(column.card)) for column in shown)
            )
            or f'<th scope="col" class="kb-num">{escape(_GAIN.of(language))}</th>'
        )
        body = "".join(self._row(gain, shown) for gain in found)
        label = escape(_LABEL.of(language))
        return (
            '<div class="kb-table kb-table--gains">'
            f'<div class="kb-scroll" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="kb-data"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
            "</div></div>"
        )

    def _row(self, gain: Gain, shown: tuple[Column, ...]) -> str:
        project, language = self.page.project, self.page.language
        slow, fast = gains.compared(project.book, gain)
        pair = f"{escape(slow.of(language))} → {escape(fast.of(language))}"
        cells = "".join(
            self._cell(
                gains.read(column, gain),
                gain,
                f'{_key(column.card)} data-name="{escape(column.card.name, quote=True)}"',
            )
            for column in shown
        )
        if not shown:
            bound = gains.bound_alone(gain, ProjectScope(project, language, self.page.strict))
            cells = self._cell(Reading(None, bound, "", gain.bound), gain, "")
        return (
            f'<tr><th scope="row">{escape(gain.title.of(language))}<small>{pair}</small></th>'
            f"<td>{escape(gain.when.of(language))}</td>{cells}</tr>"
        )

    def _cell(self, seen: Reading, gain: Gain, attributes: str) -> str:
        """``attributes`` name the card, for the switch and for where the head is not shown."""
        language = self.page.language
        shown, below = escape(_MISSING.of(language)), ""
        if seen.gain is not None:
            shown = f"<b>{self._times(seen.gain, seen.gain_expression)}</b>"
        if seen.bound is not None:
            known = seen.bound.quantity.grade >= Grade.COUNTED
            called = escape((_THEORY if known else _AT_MOST).of(language))
            number = self._times(seen.bound, seen.bound_expression)
            below = f"<small>{called} {number}<br>{escape(gain.why.of(language))}</small>"
        return f'<td class="kb-num"{attributes}>{shown}{below}</td>'

    def _times(self, resolved: expressions.Resolved, expression: str) -> str:
        spec = ".2f ×" if resolved.quantity.value < 10 else ".1f ×"
        text = numbers.shown(resolved, spec)
        return numbers.number_html(text, resolved.quantity, self.page, expression)


def _key(card: Card) -> str:
    return f' data-device="{escape(device_key(card.slug, card.local), quote=True)}"'
