"""Links of a built site: every one inside it must lead to a page that exists and to an id on it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_QUIET = ("script", "style", "code", "pre", "svg")
_FETCHES = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


@dataclass
class Page:
    """What a built page has and where it leads, as paths below the site's root."""

    path: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    own: set[str] = field(default_factory=set)  # those in the article, not in what is around it
    elsewhere: list[str] = field(default_factory=list)  # what the browser would fetch elsewhere
    text: list[str] = field(default_factory=list)  # outside code and scripts


def dead(site: Path, pages: Mapping[str, Page] | None = None) -> Iterator[tuple[Page, str, str]]:
    """(page, link, what is wrong) for every dead link of the site; ``pages`` as `read` gives."""
    pages = read(site) if pages is None else pages
    for page in pages.values():
        for link in dict.fromkeys(page.links):
            target, fragment = resolve(page.path, link)
            if target in pages:
                if fragment and fragment not in pages[target].ids:
                    yield page, link, f"there is no #{fragment} on {target}"
            elif not (site / target).is_file():
                yield page, link, "there is no such page or file"


def read(site: Path) -> dict[str, Page]:
    """Every page of a built site by its path."""
    pages = {}
    for file in sorted(site.rglob("*.html")):
        reader = _Reader(file.relative_to(site).as_posix())
        reader.feed(file.read_text(encoding="utf-8"))
        reader.close()
        pages[reader.page.path] = reader.page
    return pages


def resolve(origin: str, link: str) -> tuple[str, str]:
    """(file below the site's root, fragment) a link of the page ``origin`` leads to."""
    parts = urlsplit(link)
    path = unquote(parts.path)
    if not path:
        return origin, unquote(parts.fragment)
    base = "" if path.startswith("/") else posixpath.dirname(origin)
    target = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
    if path.endswith(("/", "/.", "/..")) or target == "." or "." not in posixpath.basename(target):
        target = posixpath.normpath(posixpath.join(target, "index.html"))
    return target, unquote(parts.fragment)


class _Reader(HTMLParser):
    """Collects ids, links inside the site, requests elsewhere, and text."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.page = Page(path)
        self._quiet: list[str] = []
        self._in_article = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            # A fragment names an id as it stands in the link, too: "%E5" need not be decoded.
            self.page.ids |= {values["id"], unquote(values["id"])}
        if tag == "a" and "name" in values:
            self.page.ids.add(values["name"])
        for name in ("href", "src"):
            # 404.html is served for any path, so its links are absolute and hang on the host.
            if name in values and not self.page.path.endswith("404.html"):
                self._link(tag, name, values)
        self._in_article |= tag == "article"
        if tag in _QUIET:
            self._quiet.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._in_article &= tag != "article"
        if self._quiet and self._quiet[-1] == tag:
            self._quiet.pop()

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.page.text.append(data)

    def _link(self, tag: str, name: str, values: dict[str, str]) -> None:
        link = values[name]
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            fetched = _FETCHES.get(tag) == name and parts.scheme != "data"
            if fetched and not {"canonical", "alternate"} & set(values.get("rel", "").split()):
                self.page.elsewhere.append(link)
        elif link:
            self.page.links.append(link)
            if self._in_article:
                self.page.own.add(link)
