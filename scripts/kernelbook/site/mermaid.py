"""```` ```mermaid ```` fences rendered to inline SVG while the site is built.

mermaid runs inside QuickJS through mermaidx: the reader's browser gets no script. What the
page gets is ``<figure class="kb-diagram">`` with one SVG, coloured by ``assets/diagram.css``.

    ```mermaid caption="两次屏障各防什么"
    sequenceDiagram
        ...
    ```

The caption is shown under the diagram and is its accessible name; without one the name is
the diagram's own ``accTitle`` or ``title``, else its labels. Diagram kinds are those whose
every part ``diagram.css`` colours; another kind is refused rather than shown half styled.

List ``pymdownx.superfences`` before this extension.
"""

from __future__ import annotations

import hashlib
import html
import re
from functools import cache as once_per_process
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import markdown
from markdown.extensions import Extension
from mermaidx.engines.quickjs_engine import MermaidRenderError
from pymdownx.superfences import SuperFencesCodeExtension

from kernelbook.site import cache, mermaid_engine, svg
from kernelbook.site.place import PageBuildError, StaticFiles, complain, line_of, page_error

STYLESHEET_URI = "assets/kernelbook/diagram.css"

KINDS = {
    "sequenceDiagram": "sequence",
    "graph": "flowchart",
    "flowchart": "flowchart",
    "xychart-beta": "xychart",
    "xychart": "xychart",
    "stateDiagram-v2": "state",
    "stateDiagram": "state",
}

_CONFIG: dict[str, Any] = {
    "htmlLabels": False,  # HTML labels are measured as text but drawn by rules SVG lacks
    "securityLevel": "strict",
    "suppressErrorRendering": True,
    "flowchart": {
        "htmlLabels": False,
        "nodeSpacing": 36,
        "rankSpacing": 44,
        "padding": 12,
        "wrappingWidth": 260,
        "subGraphTitleMargin": {"top": 4, "bottom": 10},
    },
    "state": {"htmlLabels": False},
    "sequence": {
        "mirrorActors": False,  # the same boxes again at the bottom say nothing new
        "actorMargin": 36,
        "width": 140,
        "height": 44,
        "messageMargin": 34,
        "labelBoxWidth": 68,  # "critical" does not fit the default
        "bottomMarginAdj": 4,
        "diagramMarginX": 12,
    },
    "xyChart": {"width": 640, "height": 380, "titleFontSize": 17, "titlePadding": 12},
    # What a diagram's own front matter may not change: the page decides it.
    "secure": [
        "secure", "securityLevel", "startOnLoad", "maxTextSize", "suppressErrorRendering",
        "maxEdges", "theme", "themeVariables", "themeCSS", "fontFamily", "htmlLabels", "look",
    ],
}  # fmt: skip

_ERROR_LINE = re.compile(r"on line (\d+)[.:]?")
_QUOTED = re.compile(r'"[^"]*"')
_FREE_TEXT = re.compile(r"%%|accTitle\b|accDescr\b")  # lines that are no syntax, however written


class MermaidExtension(Extension):
    """Gives superfences the fence and numbers the diagrams of a page."""

    def __init__(self, **kwargs: Any) -> None:
        self.config = {"cache": ["", "Folder for rendered diagrams; default .cache/kernelbook"]}
        super().__init__(**kwargs)
        self._used_ids: set[str] = set()

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        md.registerExtension(self)
        md.preprocessors.register(StaticFiles(md, static_files), "kb-mermaid-files", 0)
        for extension in md.registeredExtensions:
            if isinstance(extension, SuperFencesCodeExtension):
                extension.extend_super_fences("mermaid", fence, validate, lambda _md: None)
                return
        raise page_error(md, "list pymdownx.superfences before kernelbook.site.mermaid")

    def reset(self) -> None:
        self._used_ids.clear()

    @property
    def cache_root(self) -> Path:
        """Where rendered diagrams are kept."""
        configured = str(self.getConfig("cache"))
        return (Path(configured) if configured else cache.default_root()) / "mermaid"

    def new_id(self, source: str) -> str:
        """An id that no other diagram of the page has, the same in every build."""
        base = name = "kbd-" + hashlib.sha256(source.encode()).hexdigest()[:8]
        number = 1
        while name in self._used_ids:
            number += 1
            name = f"{base}-{number}"
        self._used_ids.add(name)
        return name


def validate(
    language: str,
    inputs: dict[str, str],
    options: dict[str, Any],
    attrs: dict[str, Any],
    md: markdown.Markdown,
) -> bool:
    """superfences' validator: keeps ``caption``, refuses what nothing would read."""
    for name, value in inputs.items():
        if name != "caption":
            problem = page_error(
                md,
                f"a mermaid fence has no option {name!r}",
                quoted=f'{name}="{value}"',
                hint='only caption="…"',
            )
            complain(md, problem)
            continue
        options["caption"] = value
    return True


def fence(
    src: str = "",
    language: str = "",
    options: dict[str, Any] | None = None,
    md: markdown.Markdown | None = None,
    **kwargs: Any,
) -> str:
    """superfences' formatter: the figure for the diagram ``src``.

    Complains, with the line of the article, where mermaid refuses the diagram or would misread it.
    """
    assert md is not None
    extension = next((e for e in md.registeredExtensions if isinstance(e, MermaidExtension)), None)
    if extension is None:
        raise page_error(md, "kernelbook.site.mermaid is not among the Markdown extensions", line=1)
    source = src.strip("\n")
    key = cache.key_of(_renderer(), source)
    try:
        kind = _kind_of(md, source)
        _check_quotes(md, source, kind)
        drawing = cache.cached(extension.cache_root, key, lambda: _render(md, source, kind))
    except PageBuildError as problem:
        complain(md, problem)
        return ""
    return _figure(drawing, kind, extension.new_id(source), (options or {}).get("caption", ""))


def static_files() -> dict[str, bytes]:
    """The style sheet that colours the diagrams, by its path in the site."""
    return {STYLESHEET_URI: (files("kernelbook.site") / "assets" / "diagram.css").read_bytes()}


def _figure(drawing: str, kind: str, name: str, caption: str) -> str:
    drawing = drawing.replace(svg.ID_PLACEHOLDER, name)
    if caption:
        label = f'aria-label="{html.escape(caption)}"'
        drawing = re.sub(r'aria-label="[^"]*"', lambda _: label, drawing, count=1)
    shown = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure class="kb-diagram kb-diagram--{kind}" data-search-exclude>'
        f'<div class="kb-diagram__scroll" tabindex="0">{drawing}</div>{shown}</figure>'
    )


def _kind_of(md: markdown.Markdown, source: str) -> str:
    """The kind of diagram, from the first word that is not front matter or a comment."""
    body = re.sub(r"\A\s*---\n.*?\n---\s*\n", "", source, flags=re.DOTALL)
    body = re.sub(r"%%\{.*?\}%%", "", body, flags=re.DOTALL)
    body = re.sub(r"^[ \t]*%%.*$", "", body, flags=re.MULTILINE)
    word = (body.split() or [""])[0].rstrip(";:")
    if word in KINDS:
        return KINDS[word]
    raise page_error(
        md,
        f"no diagram begins with {word!r}" if word else "a mermaid fence is empty",
        quoted=word or "```mermaid",
        hint="use " + ", ".join(KINDS),
    )


def _render(md: markdown.Markdown, source: str, kind: str) -> str:
    try:
        drawing = mermaid_engine.engine().render_svg(source, "default", _CONFIG, None)
    except MermaidRenderError as error:
        raise _syntax_error(md, source, kind, str(error)) from None
    return svg.themed(drawing)


def _check_quotes(md: markdown.Markdown, source: str, kind: str) -> None:
    """Refuse Chinese outside quotes where a diagram has them: a bracket or `end` in it would be
    syntax, and a chart's axis would be a picture of an error. A sequence's messages have none."""
    if kind not in ("flowchart", "xychart"):
        return
    lines = source.splitlines()
    for number in range(_body_start(lines), len(lines)):
        line = lines[number].strip()
        if _FREE_TEXT.match(line) or _QUOTED.sub("", line).isascii():
            continue
        first = line_of(md, source)
        raise page_error(
            md,
            f"in a {kind}, text that is not plain ASCII needs double quotes: {line}",
            line=None if first is None else first + number,
        )


def _syntax_error(md: markdown.Markdown, source: str, kind: str, message: str) -> Exception:
    """mermaid's complaint as one line that points into the article."""
    lines = source.splitlines()
    first = line_of(md, source)
    number = _reported_line(lines, message)
    unexpected = re.search(r"got '([^']*)'", message)
    summary = _ERROR_LINE.sub("", message.splitlines()[0].removeprefix("Error: "))
    return page_error(
        md,
        f"mermaid cannot read this diagram: {' '.join(summary.split()).strip(' .:')}"
        + (f", unexpected {unexpected[1]}" if unexpected else "")
        + f", at: {lines[number].strip()}",
        line=None if first is None else first + number,
        hint='a label with brackets in it needs quotes: A["f(x)"]' if kind == "flowchart" else "",
    )


def _reported_line(lines: list[str], message: str) -> int:
    """The index of the line mermaid complains about.

    mermaid counts after it has taken out front matter, comments, and what is blank before
    the first word.
    """
    reported = _ERROR_LINE.search(message)
    start = _body_start(lines)
    kept = [i for i in range(start, len(lines)) if not lines[i].strip().startswith("%%")]
    while kept and not lines[kept[0]].strip():
        kept.pop(0)
    if reported is None or not kept:
        return start if start < len(lines) else 0
    return kept[min(int(reported[1]), len(kept)) - 1]


def _body_start(lines: list[str]) -> int:
    """The index of the first line after the front matter."""
    if lines and lines[0].strip() == "---" and "---" in (rest := [x.strip() for x in lines[1:]]):
        return rest.index("---") + 2
    return 0


@once_per_process
def _renderer() -> str:
    """All that decides what a source is drawn as: mermaidx's version, the config, our code."""
    here = files("kernelbook.site")
    modules = ("svg.py", "svg_layout.py", "colour.py", "text_width.py", "mermaid_engine.py")
    return cache.key_of(
        version("mermaidx"), repr(_CONFIG), *((here / name).read_text("utf-8") for name in modules)
    )


def makeExtension(**kwargs: Any) -> MermaidExtension:
    """Python-Markdown's entry point."""
    return MermaidExtension(**kwargs)
