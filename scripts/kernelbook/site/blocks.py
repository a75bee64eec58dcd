"""What every block of ours has in common: errors with file and line, and being left out.

pymdownx renders a block it does not understand as a paragraph. An article in which a table has
silently become text is wrong, so every such case is noted here: an unknown block, an unknown
option, a value of the wrong kind, content where there should be none (a block never closed).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from abc import abstractmethod
from html import escape
from typing import Any

from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from pymdownx.blocks import BlocksProcessor
from pymdownx.blocks.block import Block

from kernelbook.errors import KernelbookError, PageError
from kernelbook.site import series
from kernelbook.site.page import PageState
from kernelbook.site.place import PageBuildError
from kernelbook.site.tokens import restore

_LEFTOVER = re.compile(r"(?:^|\n)[ ]{0,3}(?P<line>/{3,}[ ]*(?P<name>[\w-]*)[^\n]*)")


def words(value: Any) -> tuple[str, ...]:
    """A YAML list of words, or one word; raises ValueError."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("a list of words")
    return tuple(items)


def text(value: Any) -> str:
    """A YAML string; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("text")
    return value


class BookBlock(Block):
    """A block that renders to one piece of HTML and holds no content of its own.

    ``config["page"]`` is the page's state. A subclass says what it renders.
    """

    ARGUMENT = None
    ARGUMENT_FORM = ""  # what the argument is, for the message where it is missing; "" for none
    broken = False  # whether its header was refused: then it shows nothing

    @property
    def page(self) -> PageState:
        page: PageState = self.config["page"]
        return page

    def _validate(self, parent: ET.Element, arg: Any, **options: Any) -> bool:
        if isinstance(arg, str):  # a number in it is no number here
            arg = restore(arg, tuple(self.config["tokens"]))
        header = f"{'/' * self.length} {self.NAME} |"
        header = " ".join(f"{header} {arg or ''}".split())
        self.line = self.page.take_line(header) or self.page.take_line(header.removesuffix(" |"))
        try:
            if self.ARGUMENT_FORM and not arg:
                raise self.error(f"a {self.NAME} block needs {self.ARGUMENT_FORM} after the |")
            for name, value in options.items():
                self._check_option(name, value)
        except PageBuildError as error:
            self.page.note(error)
            self.broken = True
            self.argument = ""
            self.options = {option: given[0] for option, given in self.option_spec.items()}
            return True
        return bool(super()._validate(parent, arg, **options))

    def _check_option(self, name: str, value: Any) -> None:
        if name not in self.option_spec:
            known = ", ".join(self.OPTIONS) or "none"
            raise self.error(f"a {self.NAME} block has no option {name!r}", f"it has: {known}")
        try:
            self.option_spec[name][1](value)
        except (ValueError, TypeError) as error:
            raise self.error(f"option {name} of {self.NAME} must be {error}") from None

    def error(self, what: str | KernelbookError, hint: str = "") -> PageBuildError:
        problem = PageError(what, hint=hint) if isinstance(what, str) else what
        return self.page.error(problem, self.line)

    @property
    def left_out(self) -> bool:
        """Whether an enclosing figure-if does not hold."""
        return any(getattr(entry.block, "holds", True) is False for entry in self._block_mgr.stack)

    def on_create(self, parent: ET.Element) -> ET.Element:
        return ET.SubElement(parent, "p")

    def on_end(self, block: ET.Element) -> None:
        if self.broken:
            return
        if (block.text or "").strip() or len(block):
            self.page.note(
                self.error(f"a {self.NAME} block holds no text", "close it with /// at once")
            )
            return
        if self.left_out:
            return
        try:
            html = self.html()
        except KernelbookError as error:
            self.page.note(self.error(error))
            return
        block.text = AtomicString(self.page.stash(html))

    def chapter_name(self, chapter: str) -> str:
        """A chapter's folder as HTML, with the title of its article where there is one."""
        entry = series.load(self.page.project.root).of_chapter(chapter)
        title = f"{escape(entry.title.of(self.page.language))} " if entry else ""
        return f"{title}<code>{escape(chapter)}</code>"

    @abstractmethod
    def html(self) -> str:
        """What stands in the block's place; raises KernelbookError."""


class LeftoverTreeprocessor(Treeprocessor):
    """Finds blocks left open or left as text: misspelt names, broken options, stray ends."""

    def __init__(self, page: PageState, manager: BlocksProcessor) -> None:
        super().__init__(page.md)
        self.page = page
        self.manager = manager

    def run(self, root: ET.Element) -> None:
        for entry in self.manager.stack:
            if isinstance(entry.block, BookBlock):
                self.page.note(
                    entry.block.error(f"this {entry.block.NAME} block is never closed with ///")
                )
        for element in root.iter():
            for text in (element.text, element.tail):
                if text and not isinstance(text, AtomicString) and "///" in text:
                    self._check(text)

    def _check(self, text: str) -> None:
        match = _LEFTOVER.search(text)
        if match is None:
            return
        line = " ".join(match["line"].split())
        known = sorted(self.manager.blocks)
        if match["name"] in known:
            what = f"the options of this block cannot be read: {line}"
            self.page.note(self.page.error(PageError(what), self.page.take_line(line)))
            return
        what = f"no block is called {match['name']!r}" if match["name"] else "/// ends no block"
        hint = "there are: " + ", ".join(known) if match["name"] else ""
        self.page.note(self.page.error(PageError(what, hint=hint), self.page.take_line(line)))
