"""Dirty serving: what shows a changed kernel or record counts as changed, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelbook.site import fresh

ARTICLE = "docs/zh/01-first.md"
OTHER = "docs/zh/02-second.md"
SOURCE = "docs/zh/source/01_tiny/scale.md"
RESULTS = "docs/zh/results/01_tiny.md"
DEVICE = "docs/zh/devices/nvidia-h200.md"


@pytest.fixture
def site(tiny: Path) -> Path:
    texts = {
        ARTICLE: "/// excerpt | 01_tiny/scale.cu#store\n///\n\n{= measured.scale_1k.x.y =}\n",
        OTHER: "# T\n\n只有文字。\n",
    }
    for name, text in texts.items():
        (tiny / name).write_text(text, encoding="utf-8")
    (tiny / DEVICE).parent.mkdir(parents=True, exist_ok=True)
    (tiny / DEVICE).write_text("/// device | nvidia-h200\n///\n", encoding="utf-8")
    return tiny


def touched(site: Path, changed: str) -> set[str]:
    fresh.refresh(site, "zh", site / "cache")
    file = site / changed
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))
    pages = fresh.refresh(site, "zh", site / "cache")
    return {page.relative_to(site).as_posix() for page in pages}


def test_nothing_changed_touches_nothing(site: Path) -> None:
    fresh.refresh(site, "zh", site / "cache")
    assert fresh.refresh(site, "zh", site / "cache") == ()


def test_a_kernel_touches_its_page_its_results_and_who_quotes_it(site: Path) -> None:
    assert touched(site, "kernels/01_tiny/scale.cu") == {ARTICLE, SOURCE, RESULTS}


def test_a_record_touches_who_names_its_experiment_and_its_card(site: Path) -> None:
    record = "results/data/measured/nvidia-h200/scale_1k.json"
    assert touched(site, record) == {ARTICLE, RESULTS, DEVICE}


def test_touched_pages_are_newer_and_say_the_same(site: Path) -> None:
    page = site / SOURCE
    before, text = page.stat().st_mtime_ns, page.read_text(encoding="utf-8")
    touched(site, "kernels/01_tiny/scale.cu")
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
