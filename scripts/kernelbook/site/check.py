"""The strict check of the site: everything that would make a page wrong, with file and line."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelbook import catalog as catalogs
from kernelbook.devices import sheets
from kernelbook.errors import KernelbookError
from kernelbook.report.check import problems as record_problems
from kernelbook.site import links, notebooks, outline, quotes, series, stubs
from kernelbook.site.build import build
from kernelbook.site.place import line_with

_LEFT = re.compile(r"\{[=?]\s|\s[=?]\}|[\ue0f0\ue0f1]")
# [words][name] and [^name], which Markdown leaves as they are where it knows no such name; a[i][j]
# is a subscript.
_UNDEFINED = re.compile(r"(?<![A-Za-z0-9_\]])\[[^\[\]\n]+\]\[[^\[\]\n]*\]|\[\^[^\[\]\n]+\]")


def check(root: Path, *, dest: Path | None = None, results: str = "") -> tuple[str, ...]:
    """Every problem of the site, one line each; builds both languages, into ``dest`` if given."""
    root = root.resolve()
    found = [
        *record_problems_of(root, results),
        *pair_problems(root),
        *image_problems(root),
        *page_problems(root),
        *notebooks.problems(root),
    ]
    with tempfile.TemporaryDirectory(prefix="kernelbook-") as folder:
        site = dest or Path(folder) / "site"
        outcome = build(root, site, strict=True, results=results)
        # A table that every page reads is told once, not by every page again.
        told = tuple(f": {line}" for line in found if line.startswith("docs/series.toml:"))
        found += [line for line in outcome.said if not line.endswith(told)]
        if outcome.whole:
            found += built_problems(root, site, said=outcome.said)
    return tuple(dict.fromkeys(found))


def record_problems_of(root: Path, results: str) -> Iterator[str]:
    """Stale or missing numbers of ours."""
    try:
        catalog = catalogs.load(root)
        folder = root / (results or "results")
        for problem in record_problems(root, folder, catalog, sheets()):
            if problem.serious:
                yield str(problem)
    except KernelbookError as error:
        yield str(error)


def pair_problems(root: Path) -> Iterator[str]:
    """Pages without their other language, and pairs that differ."""
    docs = {language: root / "docs" / language for language in stubs.LANGUAGES}
    uris = {
        language: {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
        for language, folder in docs.items()
    }
    for here, there in (("zh", "en"), ("en", "zh")):
        for uri in sorted(uris[here] - uris[there]):
            yield f"{_shown(root, docs[here] / uri)}:1: there is no docs/{there}/{uri}"
    for uri in sorted(uris["zh"] & uris["en"]):
        first, second = (outline.read(docs[language] / uri) for language in ("zh", "en"))
        for file, line, sentence in outline.differences(first, second):
            yield f"{_shown(root, file)}:{line}: {sentence}"


def image_problems(root: Path) -> Iterator[str]:
    for language in stubs.LANGUAGES:
        for file in sorted((root / "docs" / language).rglob("*.md")):
            for line in outline.read(file).images_without_alt:
                yield f"{_shown(root, file)}:{line}: an image has no alternative text"


def page_problems(root: Path) -> Iterator[str]:
    """Stubs that are missing or have lost their kernel, and articles outside the series."""
    try:
        catalog = catalogs.load(root)
        whole = series.load(root)
    except KernelbookError as error:
        yield str(error).replace(f"{root.as_posix()}/", "")
        return
    for path in stubs.expected(root, catalog):
        if not path.is_file():
            yield f"{_shown(root, path)}: is missing (run scripts/run_all.py, which creates it)"
    for path in stubs.orphans(root, catalog):
        yield f"{_shown(root, path)}:1: shows a file or chapter that is gone (delete the page)"
    for language in stubs.LANGUAGES:
        for article in quotes.articles(root / "docs" / language):
            slug = article.uri.removesuffix(".md")
            if re.match(r"\d\d-", slug) and whole.entry(slug) is None:
                yield f"docs/{language}/{article.uri}:1: docs/series.toml does not list {slug!r}"


def built_problems(root: Path, site: Path, said: Sequence[str] = ()) -> Iterator[str]:
    """What only the built pages show: dead links, requests elsewhere, unread tokens.

    ``said``: what MkDocs has said of links already. What the theme puts around every article (the
    navigation, the language switch) is told once.
    """
    pages = links.read(site)
    around: dict[str, list[str]] = {}
    for page, link, wrong in links.dead(site, pages):
        if link not in page.own:
            target = "#".join(filter(None, links.resolve(page.path, link)))
            around.setdefault(f"{target}: {wrong}", []).append(_source(root, page.path, ""))
            continue
        place = _source(root, page.path, link)
        if not any(line.startswith(f"{place}: ") and f"'{link}'" in line for line in said):
            yield f"{place}: the link {link} is dead: {wrong}"
    for what, places in around.items():
        more = f" (so do {len(places) - 1} more pages)" if len(places) > 1 else ""
        yield f"{places[0]}: its navigation leads to {what}{more}"
    for page in pages.values():
        for link in page.elsewhere:
            yield f"{_source(root, page.path, link)}: the page would ask another server for {link}"
        if match := _LEFT.search("".join(page.text)):
            place = _source(root, page.path, match.group().strip())
            yield f"{place}: a number or claim was not read (is it inside raw HTML?)"
        yield from _undefined(root, page)


def _undefined(root: Path, page: links.Page) -> Iterator[str]:
    """References that were left as text; not in a notebook, whose page repeats its code as text."""
    for match in _UNDEFINED.finditer("".join(page.text)):
        place = _source(root, page.path, match.group())
        if ".ipynb:" not in place:
            yield f"{place}: {match.group()} refers to something that is not defined"


def _source(root: Path, path: str, link: str) -> str:
    """``file:line`` of the page a built file came from, as near as its text tells."""
    language, _, rest = path.partition("/") if path.startswith("en/") else ("zh", "", path)
    uri = rest.removesuffix("index.html").strip("/")
    docs = root / "docs" / language
    stems = (f"{uri}.md", f"{uri}.ipynb", f"{uri}/index.md", "index.md")
    for file in (docs / stem for stem in stems):
        if uri and file == docs / "index.md":
            break
        if file.is_file():
            lines = file.read_text(encoding="utf-8").splitlines()
            name = link.rstrip("/").rsplit("/", 1)[-1]
            for wanted in (link, name, name.partition("#")[2]):
                if wanted and (line := line_with(lines, wanted)):
                    return f"{_shown(root, file)}:{line}"
            return f"{_shown(root, file)}:1"
    return path


def _shown(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
