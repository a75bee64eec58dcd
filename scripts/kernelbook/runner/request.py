"""What the parent asks a measuring child, and the lines the child answers with."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..gpu.backend import CUPY

MARK = "@kernelbook "  # in front of a message; other lines of a child's output are its own


@dataclass(frozen=True)
class MeasureSettings:
    """How to measure. Limits are in seconds of silence and in all, for one child."""

    root: Path
    device_index: int = 0
    quick: bool = False
    profile: bool = False  # read ncu's counters, too
    cache_dir: Path | None = None
    backend: str = CUPY
    step_limit_s: float = 60.0  # one launch with its check, one sample, one compilation
    time_limit_s: float = 900.0  # one experiment
    profile_limit_s: float = 240.0


@dataclass(frozen=True)
class Request:
    """One experiment for one child. Paths are text, so that it survives JSON."""

    root: str
    experiment: str
    variants: tuple[str, ...]
    device_index: int
    quick: bool
    cache_dir: str
    backend: str
    warm: bool = False  # the same process has just measured another experiment

    @staticmethod
    def of(settings: MeasureSettings, experiment: str, variants: tuple[str, ...]) -> Request:
        return Request(
            root=str(settings.root),
            experiment=experiment,
            variants=variants,
            device_index=settings.device_index,
            quick=settings.quick,
            cache_dir=str(settings.cache_dir or ""),
            backend=settings.backend,
        )

    @property
    def cache(self) -> Path | None:
        """Where compiled kernels are kept: shared with the compile stage."""
        return Path(self.cache_dir) / "compile" if self.cache_dir else None


@dataclass(frozen=True)
class TuneRequest:
    """Shapes of a chapter's tuning table for one child; ``without`` names lost configurations."""

    root: str
    chapter: str
    shapes: tuple[str, ...]  # as the table spells them
    without: tuple[str, ...]
    device_index: int
    cache_dir: str
    backend: str

    @property
    def cache(self) -> Path | None:
        return Path(self.cache_dir) / "compile" if self.cache_dir else None


@dataclass(frozen=True)
class Message:
    """One line of a child.

    ``kind``: "at" a row, "say" to the reader, "choice" of a configuration for the shape that
    ``variant`` names, "wrong" for a configuration that is left out, "fault" of a row, "error",
    "done" with what was asked.
    """

    kind: str
    variant: str = ""
    text: str = ""

    def line(self) -> str:
        return MARK + json.dumps([self.kind, self.variant, self.text], ensure_ascii=True)

    @staticmethod
    def parse(line: str) -> Message | None:
        """The message of a line, None for a line that is none."""
        if not line.startswith(MARK):
            return None
        try:
            parts = json.loads(line.removeprefix(MARK))
        except json.JSONDecodeError:
            return None
        whole = isinstance(parts, list) and len(parts) == 3
        return Message(*map(str, parts)) if whole else None


class Teller:
    """The child's side: says at once what it is about to do, so that a hang has a name."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def at(self, variant: str, doing: str) -> None:
        self._send(Message("at", variant, doing))

    def say(self, text: str) -> None:
        self._send(Message("say", "", text))

    def choice(self, shape: str, content: str) -> None:
        self._send(Message("choice", shape, content))

    def wrong(self, variant: str, reason: str) -> None:
        self._send(Message("wrong", variant, reason))

    def done(self) -> None:
        self._send(Message("done"))

    def fault(self, variant: str, reason: str) -> None:
        self._send(Message("fault", variant, reason))

    def error(self, reason: str) -> None:
        self._send(Message("error", "", reason))

    def _send(self, message: Message) -> None:
        self._stream.write(message.line() + "\n")
        self._stream.flush()
