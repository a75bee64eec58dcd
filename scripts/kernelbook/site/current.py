"""Whether a site that stands is the one these sources would give.

The fingerprint covers the content of everything a page is made from: articles, theme,
configuration, kernels, results (a reader's own, too), this package, and the builders' versions.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from kernelbook.codec import write_atomically

INPUTS = ("docs", "kernels", "scripts/kernelbook", "mkdocs.yml", "mkdocs.en.yml")
BUILDERS = ("mkdocs", "mkdocs-material", "mkdocs-jupyter", "pymdown-extensions", "mermaidx")
SETTINGS = ("SITE_URL", "SITE_URL_EN", "KERNELBOOK_STRICT")


def is_current(root: Path, dest: Path, inputs: str) -> bool:
    """Whether ``dest`` holds both languages, built from inputs of this fingerprint."""
    pages = (dest / "index.html", dest / "en" / "index.html")
    if not all(page.is_file() for page in pages):
        return False
    try:
        return _stamp(root, dest).read_text(encoding="utf-8") == inputs
    except OSError:
        return False


def remember(root: Path, dest: Path, inputs: str) -> None:
    """Note the fingerprint, taken before the build, of what ``dest`` was built from."""
    write_atomically(_stamp(root, dest), inputs)


def forget(root: Path, dest: Path) -> None:
    """Note that ``dest`` is no longer what it was built as: some of its pages are others now."""
    _stamp(root, dest).unlink(missing_ok=True)


def fingerprint(root: Path, results: str) -> str:
    """Hash of the content of every input, of the builders' versions and of the settings."""
    digest = hashlib.sha256()
    for name in BUILDERS:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for name in SETTINGS:
        digest.update(f"{name}={os.environ.get(name, '')}\n".encode())
    folders = [root / name for name in INPUTS] + [root / (results or "results")]
    for path in _files(folders):
        digest.update(f"{path}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_file():
            yield place
        for folder, inner, names in os.walk(place):
            inner[:] = sorted(n for n in inner if n not in ("__pycache__", ".ipynb_checkpoints"))
            yield from (Path(folder) / name for name in sorted(names))


def _stamp(root: Path, dest: Path) -> Path:
    name = hashlib.sha256(str(dest.resolve()).encode()).hexdigest()[:16]
    return root / ".cache" / "kernelbook" / "site" / name
