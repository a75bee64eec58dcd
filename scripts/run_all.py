#!/usr/bin/env python3
"""Compile, verify and measure or count every kernel, then render results/. See --help."""

import signal
import sys

# Until the command itself is there to answer it, a Ctrl-C ends Python quietly.
signal.signal(signal.SIGINT, signal.SIG_DFL)
if sys.version_info < (3, 11):  # noqa: UP036 - somebody's python3 may well be older
    sys.exit("run_all: Python 3.11 or newer is needed, this is " + sys.version.split()[0])
try:
    from kernelbook.runner.cli import main
except ModuleNotFoundError as missing:
    if missing.name and missing.name.startswith("kernelbook"):
        raise
    sys.exit(
        f"run_all: this Python ({sys.executable}) lacks the module {missing.name!r}: "
        "run `make run`, or `pip install -e .` in your own environment"
    )

if __name__ == "__main__":
    sys.exit(main())
