"""Building both sites: whole or not at all, in one place, with what each page must carry."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import site_project
import yaml

from kernelbook.errors import PageError
from kernelbook.site import links
from kernelbook.site.build import build
from kernelbook.site.serve import signature

ARTICLE = "01-vector-add-to-tiled-gemm"


def test_this_repository_builds_strictly_without_a_word(tmp_path: Path) -> None:
    outcome = build(site_project.ROOT, tmp_path / "site", strict=True)
    assert outcome.said == ()
    assert outcome.whole


def test_both_languages_lie_in_one_folder_with_the_same_pages(built_site: Path) -> None:
    pages = set(links.read(built_site))
    english = {path.removeprefix("en/") for path in pages if path.startswith("en/")}
    chinese = {path for path in pages if not path.startswith("en/")}
    assert english == chinese
    assert f"{ARTICLE}/index.html" in chinese


def test_no_link_of_the_built_site_is_dead_and_no_page_asks_another_server(
    built_site: Path,
) -> None:
    assert [(page.path, link, wrong) for page, link, wrong in links.dead(built_site)] == []
    assert {page.path: page.elsewhere for page in links.read(built_site).values()} == {
        path: [] for path in links.read(built_site)
    }


def test_every_page_names_its_other_language(built_site: Path) -> None:
    for path, other in (
        (f"{ARTICLE}/index.html", f"../en/{ARTICLE}/"),
        (f"en/{ARTICLE}/index.html", f"../../{ARTICLE}/"),
        ("index.html", "./en/"),
        ("en/results/01_basics/index.html", "../../../results/01_basics/"),
    ):
        html = (built_site / path).read_text(encoding="utf-8")
        found = re.findall(r'<link rel="alternate ?" href="([^"]*)" hreflang="(\w+)"', html)
        assert [language for _, language in found] == ["zh", "en"]
        theirs = next(link for link, language in found if (language == "zh") == ("en/" in path))
        assert links.resolve(path, theirs) == links.resolve(path, other)


@pytest.mark.parametrize("path", ["404.html", "en/404.html"])
def test_the_page_for_what_is_not_found_leads_to_this_host(built_site: Path, path: str) -> None:
    html = (built_site / path).read_text(encoding="utf-8")
    assert 'hreflang="en"' in html
    assert not re.search(r'(?:href|src)="//', html)


def test_the_search_index_holds_words_and_no_source_pages(built_site: Path) -> None:
    index = json.loads((built_site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = [doc["location"] for doc in index["docs"]]
    assert any(place.startswith(ARTICLE) for place in places)
    assert not any(place.startswith("source/01_basics") for place in places)
    text = " ".join(doc["text"] for doc in index["docs"])
    assert "\u200b带宽\u200b" in text  # words inside sentences are marked out
    assert "\ue0f0" not in text


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_every_result_of_the_search_leads_to_a_place_that_exists(
    built_site: Path, prefix: str
) -> None:
    index = json.loads((built_site / prefix / "search/search_index.json").read_text("utf-8"))
    pages = links.read(built_site)
    found = [links.resolve(f"{prefix}index.html", e["location"] or "./") for e in index["docs"]]
    assert len(found) > 100
    assert [p for p in found if p[0] not in pages or p[1] not in {"", *pages[p[0]].ids}] == []
    # Of a notebook, too, every section is found where it stands, not at the top of its page.
    notebook = [place for uri, place in found if "notebooks/" in uri]
    assert len(set(notebook)) == len(notebook) > 5


def test_a_build_that_fails_leaves_the_site_as_it_was(tmp_path: Path) -> None:
    root = site_project.with_site(site_project.make(tmp_path / "project"))
    for language in ("zh", "en"):
        (root / "docs" / language / "01-first.md").write_text("# T\n", encoding="utf-8")
    dest = tmp_path / "site"
    assert build(root, dest).whole
    before = (dest / "index.html").read_bytes()
    (root / "docs" / "en" / "01-first.md").write_text("# T\n\n{= nothing.at =}\n", "utf-8")
    outcome = build(root, dest)
    assert not outcome.whole
    assert re.search(r"docs/en/01-first\.md:3: no name 'nothing'", "\n".join(outcome.said))
    assert (dest / "index.html").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "site"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file", encoding="utf-8")
    with pytest.raises(PageError, match=r"blocked/site: cannot be built: "):
        build(site_project.ROOT, blocked / "site")


def test_a_warning_of_mkdocs_is_said_and_the_site_still_built(tmp_path: Path) -> None:
    root = site_project.with_site(site_project.make(tmp_path / "project"))
    for language in ("zh", "en"):
        (root / "docs" / language / "01-first.md").write_text("# T\n", encoding="utf-8")
    (root / "docs" / "zh" / "01-first.md").write_text("# T\n\n[x](gone.md)\n", "utf-8")
    outcome = build(root, tmp_path / "site")
    assert outcome.whole
    assert len(outcome.said) == 1
    assert "gone.md" in outcome.said[0]


@pytest.mark.parametrize("path", ["docs/zh/index.md", "kernels/01_tiny/scale.cu", "results/a.json"])
def test_a_change_of_what_a_site_is_made_of_is_seen(tmp_path: Path, path: str) -> None:
    root = site_project.make(tmp_path)
    before = signature(root)
    assert signature(root) == before
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("changed\n", encoding="utf-8")
    assert signature(root) != before


def test_a_site_that_knows_its_address_says_it_in_every_page_and_its_sitemap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_URL", "https://example.org/book")
    root = site_project.with_site(site_project.make(tmp_path / "project"))
    for language in ("zh", "en"):
        (root / "docs" / language / "01-first.md").write_text("# T\n", encoding="utf-8")
    assert build(root, tmp_path / "site").whole
    for prefix in ("", "en/"):
        folder = tmp_path / "site" / prefix
        html = (folder / "01-first" / "index.html").read_text(encoding="utf-8")
        own = f"https://example.org/book/{prefix}01-first/"
        assert f'<link rel="canonical" href="{own}">' in html
        found = re.findall(r'<link rel="alternate ?" href="([^"]*)" hreflang="([\w-]+)"', html)
        assert found == [
            ("https://example.org/book/01-first/", "zh"),
            ("https://example.org/book/01-first/", "x-default"),
            ("https://example.org/book/en/01-first/", "en"),
        ]
        assert f"<loc>{own}</loc>" in (folder / "sitemap.xml").read_text(encoding="utf-8")
        lost = (folder / "404.html").read_text(encoding="utf-8")
        assert 'href="/book/en/">home page</a>' in lost
        assert 'href="/book/">首页</a>' in lost
        assert 'src="/book/' in lost
    assert "example.org" not in (tmp_path / "site" / "01-first" / "index.html").read_text(
        encoding="utf-8"
    ).replace("https://example.org/book/", "")


def test_publishing_measures_nothing_and_pins_what_it_uses() -> None:
    file = site_project.ROOT / ".github" / "workflows" / "publish.yml"
    text = file.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)
    assert "run_all.py --check" in text
    assert not re.search(r"run_all\.py(?! --check)|--publish|nvidia", text)


def test_publishing_asks_for_no_more_than_it_needs_and_uploads_what_was_checked() -> None:
    file = site_project.ROOT / ".github" / "workflows" / "publish.yml"
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    build_job, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    assert workflow["permissions"] == {"contents": "read"}
    # configure-pages cannot read the address of a private repository's site without the second.
    assert build_job["permissions"] == {"contents": "read", "pages": "read"}
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    assert deploy["needs"] == "build"
    steps = build_job["steps"]
    checked = next(s for s in steps if "kernelbook.site check" in s.get("run", ""))
    assert checked["run"].endswith("--dest site")
    assert checked["env"]["SITE_URL"] == "${{ steps.pages.outputs.base_url }}/"
    assert steps[-1]["uses"].startswith("actions/upload-pages-artifact@")
    assert steps[-1]["with"]["path"] == "site"
    assert steps.index(checked) == len(steps) - 2
