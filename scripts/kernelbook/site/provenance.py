"""Where a number came from, in the reader's language: what a note shows on hover, focus and tap."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kernelbook.devices import sheets
from kernelbook.quantities import Grade
from kernelbook.report.model import GRADES
from kernelbook.report.rows import Row

WORDS = {
    "zh": {
        "value": "记录值",
        "ratio": "同一次运行中与 {} 之比",
        "device": "设备",
        "arch": "架构",
        "compiler": "编译器",
        "samples": "样本",
        "sampled": "{} 个，{}",
        "cold": "L2 冷",
        "warm": "L2 热",
        "local": "（本机）",
        "date": "日期",
        "commit": "提交",
        "dirty": "（有未提交改动）",
        "clock": "SM 时钟",
        "shape": "规模",
        "source": "出处",
        "stale": "已过期：源码在取得这个数之后改过",
        "expression": "算式",
        "more": "另有 {} 个来源",
        "go": "点击或回车：到结果页的这一行",
        "sheet": "点击或回车：到这台设备的规格表",
        "colon": "：",
    },
    "en": {
        "value": "as recorded",
        "ratio": "over {} of the same run",
        "device": "device",
        "arch": "architecture",
        "compiler": "compiler",
        "samples": "samples",
        "sampled": "{}, {}",
        "cold": "cold L2",
        "warm": "warm L2",
        "local": " (this machine)",
        "date": "date",
        "commit": "commit",
        "dirty": " (with local changes)",
        "clock": "SM clock",
        "shape": "shape",
        "source": "source",
        "stale": "stale: the source changed after this number was taken",
        "expression": "expression",
        "more": "and {} more sources",
        "go": "click or press Enter for its row in the results",
        "sheet": "click or press Enter for the spec sheet of this device",
        "colon": ": ",
    },
}
# Between the parts of a provenance that travels as one string (a source's detail).
BETWEEN = "\n"


def word(language: str, key: str) -> str:
    """A word of this module in ``zh`` or ``en``."""
    return WORDS["zh" if language == "zh" else "en"][key]


def grade_name(grade: Grade, language: str) -> str:
    return GRADES[grade].of(language)


def of_row(row: Row, language: str) -> str:
    """Value and spread, device, samples, clock, shape, date and commit, as far as known."""
    return BETWEEN.join(parts(row, language))


def parts(row: Row, language: str, over: str = "") -> tuple[str, ...]:
    """The same, a line each; ``over`` names the variant that a ratio divides by."""
    known = {
        "value": _value(row) + (f", {word(language, 'ratio').format(over)}" if over else ""),
        "device" if row.evidence != "compiled" else "arch": _device(row, language),
        "compiler": _compiler(row),
        "samples": _samples(row, language),
        "clock": _clock(row),
        "shape": row.shape if row.evidence in ("counted", "measured") else "",
        "source": _citation(row),
        "date": row.record.date[:10],
        "commit": _commit(row, language),
    }
    colon = word(language, "colon")
    return tuple(f"{word(language, key)}{colon}{text}" for key, text in known.items() if text)


def lines_html(parts: Iterable[str]) -> str:
    """Lines of a note; without nested spans, which the search index trips over."""
    return "".join(f"<small>{escape(part)}</small>" for part in parts)


def noted(shown: str, tip: str, classes: str, tip_id: str, href: str) -> str:
    """What is shown, with a note on hover, focus and tap; a link where ``href`` leads somewhere."""
    note = f'<span class="kb-tip" role="tooltip" id="{tip_id}" data-search-exclude="">{tip}</span>'
    if href:
        link = f'<a class="{classes}" href="{escape(href)}" aria-describedby="{tip_id}">'
        return f"{link}{shown}{note}</a>"
    focusable = f'<span class="{classes}" tabindex="0" aria-describedby="{tip_id}">'
    return f"{focusable}{shown}{note}</span>"


def _value(row: Row) -> str:
    """``233.9 µs ± 0.17 % (q1–q3 233.8–234.6)``: half of q3 - q1 relative to the median."""
    text = f"{_digits(row.value)} {row.unit}".rstrip()
    if row.q1 is None or row.q3 is None or not row.value:
        return text
    spread = abs(row.q3 - row.q1) / 2 / abs(row.value)
    return f"{text} ± {100 * spread:.2g} % (q1–q3 {_digits(row.q1)}–{_digits(row.q3)})"


def _digits(value: float) -> str:
    """Four significant digits, and never fewer than the whole part has."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _device(row: Row, language: str) -> str:
    name = row.device
    if row.evidence != "compiled" and row.record.device is not None:
        name = row.record.device.name
    elif row.evidence == "cited" and row.device in sheets().devices:
        name = sheets().devices[row.device].name
    return name + (word(language, "local") if name and row.local else "")


def _compiler(row: Row) -> str:
    found = {c.nvrtc for c in row.result.compilations if c.arch == row.device}
    return f"NVRTC {found.pop()}" if row.evidence == "compiled" and len(found) == 1 else ""


def _samples(row: Row, language: str) -> str:
    if not row.samples:
        return word(language, row.cache) if row.cache else ""
    if not row.cache:
        return f"{row.samples}"
    return word(language, "sampled").format(row.samples, word(language, row.cache))


def _clock(row: Row) -> str:
    """SM clock while the samples of this row were taken, MHz."""
    for timing in row.result.timings:
        if timing.cache == row.cache and timing.sm_clock_mhz:
            return f"{timing.sm_clock_mhz:,.0f} MHz"
    return ""


def _citation(row: Row) -> str:
    citation = row.record.citation
    return "" if citation is None else f"{citation.author}, {citation.title}"


def _commit(row: Row, language: str) -> str:
    record = row.record
    if not record.commit:
        return ""
    return record.commit[:10] + (word(language, "dirty") if record.dirty else "")
