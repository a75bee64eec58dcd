"""Where a number came from, in the reader's language: one line for a hover or a screen reader."""

from __future__ import annotations

from kernelbook.quantities import Grade
from kernelbook.report.model import GRADES
from kernelbook.report.rows import Row

WORDS = {
    "zh": {
        "samples": "{} 个样本",
        "cold": "L2 冷",
        "warm": "L2 热",
        "local": "本机",
        "commit": "提交 {}",
        "dirty": "（有未提交改动）",
        "clock": "SM {} MHz",
        "shape": "规模 {}",
        "stale": "已过期：源码在取得这个数之后改过",
        "expression": "算式",
        "more": "另有 {} 个来源",
    },
    "en": {
        "samples": "{} samples",
        "cold": "cold L2",
        "warm": "warm L2",
        "local": "this machine",
        "commit": "commit {}",
        "dirty": " (with local changes)",
        "clock": "SM {} MHz",
        "shape": "shape {}",
        "stale": "stale: the source changed after this number was taken",
        "expression": "expression",
        "more": "and {} more sources",
    },
}


def word(language: str, key: str) -> str:
    """A word of this module in ``zh`` or ``en``."""
    return WORDS["zh" if language == "zh" else "en"][key]


def grade_name(grade: Grade, language: str) -> str:
    return GRADES[grade].of(language)


def of_row(row: Row, language: str) -> str:
    """Spread, samples, L2 state, clock, shape, date and commit of a number, as far as known."""
    parts: list[str] = []
    if row.q1 is not None and row.q3 is not None:
        parts.append(f"q1–q3 {row.q1:,.4g}–{row.q3:,.4g} {row.unit}".rstrip())
    if row.samples:
        parts.append(word(language, "samples").format(row.samples))
    if row.cache:
        parts.append(word(language, row.cache))
    if clock := _clock(row):
        parts.append(word(language, "clock").format(f"{clock:,.0f}"))
    if row.evidence in ("counted", "measured"):
        parts.append(word(language, "shape").format(row.shape))
    if row.local:
        parts.append(word(language, "local"))
    if (citation := row.record.citation) is not None:
        parts.append(f"{citation.author}, {citation.title}")
    if row.record.date:
        parts.append(row.record.date[:10])
    if row.record.commit:
        mark = word(language, "dirty") if row.record.dirty else ""
        parts.append(word(language, "commit").format(row.record.commit[:10]) + mark)
    return " · ".join(parts)


def _clock(row: Row) -> float | None:
    """SM clock while the samples of this row were taken, MHz."""
    for timing in row.result.timings:
        if timing.cache == row.cache:
            return timing.sm_clock_mhz
    return None
