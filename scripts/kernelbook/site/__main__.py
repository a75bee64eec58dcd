"""``python -m kernelbook.site build | check | serve``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelbook import catalog
from kernelbook.errors import KernelbookError
from kernelbook.site import current, stubs
from kernelbook.site.build import build
from kernelbook.site.context import find_root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    options = _parser().parse_args(arguments)
    try:
        root = options.root.resolve() if options.root else find_root(Path.cwd())
        if options.command == "check":
            return _check(root, options)
        if options.command == "build":
            return _build(root, options)
        return _serve(root, options)
    except KernelbookError as error:
        print(f"kernelbook.site: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kernelbook.site: interrupted; the site is as it was", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernelbook.site", description=__doc__)
    parser.add_argument("--root", type=Path, help="the repository (default: found from here)")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (
        ("build", "build both languages; stale numbers are marked"),
        ("check", "the strict check: every problem with file and line, exit code 1"),
        ("serve", "build, serve on localhost, and build again on changes"),
    ):
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--dest", type=Path, help="where the site goes (default: site)")
        command.add_argument(
            "--results",
            default=os.environ.get("KERNELBOOK_RESULTS", ""),
            help="folder of the records (default: $KERNELBOOK_RESULTS, else results)",
        )
        if name == "serve":
            command.add_argument("--port", type=int, default=8000)
    return parser


def _build(root: Path, options: argparse.Namespace) -> int:
    stubs.ensure(root, catalog.load(root))
    dest = options.dest or root / "site"
    inputs = current.fingerprint(root, options.results)
    if not current.is_current(root, dest, inputs):
        outcome = build(root, dest, results=options.results)
        for line in outcome.said:
            print(line, file=sys.stderr)
        if not outcome.whole:
            print(f"kernelbook.site: not built; {dest} is as it was", file=sys.stderr)
            return 1
        if not outcome.said:  # what was said is to be said again
            current.remember(root, dest, inputs)
    print(f"Chinese site: {dest / 'index.html'}")
    print(f"English site: {dest / 'en' / 'index.html'}")
    print("To read them: make serve, or python -m kernelbook.site serve")
    return 0


def _check(root: Path, options: argparse.Namespace) -> int:
    from kernelbook.site.check import check

    found = check(root, dest=options.dest, results=options.results)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print(f"kernelbook.site: {len(found)} problem{'s' * (len(found) > 1)}", file=sys.stderr)
        return 1
    print("Both sites are whole: every number, claim, excerpt and link holds.")
    return 0


def _serve(root: Path, options: argparse.Namespace) -> int:
    from kernelbook.site.serve import Workers, serve

    dest = (options.dest or root / "site").resolve()
    code = _build(root, options)
    if not dest.is_dir():
        return code
    workers = Workers(root, dest, options.results)

    def rebuild(languages: Iterable[str] | None) -> bool:
        begun = time.monotonic()
        try:
            if languages:
                current.forget(root, dest)
            done = workers.build(languages) if languages else _build(root, options) == 0
        except KernelbookError as error:  # an author is in the middle of an edit
            print(f"kernelbook.site: {error}", file=sys.stderr)
            return False
        print(f"Built in {time.monotonic() - begun:.1f} s" if done else "Not built, see above")
        return done

    print(f"Serving http://127.0.0.1:{options.port}/ and /en/ (Ctrl-C stops)", flush=True)
    try:
        serve(root, dest, options.port, rebuild, options.results)
    finally:
        workers.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
