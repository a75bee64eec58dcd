"""Serving while an author writes: what is built for which change, and a page that reloads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import site_project
from browsing import opened

from kernelbook.errors import UsageError
from kernelbook.site.build import build
from kernelbook.site.serve import News, Workers, affected, serve, server_of, signature

TREE = {
    "docs/zh/a.md": 1, "docs/en/a.md": 1, "docs/en/n.ipynb": 1, "docs/zh/p.png": 1,
    "docs/theme/main.html": 1, "docs/series.toml": 1, "mkdocs.yml": 1,
    "kernels/01/k.cu": 1, "results/data/r.json": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "languages"),
    [
        ({"docs/zh/a.md": 2}, ("zh",)),
        ({"docs/en/n.ipynb": 2, "docs/en/a.md": 2}, ("en",)),
        ({"docs/zh/a.md": 2, "docs/en/a.md": 2}, ("en", "zh")),
        ({"kernels/01/k.cu": 2}, ("en", "zh")),
        ({"results/data/r.json": 2}, ("en", "zh")),
        ({"docs/theme/main.html": 2}, None),
        ({"docs/series.toml": 2}, None),
        ({"docs/zh/p.png": 2}, None),
        ({"mkdocs.yml": 2}, None),
        ({"docs/zh/new.md": 1}, None),  # the navigation changes with it
    ],
)
def test_a_change_is_built_where_it_shows(
    changed: dict[str, int], languages: tuple[str, ...] | None
) -> None:
    assert affected(TREE, {**TREE, **changed}) == languages


def test_a_page_that_is_gone_needs_everything() -> None:
    assert affected(TREE, {k: v for k, v in TREE.items() if k != "docs/zh/a.md"}) is None


def test_a_results_folder_elsewhere_is_watched(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "r.json").write_text("{}", encoding="utf-8")
    assert list(signature(tmp_path / "root", "../mine")) == ["../mine/r.json"]


def test_waiting_for_news_ends_with_the_next_build() -> None:
    news = News()
    assert news.after(0, 0.0) == 0
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(news.after(0, 20.0)))
    waiting.start()
    news.publish()
    waiting.join(20.0)
    assert found == [1]


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with (
        server_of(tmp_path, 0, News()) as server,
        pytest.raises(UsageError, match=r"cannot be used: .* \(say another with --port\)"),
    ):
        server_of(tmp_path, server.server_address[1], News())


def test_an_interrupt_before_the_first_look_around_ends_a_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(root: Path, results: str) -> dict[str, int]:
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelbook.site.serve.signature", interrupted)
    serve(tmp_path, tmp_path, 0, lambda languages: True)  # its server is shut down, then closed


def test_an_interrupt_ends_a_serve_without_a_traceback(tiny: Path) -> None:
    root = site_project.with_site(tiny)
    for language in ("zh", "en"):
        (root / "docs" / language / "01-first.md").write_text("# A\n", encoding="utf-8")
    command = [sys.executable, "-u", "-m", "kernelbook.site", "--root", str(root), "serve"]
    environment = {**os.environ, "PYTHONPATH": str(site_project.ROOT / "scripts")}
    with subprocess.Popen(
        [*command, "--port", "0"], cwd=root, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as serving:  # fmt: skip
        assert serving.stdout is not None
        assert any("Serving" in line for line in serving.stdout)
        os.killpg(serving.pid, signal.SIGINT)  # as a terminal does
        _, said = serving.communicate(timeout=60)
    assert serving.returncode in (0, 130)
    assert "Traceback" not in said, said


def test_touched_pages_are_built_into_the_site_that_stands(tiny: Path) -> None:
    root = site_project.with_site(tiny)
    for language in ("zh", "en"):
        text = "# A\n\n/// excerpt | 01_tiny/scale.cu#scale\n///\n"
        (root / "docs" / language / "01-first.md").write_text(text, encoding="utf-8")
    site = root / "site"
    assert build(root, site).whole
    page, other = site / "01-first" / "index.html", site / "en" / "01-first" / "index.html"
    index = (site / "search" / "search_index.json").read_bytes()
    home = (site / "index.html").stat().st_mtime_ns
    workers = Workers(root, site)
    try:
        article = root / "docs" / "zh" / "01-first.md"
        later(article, article.read_text(encoding="utf-8") + "\n更多。\n")
        assert workers.build(("zh",))
        assert "更多。" in page.read_text(encoding="utf-8")
        before = article.stat().st_mtime_ns
        source = root / "kernels" / "01_tiny" / "scale.cu"
        later(source, source.read_text(encoding="utf-8").replace("if (i < n)", "if (i < n && n)"))
        assert workers.build(("zh", "en"))
        assert article.stat().st_mtime_ns == before  # an author's files are left alone
        for file in (page, other, site / "en" / "source" / "01_tiny" / "scale" / "index.html"):
            assert "&amp;&amp;" in file.read_text(encoding="utf-8"), file
        time.sleep(0.05)
        site_project.measured(root, {"scale": 7.0, "scale_by_4": 4.0}, stale=True)
        assert workers.build(("zh", "en"))
        clean = root / "clean"
        assert build(root, clean).whole
        for built in clean.rglob("*.html"):
            served = site / built.relative_to(clean)
            assert served.read_text(encoding="utf-8") == built.read_text(encoding="utf-8"), built
        later(article, "{= spec.smz =}\n")
        assert not workers.build(("zh",))
        assert "更多。" in page.read_text(encoding="utf-8")
    finally:
        workers.close()
    assert (site / "index.html").stat().st_mtime_ns == home
    assert (site / "search" / "search_index.json").read_bytes() == index
    assert json.loads(index)["docs"]


def later(file: Path, text: str) -> None:
    """Write a file so that its time differs from what was built, however coarse the clock."""
    time.sleep(0.05)
    file.write_text(text, encoding="utf-8")


@pytest.mark.browser
def test_an_open_page_reloads_after_a_build(browser: Any, tmp_path: Path) -> None:
    page_file = tmp_path / "a" / "index.html"
    page_file.parent.mkdir()
    page_file.write_text("<body><p>one</p></body>", encoding="utf-8")
    news = News()
    with server_of(tmp_path, 0, news) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with opened(browser, f"http://127.0.0.1:{server.server_address[1]}/a/") as page:
            assert page.locator("p").inner_text() == "one"
            page_file.write_text("<body><p>two</p></body>", encoding="utf-8")
            news.publish()
            page.wait_for_function("document.querySelector('p')?.textContent === 'two'")
        server.shutdown()
