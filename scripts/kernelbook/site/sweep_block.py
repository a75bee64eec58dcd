"""``/// sweep | squares``: one problem at many sizes, a table a card."""

from __future__ import annotations

from html import escape

from kernelbook.report import sweeps
from kernelbook.site.blocks import BookBlock
from kernelbook.site.switch import device_key
from kernelbook.site.tables_html import empty_html, table_html


class SweepBlock(BookBlock):
    """Every card that has measured members of the sweep, the reference device first."""

    NAME = "sweep"
    ARGUMENT_FORM = "a sweep"

    def html(self) -> str:
        book = self.page.project.book
        members = sweeps.members_of(book, self.argument)
        parts = []
        for run in sweeps.runs(book, members, "measured"):
            item = run.first
            key = escape(device_key(item.record.slug, item.local))
            name = escape(book.device_name(item.record))
            table = table_html(sweeps.sweep_table(book, members, run), self.page)
            parts.append(f'<div data-device="{key}"><p><b>{name}</b></p>{table}</div>')
        return "".join(parts) or empty_html(self.page.language)
