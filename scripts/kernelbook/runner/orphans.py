"""A process that works for another one must not outlive it, however that one ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int = 0) -> None:
    """Have the system kill this process when its parent ends (on Linux; elsewhere nothing).

    A parent that is killed outright cannot stop anybody. Its workers would wait for ever, and a
    measuring child would keep the card busy for the next run. ``parent`` is the process id that is
    expected: one that has ended already is noticed.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)
