"""The strict check: each way of breaking a page is found, with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project

from kernelbook import catalog
from kernelbook.devices import sheets
from kernelbook.report.render import render
from kernelbook.site import check, links, outline
from kernelbook.site.__main__ import main
from kernelbook.site.build import with_line

ARTICLE = """\
# T {#top}

## A {#a}

{= spec.sms =}{? spec.sms > 1 ?} [home](index.md) [up](#top)

/// excerpt | 01_tiny/scale.cu#store
///

| a | b |
|---|---|
| 1 | 2 |

```mermaid
graph LR
    A --> B
```

![picture](https://example.org/p.png "t")

/// navigation |
///
"""


@pytest.fixture
def pair(tiny: Path) -> Path:
    """A project whose article is the same in both languages; no picture from elsewhere."""
    for language in ("zh", "en"):
        file = tiny / "docs" / language / "01-first.md"
        text = re.sub(r"^!\[.*\n", "", ARTICLE, flags=re.M)
        file.write_text(text, encoding="utf-8")
    return tiny


def edit(root: Path, language: str, old: str, new: str) -> None:
    file = root / "docs" / language / "01-first.md"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_equal_pages_have_no_differences(pair: Path) -> None:
    assert list(check.pair_problems(pair)) == []


def test_word_order_may_move_numbers_but_not_change_them(pair: Path) -> None:
    edit(pair, "zh", "{= spec.sms =}{? spec.sms > 1 ?}", "{= 1 =} x {= 2 =}")
    edit(pair, "en", "{= spec.sms =}{? spec.sms > 1 ?}", "{= 2 =} x {= 1 =}")
    assert list(check.pair_problems(pair)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## A {#a}", "### A {#a}", "docs/zh/01-first.md:3: heading '## {#a}' stands where"),
        ("## A {#a}", "## A {#b}", "en/01-first.md:3 has '## {#b}'"),
        ("## A {#a}\n", "", "docs/zh/01-first.md:3: heading '## {#a}' is not in en/01-first.md"),
        ("{= spec.sms =}", "{= 132 =}", "docs/en/01-first.md:5: number '132' is not in zh"),
        ("{? spec.sms > 1 ?}", "", "docs/zh/01-first.md:5: claim 'spec.sms > 1' is not in en"),
        ("#store", "#scale", "docs/zh/01-first.md:7: block 'excerpt | 01_tiny/scale.cu#store'"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "", "docs/zh/01-first.md:11: table 'of 2 columns'"),
        ("graph LR", "sequenceDiagram", "docs/zh/01-first.md:14: diagram 'graph' stands where"),
        ("\n/// navigation |\n///\n", "", "docs/zh/01-first.md:20: block 'navigation |' is not"),
    ],
)
def test_languages_that_differ_are_named_with_file_and_line(
    pair: Path, old: str, new: str, says: str
) -> None:
    edit(pair, "en", old, new)
    found = list(check.pair_problems(pair))
    assert any(says in line for line in found), found


def test_a_page_of_one_language_only_is_found(pair: Path) -> None:
    (pair / "docs" / "en" / "01-first.md").unlink()
    assert list(check.pair_problems(pair)) == [
        "docs/zh/01-first.md:1: there is no docs/en/01-first.md"
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\n\n![](x.png)\n", (3,)),
        ("![ ](x.png) ![words](y.png)\n", (1,)),
        ('<img src="x.png">\n<img src="x.png" alt="words">\n', (1,)),
        ("`![](x.png)`\n\n```\n![](x.png)\n```\n", ()),
    ],
)
def test_images_without_alternative_text(tmp_path: Path, text: str, lines: tuple[int, ...]) -> None:
    file = tmp_path / "page.md"
    file.write_text(text, encoding="utf-8")
    assert outline.read(file).images_without_alt == lines


def test_an_image_without_alternative_text_fails_with_file_and_line(pair: Path) -> None:
    edit(pair, "zh", "## A {#a}", "![](x.png)")
    assert list(check.image_problems(pair)) == [
        "docs/zh/01-first.md:3: an image has no alternative text"
    ]


def test_stubs_and_articles_are_held_against_the_tree(pair: Path) -> None:
    assert list(check.page_problems(pair)) == []
    (pair / "docs" / "zh" / "source" / "01_tiny" / "scale.md").unlink()
    (pair / "docs" / "en" / "09-lost.md").write_text("# L\n", encoding="utf-8")
    old = pair / "docs" / "en" / "source" / "01_tiny" / "old.md"
    old.write_text("/// source | 01_tiny/old.cu\n///\n", encoding="utf-8")
    found = "\n".join(check.page_problems(pair))
    assert "docs/zh/source/01_tiny/scale.md: is missing" in found
    assert "docs/en/source/01_tiny/old.md:1: shows a file or chapter that is gone" in found
    assert "docs/en/09-lost.md:1: docs/series.toml does not list '09-lost'" in found


# ---- built pages -----------------------------------------------------------------------------


def write(site: Path, pages: dict[str, str]) -> Path:
    for path, body in pages.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(body, encoding="utf-8")
    return site


def test_dead_links_and_anchors_of_a_built_site(tmp_path: Path) -> None:
    site = write(
        tmp_path,
        {
            "index.html": '<a href="a/">x</a> <a href="a/#here">x</a> <a href="./">x</a>'
            '<a href="https://example.org/">x</a> <a href="en/">x</a> <a href="mailto:a@b">x</a>',
            "a/index.html": '<p id="here"></p><a href="..">x</a> <a href="../b/">dead</a>'
            '<a href="#gone">dead</a> <a href="../index.html#no">dead</a><img src="../p.png">',
            "en/index.html": '<a href="../a/#h%65re">x</a> <script src="../s.js"></script>',
            "s.js": "",
        },
    )
    found = {(page.path, link) for page, link, _ in links.dead(site)}
    assert found == {
        ("a/index.html", "../b/"),
        ("a/index.html", "#gone"),
        ("a/index.html", "../index.html#no"),
        ("a/index.html", "../p.png"),
    }


def test_problems_of_built_pages_are_traced_to_the_article(pair: Path, tmp_path: Path) -> None:
    edit(pair, "zh", "[home](index.md)", '<a href="../gone/">g</a>')
    edit(pair, "en", "[home](index.md)", '<img alt="p" src="https://example.org/p.png">')
    site = write(
        tmp_path / "site",
        {
            "01-first/index.html": '<a href="../lost/">g</a><article><a href="../gone/">g</a>'
            "<code>{= a =}</code></article>",
            "en/01-first/index.html": '<img src="https://example.org/p.png"> {= a =}',
        },
    )
    assert list(check.built_problems(pair, site)) == [
        "docs/zh/01-first.md:5: the link ../gone/ is dead: there is no such page or file",
        "docs/zh/01-first.md:1: its navigation leads to lost/index.html: "
        "there is no such page or file",
        "docs/en/01-first.md:5: the page would ask another server for https://example.org/p.png",
        "docs/en/01-first.md:5: a number or claim was not read (is it inside raw HTML?)",
    ]


# ---- the whole command -----------------------------------------------------------------------


@pytest.fixture
def whole(pair: Path) -> Path:
    """The project with the real configuration, its results rendered."""
    site_project.counted(pair, {"warp_instructions": 80.0}, variants=("scale", "scale_by_4"))
    render(pair, pair / "results", catalog.load(pair), sheets())
    return site_project.with_site(pair)


def test_a_whole_site_passes_and_then_fails_for_every_break(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--root", str(whole), "check"]) == 0, capsys.readouterr().err
    edit(whole, "zh", "{= spec.sms =}", "{= spec.smz =} 快。{? 1 > 2 ?} [x](gone.md) [y](#nowhere)")
    edit(whole, "en", "#store", "#stare")
    site_project.measured(whole, {"scale": 2.0}, stale=True)
    edit(whole, "en", "[up]", "{= measured.scale_1k.scale.time =} [up]")
    assert main(["--root", str(whole), "check"]) == 1
    said = capsys.readouterr().err
    for expected in (
        r"docs/zh/01-first\.md:5: no figure 'smz'",
        r"docs/zh/01-first\.md:5: the claim '1 > 2' is false; it stands in: .*快。",
        r"docs/en/01-first\.md:7: .*no region \[stare\]",
        r"docs/en/01-first\.md:5: scale_1k/scale time is stale",
        r"docs/zh/01-first\.md:5: number 'spec\.smz' is not in en/01-first\.md",
        r"scale_1k/scale .*stale",
        r"results/01_tiny\.md.*render",
    ):
        assert re.search(expected, said), expected + "\n" + said


def test_dead_links_and_diagrams_that_cannot_be_read_fail(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(whole, "zh", "[up](#top)", "[x](gone.md) [y](#nowhere) [z](index.md#no)")
    edit(whole, "en", "graph LR\n    A --> B", "xychart-beta\n    x-axis [甲, 乙]\n    bar [1, 2]")
    assert main(["--root", str(whole), "check"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"docs/zh/01-first\.md:5: .*gone\.md", said)
    assert re.search(r"docs/zh/01-first\.md:5: .*#nowhere", said)
    assert re.search(r"docs/zh/01-first\.md:5: .*index\.md#no", said)
    assert re.search(r"docs/en/01-first\.md:16: .*double quotes", said)


@pytest.mark.parametrize("link", ["/index/", "htp:x", "../first/"])
def test_links_that_mkdocs_leaves_as_they_are_have_a_place(pair: Path, link: str) -> None:
    edit(pair, "en", "[up](#top)", f"[x]({link})")
    kinds = ("an absolute link", "an unrecognized relative link", "a link")
    for kind in kinds:
        said = f"Doc file '01-first.md' contains {kind} '{link}', it was left as is."
        assert with_line(pair, "en", said) == f"docs/en/01-first.md:5: {said}"


def test_references_to_what_is_not_defined_are_found_outside_code(
    pair: Path, tmp_path: Path
) -> None:
    edit(pair, "zh", "[home](index.md)", "[甲][乙] [^3]")
    page = "<p>见[甲][乙] [^3] [theory] out[col][row]</p><code>[i][j]</code>"
    site = write(tmp_path / "site", {"01-first/index.html": page})
    assert list(check.built_problems(pair, site)) == [
        "docs/zh/01-first.md:5: [甲][乙] refers to something that is not defined",
        "docs/zh/01-first.md:5: [^3] refers to something that is not defined",
    ]


def test_a_wrong_table_of_the_series_is_told_once_with_its_line(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = whole / "docs" / "series.toml"
    text = table.read_text(encoding="utf-8")
    wrong = '\n[[article]]\nslug = "99-last"\nzh = "末"\nen = "last"\ntags = ["nobody"]\n'
    table.write_text(text + wrong, encoding="utf-8")
    line = (text + wrong).splitlines().index('tags = ["nobody"]') + 1
    assert main(["--root", str(whole), "check"]) == 1
    said = [s for s in capsys.readouterr().err.splitlines() if "nobody" in s]
    what = "99-last has the tag 'nobody', which is not listed"
    assert said == [f"docs/series.toml:{line}: {what}"]


def test_a_command_outside_a_project_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 1
    assert "no kernels/ folder" in capsys.readouterr().err


def test_every_page_is_read_though_one_is_wrong_and_every_fault_of_a_page_is_told(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(whole, "zh", "[up](#top)", "$\\nosuch{1}$ [x](gone.md)")
    edit(whole, "zh", "graph LR\n    A --> B", 'graph LR\n    A["甲"] --> B[乙]')
    edit(whole, "zh", "#store", "#stare")
    edit(whole, "zh", "/// navigation |\n///", "/// navigation |\n///\n\n/// nosuch |\n///")
    index = whole / "docs" / "zh" / "index.md"
    index.write_text("# 首页\n\n正文{= spec.smz =}。\n\n/// results |\n///\n", encoding="utf-8")
    assert main(["--root", str(whole), "check"]) == 1
    said = capsys.readouterr().err
    for expected in (
        r"docs/zh/01-first\.md:5: KaTeX cannot read",
        r"docs/zh/01-first\.md:5: .*'gone\.md'",
        r"docs/zh/01-first\.md:7: .*no region \[stare\]",
        r"docs/zh/01-first\.md:16: in a flowchart, .*double quotes: A\[\"甲\"\] --> B\[乙\]",
        r"docs/zh/01-first\.md:\d+: no block is called 'nosuch'",
        r"docs/zh/index\.md:3: no figure 'smz'",
        r"docs/zh/index\.md:5: a results block needs an experiment",
    ):
        assert re.search(expected, said), expected + "\n" + said
    assert not (whole / "site").exists()


def test_a_page_that_is_gone_is_told_once_and_for_the_language_that_lacks_it(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for language in ("zh", "en"):
        edit(whole, language, "[home](index.md)", "[next](02-second.md)")
        (whole / "docs" / language / "02-second.md").write_text("# S\n", encoding="utf-8")
        config = whole / ("mkdocs.yml" if language == "zh" else "mkdocs.en.yml")
        text = config.read_text(encoding="utf-8")
        config.write_text(
            text.replace("First: 01-first.md", "First: 01-first.md\n  - 02-second.md")
        )
    (whole / "docs" / "en" / "02-second.md").unlink()
    (whole / "docs" / "zh" / "aside.md").write_text("# A\n", encoding="utf-8")
    (whole / "docs" / "en" / "aside.md").write_text("# A\n", encoding="utf-8")
    assert main(["--root", str(whole), "check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"docs/zh/02-second\.md:1: there is no docs/en/02-second\.md", said[0])
    assert sum("docs/en/01-first.md:5: " in line for line in said) == 1, said
    assert sum(line.startswith("mkdocs.en.yml:") for line in said) == 1, said
    assert not any(line.startswith(("docs/zh/01-first.md", "mkdocs.yml")) for line in said), said
    assert "docs/en/aside.md:1: is not in the navigation of mkdocs.en.yml" in said
    assert len(said) <= 8, said
    assert "en/02-second/index.html" in "\n".join(said)  # the language switch of the other page
