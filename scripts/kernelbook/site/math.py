r"""``$…$`` and ``$$…$$`` rendered to HTML while the site is built; no script on the page.

The rules for a dollar sign are pandoc's, a little stricter, so that prices and shell
variables in prose stay what they are: an opening ``$`` has no space after it and no letter or
digit before it, a closing ``$`` has no space before it and no letter or digit after it.
``\$`` is a dollar sign. Code spans and code blocks are never looked at.

``$$…$$`` is a display formula, as a paragraph of its own or inside one; a wide one scrolls
within its own box.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

from kernelbook.site import katex
from kernelbook.site.place import StaticFiles, complain, page_error

_INLINE = (
    r"(?<![\\$A-Za-z0-9])\$(?![\s$])"  # opens
    r"((?:\\.|[^\\$])*?(?:\\.|[^\\$\s]))"  # does not end in a space
    r"\$(?![$A-Za-z0-9])"  # closes
)
DISPLAY = r"(?<!\\)\$\$(?!\$)((?:\\.|[^\\$])+?)\$\$(?!\$)"
_DISPLAY_BLOCK = re.compile(rf"(?:^|\n) {{0,3}}{DISPLAY}[ \t]*(?=\n|$)", re.DOTALL)
_LIST_OR_QUOTE = re.compile(r"\s*(?:[-+*>|#]|\d+[.)]\s)")

# After code spans (190) so that code is left alone, before escapes (180) so that TeX is.
_INLINE_PRIORITY = 187
# After indented code (80), before everything that would read TeX as a list or a heading.
_BLOCK_PRIORITY = 75


class MathExtension(Extension):
    """Registers the two inline rules and the block rule."""

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        md.registerExtension(self)
        md.preprocessors.register(StaticFiles(md, katex.static_files), "kb-math-files", 0)
        if "$" not in md.ESCAPED_CHARS:
            md.ESCAPED_CHARS = [*md.ESCAPED_CHARS, "$"]
        md.parser.blockprocessors.register(_DisplayBlock(md.parser), "kb-math", _BLOCK_PRIORITY)
        for name, pattern, priority in (
            ("kb-math-display", DISPLAY, _INLINE_PRIORITY + 0.5),
            ("kb-math-inline", _INLINE, _INLINE_PRIORITY),
        ):
            md.inlinePatterns.register(
                _InlineMath(pattern, md, display="display" in name), name, priority
            )


class _InlineMath(InlineProcessor):
    def __init__(self, pattern: str, md: markdown.Markdown, *, display: bool) -> None:
        super().__init__(pattern, md)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        rendered = _render(self.md, m[1], m[0], display=self.display, tag="span")
        return self.md.htmlStash.store(rendered), m.start(0), m.end(0)


class _DisplayBlock(BlockProcessor):
    """A ``$$…$$`` that begins and ends a line, before its TeX is read as Markdown."""

    def test(self, parent: ET.Element, block: str) -> bool:
        match = _DISPLAY_BLOCK.search(block)
        if match is None:
            if re.match(r" {0,3}\$\$", block) and block.count("$$") == 1:
                problem = page_error(
                    self.parser.md,
                    "a formula that begins with $$ does not end in its paragraph",
                    quoted=block,
                    hint="leave no blank line inside; write \\$\\$ for two dollar signs",
                )
                complain(self.parser.md, problem)
            return False
        # In a list item or a quotation the inner text comes here again by itself.
        return not _LIST_OR_QUOTE.match(block[: match.start()])

    def run(self, parent: ET.Element, blocks: list[str]) -> None:
        block = blocks.pop(0)
        match = _DISPLAY_BLOCK.search(block)
        assert match is not None
        if before := block[: match.start()].strip("\n"):
            self.parser.parseBlocks(parent, [before])
        md = self.parser.md
        rendered = _render(md, match[1], match[0].strip(), display=True, tag="div")
        ET.SubElement(parent, "p").text = AtomicString(md.htmlStash.store(rendered))
        if after := block[match.end() :].strip("\n"):
            blocks.insert(0, after)


def _render(md: markdown.Markdown, tex: str, quoted: str, *, display: bool, tag: str) -> str:
    try:
        body = katex.render(tex.strip(), display=display)
    except katex.TexError as error:
        shown = " ".join(quoted.split())
        complain(md, page_error(md, f"KaTeX cannot read {shown}: {error}", quoted=quoted))
        return ""
    if display:
        return f'<{tag} class="kb-math kb-math--display" data-search-exclude>{body}</{tag}>'
    # Search should find a sentence with its formula in it, but once: as drawn, not as MathML.
    body = body.replace('class="katex-mathml"', 'class="katex-mathml" data-search-exclude', 1)
    return f'<{tag} class="kb-math kb-math--inline">{body}</{tag}>'


def makeExtension(**kwargs: Any) -> MathExtension:
    """Python-Markdown's entry point."""
    return MathExtension(**kwargs)
