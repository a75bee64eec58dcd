"""``/// bank-map | transpose_8192 transpose_padded``: which lane of a warp hits which bank."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kernelbook.errors import PageError
from kernelbook.experiment import Experiment, Kernel
from kernelbook.pictures.bank_map import BankMap
from kernelbook.pictures.words import words as phrase
from kernelbook.quantities import Grade, Quantity, Source, format_number
from kernelbook.records import Record, Result, SharedRequest
from kernelbook.report.rows import anchor_of, shape_text
from kernelbook.site import excerpt, numbers
from kernelbook.site.blocks import BookBlock, text, words
from kernelbook.sources import layout

ACCESSES = ("read", "write", "atomic")


class BankMapBlock(BookBlock):
    """A picture for each request of one warp that the emulator remembered when it counted."""

    NAME = "bank-map"
    ARGUMENT_FORM = "an experiment and its variants"
    OPTIONS = {"access": (ACCESSES, words), "region": ("", text)}  # noqa: RUF012

    def html(self) -> str:
        name, *variants = self.argument.split()
        if not variants:
            raise PageError(f"{self.argument!r} is no variant", hint="write EXPERIMENT VARIANT ...")
        for access in self.options["access"]:
            if access not in ACCESSES:
                raise PageError(f"no access {access!r}", hint="there are: " + ", ".join(ACCESSES))
        experiment = self.page.project.book.catalog.experiment(name)
        drawn = "".join(f for v in variants for f in self._figures(experiment, v))
        return f'<div class="kb-tiles kb-banks"><div>{drawn}</div></div>'

    def _figures(self, experiment: Experiment, variant: str) -> Iterator[str]:
        kernel = experiment.variant(variant)
        if not isinstance(kernel, Kernel):
            raise PageError(f"{variant} is no kernel and touches no banks")
        record, result = self._counted(experiment, variant)
        lines = self._lines(experiment, kernel)
        found = [
            (place, request)
            for place, requests in result.requests.items()
            for request in requests
            if request.access in self.options["access"] and (lines is None or place in lines)
        ]
        if not found:
            raise PageError(
                f"{experiment.name}/{variant} has no such request of shared memory in its record",
                hint=f"count it: scripts/run_all.py --no-gpu --remeasure --only {experiment.name}",
            )
        stale = self._stale(experiment, kernel, record, result)
        for place, request in found:
            yield self._figure(record, kernel, place, request, stale)

    def _counted(self, experiment: Experiment, variant: str) -> tuple[Record, Result]:
        book = self.page.project.book
        holder = book.catalog.holder("counted", experiment.name)
        for item in book.records_of("counted", holder):
            result = item.record.result(variant)
            if result is not None:
                return item.record, result
        raise PageError(f"{experiment.name}/{variant} has not been counted")

    def _lines(self, experiment: Experiment, kernel: Kernel) -> frozenset[str] | None:
        """Places inside the region, None for all."""
        if not self.options["region"]:
            return None
        path = f"{experiment.chapter}/{kernel.source}"
        quoted = excerpt.read(
            self.page.project.root, excerpt.Quote(path, self.options["region"])
        )  # fmt: skip
        return frozenset(f"{kernel.source}:{number}" for number in quoted.numbers)

    def _stale(
        self, experiment: Experiment, kernel: Kernel, record: Record, result: Result
    ) -> bool:
        """Whether the tree has changed since; in a strict build an error."""
        book = self.page.project.book
        stale = book.numbers.is_stale(record, result)
        stale = stale or result.layout not in ("", layout(experiment.folder / kernel.source))
        if stale and self.page.strict:
            raise PageError(
                f"{experiment.name}/{kernel.name} is stale: the tree has changed since",
                hint=f"run scripts/run_all.py --only {experiment.name}",
            )
        return stale

    def _figure(
        self, record: Record, kernel: Kernel, place: str, request: SharedRequest, stale: bool
    ) -> str:
        language = self.page.language
        drawn = BankMap.of(request.words, request.size, store=request.access != "read")
        file, _, line = place.rpartition(":")
        kind = phrase(language, request.access)
        where = f"{place}（{kind}）" if language == "zh" else f"{place} ({kind})"
        label = f"{kernel.name}, {where}."
        uri = excerpt.source_page(f"{record.chapter}/{file}")
        shown = escape(where)
        if self.page.has_page(uri):
            shown = f'<a href="{escape(self.page.link(uri, f"L{line}"))}">{shown}</a>'
        source = Source(
            Grade.COUNTED,
            f"{record.experiment} / {kernel.name} / {where}",
            f"{record.chapter}#{anchor_of(record.experiment, kernel.name)}",
            f"{shape_text(record.shape)} · {record.date[:10]} · {record.commit[:10]}",
            stale,
        )
        degree = numbers.number_html(
            format_number(drawn.degree, ".3g"),
            Quantity.of(drawn.degree, "", Grade.COUNTED, (source,)),
            self.page,
        )
        return (
            f'<figure><div data-search-exclude="">{drawn.svg(language, label)}</div>'
            f"<figcaption><b>{escape(kernel.title.of(language))}</b><br>{shown}<br>"
            f"{escape(phrase(language, 'degree'))} {degree}{_stop(language)}"
            f"{escape(drawn.sentence(language))}</figcaption></figure>"
        )


def _stop(language: str) -> str:
    return "。" if language == "zh" else ". "
