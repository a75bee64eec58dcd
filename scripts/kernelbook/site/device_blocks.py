"""``/// device | SLUG``, ``/// own-devices |`` and ``/// devices |``: pages about cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape

from kernelbook.devices import SHEET, Device
from kernelbook.errors import KernelbookError, PageError
from kernelbook.experiment import Experiment, Text
from kernelbook.quantities import Grade, format_number
from kernelbook.records import Record
from kernelbook.report.hardware import FORMULAS
from kernelbook.report.model import ROLES
from kernelbook.report.rows import Row, place_of, sizes_text
from kernelbook.site import cards, expressions, numbers
from kernelbook.site.blocks import BookBlock
from kernelbook.site.cards import Card, CardScope
from kernelbook.site.scope import of_row
from kernelbook.site.tables_html import badge

# Figure of SHEET, shown unit, format and words.
_FIGURES = (
    ("sms", "", ",.0f", Text("SM 数", "SMs")),
    ("clock", "MHz", ",.0f", Text("最高 SM 时钟", "highest SM clock")),
    ("fp32_lanes_per_sm", "", ",.0f", Text("每 SM 的 FP32 单元", "FP32 lanes an SM")),
    ("fp32_flops", "TFLOPS", ",.1f", Text("FP32 峰值", "FP32 peak")),
    ("memory_bytes", "GiB", ",.0f", Text("显存容量", "DRAM size")),
    ("memory_bus_bits", "", ",.0f", Text("显存位宽（bit）", "DRAM bus width (bits)")),
    ("memory_bit_rate", "GHz", ",.2f", Text("每脚数据率", "data rate of a pin")),
    ("bandwidth", "GB/s", ",.0f", Text("显存带宽", "DRAM bandwidth")),
    ("l2", "MiB", ",.0f", Text("L2 容量", "L2 size")),
    ("shared_per_sm", "KiB", ",.0f", Text("每 SM 共享内存", "shared memory an SM")),
    ("shared_bandwidth", "TB/s", ",.1f", Text("共享内存带宽", "shared-memory bandwidth")),
    ("max_threads_per_sm", "", ",.0f", Text("每 SM 驻留线程", "resident threads an SM")),
    ("ridge", "FLOP/B", ",.1f", Text("显存拐点", "DRAM ridge point")),
    ("shared_ridge", "FLOP/B", ",.1f", Text("共享内存拐点", "shared-memory ridge point")),
)
_OF_ARCH = ("fp32_lanes_per_sm", "shared_per_sm", "max_threads_per_sm")

_SPEC = Text("规格与出处", "Spec sheet and its sources")
_LIMITS = Text("极限：测得的与引用的", "Limits, measured and cited")
_EXPERIMENTS = Text("全部实验", "Every experiment")
_SIZES = Text("{} 个规模", "{} sizes")
_RUNS = Text("测量环境", "Measured under")
_NO_SHEET = Text("这台设备没有规格表。", "There is no spec sheet of this device.")
_NO_LIMITS = Text("这台设备上还没有测过极限。", "No limits have been measured on this device.")
_NONE_OWN = Text(
    "还没有本机的记录。在有 NVIDIA GPU 的机器上执行 make run，你的卡就会出现在这里，"
    "也会出现在每篇文章的表格和图里。",
    "There are no records of this machine yet. Run make run on a machine with an NVIDIA GPU: your "
    "card appears here, and in the tables and charts of every article.",
)
_ARCH_LIMITS = Text("架构 {} 的限制", "limits of architecture {}")
_HEADS = {
    "spec": (Text("项目", "figure"), Text("值", "value"), Text("出处", "source")),
    "limits": (Text("项目", "what"), Text("值", "value"), Text("占规格", "of the spec sheet")),
    "experiments": (
        Text("实验", "experiment"), Text("规模", "shape"), Text("最好的一行", "best row"),
        Text("结果", "result"), Text("日期", "date"), Text("提交", "commit"),
    ),
}  # fmt: skip
_BEST = {
    "bandwidth": Text("最高有效带宽", "highest effective bandwidth"),
    "throughput": Text("最高 FP32 吞吐", "highest FP32 throughput"),
}
_CEILING = {"bandwidth": "bandwidth", "throughput": "fp32_flops"}


class CardBlock(BookBlock):
    """What the blocks about one card share."""

    def card_html(self, card: Card, level: int = 2) -> str:
        """Spec sheet, limits and experiments; ``level`` is that of the headings."""
        parts = (
            (_SPEC, "spec", self._spec(card)),
            (_LIMITS, "limits", self._limits(card)),
            (_EXPERIMENTS, "experiments", self._experiments(card)),
            (_RUNS, "runs", self._runs(card)),
        )
        prefix = f"{card.slug}-" if card.local else ""
        return "".join(
            f'<h{level} id="{escape(prefix + name)}">{escape(title.of(self.page.language))}'
            f"</h{level}>{html}"
            for title, name, html in parts
            if html
        )

    def _spec(self, card: Card) -> str:
        language = self.page.language
        if card.sheet is None:
            return f"<p>{escape(_NO_SHEET.of(language))}</p>"
        sheet = card.sheet
        # Who says how many SMs there are says of which kind they are.
        reported = sheet.sources.get("sms", "")
        texts = [(Text("架构", "architecture"), sheet.arch.name, reported)]
        if sheet.memory:
            source = sheet.sources.get("memory", "")
            texts.append((Text("显存类型", "DRAM type"), sheet.memory, source))
        rows = [
            [escape(title.of(language)), escape(text), escape(source)]
            for title, text, source in texts
        ]
        for name, unit, spec, title in _FIGURES:
            try:
                value = sheet.figure(name).to(unit)
            except ZeroDivisionError:
                continue  # a driver that reports no memory clock: no bandwidth, no ridge
            text = f"{format_number(value, spec)} {unit}".rstrip()
            rows.append([escape(title.of(language)), escape(text), _source(sheet, name, language)])
        return f"<p>{badge(Grade.THEORY, language)}</p>{self._table('spec', rows)}"

    def _limits(self, card: Card) -> str:
        scope = CardScope.of(self.page.project, card, self.page.language, self.page.strict)
        rows = []
        for limit, error in cards.shown_limits(self.page.project, card, scope):
            if error is not None:
                file = self.page.project.root / "docs" / cards.LIMITS
                raise PageError(f"{limit.title.en}: {error}", file=file)
            expression, _, display = limit.number.partition("|")
            share = ""
            if limit.of:
                share = self._number(f"({expression})/({limit.of})", ".1f %", scope)
            value = self._number(expression.strip(), display, scope)
            rows.append([escape(limit.title.of(self.page.language)), value, share])
        for name in ("bandwidth", "throughput"):
            if (row := card.best(name)) is not None:
                rows.append(self._best(card, row))
        if not rows:
            return f"<p>{escape(_NO_LIMITS.of(self.page.language))}</p>"
        return self._table("limits", rows)

    def _number(self, expression: str, display: str, scope: CardScope) -> str:
        resolved = expressions.number(expression, scope)
        text = numbers.shown(resolved, display)
        return numbers.number_html(text, resolved.quantity, self.page, expression)

    def _best(self, card: Card, row: Row) -> list[str]:
        language = self.page.language
        title = self.page.project.book.variant_title(row.experiment, row.variant).of(language)
        colon = "：" if language == "zh" else ": "
        about = f"<small>{escape(self._title(row.experiment))}{colon}{escape(title)}</small>"
        share = ""
        if card.sheet is not None:
            ceiling = card.sheet.figure(_CEILING[row.metric])
            quantity = of_row(row, language).quantity / ceiling
            text = numbers.shown(expressions.Resolved(quantity), ".1f %")
            share = numbers.number_html(text, quantity, self.page)
        return [escape(_BEST[row.metric].of(language)) + about, self._row(row), share]

    def _row(self, row: Row) -> str:
        """A row's number with its badge and note."""
        resolved = of_row(row, self.page.language)
        text = numbers.shown(resolved, "")
        return numbers.number_html(text, resolved.quantity, self.page)

    def _experiments(self, card: Card) -> str:
        """A line for each experiment, one for all sizes of a sweep."""
        stored = sorted(card.stored, key=lambda i: (i.record.chapter, i.record.experiment))
        groups: dict[str, list[Record]] = {}
        for item in stored:
            found = self._experiment(item.record.experiment)
            name = found.sweep.name if found and found.sweep else item.record.experiment
            groups.setdefault(name, []).append(item.record)
        return self._table("experiments", [self._line(card, *group) for group in groups.items()])

    def _line(self, card: Card, name: str, records: Sequence[Record]) -> list[str]:
        language, record = self.page.language, records[-1]
        found = self._experiment(record.experiment)
        title, shape = self._title(record.experiment), sizes_text(record.shape)
        if found and found.sweep:
            title = found.sweep.title.of(language)
            shape = _SIZES.of(language).format(len(records))
        rows = card.of_experiments(*(r.experiment for r in records))
        best = cards.headline(rows, card, found.bound if found else "memory")
        best = best or card.best("time", rows)
        variant = ""
        if best is not None:
            book = self.page.project.book
            variant = book.variant_title(best.experiment, best.variant).of(language)
        return [
            self._link(record.chapter, name, title), escape(shape), escape(variant),
            self._row(best) if best is not None else "—",
            _whole(record.date[:10]), _whole(record.commit[:10]),
        ]  # fmt: skip

    def _experiment(self, name: str) -> Experiment | None:
        with suppress(KernelbookError):
            return self.page.project.book.catalog.experiment(name)
        return None

    def _title(self, experiment: str) -> str:
        """An experiment's title; its name where the tree no longer has it."""
        found = self._experiment(experiment)
        return found.title.of(self.page.language) if found else experiment

    def _link(self, chapter: str, experiment: str, title: str) -> str:
        uri = f"results/{chapter}.md"
        if not self.page.has_page(uri):
            return escape(title)
        return f'<a href="{escape(self.page.link(uri, place_of(experiment)))}">{escape(title)}</a>'

    def _runs(self, card: Card) -> str:
        info = card.info
        if info is None:
            return ""
        clock = f"{info.sm_clock_max_mhz:,.0f} MHz"
        facts = (
            f"driver {info.driver}", f"CUDA {info.cuda}", f"CuPy {info.cupy}",
            f"SM ≤ {clock}",
            "" if info.power_limit_w is None else f"{info.power_limit_w:.0f} W",
            "" if info.ecc is None else f"ECC {'on' if info.ecc else 'off'}",
            "" if info.mig is None else f"MIG {'on' if info.mig else 'off'}",
        )  # fmt: skip
        return f"<p>{escape(' · '.join(filter(None, facts)))}</p>"

    def _table(self, kind: str, rows: Sequence[Sequence[str]]) -> str:
        language = self.page.language
        numeric = {"spec": (1,), "limits": (1, 2), "experiments": (3,)}[kind]

        def cells(texts: Iterable[str], first: str, tag: str) -> str:
            found = []
            for place, text in enumerate(texts):
                opening = tag if place else first
                numeral = ' class="kb-num"' if place in numeric else ""
                found.append(f"<{opening}{numeral}>{text}</{opening[:2]}>")
            return "".join(found)

        titles = (escape(head.of(language)) for head in _HEADS[kind])
        heads = cells(titles, 'th scope="col"', 'th scope="col"')
        lines = (cells(row, 'th scope="row"', "td") for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        label = escape(_HEADS[kind][0].of(language))
        table = f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
        return (
            '<div class="kb-table kb-table--card">'
            f'<div class="kb-scroll" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="kb-data">{table}</table></div></div>'
        )


class DeviceBlock(CardBlock):
    """``/// device | nvidia-h200``: a published card."""

    NAME = "device"
    ARGUMENT_FORM = "a device's slug"

    def html(self) -> str:
        found = cards.published(self.page.project)
        card = next((card for card in found if card.slug == self.argument), None)
        if card is None:
            known = ", ".join(card.slug for card in found)
            raise PageError(f"no published records of {self.argument!r}", hint=f"known: {known}")
        return self.card_html(card)


class OwnDevicesBlock(CardBlock):
    """``/// own-devices |``: the cards of a reader's own runs."""

    NAME = "own-devices"

    def html(self) -> str:
        found = cards.own(self.page.project)
        if not found:
            return f"<p>{escape(_NONE_OWN.of(self.page.language))}</p>"
        return "".join(
            f'<h2 id="{escape(card.slug)}">{escape(card.name)}</h2>{self.card_html(card, 3)}'
            for card in found
        )


class DevicesBlock(BookBlock):
    """``/// devices |``: the list of device pages."""

    NAME = "devices"

    def html(self) -> str:
        project = self.page.project
        items = []
        for card in cards.published(project):
            measured = any(item.record.evidence == "measured" for item in card.stored)
            role = "cited" if not measured else "published"
            role = "reference" if card.slug == project.reference else role
            items.append(self._item(f"devices/{card.slug}.md", card.name, ROLES[role]))
        for card in cards.own(project):
            items.append(self._item("devices/own.md", card.name, ROLES["local"], card.slug))
        return f'<div class="kb-sources"><ul>{"".join(items)}</ul></div>'

    def _item(self, uri: str, name: str, role: Text, place: str = "") -> str:
        title = escape(name)
        if self.page.has_page(uri):
            title = f'<a href="{escape(self.page.link(uri, place))}">{title}</a>'
        return f"<li>{title} <span>{escape(role.of(self.page.language))}</span></li>"


def _whole(word: str) -> str:
    """A word that is not broken at its hyphens."""
    return f'<span class="kb-nowrap">{escape(word)}</span>' if word else "—"


def _source(sheet: Device, name: str, language: str) -> str:
    if name in FORMULAS:
        return f"<code>{escape(FORMULAS[name])}</code>"
    if name in _OF_ARCH:
        return escape(_ARCH_LIMITS.of(language).format(sheet.arch.name))
    return escape(sheet.sources.get(SHEET[name][1], ""))
