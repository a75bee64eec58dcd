"""``/// method | sampling``: the constants of measuring and comparing, read from the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from kernelbook.compare import RULE
from kernelbook.errors import PageError
from kernelbook.experiment import Text
from kernelbook.gpu import flush
from kernelbook.records import METHOD_VERSION, SCHEMA
from kernelbook.runner import audit, hostrows, session, timed
from kernelbook.runner.request import MeasureSettings
from kernelbook.sampling import DRIFT, FULL, LONGEST_SERIES_S, WarmUp
from kernelbook.site import equal_runs
from kernelbook.site.blocks import BookBlock
from kernelbook.verify import BAND_BYTES

Rows = Sequence[tuple[Text, str]]
_WHAT, _VALUE = Text("规则", "rule"), Text("取值", "value")


def sampling_rows() -> Rows:
    """How a time is taken."""
    warm = WarmUp()
    return (
        (Text("预热：至少轮数", "warm-up: rounds at least"), f"{warm.min_runs}"),
        (Text("预热：至少时间", "warm-up: time at least"), f"{warm.min_s:g} s"),
        (
            Text(
                f"预热：最近 {warm.steady_readings} 次时钟读数之差不超过",
                f"warm-up: the last {warm.steady_readings} readings of the clock agree within",
            ),
            f"{warm.steady_within:.1%}",
        ),
        (Text("预热：最长", "warm-up: time at most"), f"{warm.give_up_s:g} s"),
        (
            Text("清空 L2：读取其容量的倍数", "L2 flush: reads, in sizes of the L2"),
            f"{flush.READ_L2S}",
        ),
        (
            Text("短于此的启动合成一批（CUDA Graph）", "shorter launches are batched (CUDA graph)"),
            f"{timed.GRAPH_BELOW_US:g} µs",
        ),
        (
            Text("一批的启动次数", "launches of a batch"),
            f"{timed.BATCH_LEAST}–{timed.BATCH_MOST}",
        ),
        (Text("样本数", "samples"), f"{FULL.min_samples}–{FULL.max_samples}"),
        (
            Text("停止：中位数的 95 % 区间窄于", "stop: 95 % interval of the median under"),
            f"{FULL.interval:.1%}",
        ),
        (
            Text("停止：噪声稳定（最少样本数）", "stop: noise has settled, from so many samples"),
            f"{FULL.settle_from}",
        ),
        (Text("停止：一行的时间用完", "stop: time of a row is up"), f"{FULL.timeout_s:g} s"),
        (
            Text(
                "取满最少样本要超过此时间的行，样本更少",
                "rows get fewer samples where the least would take longer than",
            ),
            f"{LONGEST_SERIES_S:g} s",
        ),
        (
            Text("前后两半中位数之差超过此值即为漂移", "halves whose medians differ by this drift"),
            f"{DRIFT:.1%}",
        ),
        (Text("CPU 基线：至少样本数", "CPU baseline: samples at least"), f"{hostrows.CPU_LEAST}"),
        (
            Text("CPU 基线：最长", "CPU baseline: time at most"),
            f"{hostrows.CPU_LONGEST_S:g} s",
        ),
        (Text("空核函数的样本数", "samples of the empty kernel"), f"{session.EMPTY_SAMPLES}"),
    )


def safety_rows() -> Rows:
    """What keeps a wrong or broken kernel from having a time."""
    limits = MeasureSettings(Path())
    return (
        (
            Text("缓冲区两侧的保护带", "guard band on each side of a buffer"),
            f"{BAND_BYTES >> 10} KiB",
        ),
        (
            Text("一步没有动静的上限", "a step without a sign of life, at most"),
            f"{limits.step_limit_s:g} s",
        ),
        (
            Text("一个实验的上限", "an experiment, at most"),
            f"{limits.time_limit_s:g} s",
        ),
        (
            Text("故意写错的核函数启动次数", "launches of a kernel that is wrong on purpose"),
            f"{session.COUNTER_EXAMPLE_LAUNCHES}",
        ),
        (
            Text(
                "没见过的输入上，一次启动最多慢", "on inputs nobody has seen, a launch takes up to"
            ),
            f"+{audit.LONGER - 1:.0%} + {audit.LONGER_US:g} µs",
        ),
        (Text("记录格式版本", "version of the record's format"), f"{SCHEMA}"),
        (Text("测量方法版本", "version of the method"), f"{METHOD_VERSION}"),
    )


def compare_rows() -> Rows:
    """When two runs differ."""
    return (
        (Text("间隔", "gap"), f"{RULE.gap:.2%}"),
        (Text("秩检验：标准差个数", "rank test: standard deviations"), f"{RULE.rank_z:g}"),
        (Text("第九十分位至少移动", "ninth decile moves at least"), f"{RULE.slow_end:.2%}"),
        (Text("相同：藏不住的变化", "same: a change that cannot hide"), f"{RULE.change:.0%}"),
        (
            Text("相同：两次运行可能相差至少", "same: equal runs may differ by at least"),
            f"{RULE.unseen:.1%}",
        ),
        (Text("至少样本数", "samples at least"), f"{RULE.least_samples}"),
    )


TABLES: dict[str, Callable[[Path], Rows]] = {
    "sampling": lambda root: sampling_rows(),
    "safety": lambda root: safety_rows(),
    "compare": lambda root: compare_rows(),
    "equal_runs": equal_runs.rows,
}


class MethodBlock(BookBlock):
    """``/// method | sampling``, ``safety``, ``compare`` or ``equal_runs``."""

    NAME = "method"
    ARGUMENT_FORM = "one of " + ", ".join(TABLES)

    def html(self) -> str:
        if self.argument not in TABLES:
            raise PageError(
                f"no method table {self.argument!r}", hint="one of " + ", ".join(TABLES)
            )
        language = self.page.language
        heads = "".join(
            f'<th scope="col"{side}>{escape(title.of(language))}</th>'
            for title, side in ((_WHAT, ""), (_VALUE, ' class="kb-num"'))
        )
        rows = "".join(
            f'<tr><th scope="row">{escape(what.of(language))}</th>'
            f'<td class="kb-num">{escape(value)}</td></tr>'
            for what, value in TABLES[self.argument](self.page.project.root)
        )
        return (
            f'<div class="kb-table kb-table--method"><div class="kb-scroll" tabindex="0">'
            f'<table class="kb-data"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
            "</div></div>"
        )
