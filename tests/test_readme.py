"""What the READMEs tell a reader to type exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernelbook.runner.options import parse

READMES = ("README.md", "README.zh.md")


@pytest.mark.parametrize("name", READMES)
def test_every_make_target_of_the_readme_is_in_the_makefile(root: Path, name: str) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    used = set(re.findall(r"\bmake ([a-z]+)\b", (root / name).read_text(encoding="utf-8")))
    assert {"run", "serve", "test"} <= used
    assert used <= targets


@pytest.mark.parametrize("name", READMES)
def test_every_option_of_the_readme_is_one_of_the_command(root: Path, name: str) -> None:
    text = (root / name).read_text(encoding="utf-8")
    options = set(re.findall(r"(?:run_all\.py|…) (--[a-z-]+(?: [\w]+)*)`", text))
    assert len(options) >= 8
    for option in options - {"--results DIR"}:
        parse(root, option.split())


@pytest.mark.parametrize("name", READMES)
def test_every_file_a_readme_links_to_is_there(root: Path, name: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", (root / name).read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (root / link).exists(), link


def test_the_two_readmes_tell_the_same(root: Path) -> None:
    english, chinese = ((root / n).read_text(encoding="utf-8") for n in READMES)
    assert english.count("\n## ") == chinese.count("\n## ")
    blocks = r"^(make \w+|pip install[^#\n]*?|python \S+|mkdocs \w+)\s"
    assert re.findall(blocks, english, re.M) == re.findall(blocks, chinese, re.M)


@pytest.mark.parametrize("name", READMES)
def test_the_kernel_that_the_readme_runs_in_python_prints_its_counts(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (root / name).read_text("utf-8"), re.S)
    monkeypatch.chdir(root)
    names: dict[str, Any] = {}
    exec(program, names)
    assert (names["c"] == 2).all()
    printed = capsys.readouterr().out
    # 1,000 floats of a and of b, 8 a sector.
    assert re.search(r"global_load_sectors +250\n", printed)
    assert printed.endswith("no findings\n")


def test_ci_calls_make_test_and_nothing_else_of_ours(root: Path) -> None:
    script = (root / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in script if line.startswith("make")] == ["make test"]


def test_the_lock_pins_exact_versions_and_names_no_address(root: Path) -> None:
    for line in (root / "requirements.lock").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9._-]+==[\w.]+", line), line
