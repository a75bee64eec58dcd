"""A site is built again when, and only when, something it is made from has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kernelbook.site import __main__ as command
from kernelbook.site import current, serve
from kernelbook.site.build import Outcome

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
    current.remember(tmp_path, tmp_path / "site", current.fingerprint(tmp_path, ""))
    return tmp_path


def is_current(root: Path, site: str = "site") -> bool:
    return current.is_current(root, root / site, current.fingerprint(root, ""))


def test_a_site_of_unchanged_sources_is_current(root: Path) -> None:
    assert is_current(root)


def test_a_site_somewhere_else_is_not(root: Path) -> None:
    assert not is_current(root, "elsewhere")


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
    assert not is_current(root)


def test_a_setting_makes_it_old(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert not is_current(root)


class Builder:
    """In the place of the build: both front pages, and how often; ``meanwhile`` while it runs."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.times = 0
        self.meanwhile = meanwhile

    def __call__(self, root: Path, dest: Path, *, results: str) -> Outcome:
        self.times += 1
        for page in (dest / "index.html", dest / "en" / "index.html"):
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text("built", encoding="utf-8")
        self.meanwhile()
        return Outcome((), True)


def run(root: Path, name: str) -> int:
    return command.main(["--root", str(root), name])


def test_nothing_is_built_twice_from_the_same(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder()
    monkeypatch.setattr(command, "build", builder)
    assert (run(tiny, "build"), run(tiny, "build")) == (0, 0)
    assert builder.times == 1


def test_a_change_during_a_build_is_in_the_next_one(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tiny / "docs" / "zh" / "index.md"
    builder = Builder(lambda: page.write_text("changed meanwhile", encoding="utf-8"))
    monkeypatch.setattr(command, "build", builder)
    assert (run(tiny, "build"), run(tiny, "build"), run(tiny, "build")) == (0, 0, 0)
    assert builder.times == 2  # the second one changes nothing


def test_pages_built_while_serving_are_built_again_when_their_change_is_undone(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Workers:
        def __init__(self, root: Path, dest: Path, results: str) -> None:
            self.page = dest / "index.html"

        def build(self, languages: Iterable[str]) -> bool:
            return self.page.write_text("of an edit", encoding="utf-8") > 0

        def close(self) -> None:
            return

    def serving(root: Path, site: Path, port: int, rebuild: serve.Rebuild, results: str) -> None:
        assert rebuild(("zh",))  # of an edit that is undone after the server has stopped

    builder = Builder()
    monkeypatch.setattr(command, "build", builder)
    monkeypatch.setattr(serve, "Workers", Workers)
    monkeypatch.setattr(serve, "serve", serving)
    assert (run(tiny, "serve"), run(tiny, "build")) == (0, 0)
    assert builder.times == 2
    assert (tiny / "site" / "index.html").read_text(encoding="utf-8") == "built"
