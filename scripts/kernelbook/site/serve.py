"""Both sites on one local port, built again when something they are made of changes.

A change in an article, a kernel or a record is built dirty: only the pages that show it, by a
worker a language that stays warm. What may touch every page (the theme, the navigation, a file that
comes or goes) is built whole. Then every open page of the browser reloads.
"""

from __future__ import annotations

import functools
import http.server
import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from kernelbook.errors import UsageError
from kernelbook.site.build import CONFIGS, Request, build_dirty, warm_up

WATCHED = ("docs", "kernels", "results", "mkdocs.yml", "mkdocs.en.yml")
POLL_SECONDS = 0.3
NEWS = "/.kernelbook/built"
WAIT_SECONDS = 25.0
# Asks until the number it was given is no longer that of the last build.
_RELOAD = """<script>
(async () => {
  for (;;) {
    try {
      const answer = await fetch("%s?%d", {cache: "no-store"});
      if (Number(await answer.text()) !== %d) return location.reload();
    } catch {
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
})();
</script>"""

Signature = Mapping[str, int]


class Rebuild(Protocol):
    """Builds the languages anew; ``None`` for all of everything, else only what is touched."""

    def __call__(self, languages: Iterable[str] | None) -> bool: ...


class News:
    """How often the site has been built; whoever waits for the next time is told."""

    def __init__(self) -> None:
        self.number = 0
        self._changed = threading.Condition()

    def publish(self) -> None:
        with self._changed:
            self.number += 1
            self._changed.notify_all()

    def after(self, number: int, seconds: float = WAIT_SECONDS) -> int:
        """The number of builds, as soon as it is not ``number`` or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.number != number, seconds)
            return self.number


def serve(root: Path, site: Path, port: int, rebuild: Rebuild, results: str = "") -> None:
    """Serve ``site`` on localhost until interrupted; raises UsageError for a port in use."""
    news = News()
    with server_of(site, port, news) as server:
        try:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            seen = signature(root, results)
            while True:
                time.sleep(POLL_SECONDS)
                now = signature(root, results)
                if now == seen:
                    continue
                languages = affected(seen, now)
                seen = now
                if rebuild(languages):
                    news.publish()
        except KeyboardInterrupt:
            server.shutdown()


def server_of(site: Path, port: int, news: News) -> http.server.ThreadingHTTPServer:
    """A server whose pages reload at ``news``; raises UsageError for a port in use."""
    handler = functools.partial(_Handler, directory=str(site), news=news)
    try:
        return _Server(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="say another with --port"
        ) from None


def affected(before: Signature, now: Signature) -> tuple[str, ...] | None:
    """Languages for which building the touched pages is enough; None where all must be built."""
    changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    found: set[str] = set()
    for name in changed:
        parts = Path(name).parts
        is_page = parts[0] == "docs" and parts[1] in CONFIGS and name.endswith((".md", ".ipynb"))
        if name not in before or name not in now:
            return None
        if is_page:
            found.add(parts[1])
        elif parts[0] == "docs" or name in CONFIGS.values():
            return None
        else:
            found.update(CONFIGS)
    return tuple(sorted(found))


def signature(root: Path, results: str = "") -> dict[str, int]:
    """Modification time of everything a site is made of, by its path from ``root``."""
    found: dict[str, int] = {}
    for name in dict.fromkeys((*WATCHED, *filter(None, (results,)))):
        path = root / name
        files = [path] if path.is_file() else _files(path)
        for file in files:
            try:
                found[os.path.relpath(file, root)] = os.stat(file).st_mtime_ns
            except OSError:
                continue  # gone in between, or a link to nowhere
    return found


def _files(folder: Path) -> Iterable[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f not in ("__pycache__", ".ipynb_checkpoints")]
        yield from (Path(parent) / name for name in names if not name.startswith("."))


class Workers:
    """A process a language that builds touched pages and keeps what is loaded."""

    def __init__(self, root: Path, dest: Path, results: str = "") -> None:
        self._stack = ExitStack()
        context = multiprocessing.get_context("spawn")
        self._pools: dict[str, tuple[Executor, Request]] = {}
        # Ctrl-C goes to every process of a terminal; the one that serves ends its workers, which
        # leave it alone from their first moment, as they are started.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for language in CONFIGS:
                place = dest if language == "zh" else dest / language
                request = Request(root, language, place, strict=False, results=results)
                pool = ProcessPoolExecutor(1, context)
                self._pools[language] = (self._stack.enter_context(pool), request)
                pool.submit(warm_up, request)
        finally:
            signal.signal(signal.SIGINT, before)

    def build(self, languages: Iterable[str]) -> bool:
        """Build the touched pages of these languages; False where one went wrong."""
        jobs = [
            pool.submit(build_dirty, request)
            for language, (pool, request) in self._pools.items()
            if language in languages
        ]
        outcomes = [job.result() for job in jobs]
        for outcome in outcomes:
            for line in outcome.said:
                print(line, file=sys.stderr)
        return all(outcome.whole for outcome in outcomes)

    def close(self) -> None:
        self._stack.close()


class _Server(http.server.ThreadingHTTPServer):
    """A reader who leaves a page before it has been sent is no error."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Without a line for every request; pages ask for news of the next build."""

    def __init__(self, *arguments: object, news: News, directory: str) -> None:
        self.news = news
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path != NEWS:
            super().do_GET()
            return
        number = self.news.after(int(parts.query) if parts.query.isdigit() else -1)
        self._send(str(number).encode(), "text/plain")

    def send_head(self) -> io.BytesIO | None:
        """As the base class, but a page comes with the script that reloads it."""
        if (page := self._page()) is None:
            return super().send_head()  # type: ignore[return-value]
        number = self.news.number
        script = _RELOAD % (NEWS, number, number)
        text = page.read_text(encoding="utf-8").replace("</body>", f"{script}</body>")
        return self._head(text.encode(), "text/html; charset=utf-8")

    def _page(self) -> Path | None:
        """The HTML file this request is for, if it is for one."""
        path = Path(self.translate_path(self.path))
        if urlsplit(self.path).path.endswith("/"):
            path = path / "index.html"
        return path if path.suffix == ".html" and path.is_file() else None

    def _send(self, body: bytes, kind: str) -> None:
        if (stream := self._head(body, kind)) is not None:
            self.copyfile(stream, self.wfile)

    def _head(self, body: bytes, kind: str) -> io.BytesIO | None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, format: str, *args: object) -> None:
        return
