"""A site is built again when, and only when, something it is made from has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelbook.site import current

FILES = (
    "docs/zh/index.md",
    "kernels/01_a/a.cu",
    "scripts/kernelbook/x.py",
    "mkdocs.yml",
    "mkdocs.en.yml",
    "results/data/a.json",
    "site/index.html",
    "site/en/index.html",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    current.remember(tmp_path, tmp_path / "site", "")
    return tmp_path


def test_a_site_of_unchanged_sources_is_current(root: Path) -> None:
    assert current.is_current(root, root / "site", "")


def test_a_site_somewhere_else_is_not(root: Path) -> None:
    assert not current.is_current(root, root / "elsewhere", "")


@pytest.mark.parametrize(
    "change",
    [
        lambda r: (r / "docs/zh/index.md").write_text("changed"),
        lambda r: (r / "docs/zh/new.md").write_text("new"),
        lambda r: (r / "kernels/01_a/a.cu").write_text("changed"),
        lambda r: (r / "results/data/a.json").unlink(),
        lambda r: (r / "scripts/kernelbook/x.py").write_text("changed"),
        lambda r: (r / "mkdocs.en.yml").write_text("changed"),
        lambda r: (r / "site/en/index.html").unlink(),
    ],
)
def test_any_change_of_its_sources_makes_it_old(
    root: Path, change: Callable[[Path], object]
) -> None:
    change(root)
    assert not current.is_current(root, root / "site", "")


def test_a_setting_makes_it_old(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert not current.is_current(root, root / "site", "")
