"""Running a measuring child: its lines, its limits, its end."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import codec
from ..errors import RecordError
from ..records import Record
from .request import MeasureSettings, Message, Request

PACKAGE_ROOT = Path(__file__).resolve().parents[2]  # the folder that holds the package
STOPPED_WITHIN_S = 30.0


@dataclass(frozen=True)
class Ended:
    """How a child ended: with a record, or with the row it was at and a reason."""

    record: Record | None
    at: str = ""
    reason: str = ""


def run_child(request: Request, settings: MeasureSettings, say: Callable[[str], None]) -> Ended:
    """Run one child to its end, or to its limit; never leaves it running."""
    with tempfile.TemporaryDirectory(prefix="kernelbook-") as folder:
        asked, answer = Path(folder) / "request.json", Path(folder) / "record.json"
        codec.write_atomically(asked, codec.to_json(request))
        with (Path(folder) / "stderr").open("w+", encoding="utf-8", errors="replace") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "kernelbook.runner.child", str(asked), str(answer)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env=child_environment(),
                start_new_session=True,  # so that a signal reaches whatever it has started
            )
            watch = _Watch(child, settings.step_limit_s, settings.time_limit_s)
            try:
                ended = watch.follow(say)
            finally:
                stop(child)
                watch.close()
            if ended is not None:
                return ended
            errors.seek(0)
            last = _last_line(errors.read())
        if child.returncode == 0:
            try:
                return Ended(codec.from_file(Record, answer))
            except RecordError as error:
                return Ended(None, watch.at, f"the record cannot be read: {error.what}")
        return Ended(None, watch.at, f"{_how(child.returncode)} at {watch.doing!r}{last}")


def child_environment() -> dict[str, str]:
    """This environment, with the package importable."""
    paths = [str(PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def stop(child: subprocess.Popen[str]) -> None:
    """End a child and all it started, at once: a hung kernel does not hear anything softer."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hold it for a while
        child.wait(timeout=STOPPED_WITHIN_S)


class _Watch:
    """Follows a child's lines; knows the row it is at."""

    def __init__(
        self, child: subprocess.Popen[str], step_limit_s: float, time_limit_s: float
    ) -> None:
        self._child = child
        self._step_limit_s = step_limit_s
        self._time_limit_s = time_limit_s
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._pump, daemon=True)
        self._reader.start()
        self.at = ""
        self.doing = "start"

    def close(self) -> None:
        """After the child has ended: its pipe is at its end, so the reader ends, too."""
        self._reader.join(timeout=5.0)
        if self._child.stdout is not None and not self._reader.is_alive():
            self._child.stdout.close()

    def _pump(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def follow(self, say: Callable[[str], None]) -> Ended | None:
        """Until the child closes its output, says what went wrong, or exceeds a limit."""
        started = time.monotonic()
        while True:
            left = started + self._time_limit_s - time.monotonic()
            try:
                line = self._lines.get(timeout=max(0.0, min(self._step_limit_s, left)))
            except queue.Empty:
                return Ended(None, self.at, self._limit(left))
            if line is None:
                return self._end()
            message = Message.parse(line)
            if message is None:
                continue
            if message.kind == "at":
                self.at, self.doing = message.variant, message.text
            elif message.kind == "say":
                say(message.text)
            elif message.kind == "fault":
                return Ended(None, message.variant, message.text)
            elif message.kind == "error":
                return Ended(None, "", message.text)

    def _end(self) -> Ended | None:
        try:
            self._child.wait(timeout=self._step_limit_s)
        except subprocess.TimeoutExpired:
            return Ended(None, self.at, f"the measuring process did not end after {self.doing!r}")
        return None

    def _limit(self, left: float) -> str:
        if left <= self._step_limit_s:
            return f"stopped at {self.doing!r}: the experiment's {self._time_limit_s:g} s are over"
        return f"stopped: no end of {self.doing!r} after {self._step_limit_s:g} s"


def _how(code: int) -> str:
    if code >= 0:
        return f"the measuring process failed (exit {code})"
    try:
        return f"the measuring process died of {signal.Signals(-code).name}"
    except ValueError:
        return f"the measuring process died of signal {-code}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""
