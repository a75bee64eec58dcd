"""How a run is shown: a live bar on a terminal, plain lines elsewhere, one table at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


class Stage(Protocol):
    """One stage of a run, told of each step."""

    def step(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...


class Display:
    """Writes to one console; knows whether a person is watching."""

    def __init__(self, console: Console | None = None) -> None:
        plain = not sys.stdout.isatty()
        # Without a terminal rich would wrap at 80 columns and cut table cells.
        self._console = console or Console(width=160 if plain else None, highlight=False)

    def say(self, text: str) -> None:
        self._console.print(escape(text), soft_wrap=True)

    def problem(self, text: str) -> None:
        Console(stderr=True, highlight=False).print(escape(text), style="red", soft_wrap=True)

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
            table.add_row(*(escape(cell) for cell in row))
        self._console.print(table)


class _Live:
    def __init__(self, bar: Progress, task: object) -> None:
        self._bar = bar
        self._task = task

    def step(self, text: str) -> None:
        self._bar.update(self._task, advance=1, description=escape(text))  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        self._bar.update(self._task, description=escape(text))  # type: ignore[arg-type]


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
