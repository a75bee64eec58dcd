"""Dirty serving: a page that shows a changed record or kernel is built as in a clean build."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import site_project

from kernelbook.site import fresh

SOURCE = "docs/zh/source/01_tiny/scale.md"


def touched(root: Path, changed: str) -> set[str]:
    fresh.refresh(root, "zh", root / "cache")
    file = root / changed
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))
    pages = fresh.refresh(root, "zh", root / "cache")
    return {page.relative_to(root).as_posix() for page in pages}


def test_nothing_changed_touches_nothing(tiny: Path) -> None:
    fresh.refresh(tiny, "zh", tiny / "cache")
    assert fresh.refresh(tiny, "zh", tiny / "cache") == ()


def test_touched_pages_are_newer_and_say_the_same(tiny: Path) -> None:
    page = tiny / SOURCE
    before, text = page.stat().st_mtime_ns, page.read_text(encoding="utf-8")
    assert SOURCE in touched(tiny, "kernels/01_tiny/scale.cu")
    assert page.stat().st_mtime_ns > before
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["mkdocs", "serve", "--dirty"], True),
        (["mkdocs", "serve", "-f", "mkdocs.en.yml", "--dirty"], True),
        (["mkdocs", "serve"], False),
        (["mkdocs", "build", "--dirty"], False),
    ],
)
def test_only_a_dirty_serve_touches(arguments: list[str], expected: bool) -> None:
    assert fresh.is_dirty_serve(arguments) is expected


# ---- a serve as MkDocs runs it -------------------------------------------------------------

FIRST = "---\n---\n\n# 第一篇\n\n{= measured.scale_1k.scale.time =}\n\n## 甲\n\n旧词。\n"
HOME = "# 首页\n\n{= measured.scale_1k.scale.time =}\n"
SECOND = "# 另一篇\n\n只有文字。\n"


@pytest.fixture
def serving(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Builds the Chinese site of a project as `mkdocs serve --dirty` does, or "clean"."""
    root = site_project.with_site(tiny)
    config = root / "mkdocs.yml"
    text = config.read_text(encoding="utf-8")
    text = text.replace("\n  - Results:", "\n  - Second: 02.md\n  - Results:")
    config.write_text(text, encoding="utf-8")
    for name, content in (("01-first.md", FIRST), ("index.md", HOME), ("02.md", SECOND)):
        (root / "docs" / "zh" / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["mkdocs", "serve", "--dirty"])
    logging.getLogger("jieba").setLevel(logging.WARNING)
    started = []

    def run(kind: str) -> Path:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        if kind == "clean":
            monkeypatch.setattr("sys.argv", ["mkdocs", "build"])
        loaded = load_config(str(config), site_dir=str(root / kind))
        if not started or kind == "clean":
            loaded.plugins.on_startup(command="serve", dirty=kind == "dirty")
            started.append(kind)
        build(loaded, dirty=kind == "dirty")
        return root / kind

    return run


def pages_of(site: Path) -> dict[str, str]:
    return {
        path.relative_to(site).as_posix(): path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
    }


def searched(site: Path) -> dict[str, str]:
    """What the search knows, by place, without the marks between Chinese words."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    return {doc["location"]: doc["text"].replace("\u200b", "") for doc in index["docs"]}


def test_after_a_record_changed_every_page_is_as_in_a_clean_build(
    tiny: Path, serving: Callable[[str], Path]
) -> None:
    before = pages_of(serving("dirty"))
    time.sleep(0.05)
    site_project.measured(tiny, {"scale": 7.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    dirty = pages_of(serving("dirty"))
    changed = {name for name, text in dirty.items() if text != before[name]}
    device = "devices/nvidia-h200/index.html"
    assert changed == {"index.html", "01-first/index.html", "results/01_tiny/index.html", device}
    clean = pages_of(serving("clean"))
    assert set(dirty) == set(clean)
    for name, text in clean.items():
        assert dirty[name].splitlines() == text.splitlines(), name


def test_pages_that_show_a_changed_record_keep_what_the_search_knows(
    tiny: Path, serving: Callable[[str], Path]
) -> None:
    before = searched(serving("dirty"))
    assert "旧词" in str(before)
    time.sleep(0.05)
    site_project.measured(tiny, {"scale": 7.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    assert searched(serving("dirty")) == before


def test_an_article_edited_before_is_only_touched_by_a_record(
    tiny: Path, serving: Callable[[str], Path]
) -> None:
    serving("dirty")
    time.sleep(0.05)
    article = tiny / "docs" / "zh" / "01-first.md"
    article.write_text(FIRST.replace("旧词", "新词"), encoding="utf-8")
    serving("dirty")
    time.sleep(0.05)
    site_project.measured(tiny, {"scale": 7.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    serving("dirty")
    assert fresh.is_only_touched(article, "zh")


def test_the_search_reads_an_edited_article_again(
    tiny: Path, serving: Callable[[str], Path]
) -> None:
    before = searched(serving("dirty"))
    time.sleep(0.05)
    article = tiny / "docs" / "zh" / "01-first.md"
    article.write_text(FIRST.replace("旧词", "新词"), encoding="utf-8")
    # A record that it shows changes at the same time.
    site_project.measured(tiny, {"scale": 7.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    now = searched(serving("dirty"))
    assert "新词" in str(now)
    assert "旧词" not in str(now)
    assert set(now) == set(before)


def test_reading_the_configuration_looks_for_changes_once(
    tiny: Path, serving: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counting(root: Path, language: str) -> tuple[Path, ...]:
        calls.append(language)
        return ()

    monkeypatch.setattr(fresh, "refresh", counting)
    serving("dirty")
    assert calls == ["zh"]
