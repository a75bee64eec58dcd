"""KaTeX run inside QuickJS: TeX in, HTML with MathML out.

The script, its style sheet and its fonts are taken at build time from the installed package
``jupyterlab-katex``, Project Jupyter's own repackaging of KaTeX 0.12 (BSD, 1.2 MB, no
dependencies, its last release). It is a webpack bundle, so a few lines of webpack's runtime
are supplied here to ask it for the two modules that matter. Others were weighed: the newest
KaTeX on PyPI comes inside site generators (tens of MB, clashing with MkDocs) or without the
fonts (sphinxcontrib-katex, which needs Sphinx); native bindings have no fonts and wheels for
few platforms.

Why fonts at all: KaTeX can emit MathML alone, which browsers draw with a mathematical font of
the system. Where there is none (most phones, many Linux desktops) sums and brackets do not
stretch and spacing is poor. With its own fonts, served from the site itself, a formula looks
the same everywhere; the MathML stays in the page for screen readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import quickjs

PACKAGE = "jupyterlab-katex"
FOLDER = "assets/kernelbook/katex"
STYLESHEET_URI = f"{FOLDER}/katex.css"

_STACK_BYTES = 8 * 1024 * 1024
_BEFORE = """
var self = globalThis;
var console = {log() {}, warn() {}, error() {}};
var document = {compatMode: "CSS1Compat"};
var URL = class { constructor(path) { this.href = path; } toString() { return this.href; } };
"""
# What webpack's runtime would provide to a module: the module cache and the export helpers.
_RUNTIME = """
var modules = {};
for (const key of Object.keys(self)) {
  if (key.startsWith("webpackChunk"))
    for (const chunk of self[key]) Object.assign(modules, chunk[1]);
}
var loaded = {};
function load(id) {
  if (!(id in loaded)) {
    const module = (loaded[id] = {id: id, exports: {}});
    modules[id].call(module.exports, module, module.exports, load);
  }
  return loaded[id].exports;
}
load.d = (target, getters) => {
  for (const name in getters)
    Object.defineProperty(target, name, {enumerable: true, get: getters[name]});
};
load.n = (module) => {
  const getter = module && module.__esModule ? () => module.default : () => module;
  load.d(getter, {a: getter});
  return getter;
};
load.o = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
load.r = () => {};
load.b = load.p = "";
function containing(text) {
  return load(Object.keys(modules).find((id) => String(modules[id]).includes(text)));
}
var katex = containing("KaTeX parse error");
// Chinese outside text{} is set as it is; any other departure from LaTeX is an error.
var strict = (code) => (code === "unicodeTextInMathMode" ? "ignore" : "error");
// slice(0) makes a flat string of a rope, which the Python binding cannot take.
function render(source, displayMode) {
  try {
    const options = {displayMode, strict, throwOnError: true, trust: false};
    return JSON.stringify({html: katex.renderToString(source, options)}).slice(0);
  } catch (error) {
    return JSON.stringify({error: String(error.message)}).slice(0);
  }
}
"""


class TexError(ValueError):
    """KaTeX refuses a formula; the message is KaTeX's own."""


def render(source: str, *, display: bool) -> str:
    """The HTML of one formula, without delimiters.

    Raises TexError with KaTeX's message when the formula does not parse.
    """
    call = f"render({json.dumps(source)}, {json.dumps(display)})"
    answer: dict[str, str] = json.loads(_context().eval(call))
    if "error" in answer:
        # KaTeX underlines the offending part with combining characters.
        message = answer["error"].replace("\u0332", "").removeprefix("KaTeX parse error: ")
        raise TexError(" ".join(message.split()))
    return answer["html"]


@cache
def static_files() -> dict[str, bytes]:
    """Style sheet and fonts by their path in the site."""
    css = _context().eval('(m => String(m.Z || m.default || m).slice(0))(containing("@font-face"))')
    css, fonts = _only_woff2(str(css))
    ours = (files("kernelbook.site") / "assets" / "math.css").read_text(encoding="utf-8")
    found = {STYLESHEET_URI: (css + ours).encode()}
    for path in _package_files():
        if path.name in fonts:
            found[f"{FOLDER}/{fonts[path.name]}"] = path.read_bytes()
    return found


def _only_woff2(css: str) -> tuple[str, dict[str, str]]:
    """KaTeX's CSS with one readable font file per face, and the names those had before."""
    names: dict[str, str] = {}

    def face(match: re.Match[str]) -> str:
        rule = match[0]
        family, weight, style = (
            re.search(rf"{name}:\s*'?(\w+)", rule)[1]  # type: ignore[index]
            for name in ("font-family", "font-weight", "font-style")
        )
        hashed = re.search(r"url\(([^)]+\.woff2)\)", rule)[1]  # type: ignore[index]
        names[hashed] = f"{family}-{weight}-{style}.woff2"
        source = f"src: url({names[hashed]}) format('woff2');\n  font-display: swap;"
        return re.sub(r"src:[^;]*;", source, rule)

    css = re.sub(r"@font-face\s*\{[^}]*\}", face, css)
    return re.sub(r"/\*.*?\*/\s*", "", css, flags=re.DOTALL), names


@cache
def _context() -> Any:
    """The one QuickJS context of this process, with KaTeX loaded (about 30 ms)."""
    context = quickjs.Context()
    context.set_max_stack_size(_STACK_BYTES)
    context.eval(_BEFORE)
    for path in _package_files():
        if path.suffix == ".js" and "webpackChunk" in (script := path.read_text("utf-8")):
            if path.name.startswith("remoteEntry"):
                continue  # webpack's own start-up code, which would look for a browser
            context.eval(script)
    context.eval(_RUNTIME)
    return context


@cache
def _package_files() -> tuple[Path, ...]:
    """The files of KaTeX's bundle, wherever pip has put them."""
    return tuple(_located())


def _located() -> Iterator[Path]:
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise RuntimeError(f"formulas need the package {PACKAGE}: pip install -e .") from None
    for file in package.files or ():
        if "static" in PurePosixPath(str(file)).parts:
            yield Path(str(package.locate_file(file))).resolve()
