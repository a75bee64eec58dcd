"""Strings of strangers' records, made fit for one line of a page or a picture."""

from __future__ import annotations

import unicodedata


def one_line(text: str, limit: int) -> str:
    """Without control characters, line breaks and marks that turn writing around; cut to length."""
    kept = text
    if not (text.isascii() and text.isprintable()):  # as most cells of the longest tables are
        kept = "".join(
            " " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") else c
            for c in text
        )
    kept = " ".join(kept.split())
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"
