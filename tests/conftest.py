"""Shared fixtures: this repository, and small projects made for one test."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tiny import ROOT, TINY_CU, TINY_EXPERIMENTS

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would every
# program that they start and then interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """This repository."""
    return ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one chapter with one experiment of one kernel, no records, no articles."""
    chapter = tmp_path / "kernels" / "01_tiny"
    chapter.mkdir(parents=True)
    (chapter / "scale.cu").write_text(TINY_CU, encoding="utf-8")
    (chapter / "experiments.py").write_text(TINY_EXPERIMENTS, encoding="utf-8")
    (tmp_path / "results").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compile-cache")
