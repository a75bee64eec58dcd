"""Projects and built sites that several tests look at."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_project
from browsing import launched, served

from kernelbook import catalog
from kernelbook.site import stubs
from kernelbook.site.build import build


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A project of one experiment with records of every grade."""
    root = site_project.make(tmp_path / "project")
    site_project.measured(root, {"scale": 2.0, "scale_by_4": 4.0, "device_copy": 1.0}, warm=True)
    site_project.compiled(root)
    site_project.counted(root, {"global_load_sectors": 32.0, "warp_instructions": 80.0})
    site_project.cited(root, {"time": (3.0, "µs")}, "nvidia-geforce-rtx-4090")
    stubs.ensure(root, catalog.load(root))  # pages of the devices that have records now
    return root


@pytest.fixture(scope="session")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository's site, both languages, built once for all tests of a run."""
    # Workers of one run share the parent of their folders; the first one there builds.
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    dest = shared / "built-site"
    with (shared / "built-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not dest.is_dir():
            outcome = build(site_project.ROOT, dest)
            assert outcome.whole, "\n".join(outcome.said)
    return dest


@pytest.fixture(scope="session")
def origin(built_site: Path) -> Iterator[str]:
    """This repository's site on a local server."""
    with served(built_site) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of a worker."""
    with launched() as started:
        yield started
