"""Both sites on one local port, built again when something they are made of changes."""

from __future__ import annotations

import functools
import http.server
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kernelbook.errors import UsageError

WATCHED = ("docs", "kernels", "results", "mkdocs.yml", "mkdocs.en.yml")
POLL_SECONDS = 1.0


def serve(root: Path, site: Path, port: int, rebuild: Callable[[], None]) -> None:
    """Serve ``site`` on localhost until interrupted; raises UsageError for a port in use."""
    handler = functools.partial(_Quiet, directory=str(site))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="say another with --port"
        ) from None
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seen = signature(root)
        try:
            while True:
                time.sleep(POLL_SECONDS)
                now = signature(root)
                if now != seen:
                    seen = now
                    rebuild()
        except KeyboardInterrupt:
            server.shutdown()


def signature(root: Path) -> tuple[tuple[str, int], ...]:
    """Path and modification time of everything a site is made of."""
    found: list[tuple[str, int]] = []
    for name in WATCHED:
        path = root / name
        if path.is_file():
            found.append((name, path.stat().st_mtime_ns))
        for parent, folders, files in os.walk(path):
            folders[:] = [f for f in folders if f != "__pycache__"]
            found += [
                (full, os.stat(full).st_mtime_ns)
                for file in files
                if not file.startswith(".")
                for full in (os.path.join(parent, file),)
            ]
    return tuple(sorted(found))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Without a line for every request."""

    def log_message(self, format: str, *args: object) -> None:
        return
