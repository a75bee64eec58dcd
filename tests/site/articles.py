"""Articles as their authors wrote them: what is typed in them, and what is bound to records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from site_project import ROOT

from kernelbook.site.tokens import extract, stretches

_RESULT = re.compile(
    r"(?<![\w.])\d+(?:[.,]\d+)*\s?(?:[TG]FLOPS|FLOP/B|[µmn]s\b|[GT]B/s|[KMG]iB|%|‰|×(?!\d)|倍)"
)


def pages(name: str) -> Mapping[str, Path]:
    """The article in both languages."""
    return {language: ROOT / "docs" / language / f"{name}.md" for language in ("zh", "en")}


def typed_results(page: Path) -> set[str]:
    """Numbers with a unit in what an author typed: not those of records, code or formulas."""
    text = extract(page.read_text(encoding="utf-8"))[0]
    text = "".join(piece for _, piece, is_code in stretches(text) if not is_code)
    prose = re.sub(r"`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", text, flags=re.S)
    return {match.group() for match in _RESULT.finditer(prose)}


def tokens(page: Path) -> list[tuple[str, str]]:
    """(kind, expression) of the numbers and claims, in their order."""
    return [(t.kind, t.body.strip()) for t in extract(page.read_text(encoding="utf-8"))[1]]
