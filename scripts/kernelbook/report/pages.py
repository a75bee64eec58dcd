"""Results pages: a chapter's numbers, every one with its grade, in Chinese and English.

The text is a function of the records and the tree alone, so rendering twice gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..experiment import Experiment, Library, Text, model
from ..quantities import Grade
from ..records import Stored
from . import sweeps
from .book import Book
from .markdown import anchor, code, escape, table
from .model import EMPTY, GRADES, LOCAL, Table
from .rows import anchor_of, place_of, sizes_text
from .tables import compiled_table, counters_table, counts_table, results_table

_WORDS = {
    "title": Text("结果", "Results"),
    "about": Text(
        "本页由 `python scripts/run_all.py --render` 从 `results/` 中的记录生成，没有手写的数字。"
        "每行末尾是证据等级：理论、编译、计数、实测、引用。"
        "耗时是中位数；粗体是同一设备上我们的核函数里最好的一个。",
        "Generated from the records in `results/` by `python scripts/run_all.py --render`; no "
        "number is typed. The last column is the grade of evidence: theory, compiled, counted, "
        "measured, cited. Times are medians; bold marks the best of our kernels on that device.",
    ),
    "no_records": Text("还没有记录。", "There are no records yet."),
    "shape": Text("规模", "Shape"),
    "seed": Text("随机种子", "seed"),
    "members": Text("规模数", "Sizes"),
    "model": Text("模型", "Model"),
    "read": Text("读", "read"),
    "written": Text("写", "written"),
    "intensity": Text("算术强度", "arithmetic intensity"),
    "measured": Text("实测", "Measured"),
    "cold": Text("L2 冷", "cold L2"),
    "warm": Text("L2 热", "warm L2"),
    "counted": Text("计数", "Counted"),
    "counters": Text("硬件计数器（ncu）", "Hardware counters (ncu)"),
    "compiled": Text("编译", "Compiled"),
    "cited": Text("引用", "Cited"),
    "timing": Text("测量方式", "How it was timed"),
    "reproduce": Text("复现", "To reproduce"),
}


def page(book: Book, chapter: str, language: str) -> str:
    """The Markdown of a chapter's results page; raises nothing a record could cause."""
    lines = [
        f"# {_w('title', language)}: {code(chapter)}" if language == "en"
        else f"# {_w('title', language)}：{code(chapter)}",
        "",
        _w("about", language),
    ]  # fmt: skip
    anchors: set[str] = set()
    for members in book.catalog.groups(chapter):
        section = _experiment if members[0].sweep is None else _sweep
        lines += ["", *section(book, members, language, anchors)]
    return "\n".join(lines) + "\n"


def _experiment(
    book: Book, members: Sequence[Experiment], language: str, anchors: set[str]
) -> Iterable[str]:
    (experiment,) = members
    place = place_of(experiment.name)
    yield from (anchor(place), "", f"## {escape(experiment.title.of(language))}", "")
    yield from _about(experiment, language)
    sections = [
        *_measured(book, experiment, language, anchors),
        *_other(book, experiment, language, anchors),
    ]
    if sections:
        yield from sections
    else:
        yield from ("", _w("no_records", language))
    yield from _reproduce(experiment.name, language)


def _reproduce(name: str, language: str) -> Iterable[str]:
    command = f"`python scripts/run_all.py --only {name}`"
    yield ""
    yield f"{_w('reproduce', language)}{_colon(language)}{command}"


def _sweep(
    book: Book, members: Sequence[Experiment], language: str, anchors: set[str]
) -> Iterable[str]:
    """A sweep's section: a table a card, then what is compiled and counted of its kernels."""
    sweep = members[0].sweep
    assert sweep is not None
    yield from (anchor(place_of(sweep.name)), "")
    yield from (f"## {escape(sweep.title.of(language))}", "")
    if sweep.note.of(language):
        yield from (sweep.note.of(language), "")
    yield f"- {_w('members', language)}{_colon(language)}{len(members)}, {members[0].dtype}"
    for grade in ("measured", "cited"):
        for run in sweeps.runs(book, members, grade):
            name = escape(book.device_name(run.first.record))
            local = f" ({LOCAL.of(language)})" if run.first.local else ""
            yield from ("", f"### {_w(grade, language)}{_colon(language)}{name}{local}", "")
            shown = sweeps.sweep_table(book, members, run)
            yield from table(shown, language, anchors=anchors)
            yield from _how_timed(run.items.values(), language)
    for kind, shown in (
        ("counted", sweeps.sweep_counts(book, members)),
        ("compiled", sweeps.sweep_compiled(book, members)),
    ):
        if shown.lines:
            yield from ("", f"### {_w(kind, language)}", "")
            yield from table(shown, language, anchors=anchors, drop=_empty(shown))
    # Places that links go to although nothing is measured yet.
    places = [place_of(m.name) for m in members]
    places += [anchor_of(m.name, v.name) for m in members for v in m.variants]
    if missing := [place for place in places if place not in anchors]:
        anchors.update(missing)
        yield from ("", "".join(map(anchor, missing)))
    yield from _reproduce(sweep.name, language)


def _about(experiment: Experiment, language: str) -> Iterable[str]:
    shape, theory = experiment.shape, GRADES[Grade.THEORY].of(language)
    flops, read, written = model(experiment, experiment.variants[0], shape)
    colon = _colon(language)
    yield (
        f"- {_w('shape', language)}{colon}{code(experiment.name)}, {sizes_text(shape)}, "
        f"{experiment.dtype}, {_w('seed', language)} {experiment.seed}"
    )
    parts = [f"{flops:,} FLOP"] if flops else []
    if read + written:
        parts += [f"{_w('read', language)} {read:,} B", f"{_w('written', language)} {written:,} B"]
    if flops and read + written:
        intensity = f"{flops / (read + written):.4g} FLOP/B"
        parts.append(f"{_w('intensity', language)} {intensity}")
    if not parts:
        return  # a latency experiment: neither FLOP nor bytes say anything
    yield f"- {_w('model', language)}{colon}" + ", ".join(f"{p} [{theory}]" for p in parts)


def _measured(
    book: Book, experiment: Experiment, language: str, anchors: set[str]
) -> Iterable[str]:
    columns = measured_columns(book, experiment)
    for item in book.records_of("measured", experiment.name):
        name = escape(book.device_name(item.record))
        local = f" ({LOCAL.of(language)})" if item.local else ""
        yield from ("", f"### {_w('measured', language)}{_colon(language)}{name}{local}")
        for cache in ("cold", "warm"):
            if not _has_state(item, cache):
                continue
            shown = results_table(
                book.only(item),
                experiment.name,
                columns=columns,
                evidence=("measured",),
                cache=cache,
            )
            if cache == "warm":  # said once, under the first table
                shown = replace(shown, notes=())
            yield from ("", f"**{_w(cache, language)}**", "")
            yield from table(shown, language, anchors=anchors, drop=("device", *_empty(shown)))
        if not any(_has_state(item, cache) for cache in ("cold", "warm")):
            shown = results_table(
                book.only(item), experiment.name, columns=columns, evidence=("measured",)
            )
            yield ""
            yield from table(shown, language, anchors=anchors, drop=("device", *_empty(shown)))
        yield from _how_timed((item,), language)


def measured_columns(book: Book, experiment: Experiment) -> tuple[str, ...]:
    """Time with its spread, the rates, and the leading rate against each baseline."""
    first, second = ("bandwidth", "throughput")
    if experiment.bound == "compute":
        first, second = second, first
    held_against = [experiment.kernels[0].name] if experiment.kernels else []
    held_against += [v.name for v in experiment.variants if isinstance(v, Library)]
    measured = book.rows_about(experiment.name, "measured")
    seen = {r.variant for r in measured if r.metric == first}
    ratios = [f"{first}/{name}" for name in held_against if name in seen]
    return ("time", "spread", "samples", first, second, *ratios, "sm_clock", "error", "max_error")


def _how_timed(items: Iterable[Stored], language: str) -> Iterable[str]:
    """One line: method, flush, and how often each reason ended the sampling."""
    timings = [t for item in items for r in item.record.results for t in r.timings]
    if not timings:
        return
    methods = sorted({t.method for t in timings})
    flushes = sorted({t.flush for t in timings if t.flush})
    stops: dict[str, int] = {}
    for t in timings:
        stops[t.stop] = stops.get(t.stop, 0) + 1
    parts = [", ".join(methods), ", ".join(flushes)]
    parts.append(", ".join(f"{why} ×{n}" for why, n in sorted(stops.items())))
    text = "; ".join(escape(p) for p in parts if p)
    yield ""
    yield f"{_w('timing', language)}{_colon(language)}{text}"


def _other(book: Book, experiment: Experiment, language: str, anchors: set[str]) -> Iterable[str]:
    name = experiment.name
    cited = ("time", "bandwidth", "throughput")
    kinds: tuple[tuple[str, Table], ...] = (
        ("counted", counts_table(book, name)),
        ("counters", counters_table(book, name)),
        ("compiled", compiled_table(book, name)),
        ("cited", results_table(book, name, columns=cited, evidence=("cited",))),
    )
    for kind, shown in kinds:
        if shown.lines:
            yield from ("", f"### {_w(kind, language)}", "")
            yield from table(
                shown, language, anchors=anchors, drop=_empty(shown), titles=kind == "cited"
            )


def _empty(shown: Table) -> tuple[str, ...]:
    """Columns in which no line has anything."""
    return tuple(
        head.key
        for column, head in enumerate(shown.header)
        if all(line.cells[column] is EMPTY for line in shown.lines)
    )


def _has_state(item: Stored, cache: str) -> bool:
    return any(
        t.cache == cache
        for r in item.record.results
        for t in r.timings
        if r.kind in ("kernel", "library")
    )


def _w(key: str, language: str) -> str:
    return _WORDS[key].of(language)


def _colon(language: str) -> str:
    return "：" if language == "zh" else ": "
