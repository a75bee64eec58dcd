"""Rendered fragments kept on disk by the hash of what they were rendered from.

An entry is the text with its own checksum in front: an entry that was cut short, edited or
written by something else does not verify and is rendered again. Entries are written beside
and renamed, so two builds may share the folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def default_root() -> Path:
    """``.cache/kernelbook`` of the repository we run in, else the user's cache folder."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "mkdocs.yml").is_file() or (folder / ".git").exists():
            return folder / ".cache" / "kernelbook"
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "kernelbook"


def key_of(*parts: str) -> str:
    """A name for what is fully determined by ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def cached(root: Path, key: str, render: Callable[[], str]) -> str:
    """The entry ``key`` below ``root``, rendered and stored when it is missing or damaged.

    A folder that cannot be written costs the next build its time, never this one its result.
    """
    path = root / key[:2] / key
    try:
        checksum, _, text = path.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        checksum, text = "", ""
    if checksum and checksum == hashlib.sha256(text.encode()).hexdigest():
        return text
    text = render()
    _store(path, text)
    return text


def _store(path: Path, text: str) -> None:
    entry = f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as beside:
            beside.write(entry.encode())
        os.replace(beside.name, path)
    except OSError:
        return
