"""What is drawn from docs/series.toml: order, graph, paths and tags, none of them dangling."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from site_project import convert

from kernelbook.errors import PageError
from kernelbook.site import series

TABLE = """\
[[tag]]
id = "memory"
zh = "访存"
en = "memory"

[[path]]
id = "short"
zh = "短路线"
en = "A short way"
about_zh = "给赶时间的人"
about_en = "for those in a hurry"
articles = ["01-first", "02-second"]

[[article]]
slug = "00-start"
zh = "导读"
en = "How to read"

[[article]]
slug = "01-first"
zh = "第一篇"
en = "The first"
tags = ["memory"]

[[article.leads_to]]
slug = "02-second"
zh = "因为"
en = "because"

[[article]]
slug = "02-second"
zh = "第二篇"
en = "The second"

[[article.requires]]
slug = "01-first"
zh = "需要"
en = "needs"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a page for the first two of its three articles."""
    root = site_project.make(tmp_path / "project")
    (root / "docs" / "series.toml").write_text(TABLE, encoding="utf-8")
    for language in ("zh", "en"):
        for name in ("00-start.md", "01-first.md"):
            (root / "docs" / language / name).write_text("# T\n", encoding="utf-8")
    return root


def test_written_articles_are_linked_and_planned_ones_are_named(project: Path) -> None:
    html = convert("/// series |\n///\n", project, uri="01-first.md", language="en")
    assert '<a href="../00-start/">How to read</a>' in html
    assert '<a href="../01-first/">The first</a>' in html
    assert re.search(r'row">The second</th><td></td><td>planned</td>', html)


def test_an_article_says_what_it_needs_and_its_tags_lead_to_their_list(project: Path) -> None:
    html = convert("/// navigation |\n///\n", project, uri="01-first.md", language="en")
    assert '<a class="kb-tag" href="../00-start/#tag-memory">memory</a>' in html
    assert "because" in html
    tags = convert("/// series-tags |\n///\n", project, uri="00-start.md", language="en")
    assert 'id="tag-memory"' in tags
    assert "The first" in tags


def test_a_path_lists_its_articles_in_order(project: Path) -> None:
    html = convert("/// series-paths |\n///\n", project, uri="00-start.md", language="en")
    text = re.sub(r"<[^>]*>", " ", html)
    assert re.search(r"A short way\s+for those in a hurry\s+The first\s+The second\s+planned", text)


def test_an_edge_named_from_both_sides_is_one_edge(project: Path) -> None:
    assert series.load(project).edges == (("01-first", "02-second"),)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('tags = ["memory"]', 'tags = ["speed"]', "01-first has the tag 'speed'"),
        ('["01-first", "02-second"]', '["09-gone"]', "path 'short' names '09-gone'"),
        ('slug = "02-second"\nzh = "因为"', 'slug = "09-gone"\nzh = "因为"', "names '09-gone'"),
        ('en = "memory"\n', "", "lacks 'en'"),
        (
            '["01-first", "02-second"]',
            '["02-second", "01-first"]',
            "series.toml:7: path 'short' names '02-second' without '01-first' before it",
        ),
    ],
)
def test_nothing_in_the_table_may_dangle(project: Path, old: str, new: str, says: str) -> None:
    file = project / "docs" / "series.toml"
    file.write_text(TABLE.replace(old, new), encoding="utf-8")
    with pytest.raises(PageError, match=re.escape(says)) as error:
        series.load(project)
    assert "series.toml" in str(error.value)


def test_the_graph_leaves_out_what_a_longer_way_says(project: Path) -> None:
    file = project / "docs" / "series.toml"
    more = """
[[article]]
slug = "03-third"
zh = "第三篇"
en = "The third"

[[article.requires]]
slug = "02-second"
zh = "需要"
en = "needs"
"""
    hint = """
[[article.leads_to]]
slug = "03-third"
zh = "也通向"
en = "leads there, too"
"""
    first, tags = '[[article]]\nslug = "02-second"', hint + "\n"
    file.write_text(TABLE.replace(first, tags + first) + more, encoding="utf-8")
    whole = series.load(project)
    assert ("01-first", "03-third") in whole.edges
    assert whole.steps == (("01-first", "02-second"), ("02-second", "03-third"))
    needed = hint.replace("leads_to", "requires").replace("03-third", "01-first")
    file.write_text(TABLE + more + needed, encoding="utf-8")
    assert ("01-first", "03-third") in series.load(project).steps  # what is required stays
