"""How a run is shown: a live bar on a terminal, plain lines elsewhere, one table at the end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..errors import UsageError, printable


class Stage(Protocol):
    """One stage of a run, told of each step."""

    def step(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def glance(self, text: str) -> None:
        """As `note`, for somebody who is watching: no line of a log."""
        ...


class Display:
    """Writes to one console; knows whether a person is watching.

    What it is given may quote strangers: nothing in it steers the terminal (`errors.printable`).
    Raises UsageError where its output cannot be written, BrokenPipeError where nobody reads it.
    """

    def __init__(self, console: Console | None = None) -> None:
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows a "?"
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        plain = sys.stdout is None or not sys.stdout.isatty()
        # Without a terminal rich would wrap at 80 columns and cut table cells.
        self._console = console or Console(width=160 if plain else None, highlight=False)

    def aside(self) -> Display:
        """One that writes to standard error, where standard output is for JSON."""
        return Display(Console(stderr=True, highlight=False))

    def say(self, text: str) -> None:
        with _written():
            self._console.print(escape(printable(text, keep="\n\t")), soft_wrap=True)

    def raw(self, text: str) -> None:
        """Write to standard output what is not for people."""
        with _written():
            print(text, end="", flush=True)

    def problem(self, text: str) -> None:
        with contextlib.suppress(OSError):  # there is no other place to say so
            Console(stderr=True, highlight=False).print(
                escape(printable(text, keep="\n")), style="red", soft_wrap=True
            )

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Stage]:
        """Show a stage of ``total`` steps."""
        if self._console.is_terminal:
            columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(),
                       TimeElapsedColumn(), TextColumn("{task.description}"))  # fmt: skip
            with Progress(*columns, console=self._console, transient=True) as bar:
                task = bar.add_task("", total=total, name=name)
                yield _Live(bar, task)
        else:
            yield _Plain(self, name, total)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; cells are text, never markup; columns from the third on align right."""
        table = Table(title=escape(title), title_justify="left")
        for i, name in enumerate(header):
            table.add_column(name, justify="left" if i < 2 else "right", overflow="fold")
        for row in rows:
            table.add_row(*(escape(printable(cell)) for cell in row))
        with _written():
            self._console.print(table)


@contextlib.contextmanager
def _written() -> Iterator[None]:
    """What cannot be written is one sentence, and is not tried again when Python ends."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in its buffer is lost
        raise UsageError(f"the output cannot be written: {error.strerror or error}") from error


class _Live:
    def __init__(self, bar: Progress, task: object) -> None:
        self._bar = bar
        self._task = task

    def step(self, text: str) -> None:
        self._bar.update(self._task, advance=1, description=escape(printable(text)))  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        self._bar.update(self._task, description=escape(printable(text)))  # type: ignore[arg-type]

    glance = note


class _Plain:
    def __init__(self, display: Display, name: str, total: int) -> None:
        self._display = display
        self._name = name
        self._total = total
        self._done = 0

    def step(self, text: str) -> None:
        self._done += 1
        self._display.say(f"{self._name} {self._done}/{self._total}: {text}")

    def note(self, text: str) -> None:
        self._display.say(f"{self._name}: {text}")

    def glance(self, text: str) -> None:
        pass
