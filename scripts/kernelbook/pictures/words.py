"""What pictures say, in both languages."""

from __future__ import annotations

WORDS = {
    "zh": {
        "sectors": "{lanes} 个 lane 要 {used} B；触及 {sectors} 个扇区，搬运 {moved} B",
        "alike": "；同一行还有 {} 条这样的指令",
        "more": "；另有 {} 条缓存行未画出",
        "more_steps": "；只画前 {} 段",
        "banks": "{lanes} 个 lane，{passes} 个 wavefront；同一 bank 最多 {deepest} 个不同的字",
        "bank": "bank",
        "divergence": "{instructions} 条 warp 指令，平均 {active:.1f} 个 lane 在工作",
        "lane": "行号与代码；lane",
        "line": "第 {} 行：",
        "read": "读",
        "write": "写",
        "atomic": "原子操作",
        "metric": "计数",
        "before": "改之前",
        "after": "改之后",
        "code": "代码",
        "block_tile": "线程块：C 的 {m}×{n} 个元素，由 {warps} 个 warp 分担（深色是其中一个）；"
        "每一轮需要 A 的 {depth} 列与 B 的 {depth} 行",
        "warp_tile": "一个 warp：{m}×{n} 个元素；每格 {high}×{wide} 个，"
        "格中是算它的 lane，深色的属于 lane {lane}",
        "thread_tile": "一个线程的一步：{m}+{n} 个数做 {m}×{n} = {fma} 次乘加",
        "of_a": "A 的 {} 个",
        "of_b": "B 的 {} 个",
        "bank_axes": "横：bank，纵：lane",
        "bank_map": "{lanes} 个 lane 用到 32 个 bank 中的 {banks} 个；{passes} 个 wavefront，"
        "没有冲突时 {ideal} 个。",
        "at_once": "每次服务 {} 个 lane。",
        "by_lane": "从 lane 0 起各自的 bank：{}。",
        "way": "↑ {} 路冲突",
        "no_conflict": "没有冲突",
        "degree": "冲突度",
    },
    "en": {
        "sectors": "{lanes} lanes ask for {used} B; {sectors} sectors are touched, {moved} B move",
        "alike": "; {} more such instructions on this line",
        "more": "; {} more cache lines are not drawn",
        "more_steps": "; only the first {} are drawn",
        "banks": "{lanes} lanes, {passes} wavefronts; up to {deepest} different words of one bank",
        "bank": "bank",
        "divergence": "{instructions} warp instructions, {active:.1f} lanes at work on average",
        "lane": "line and code; lane",
        "line": "line {}: ",
        "read": "read",
        "write": "write",
        "atomic": "atomic",
        "metric": "count",
        "before": "before",
        "after": "after",
        "code": "code",
        "block_tile": "A block: {m}×{n} elements of C, shared by {warps} warps (one of them dark); "
        "a round takes {depth} columns of A and {depth} rows of B",
        "warp_tile": "A warp: {m}×{n} elements; a cell is {high}×{wide} of them and shows the lane "
        "that computes it, lane {lane} dark",
        "thread_tile": "A step of a thread: {m}+{n} numbers for {m}×{n} = {fma} multiply-adds",
        "of_a": "{} of A",
        "of_b": "{} of B",
        "bank_axes": "across: bank, down: lane",
        "bank_map": "{lanes} lanes hit {banks} of 32 banks; wavefronts: {passes}, "
        "without conflicts {ideal}.",
        "at_once": " {} lanes are served at a time.",
        "by_lane": "Banks from lane 0 on: {}.",
        "way": "↑ {}-way conflict",
        "no_conflict": "no conflict",
        "degree": "conflict degree",
    },
}


def words(language: str, key: str) -> str:
    """A phrase in ``zh`` or, for anything else, in English."""
    return WORDS["zh" if language == "zh" else "en"][key]
