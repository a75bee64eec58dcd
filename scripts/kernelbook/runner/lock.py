"""One run per GPU at a time, whoever starts them: a file lock named after the card."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import DeviceError


@contextmanager
def gpu_lock(identity: str, folder: Path | None = None) -> Iterator[None]:
    """Hold the lock of a card; raises DeviceError where another run holds it.

    The system releases it when its holder ends, however it ends, so no stale lock can remain.
    """
    path = (folder or Path(tempfile.gettempdir())) / f"kernelbook-gpu-{identity}.lock"
    handle = _open(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DeviceError(
                "another run measures on this GPU", hint=f"wait for it; its lock is {path}"
            ) from None
        yield
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except PermissionError:  # somebody else's file; a lock needs no write access to it
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(f"the GPU's lock {path} cannot be opened: {error.strerror}") from error
    return handle
