"""Names of everything a row can hold: unit, words in both languages, and how many digits.

The name is what articles, tables, charts and summary.csv use; an unknown name is an error there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .experiment import Text


@dataclass(frozen=True)
class Metric:
    """``unit`` is the unit of stored and exported values; ``show`` a Python format spec."""

    name: str
    unit: str
    title: Text
    show: str = ",.0f"
    better: int = 0  # 1: larger is better, -1: smaller is better, 0: neither


def _metrics(*items: Metric) -> Mapping[str, Metric]:
    return {m.name: m for m in items}


def _stall(why: str, zh: str, en: str) -> Metric:
    return Metric(f"stall_{why}", "%", Text(zh, en), ",.1f")


TIMED = _metrics(
    Metric("time", "µs", Text("耗时", "time"), ",.1f", -1),
    Metric("bandwidth", "GB/s", Text("有效带宽", "effective bandwidth"), ",.0f", 1),
    Metric("throughput", "TFLOPS", Text("计算吞吐", "throughput"), ",.2f", 1),
    Metric("sm_clock", "MHz", Text("SM 时钟", "SM clock"), ",.0f"),
)

# Of the outputs, held to the fp64 reference at the record's own shape.
VERIFIED = _metrics(
    Metric("max_error", "", Text("最大绝对误差", "largest absolute error"), ".2g", -1),
)

COMPILED = _metrics(
    Metric("registers", "", Text("每线程寄存器", "registers a thread")),
    Metric("shared_bytes", "B", Text("每块共享内存", "shared memory a block")),
    Metric("spill_store_bytes", "B", Text("溢出写", "spill stores")),
    Metric("spill_load_bytes", "B", Text("溢出读", "spill loads")),
    Metric("stack_bytes", "B", Text("栈帧", "stack frame")),
    Metric("blocks_per_sm", "", Text("每 SM 驻留块数", "resident blocks an SM")),
    Metric("occupancy", "%", Text("理论占用率", "theoretical occupancy"), ",.1f"),
)

# Counted by the emulator and, under the same names, read by ncu where it has the counter.
COUNTED = _metrics(
    Metric("global_load_requests", "", Text("全局读请求", "global load requests")),
    Metric("global_load_sectors", "", Text("全局读扇区", "global load sectors")),
    Metric("global_load_bytes", "B", Text("线程请求的读字节", "bytes asked for by loads")),
    Metric("global_store_requests", "", Text("全局写请求", "global store requests")),
    Metric("global_store_sectors", "", Text("全局写扇区", "global store sectors")),
    Metric("global_store_bytes", "B", Text("线程请求的写字节", "bytes asked for by stores")),
    Metric("shared_load_instructions", "", Text("共享内存读指令", "shared load instructions")),
    Metric("shared_load_wavefronts", "", Text("共享内存读 wavefront", "shared load wavefronts")),
    Metric("shared_load_bytes", "B", Text("共享内存读字节", "shared bytes loaded")),
    Metric("shared_store_instructions", "", Text("共享内存写指令", "shared store instructions")),
    Metric("shared_store_wavefronts", "", Text("共享内存写 wavefront", "shared store wavefronts")),
    Metric("shared_store_bytes", "B", Text("共享内存写字节", "shared bytes stored")),
    Metric("shared_conflict_degree", "", Text("平均冲突度", "mean conflict degree"), ",.2f"),
    Metric("ffma", "", Text("FP32 乘加（线程）", "FP32 multiply-adds (threads)")),
    Metric("fadd", "", Text("FP32 加法（线程）", "FP32 additions (threads)")),
    Metric("fmul", "", Text("FP32 乘法（线程）", "FP32 multiplications (threads)")),
    Metric("flops", "FLOP", Text("浮点运算", "floating-point operations")),
    Metric("warp_instructions", "", Text("warp 指令", "warp instructions")),
    Metric("thread_instructions", "", Text("线程指令", "thread instructions")),
    Metric(
        "threads_per_instruction", "", Text("每条指令活跃线程", "threads an instruction"), ",.2f"
    ),
    Metric("barriers", "", Text("屏障（warp）", "barriers (warps)")),
    Metric("atomics", "", Text("原子操作请求", "atomic requests")),
    Metric("branches", "", Text("分支（warp）", "branches (warps)")),
    Metric("divergent_branches", "", Text("分歧分支（warp）", "divergent branches (warps)")),
)

# Read by ncu only: the levels of the memory hierarchy that no counting of PTX can know.
PROFILED = _metrics(
    Metric("l1_hit_rate", "%", Text("L1 命中率", "L1 hit rate"), ",.1f"),
    Metric("l2_hit_rate", "%", Text("L2 命中率", "L2 hit rate"), ",.1f"),
    Metric("l2_bytes", "B", Text("L2 流量", "L2 traffic")),
    Metric("dram_read_bytes", "B", Text("显存读", "DRAM bytes read")),
    Metric("dram_write_bytes", "B", Text("显存写", "DRAM bytes written")),
    Metric("issue_active", "%", Text("发射槽利用率", "issue slots used"), ",.1f"),
    Metric("fma_pipe", "%", Text("FMA 管线利用率", "FMA pipe used"), ",.1f"),
    Metric("lsu_pipe", "%", Text("LSU 利用率", "LSU used"), ",.1f"),
    Metric("launches", "", Text("启动次数", "launches")),
    Metric("launches_wrong", "", Text("结果出错的启动", "launches with a wrong result")),
    Metric("achieved_occupancy", "%", Text("实测占用率", "achieved occupancy"), ",.1f"),
    # Shares of the cycles of all resident warps, by ncu's name for what a warp is waiting for.
    _stall("selected", "发射", "issuing"),
    _stall("not_selected", "就绪，没轮到", "ready, another was chosen"),
    _stall("long_scoreboard", "等 L1、L2 或显存", "waiting for L1, L2 or DRAM"),
    _stall("short_scoreboard", "等共享内存", "waiting for shared memory"),
    _stall("barrier", "等屏障", "waiting at a barrier"),
    _stall("lg_throttle", "LSU 队列已满", "LSU queue full"),
    _stall("mio_throttle", "MIO 队列已满", "MIO queue full"),
    _stall("math_pipe_throttle", "等运算管线", "arithmetic pipe busy"),
    _stall("dispatch_stall", "等派发", "held back at dispatch"),
    _stall("wait", "固定延迟", "fixed latency"),
    _stall("no_instruction", "等指令", "no instruction yet"),
)

METRICS: Mapping[str, Metric] = {**TIMED, **VERIFIED, **COMPILED, **COUNTED, **PROFILED}


def metric(name: str) -> Metric:
    """The metric of this name; an unlisted name (a citation's, say) is shown as it is."""
    return METRICS.get(name) or Metric(name, "", Text(name, name), "")
