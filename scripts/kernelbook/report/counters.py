"""results/counters.md: the emulator's counts beside a GPU's own counters, and every difference.

The emulator counts PTX; a GPU executes what ptxas made of it. Requests, sectors and barriers must
be equal. FP32 operations, atomics and shared-memory accesses are equal where the machine code keeps
the PTX instruction; where it does not, the page shows both numbers and the machine code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import codec
from ..errors import RecordError
from ..experiment import Text
from .markdown import code, escape

MOST = 1e18  # no counter of a launch comes near
# ncu's executed warp instructions by opcode with modifiers: a metric with parts.
EXECUTED = "sass__inst_executed_per_opcode_with_modifier_all"


@dataclass(frozen=True)
class Counter:
    """One thing both sides count: sums of the emulator's and of ncu's metrics.

    ``exact``: must be equal whatever ptxas does. ``opcodes`` is a pattern of the machine
    instructions that show a difference; ``executed``: ncu's number is the executed instructions
    that match it, for want of a metric. ``attributed`` are metrics of the same thing that count by
    instruction, without what the hardware does again when pipes contend.
    """

    name: str
    title: Text
    counted: tuple[str, ...]
    metrics: tuple[str, ...]
    opcodes: str
    exact: bool = False
    executed: bool = False
    attributed: tuple[str, ...] = ()


def _requests(kind: str, ops: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(f"l1tex__t_{what}_pipe_lsu_mem_{kind}_op_{op}.sum" for op in ops)


def _wavefronts(op: str) -> str:
    return f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"


def _by_sass(name: str) -> str:
    return f"smsp__sass_{name.replace('__', '_')}"


# Requests and sectors of copies (LDGSTS) are among those of loads; the rest of them is not.
_COPY_INSTRUCTIONS = "smsp__sass_inst_executed_op_ldgsts.sum"
_COPY_WAVEFRONTS = _by_sass(_wavefronts("ldgsts"))


def _threads(op: str) -> tuple[str, ...]:
    return (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum",)


COUNTERS: tuple[Counter, ...] = (
    Counter("global_load_requests", Text("全局读请求", "global load requests"),
            ("global_load_requests",),
            _requests("global", ("ld",), "requests"), r"LDG|LDGSTS", exact=True),
    Counter("global_load_sectors", Text("全局读扇区", "global load sectors"),
            ("global_load_sectors",),
            _requests("global", ("ld",), "sectors"), r"LDG|LDGSTS", exact=True),
    Counter("global_store_requests", Text("全局写请求", "global store requests"),
            ("global_store_requests",), _requests("global", ("st",), "requests"), "STG",
            exact=True),
    Counter("global_store_sectors", Text("全局写扇区", "global store sectors"),
            ("global_store_sectors",), _requests("global", ("st",), "sectors"), "STG",
            exact=True),
    Counter("barriers", Text("屏障（warp）", "barriers (warps)"), ("barriers",), (), "BAR",
            exact=True, executed=True),
    Counter("global_atomic_requests", Text("全局原子请求", "global atomic requests"),
            ("global_atomic_requests",), _requests("global", ("atom", "red"), "requests"),
            r"ATOMG?|RED[GU]?"),
    Counter("shared_load_instructions", Text("共享内存读指令", "shared load instructions"),
            ("shared_load_instructions",), ("smsp__sass_inst_executed_op_shared_ld.sum",), "LDS"),
    Counter("shared_load_wavefronts", Text("共享内存读 wavefront", "shared load wavefronts"),
            ("shared_load_wavefronts",), (_wavefronts("ld"),), "LDS",
            attributed=(_by_sass(_wavefronts("ld")),)),
    Counter("shared_store_instructions", Text("共享内存写指令", "shared store instructions"),
            ("shared_store_instructions",),
            ("smsp__sass_inst_executed_op_shared_st.sum", _COPY_INSTRUCTIONS), r"STS|LDGSTS"),
    Counter("shared_store_wavefronts", Text("共享内存写 wavefront", "shared store wavefronts"),
            ("shared_store_wavefronts",), (_wavefronts("st"), _COPY_WAVEFRONTS), r"STS|LDGSTS",
            attributed=(_by_sass(_wavefronts("st")), _COPY_WAVEFRONTS)),
    Counter("local_load_sectors", Text("局部内存读扇区", "local load sectors"),
            ("local_load_sectors",), _requests("local", ("ld",), "sectors"), "LDL"),
    Counter("local_store_sectors", Text("局部内存写扇区", "local store sectors"),
            ("local_store_sectors",), _requests("local", ("st",), "sectors"), "STL"),
    Counter("ffma", Text("FP32 乘加（线程）", "FP32 multiply-adds (threads)"), ("ffma",),
            _threads("ffma"), r"FFMA|FFMA2|MUFU"),
    Counter("fadd", Text("FP32 加法（线程）", "FP32 additions (threads)"), ("fadd",),
            _threads("fadd"), r"FADD|FADD2|FFMA|MUFU"),
    Counter("fmul", Text("FP32 乘法（线程）", "FP32 multiplications (threads)"), ("fmul",),
            _threads("fmul"), r"FMUL|FMUL2|FFMA|MUFU"),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One kernel at its emulator size: the emulator's counts and ncu's, of one compilation."""

    experiment: str
    variant: str
    entry: str
    shape: Mapping[str, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    device: str
    nvrtc: str
    ncu: str
    ptx_hash: str
    counted: Mapping[str, float]
    profiled: Mapping[str, float]
    executed: Mapping[str, float]  # warp instructions by opcode, {} where ncu did not say
    code: Mapping[str, int]  # machine instructions of the listing by opcode

    def __post_init__(self) -> None:
        counts = (self.counted, self.profiled, self.executed, self.code)
        if not all(0 <= count <= MOST for side in counts for count in side.values()):
            raise RecordError(f"{self.variant} has a count that cannot be")


@dataclass(frozen=True)
class Pair:
    """Both numbers of one counter; None: that side has none."""

    comparison: Comparison
    counter: Counter
    emulator: int
    gpu: int | None

    @property
    def equal(self) -> bool:
        return self.emulator == self.gpu


def save(results: Path, chapter: str, comparisons: Sequence[Comparison]) -> Path:
    """Write a chapter's comparisons, one a line; raises RecordError where that is not possible."""
    path = results / "data" / "counters" / f"{chapter}.json"
    rows = ",\n".join(json.dumps(asdict(c), sort_keys=True) for c in comparisons)
    codec.write_atomically(path, f"[\n{rows}\n]\n")
    return path


def load(results: Path) -> tuple[Comparison, ...]:
    """All comparisons that have been taken; raises RecordError naming a broken file."""
    found: list[Comparison] = []
    for file in sorted((results / "data" / "counters").glob("*.json")):
        found += codec.from_file(tuple[Comparison, ...], file)
    return tuple(found)


def pairs(comparison: Comparison) -> tuple[Pair, ...]:
    """Both numbers of every counter that either side has above zero."""
    found = []
    for counter in COUNTERS:
        emulator = int(sum(comparison.counted.get(name, 0) for name in counter.counted))
        gpu = _of_gpu(comparison, counter)
        if emulator or gpu:
            found.append(Pair(comparison, counter, emulator, gpu))
    return tuple(found)


def _of_gpu(comparison: Comparison, counter: Counter) -> int | None:
    if counter.executed:
        if not comparison.executed:
            return None
        return int(sum(_matching(comparison.executed, counter.opcodes).values()))
    return _sum(comparison.profiled, counter.metrics)


def _sum(values: Mapping[str, float], metrics: Sequence[str]) -> int | None:
    known = [values[m] for m in metrics if m in values]
    return int(sum(known)) if known else None


def _matching(opcodes: Mapping[str, float], pattern: str) -> dict[str, float]:
    return {name: n for name, n in opcodes.items() if re.match(rf"(?:{pattern})(?:\.|$)", name)}


def reason(pair: Pair) -> Text:
    """Why the machine code counts differently, as far as its opcodes show it."""
    code = pair.comparison.code or pair.comparison.executed
    name, gpu = pair.counter.name, pair.gpu
    if gpu is None:
        return _UNREAD
    if _sum(pair.comparison.profiled, pair.counter.attributed) == pair.emulator:
        return _REPEATED
    if name.startswith("shared_load") and gpu < pair.emulator and _wide(code, "LDS"):
        return _MERGED
    if name.startswith("shared_store") and gpu < pair.emulator and _wide(code, "STS"):
        return _MERGED
    if name in ("ffma", "fadd", "fmul"):
        if _matching(code, "MUFU") and gpu > pair.emulator:
            return _EXPANDED
        if gpu < pair.emulator and name != "ffma":
            return _CONTRACTED
        if name == "ffma" and gpu > pair.emulator:
            return _CONTRACTED
        if name == "fadd" and gpu > pair.emulator and _matching(code, "FADD"):
            return _NEGATED
    if name == "shared_store_wavefronts" and _copies_not_made(pair.comparison):
        return _NOT_MADE
    if name.startswith("local"):
        return _SPILLED if gpu > pair.emulator else _IN_REGISTERS
    if name == "global_atomic_requests" and gpu < pair.emulator:
        return _AGGREGATED
    return UNEXPLAINED


def _copies_not_made(comparison: Comparison) -> bool:
    """Whether warps came by copies whose predicate was false: executed, but not done."""
    executed = sum(_matching(comparison.executed, "LDGSTS").values())
    return executed > comparison.profiled.get(_COPY_INSTRUCTIONS, executed)


def _wide(code: Mapping[str, float], opcode: str) -> bool:
    return any(re.match(rf"{opcode}\..*\b(64|128)\b", name) for name in code)


_UNREAD = Text("ncu 没有给出这个计数器", "ncu did not give this counter")
_REPEATED = Text(
    "按指令归属的计数与模拟器相等；多出的是硬件争用时的重试",
    "counted by instruction it is equal; the rest is what hardware repeats under contention",
)
_MERGED = Text("ptxas 合并了相邻访问", "ptxas merged neighbouring accesses")
_EXPANDED = Text("除法、平方根或超越函数展开", "a division, root or transcendental expanded")
_CONTRACTED = Text("ptxas 把乘法和加法收缩为 FFMA", "ptxas contracted multiply and add into FFMA")
_NEGATED = Text("求负在 SASS 里是一条 FADD", "a negation is an FADD in machine code")
_NOT_MADE = Text(
    "ncu 把谓词为假、没有执行的拷贝（LDGSTS）也算了进去",
    "ncu also counts copies (LDGSTS) whose predicate was false, so that they were not made",
)
_SPILLED = Text("ptxas 把寄存器溢出到局部内存", "ptxas spilled registers to local memory")
_IN_REGISTERS = Text("ptxas 把局部数组放进寄存器", "ptxas kept the local array in registers")
_AGGREGATED = Text("同地址原子操作按 warp 聚合", "atomics to one address aggregated by warp")
UNEXPLAINED = Text("见 SASS", "see the SASS")

_WORDS = {
    "title": Text("计数器：模拟器与 GPU 对照", "Counters: the emulator beside the GPU"),
    "about": Text(
        "同一次编译的 cubin 在 {device} 上用 ncu {ncu} 采集，PTX 由模拟器计数（NVRTC {nvrtc}）。"
        "请求、扇区和屏障必须相等；FP32 运算、原子操作和共享内存访问，只要 SASS 保留了 PTX 指令就"
        "相等。下表没有容差：每一处不同都列出来，并给出相关的 SASS。",
        "The cubin of one compilation profiled on {device} with ncu {ncu}, and its PTX counted by "
        "the emulator (NVRTC {nvrtc}). Requests, sectors and barriers must be equal; FP32 "
        "operations, atomics and shared-memory accesses are equal wherever the machine code (SASS) "
        "keeps the PTX instruction. There is no tolerance: every difference is listed below with "
        "the SASS that shows it.",
    ),
    "summary": Text("汇总", "Summary"),
    "differences": Text("差异", "Differences"),
    "none": Text("没有差异。", "There are none."),
    "equal": Text("全部数值", "All numbers"),
    "counter": Text("计数器", "counter"),
    "kernels": Text("核函数个数", "kernels"),
    "same": Text("相等", "equal"),
    "different": Text("不同", "different"),
    "must": Text("必须相等", "must be equal"),
    "kernel": Text("kernel", "kernel"),
    "emulator": Text("模拟器", "emulator"),
    "gpu": Text("GPU", "GPU"),
    "why": Text("原因", "why"),
    "sass": Text("SASS（指令：条数）", "SASS (instruction: how many in the listing)"),
    "yes": Text("是", "yes"),
    "no": Text("否", "no"),
    "empty": Text("还没有对照数据。", "No comparison has been taken yet."),
}


def title(language: str) -> str:
    """What the page is called."""
    return _w("title", language)


def page(comparisons: Sequence[Comparison], language: str) -> str:
    """The page as Markdown."""
    lines = [f"# {_w('title', language)}", ""]
    if not comparisons:
        return "\n".join([*lines, _w("empty", language), ""])
    about = {
        name: escape(", ".join(sorted({getattr(c, name) for c in comparisons})))
        for name in ("device", "ncu", "nvrtc")
    }
    every = [pair for c in comparisons for pair in pairs(c)]
    lines += [_w("about", language).format(**about), ""]
    lines += [f"## {_w('summary', language)}", "", *_summary(every, language), ""]
    lines += [f"## {_w('differences', language)}", ""]
    different = [p for p in every if not p.equal]
    lines += _differences(different, language) if different else [_w("none", language)]
    lines += ["", f"## {_w('equal', language)}", "", *_numbers(comparisons, language), ""]
    return "\n".join(lines)


def pages(results: Path) -> dict[str, str]:
    """The page in both languages by its path under results/; {} while nothing has been taken."""
    comparisons = load(results)
    if not comparisons:
        return {}
    return {
        "counters.md": page(comparisons, "zh"),
        "counters.en.md": page(comparisons, "en"),
    }


def _summary(every: Iterable[Pair], language: str) -> list[str]:
    out = _head(("counter", "must", "kernels", "same", "different"), language, numeric=2)
    every = list(every)
    for counter in COUNTERS:
        mine = [p for p in every if p.counter is counter]
        if mine:
            equal = sum(p.equal for p in mine)
            must = _w("yes" if counter.exact else "no", language)
            title = counter.title.of(language)
            out.append(f"| {title} | {must} | {len(mine)} | {equal} | {len(mine) - equal} |")
    return out


def _differences(different: Iterable[Pair], language: str) -> list[str]:
    out = _head(("kernel", "counter", "emulator", "gpu", "why", "sass"), language, numeric=(2, 4))
    for pair in different:
        shown = _matching(pair.comparison.code, pair.counter.opcodes)
        sass = ", ".join(f"{code(name)}: {int(n)}" for name, n in shown.items()) or "-"
        gpu = "-" if pair.gpu is None else f"{pair.gpu:,}"
        out.append(
            f"| {_name(pair.comparison)} | {pair.counter.title.of(language)} "
            f"| {pair.emulator:,} | {gpu} | {reason(pair).of(language)} | {sass} |"
        )
    return out


def _numbers(comparisons: Iterable[Comparison], language: str) -> list[str]:
    out = _head(("kernel", "counter", "emulator", "gpu"), language, numeric=2)
    for comparison in comparisons:
        for pair in pairs(comparison):
            gpu = "-" if pair.gpu is None else f"{pair.gpu:,}"
            out.append(
                f"| {_name(comparison)} | {pair.counter.title.of(language)} "
                f"| {pair.emulator:,} | {gpu} |"
            )
    return out


def _name(comparison: Comparison) -> str:
    return code(f"{comparison.experiment}/{comparison.variant}")


def _head(names: Sequence[str], language: str, numeric: int | tuple[int, int]) -> list[str]:
    """Header lines of a table; columns from ``numeric`` on (up to its second) are numbers."""
    first, last = numeric if isinstance(numeric, tuple) else (numeric, len(names))
    titles = " | ".join(_w(name, language) for name in names)
    rule = "|".join("---:" if first <= i < last else "---" for i in range(len(names)))
    return [f"| {titles} |", f"|{rule}|"]


def _w(name: str, language: str) -> str:
    return _WORDS[name].of(language)
