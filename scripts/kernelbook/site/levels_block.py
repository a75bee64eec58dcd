"""``/// levels | ladder_4096``: a roofline for every level of memory at once, and its table."""

from __future__ import annotations

from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.report.levels import Ladder, ladders, levels_table
from kernelbook.report.levels_picture import levels_svg
from kernelbook.site import charts
from kernelbook.site.blocks import BookBlock, words
from kernelbook.site.switch import device_key
from kernelbook.site.tables_html import empty_html, table_html

_CAPTION = Text(
    "每一步有三个点，高度相同，横坐标是它在三层存储上的强度；数字是下表中的序号。斜线是该层的规格带宽。",
    "Every step has three points at one height, placed by its intensity at each of three levels; "
    "numbers are those of the table below. Slopes are the specified bandwidth of a level.",
)


class LevelsBlock(BookBlock):
    """One picture a device that has counters, then all steps with the roof of every level."""

    NAME = "levels"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {"variants": (None, words)}  # noqa: RUF012

    def html(self) -> str:
        if not self.options["variants"]:
            raise PageError("levels needs variants", hint="variants: [NAME, ...]")
        book, language = self.page.project.book, self.page.language
        found = ladders(book, self.argument, self.options["variants"])
        if not found:
            return empty_html(language)
        pictures = "".join(self._picture(ladder) for ladder in found)
        return (
            f'<figure class="kb-figure">{pictures}'
            f"<figcaption>{_CAPTION.of(language)}</figcaption></figure>"
            f"{table_html(levels_table(book, found), self.page)}"
        )

    def _picture(self, ladder: Ladder) -> str:
        record, language = ladder.item.record, self.page.language
        label = f"{self.page.project.book.device_name(record)}: {_CAPTION.of(language)}"
        key = charts.attribute(device_key(record.slug, ladder.item.local))
        svg = levels_svg(ladder, language, label)
        return f'<div class="kb-figure__drawing" tabindex="0" data-device="{key}">{svg}</div>'
