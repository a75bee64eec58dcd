"""Measuring processes: what they are asked, their lines, their limits, their end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from .. import codec
from ..errors import RecordError
from ..records import Record
from .request import MeasureSettings, Message, Request

PACKAGE_ROOT = Path(__file__).resolve().parents[2]  # the folder that holds the package
STOPPED_WITHIN_S = 30.0
LAST_BYTES, LAST_CHARACTERS = 1 << 16, 500  # of what a process that died has printed
ENDS_WITHIN_S = 20.0  # a process that has nothing more to do

Hear = Callable[[Message], None]


@dataclass(frozen=True)
class Ended:
    """How a request ended: well, or with the row it was at and a reason."""

    at: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Measured:
    """A record, or the row that was lost and why."""

    record: Record | None
    at: str = ""
    reason: str = ""


class Worker:
    """A process that answers one request after another, until one goes wrong.

    Whoever makes one closes it; it never stays behind. ``usable`` says whether it can be asked
    again.
    """

    def __init__(self, step_limit_s: float) -> None:
        self._step_limit_s = step_limit_s
        self._folder = tempfile.TemporaryDirectory(prefix="kernelbook-")
        self._errors = (Path(self._folder.name) / "stderr").open("w+b")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "kernelbook.runner.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            errors="replace",
            env=child_environment(),
            start_new_session=True,  # so that a signal reaches whatever it has started
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._pump, daemon=True)
        self._reader.start()
        self._asked = 0
        self._at, self._doing = "", "start"
        self.usable = True

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(at_once=error is not None)

    def measure(
        self, request: Request, settings: MeasureSettings, say: Callable[[str], None]
    ) -> Measured:
        """One experiment's record; the worker is done with where a row of it failed."""
        answer = Path(self._folder.name) / f"record-{self._asked}.json"

        def hear(message: Message) -> None:
            if message.kind == "say":
                say(message.text)

        ended = self.ask("measure", request, str(answer), settings.time_limit_s, hear)
        if ended.reason:
            return Measured(None, ended.at, ended.reason)
        try:
            record = codec.from_file(Record, answer)
        except RecordError as error:
            self.usable = False
            return Measured(None, self._at, f"the record cannot be read: {error.what}")
        finally:
            answer.unlink(missing_ok=True)
        self.usable = self.usable and all(r.status != "failed" for r in record.results)
        return Measured(record)

    def ask(self, what: str, request: Any, answer: str, limit_s: float, hear: Hear) -> Ended:
        """Have a request answered; the messages in between go to ``hear``."""
        asked = Path(self._folder.name) / f"request-{self._asked}.json"
        self._asked += 1
        self._at, self._doing = "", "start"
        codec.write_atomically(asked, codec.to_json(request))
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps([what, str(asked), answer]) + "\n")
            self._child.stdin.flush()
        except OSError:
            pass  # it has died: its output says how
        ended = self._follow(limit_s, hear)
        self.usable = self.usable and not ended.reason
        return ended

    def close(self, at_once: bool = False) -> None:
        """End the process: by itself where it is in order, else with all that it started."""
        self.usable = False
        with contextlib.suppress(OSError):
            assert self._child.stdin is not None
            self._child.stdin.close()
        if not at_once:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=ENDS_WITHIN_S)
        stop(self._child)
        self._reader.join(timeout=5.0)  # its pipe is at its end
        if self._child.stdout is not None and not self._reader.is_alive():
            self._child.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    # ---- listening -------------------------------------------------------------------------

    def _pump(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _follow(self, limit_s: float, hear: Hear) -> Ended:
        """Until the request is done, something went wrong, or a limit is exceeded."""
        started = time.monotonic()
        while True:
            left = started + limit_s - time.monotonic()
            try:
                line = self._lines.get(timeout=max(0.0, min(self._step_limit_s, left)))
            except queue.Empty:
                stop(self._child)  # a hung kernel does not hear anything softer
                return Ended(self._at, self._limit(left, limit_s))
            if line is None:
                return self._died()
            message = Message.parse(line)
            if message is None:
                continue
            if message.kind == "done":
                return Ended()
            if message.kind == "at":
                self._at, self._doing = message.variant, message.text
            elif message.kind == "fault":
                return Ended(message.variant, message.text)
            elif message.kind == "error":
                return Ended("", message.text)
            else:
                hear(message)

    def _died(self) -> Ended:
        try:
            code = self._child.wait(timeout=self._step_limit_s)
        except subprocess.TimeoutExpired:
            return Ended(self._at, f"the measuring process did not end after {self._doing!r}")
        return Ended(self._at, f"{_how(code)} at {self._doing!r}{_last_line(self._errors)}")

    def _limit(self, left: float, limit_s: float) -> str:
        if left <= self._step_limit_s:
            return f"stopped at {self._doing!r}: the experiment's {limit_s:g} s are over"
        return f"stopped: no end of {self._doing!r} after {self._step_limit_s:g} s"


class Crew:
    """Workers, one at a time: a fresh one for each experiment, one for a whole sweep.

    A sweep's worker is replaced where anything of an experiment failed, so that what is left of
    a fault costs no other experiment.
    """

    def __init__(self, settings: MeasureSettings) -> None:
        self._settings = settings
        self._worker: Worker | None = None
        self._sweep = ""

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dismiss(at_once=error is not None)

    def measure(self, request: Request, sweep: str, say: Callable[[str], None]) -> Measured:
        """Have an experiment measured. Experiments of the same ``sweep`` share a process while
        all goes well; one of none ("") gets its own."""
        warm = bool(self._worker and self._worker.usable and sweep and sweep == self._sweep)
        if not warm:
            self._dismiss()
            self._worker, self._sweep = Worker(self._settings.step_limit_s), sweep
        assert self._worker is not None
        measured = self._worker.measure(replace(request, warm=warm), self._settings, say)
        if not sweep:
            self._dismiss()
        return measured

    def _dismiss(self, at_once: bool = False) -> None:
        if self._worker is not None:
            self._worker.close(at_once or not self._worker.usable)
            self._worker = None


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


def _how(code: int) -> str:
    if code >= 0:
        return f"the measuring process failed (exit {code})"
    try:
        return f"the measuring process died of {signal.Signals(-code).name}"
    except ValueError:
        return f"the measuring process died of signal {-code}"


def _last_line(errors: BinaryIO) -> str:
    """What was said at last; a kernel may have printed more before than anybody would read."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - LAST_BYTES))
    text = errors.read(LAST_BYTES).decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:LAST_CHARACTERS]}" if lines else ""
