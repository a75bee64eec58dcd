"""``--json FILE``: the outcome of a command for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .. import codec
from .options import path_of
from .progress import Display


def text_of(content: Mapping[str, object]) -> str:
    """An outcome as JSON; raises ValueError for NaN and infinity."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def deliver(display: Display, name: str, text: str) -> None:
    """Write an outcome to the file of that name, or to standard output where it is ``-``.

    Raises UsageError and RecordError where that is not possible.
    """
    if name == "-":
        display.raw(text)
    else:
        codec.write_atomically(path_of(name), text)
