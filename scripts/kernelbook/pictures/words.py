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
    },
}


def words(language: str, key: str) -> str:
    """A phrase in ``zh`` or, for anything else, in English."""
    return WORDS["zh" if language == "zh" else "en"][key]
