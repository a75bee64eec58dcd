"""The one-line pages that exist because a kernel, a chapter or a device with records does.

They are committed, so that MkDocs, an editor and a reader of the repository see every page of the
site as a file; `ensure` writes those that are missing. Needs nothing of the site's own libraries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from kernelbook.catalog import Catalog
from kernelbook.codec import write_atomically
from kernelbook.devices import sheets

LANGUAGES = ("zh", "en")
_SOURCES = {"zh": "源码", "en": "Source code"}
_DEVICES = {"zh": "设备", "en": "Devices"}
_OWN = {"zh": "本机", "en": "This machine"}
COUNTERS = "results/counters.md"
# A word is explained in an article and repeated in lists: the search puts the lists after it. It
# counts a word of a heading a thousandfold, so a heading of a list counts like text of an article.
BEHIND = "---\nsearch:\n  boost: 0.001\n---\n\n"
_RESULTS = {"zh": "结果", "en": "Results"}


def expected(root: Path, catalog: Catalog) -> dict[Path, str]:
    """Path and text of every stub of this tree, both languages."""
    return {
        root / "docs" / language / uri: text
        for language in LANGUAGES
        for uri, text in _pages(root, catalog, language)
    }


def ensure(root: Path, catalog: Catalog) -> tuple[Path, ...]:
    """Write the stubs that are missing and return them; existing ones are left alone."""
    written = []
    for path, text in expected(root, catalog).items():
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
            written.append(path)
    return tuple(written)


def published_devices(root: Path) -> tuple[str, ...]:
    """Slugs of the cards with published records, sorted."""
    data = root / "results" / "data"
    found = {
        folder.name
        for grade in ("measured", "cited")
        for folder in (data / grade).glob("*/")
        if any(folder.glob("*.json"))
    }
    return tuple(sorted(found))


def orphans(root: Path, catalog: Catalog) -> tuple[Path, ...]:
    """Stubs whose kernel or chapter is gone, sorted."""
    wanted = expected(root, catalog)
    found = (
        path
        for language in LANGUAGES
        for folder in ("results", "source", "devices")
        for path in (root / "docs" / language / folder).rglob("*.md")
    )
    return tuple(sorted(p for p in found if p not in wanted and _is_stub(p)))


def _is_stub(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(
        f"/// {block} |" in text for block in ("source", "results-page", "counters-page", "device")
    )


def _pages(root: Path, catalog: Catalog, language: str) -> Iterator[tuple[str, str]]:
    for chapter in catalog.chapters:
        yield f"results/{chapter}.md", f"{BEHIND}/// results-page | {chapter}\n///\n"
    if any((root / "results" / "data" / "counters").glob("*.json")):
        yield COUNTERS, f"{BEHIND}/// counters-page |\n///\n"
    yield "results/index.md", f"{BEHIND}# {_RESULTS[language]}\n\n/// chapters |\n///\n"
    yield "devices/index.md", f"# {_DEVICES[language]}\n\n/// devices |\n///\n"
    yield "devices/own.md", f"# {_OWN[language]}\n\n/// own-devices |\n///\n"
    for slug in published_devices(root):
        sheet = sheets().devices.get(slug)
        title = json.dumps(sheet.name if sheet else slug, ensure_ascii=False)
        head = f"---\ntitle: {title}\nhide:\n  - toc\n---\n\n"
        yield f"devices/{slug}.md", f"{head}/// device | {slug}\n///\n"
    yield "source/index.md", f"{BEHIND}# {_SOURCES[language]}\n\n/// sources |\n///\n"
    for source in catalog.sources():
        path = source.relative_to(root / "kernels").as_posix()
        # Source pages stay out of the search: indexing them would cost more than all articles.
        head = f"---\ntitle: {source.name}\nhide:\n  - toc\nsearch:\n  exclude: true\n---\n\n"
        yield f"source/{path.removesuffix('.cu')}.md", f"{head}/// source | {path}\n///\n"
