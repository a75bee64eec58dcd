"""Blocks that show records: tables, hardware boxes, charts, and parts that wait for records."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html import escape
from typing import Any

from markdown.util import AtomicString

from kernelbook.errors import KernelbookError, PageError
from kernelbook.quantities import Grade
from kernelbook.report import counters, tables
from kernelbook.report.rows import place_of
from kernelbook.report.steps import of_one_device, steps_table
from kernelbook.site import charts
from kernelbook.site.blocks import BookBlock, text, words
from kernelbook.site.stubs import COUNTERS
from kernelbook.site.tables_html import badge, empty_html, hardware_html, table_html

EVIDENCE = ("measured", "cited", "counted", "compiled")


class ResultsBlock(BookBlock):
    """``/// results | gemm_1024``: variants by devices."""

    NAME = "results"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {  # noqa: RUF012 (pymdownx declares it so)
        "columns": (None, words),
        "variants": (None, words),
        "evidence": (("measured", "cited"), words),
        "cache": ("cold", text),
    }

    def html(self) -> str:
        for name in self.options["evidence"]:
            if name not in ("measured", "cited"):
                raise PageError(f"results have no evidence {name!r}", hint="measured or cited")
        if self.options["cache"] not in ("cold", "warm"):
            raise PageError(f"cache is {self.options['cache']!r}", hint="cold or warm")
        shown = tables.results_table(
            self.page.project.book,
            self.argument,
            columns=self.options["columns"],
            variants=self.options["variants"],
            evidence=self.options["evidence"],
            cache=self.options["cache"],
        )
        return table_html(shown, self.page)


class StepsBlock(BookBlock):
    """``/// steps | ladder_4096``: variants in order, each over the one before, and the product."""

    NAME = "steps"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {"variants": (None, words), "cache": ("cold", text)}  # noqa: RUF012

    def html(self) -> str:
        if self.options["cache"] not in ("cold", "warm"):
            raise PageError(f"cache is {self.options['cache']!r}", hint="cold or warm")
        shown = steps_table(
            self.page.project.book,
            self.argument,
            self.options["variants"] or (),
            cache=self.options["cache"],
        )
        return table_html(shown, self.page)


class CountsBlock(BookBlock):
    """``/// counts | gemm_1024``: what the emulator counted."""

    NAME = "counts"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {"columns": (None, words), "variants": (None, words)}  # noqa: RUF012

    def html(self) -> str:
        shown = tables.counts_table(
            self.page.project.book,
            self.argument,
            columns=self.options["columns"],
            variants=self.options["variants"],
        )
        return table_html(shown, self.page)


class CountersBlock(BookBlock):
    """``/// counters | gemm_1024``: what ncu read on real cards."""

    NAME = "counters"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {"columns": (None, words), "variants": (None, words)}  # noqa: RUF012

    def html(self) -> str:
        shown = tables.counters_table(
            self.page.project.book,
            self.argument,
            columns=self.options["columns"],
            variants=self.options["variants"],
        )
        return table_html(of_one_device(shown), self.page)


class CompiledBlock(BookBlock):
    """``/// compiled | gemm_1024``: registers, shared memory, spills, occupancy."""

    NAME = "compiled"
    ARGUMENT_FORM = "an experiment"
    OPTIONS = {"archs": (None, words), "variants": (None, words)}  # noqa: RUF012

    def html(self) -> str:
        shown = tables.compiled_table(
            self.page.project.book,
            self.argument,
            archs=self.options["archs"],
            variants=self.options["variants"],
        )
        return table_html(shown, self.page)


class KernelsBlock(BookBlock):
    """``/// kernels | 01_basics``: a chapter's code paths."""

    NAME = "kernels"
    ARGUMENT_FORM = "a chapter"
    OPTIONS = {"variants": (None, words)}  # noqa: RUF012

    def html(self) -> str:
        shown = tables.kernels_table(
            self.page.project.book, self.argument, variants=self.options["variants"]
        )
        return table_html(shown, self.page, graded=False)


class HardwareBlock(BookBlock):
    """``/// hardware |``: a box for every device that has records."""

    NAME = "hardware"

    def html(self) -> str:
        return hardware_html(tables.hardware(self.page.project.book), self.page)


class ChaptersBlock(BookBlock):
    """``/// chapters |``: every chapter's experiments, each linked to its place in the results."""

    NAME = "chapters"

    def html(self) -> str:
        book, language = self.page.project.book, self.page.language
        parts = []
        for chapter in book.catalog.chapters:
            uri = f"results/{chapter}.md"
            items = []
            for members in book.catalog.groups(chapter):
                sweep = members[0].sweep
                named = sweep or members[0]
                title = escape(named.title.of(language))
                if self.page.has_page(uri):
                    place = place_of(named.name)
                    title = f'<a href="{escape(self.page.link(uri, place))}">{title}</a>'
                rows = (row for member in members for row in book.rows_about(member.name))
                kept = {Grade.parse(row.evidence) for row in rows}
                badges = "".join(badge(grade, language) for grade in sorted(kept, reverse=True))
                items.append(f"<li>{title} {badges}</li>")
            head = self.chapter_name(chapter)
            if self.page.has_page(uri):
                head = f'<a href="{escape(self.page.link(uri))}">{head}</a>'
            parts.append(f'<div class="kb-sources"><b>{head}</b><ul>{"".join(items)}</ul></div>')
        if self.page.has_page(COUNTERS):
            title = escape(counters.title(language))
            link = escape(self.page.link(COUNTERS))
            parts.append(f'<div class="kb-sources"><b><a href="{link}">{title}</a></b></div>')
        return "".join(parts)


class ChartBlock(BookBlock):
    """``/// chart | NAME``: a chart of results/charts, its content the caption."""

    NAME = "chart"
    ARGUMENT_FORM = "a chart's name"
    OPTIONS = {"alt": ("", text)}  # noqa: RUF012

    def on_create(self, parent: ET.Element) -> ET.Element:
        self.name = self.page.new_id("kb-chart")
        figure = ET.SubElement(parent, "figure", {"class": "kb-figure"})
        ET.SubElement(figure, "figcaption", {"id": self.name})
        return figure

    def on_add(self, block: ET.Element) -> ET.Element:
        return block[-1]

    def on_end(self, block: ET.Element) -> None:
        if self.left_out or self.broken:
            return
        caption = "".join(block[-1].itertext()).strip()
        if not caption and not self.options["alt"]:
            what = "a chart needs a caption or alt: for those who cannot see it"
            self.page.note(self.error(what))
            return
        if not caption:
            block.remove(block[-1])
        try:
            html = self.html()
        except KernelbookError as error:
            self.page.note(self.error(error))
            return
        holder = ET.Element("div", {"class": "kb-figure__drawings"})
        holder.text = AtomicString(self.page.stash(html))
        block.insert(0, holder)

    def html(self) -> str:
        alt = self.options["alt"]
        label = f'aria-labelledby="{self.name}"'
        if alt:
            label = f'aria-label="{charts.attribute(alt)}"'
        drawings = charts.drawings(
            self.page.project,
            self.argument,
            self.page.language,
            prefix=self.name,
            label=label,
        )
        if not drawings:
            return empty_html(self.page.language)
        return "".join(
            f'<div class="kb-figure__drawing" tabindex="0" role="group" {label}'
            f' data-devices="{charts.attribute(" ".join(drawing.devices))}"'
            f"{' hidden' * (place > 0)}>{drawing.svg}</div>"
            for place, drawing in enumerate(drawings)
        )


class FigureIfBlock(BookBlock):
    """``/// figure-if | measured gemm_1024``: content that waits for records of ours."""

    NAME = "figure-if"
    ARGUMENT_FORM = "a grade and an experiment"
    OPTIONS = {"otherwise": ("", text)}  # noqa: RUF012

    def on_validate(self, parent: ET.Element) -> bool:
        try:
            self.holds = self._holds()
        except KernelbookError as error:
            self.page.note(self.error(error))
            self.holds = False
        return True

    def _holds(self) -> bool:
        parts = self.argument.split()
        if not 2 <= len(parts) <= 4 or parts[0] not in EVIDENCE:
            raise PageError(
                f"{self.argument!r} is no condition",
                hint="write GRADE EXPERIMENT [VARIANT [METRIC]], grades: " + ", ".join(EVIDENCE),
            )
        project = self.page.project
        experiment = project.book.catalog.experiment(parts[1])
        variant, metric = (*parts[2:], "", "")[:2]
        if variant:
            experiment.variant(variant)
        rows = project.rows(parts[0], parts[1], variant)
        return any(
            metric in ("", row.metric)
            and (parts[0] != "measured" or row.device == project.reference)
            for row in rows
        )

    def on_create(self, parent: ET.Element) -> ET.Element:
        return ET.SubElement(parent, "div", {"class": "kb-if"})

    def on_end(self, block: ET.Element) -> None:
        if self.broken or self.holds:
            return
        block.clear()
        block.set("class", "kb-if kb-if--otherwise")
        if self.options["otherwise"] and not self.left_out_by_parent():
            ET.SubElement(block, "p").text = self.options["otherwise"]

    def left_out_by_parent(self) -> bool:
        """Whether a figure-if around this one does not hold."""
        around: list[Any] = [e.block for e in self._block_mgr.stack if e.block is not self]
        return any(getattr(block, "holds", True) is False for block in around)

    def html(self) -> str:
        raise NotImplementedError("a figure-if holds its content")
