"""mermaidx's engine with wide characters measured as wide, and four times as fast.

Both reach into mermaidx, whose version is pinned; `tests/site/test_mermaid.py` holds the drawings
against those of the engine as it comes.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from mermaidx.engines.quickjs_engine import Engine

from kernelbook.site.text_width import WideTextMeasurer

SCRIPT = "quick_selectors.js"


class QuickEngine(Engine):
    """An engine whose contexts read a style sheet's selectors once."""

    def _build_context(self) -> Any:
        context = super()._build_context()
        context.eval((files("kernelbook.site") / "assets" / SCRIPT).read_text(encoding="utf-8"))
        return context


@cache
def engine() -> QuickEngine:
    """The one engine of this process: loading mermaid costs half a second."""
    started = QuickEngine()
    started.start()
    started._measurer = WideTextMeasurer()
    return started
