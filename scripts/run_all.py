#!/usr/bin/env python3
"""Compile, verify and measure or count every kernel, then render results/. See --help."""

import signal
import sys

# NVRTC puts handlers of its own in the place of Python's. So no thread takes these signals: the
# command waits for them (see `runner.cli`), also for one that comes before it is there.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
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
