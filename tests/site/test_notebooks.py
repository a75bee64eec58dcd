"""Notebooks: paired, clean, executed at build, and no page that asks another server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import site_project

from kernelbook.site import links, notebooks
from kernelbook.site.build import build


def notebook(*cells: dict[str, Any]) -> str:
    kept = []
    for place, cell in enumerate(cells):
        extra = {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
        kept.append({"id": f"c{place}", "metadata": {}, **extra, **cell})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(
        {"cells": kept, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5},
        ensure_ascii=False,
    )


def code(text: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": [text], **more}


def words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": [text]}


def put(root: Path, zh: str, en: str) -> None:
    for language, text in (("zh", zh), ("en", en)):
        file = root / "docs" / language / "notebooks" / "one.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_the_same_code_with_other_words_and_comments_is_a_pair(tmp_path: Path) -> None:
    put(
        tmp_path,
        notebook(words("# 标题"), code('LANGUAGE = "zh"\nx = 1  # 一')),
        notebook(words("# Title"), code('LANGUAGE = "en"\nx = 1  # one')),
    )
    assert list(notebooks.problems(tmp_path)) == []


@pytest.mark.parametrize(
    ("zh", "says"),
    [
        (notebook(words("# 标题"), code("x = 2")), "cell 2 is not that of docs/en"),
        (notebook(words("## 标题"), code("x = 1")), "cell 1 is not that of docs/en"),
        (notebook(words("# 标题")), "1 cells, docs/en/notebooks/one.ipynb has 2"),
        (notebook(words("# 标题"), code("x = 1", execution_count=3)), "cell 2 holds what a run"),
        ("{", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_pair_is_said(tmp_path: Path, zh: str, says: str) -> None:
    put(tmp_path, zh, notebook(words("# Title"), code("x = 1")))
    assert any(says in line for line in notebooks.problems(tmp_path))


def test_a_cell_that_fails_fails_the_build_and_names_the_notebook(tmp_path: Path) -> None:
    root = site_project.with_site(site_project.make(tmp_path / "project"))
    for language in ("zh", "en"):
        (root / "docs" / language / "01-first.md").write_text("# T\n", encoding="utf-8")
    put(root, notebook(words("# 标题")), notebook(words("# Title"), code("1 / 0")))
    outcome = build(root, tmp_path / "site")
    assert not outcome.whole
    assert outcome.said[-1].startswith(
        "docs/en/notebooks/one.ipynb:1: a cell fails: ZeroDivisionError"
    )
    assert not (tmp_path / "site").exists()


def test_the_line_of_the_file_that_failed_is_the_one_ipython_points_at(tmp_path: Path) -> None:
    file = tmp_path / "one.ipynb"
    file.write_text('{"cells": [\n"x = 1\\n",\n"print(\\"甲\\", y)\\n"\n]}', encoding="utf-8")
    pointed = "\x1b[31mNameError\x1b[39m\nCell In[1], line 2\n      1 x = 1\n"
    pointed += '----> 2 \x1b[38;5;28mprint\x1b[39m("甲", y)\n\nNameError: name'
    assert notebooks.failed_line(file, pointed) == 3
    assert notebooks.failed_line(file, "nothing of the kind") == 1


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_this_repositorys_notebook_shows_pictures_and_can_be_taken_along(
    built_site: Path, prefix: str
) -> None:
    folder = built_site / f"{prefix}notebooks/what-a-kernel-touches"
    html = (folder / "index.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<svg[^>]* role="img"', html)
    assert len(pictures) == 8  # sectors four times, banks and divergence twice each
    for elsewhere in ("cdn", "jsdelivr", "mathjax", "unpkg"):
        assert elsewhere not in html.lower()
    assert len(html) < 300_000
    taken = json.loads((folder / "what-a-kernel-touches.ipynb").read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in taken["cells"])
    assert list(notebooks.problems(site_project.ROOT)) == []


def test_a_chinese_heading_has_a_name_that_links_lead_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = pytest.importorskip("mkdocs_jupyter.convert")
    monkeypatch.setattr(convert, "slugify", convert.slugify)  # put back after the test
    notebooks.name_headings()
    html = convert.add_anchor_lower_id("<h2>一行 Value 多少？</h2>")
    named = quote("一行-value-多少")
    assert f'id="{named}"' in html
    assert f'href="#{named}"' in html
    (tmp_path / "index.html").write_text(f'{html}<a href="#nowhere">x</a>', encoding="utf-8")
    assert [link for _, link, _ in links.dead(tmp_path)] == ["#nowhere"]
