"""Stub pages: written where missing, left alone where present, missed when their kernel goes."""

from __future__ import annotations

from pathlib import Path

import site_project

from kernelbook import catalog
from kernelbook.site import stubs


def test_every_source_and_chapter_has_a_page_in_both_languages(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    for language in ("zh", "en"):
        docs = root / "docs" / language
        results = (docs / "results" / "01_tiny.md").read_text(encoding="utf-8")
        assert results == stubs.BEHIND + "/// results-page | 01_tiny\n///\n"
        source = (docs / "source" / "01_tiny" / "scale.md").read_text(encoding="utf-8")
        assert source.endswith("/// source | 01_tiny/scale.cu\n///\n")
        assert "search:\n  exclude: true\n" in source  # source pages stay out of the search
        assert (docs / "source" / "index.md").is_file()
        assert (docs / "results" / "index.md").is_file()


def test_compared_counters_have_a_page_as_soon_as_there_are_some(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    data = root / "results" / "data" / "counters" / "01_tiny.json"
    data.parent.mkdir(parents=True)
    data.write_text("[]\n", encoding="utf-8")
    written = stubs.ensure(root, catalog.load(root))
    pages = [root / "docs" / language / "results" / "counters.md" for language in ("zh", "en")]
    assert list(written) == pages
    assert pages[0].read_text(encoding="utf-8") == stubs.BEHIND + "/// counters-page |\n///\n"
    data.unlink()
    assert set(stubs.orphans(root, catalog.load(root))) == set(pages)


def test_only_what_is_missing_is_written(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    tree = catalog.load(root)
    assert stubs.ensure(root, tree) == ()
    mine = root / "docs" / "en" / "source" / "01_tiny" / "scale.md"
    mine.write_text("mine\n", encoding="utf-8")
    gone = root / "docs" / "zh" / "source" / "01_tiny" / "scale.md"
    gone.unlink()
    assert stubs.ensure(root, tree) == (gone,)
    assert mine.read_text(encoding="utf-8") == "mine\n"


def test_a_new_kernel_file_gets_a_page_also_in_a_folder_below(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    below = root / "kernels" / "01_tiny" / "baselines" / "cub_sum.cu"
    below.parent.mkdir()
    below.write_text("// a baseline\n", encoding="utf-8")
    written = stubs.ensure(root, catalog.load(root))
    assert [path.relative_to(root / "docs").as_posix() for path in written] == [
        "zh/source/01_tiny/baselines/cub_sum.md",
        "en/source/01_tiny/baselines/cub_sum.md",
    ]


def test_stubs_whose_kernel_is_gone_are_named_and_articles_are_not(tmp_path: Path) -> None:
    root = site_project.make(tmp_path)
    old = root / "docs" / "zh" / "source" / "01_tiny" / "old.md"
    old.write_text("/// source | 01_tiny/old.cu\n///\n", encoding="utf-8")
    (root / "docs" / "zh" / "results" / "about.md").write_text("# About\n", encoding="utf-8")
    assert stubs.orphans(root, catalog.load(root)) == (old,)


def test_this_repositorys_stubs_are_all_there(root: Path) -> None:
    tree = catalog.load(root)
    missing = [path for path in stubs.expected(root, tree) if not path.is_file()]
    assert missing == []
    assert stubs.orphans(root, tree) == ()
