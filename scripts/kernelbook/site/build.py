"""Both sites from one command: Chinese at the root, English below /en/.

Each language is built by its own process into its own folder, and the result is put in place
whole: building the Chinese site would otherwise delete the English one, and an interrupted build
would leave half a site.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from kernelbook.errors import PageError
from kernelbook.site import context, fresh, notebooks
from kernelbook.site.place import line_with

CONFIGS = {"zh": "mkdocs.yml", "en": "mkdocs.en.yml"}
EXTENSION = "kernelbook.site.extension"
_SERVED = "site-served"
_LINK = re.compile(r"Doc file '(?P<uri>[^']+)' contains an? [\w ]*link '(?P<link>[^']+)'")
_NOT_IN_NAVIGATION = 'exist in the docs directory, but are not included in the "nav"'
_IN_NAVIGATION = re.compile(r"'(?P<uri>[^']+)' is included in the 'nav' configuration")
# What MkDocs says of a page besides the sentence that matters.
_PAGE = re.compile(r"Error (?:reading|building) page '(?P<page>[^']*)'")


@dataclass(frozen=True)
class Request:
    """One language's build. ``results``: the records' folder, "" for the configured one;
    ``dirty``: only pages newer than what stands at ``dest``."""

    root: Path
    language: str
    dest: Path
    strict: bool
    results: str = ""
    dirty: bool = False


@dataclass(frozen=True)
class Outcome:
    """Every warning and error, one line each, and whether the site is whole."""

    said: tuple[str, ...]
    whole: bool


def build(root: Path, dest: Path, *, strict: bool = False, results: str = "") -> Outcome:
    """Build both languages into ``dest``.

    ``dest`` is replaced only when both languages were built without an error. With ``strict`` a
    stale number of ours is an error; warnings are for the caller to judge. Raises PageError where
    ``dest`` cannot be written.
    """
    dest = dest.resolve()
    with _workshop(dest) as folder:
        work = Path(folder)
        requests = [
            Request(root.resolve(), language, work / language, strict, results)
            for language in CONFIGS
        ]
        outcomes = _run(requests)
        whole = all(outcome.whole for outcome in outcomes)
        if whole:
            (work / "en").rename(work / "zh" / "en")
            _replace(work / "zh", dest)
        return Outcome(tuple(line for outcome in outcomes for line in outcome.said), whole)


def _workshop(dest: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder beside ``dest`` to build in; raises PageError where there can be none."""
    try:
        dest.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=dest.parent, prefix=f".{dest.name}.")
    except OSError as error:
        raise PageError(f"cannot be built: {error.strerror or error}", file=dest) from error


def _run(requests: Sequence[Request]) -> list[Outcome]:
    # A fresh interpreter for each: the libraries below keep state that a fork would share.
    fresh_start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(requests), mp_context=fresh_start) as pool:
        return list(pool.map(build_one, requests))


def warm_up(request: Request) -> None:
    """Load in this process what a build will need."""
    os.chdir(request.root)
    fresh.outdated(request.root, request.language, _SERVED)
    load_config = import_module("mkdocs.config").load_config
    load_config(str(request.root / CONFIGS[request.language]))
    context.load(request.root, Path(request.results) if request.results else None)


def build_dirty(request: Request) -> Outcome:
    """Build the pages that have changed, or show what has, into the site that stands.

    The search keeps the index of the last whole build: a dirty one would know only its own pages,
    and does not read them for it.
    """
    docs = request.root / "docs" / request.language
    for page in fresh.outdated(request.root, request.language, _SERVED):
        uri = page.relative_to(docs).with_suffix("")
        built = request.dest / (uri.parent if uri.name == "index" else uri) / "index.html"
        if built.is_file():
            os.utime(built, (0, 0))  # so old that MkDocs builds the page again
    index = request.dest / "search" / "search_index.json"
    kept = index.read_bytes() if index.is_file() else None
    outcome = build_one(replace(request, dirty=True))
    if kept is not None:
        index.write_bytes(kept)
    return outcome


def build_one(request: Request) -> Outcome:
    """Build one language in this process."""
    import jieba
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort, MkDocsException
    from nbclient.exceptions import CellExecutionError

    jieba.setLogLevel(logging.WARNING)
    seen = _Collector(request)
    logger = logging.getLogger("mkdocs")
    logger.addHandler(seen)
    # The configuration names some files as seen from the repository; this process is ours alone.
    os.chdir(request.root)
    file = request.root / CONFIGS[request.language]
    if not file.is_file():
        return Outcome((f"{file}: no such file (run from the repository)",), False)
    try:
        config = load_config(str(file), site_dir=str(request.dest), **_address(request.language))
        options = config.mdx_configs.setdefault(EXTENSION, {})
        if request.strict:
            options["strict"] = options["keep_going"] = True
        options["search"] = not request.dirty
        if request.results:
            options["results"] = request.results
        config.plugins.on_startup(command="build", dirty=request.dirty)
        mkdocs_build(config, dirty=request.dirty)
        config.plugins.on_shutdown()
    except (Abort, MkDocsException) as error:
        return Outcome(tuple(seen.lines) or (f"{file.name}: {error}",), False)
    except CellExecutionError as error:
        place = f"docs/{request.language}/{seen.page}"
        place += f":{notebooks.failed_line(request.root / place, error.traceback)}"
        said = f"{place}: a cell fails: {error.ename}: {error.evalue}"
        return Outcome((*seen.lines, said), False)
    finally:
        logger.removeHandler(seen)
    return Outcome(tuple(seen.lines), not seen.failed)


def _address(language: str) -> dict[str, str]:
    """The site's address by $SITE_URL, that of the Chinese site; nothing where it is unset."""
    root = os.environ.get("SITE_URL", "").rstrip("/")
    if not root:
        return {}
    return {"site_url": f"{root}/" if language == "zh" else f"{root}/{language}/"}


class _Collector(logging.Handler):
    """Keeps warnings and errors as lines, each with the place that MkDocs leaves out."""

    def __init__(self, request: Request) -> None:
        super().__init__(logging.WARNING)
        self.request = request
        self.lines: list[str] = []
        self.failed = False  # whether there was an error, not only warnings
        self.page = ""  # the last one MkDocs could not read or build

    def emit(self, record: logging.LogRecord) -> None:
        if self.request.dirty and "'dirty' build" in record.getMessage():
            return  # that is what was asked for
        self.failed |= record.levelno >= logging.ERROR
        if match := _PAGE.match(record.getMessage()):
            self.page = match["page"]
            return
        for line in self._placed(record.getMessage().splitlines()):
            if line.strip() and line not in self.lines:
                self.lines.append(line)

    def _placed(self, lines: list[str]) -> list[str]:
        root, language = self.request.root, self.request.language
        if lines and _NOT_IN_NAVIGATION in lines[0]:
            pages = (line.strip().removeprefix("- ") for line in lines[1:])
            what = f"is not in the navigation of {CONFIGS[language]}"
            return [f"docs/{language}/{page}:1: {what}" for page in pages]
        return [with_line(root, language, line) for line in lines]


def with_line(root: Path, language: str, said: str) -> str:
    """MkDocs' sentence about a link or the navigation, with the file and line it does not say."""
    if match := _LINK.search(said):
        file = root / "docs" / language / match["uri"]
        wanted = match["link"]
    elif match := _IN_NAVIGATION.search(said):
        file = root / CONFIGS[language]
        wanted = match["uri"]
    else:
        return said
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    line = line_with(text.splitlines(), wanted)
    return f"{file.relative_to(root).as_posix()}:{line}: {said}" if line else said


def _replace(new: Path, dest: Path) -> None:
    """Put a folder in another's place; raises PageError where that is not possible."""
    try:
        if dest.exists():
            old = Path(tempfile.mkdtemp(dir=dest.parent, prefix=f".{dest.name}.old."))
            dest.rename(old / "site")
            new.rename(dest)
            shutil.rmtree(old, ignore_errors=True)
        else:
            new.rename(dest)
    except OSError as error:
        raise PageError(f"cannot be replaced: {error.strerror or error}", file=dest) from error
