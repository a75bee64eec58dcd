"""The staleness key: a comment changes nothing, a token does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelbook import catalog
from kernelbook.devices import sheets
from kernelbook.experiment import Experiment, Kernel
from kernelbook.staleness import kernel_key

TARGET = sheets().arch("sm_90").target(sms=132, l2_bytes=1)


def key(experiment: Experiment, arch: str = "sm_90") -> str:
    return kernel_key(experiment, experiment.kernels[0], arch, experiment.shape, TARGET)


@pytest.fixture
def source(project: Path) -> Path:
    return project / "kernels/01_tiny/scale.cu"


@pytest.mark.parametrize(
    "harmless",
    [
        lambda s: s.replace("// doubled", "// twice as much"),
        lambda s: s.replace("    ", "\t"),
        lambda s: s.replace("// [scale]\n", "").replace("// [/scale]\n", ""),
        lambda s: "/* header */\n\n" + s,
    ],
)
def test_comments_marks_and_white_space_change_nothing(
    project: Path, source: Path, harmless: Callable[[str], str]
) -> None:
    experiment = catalog.load(project).experiments[0]
    before = key(experiment)
    source.write_text(harmless(source.read_text(encoding="utf-8")), encoding="utf-8")
    assert key(experiment) == before


def test_a_token_changes_it(project: Path, source: Path) -> None:
    experiment = catalog.load(project).experiments[0]
    before = key(experiment)
    source.write_text(source.read_text(encoding="utf-8").replace("2.0f", "2.5f"), encoding="utf-8")
    assert key(experiment) != before


def test_a_token_of_an_include_changes_it(project: Path, source: Path) -> None:
    part = source.parent / "part.cuh"
    part.write_text("#define A 1\n", encoding="utf-8")
    source.write_text('#include "part.cuh"\n' + source.read_text(encoding="utf-8"))
    experiment = catalog.load(project).experiments[0]
    before = key(experiment)
    part.write_text("#define A 2\n", encoding="utf-8")
    assert key(experiment) != before


@pytest.mark.parametrize(
    "change",
    [
        {"macros": {"X": 1}},
        {"options": ("--use_fast_math",)},
        {"block": lambda s, t: (64, 1, 1)},
        {"grid": lambda s, t: (1, 1, 1)},
        {"dynamic_shared": lambda s: 4},
    ],
)
def test_what_changes_the_launch_changes_it(project: Path, change: dict[str, object]) -> None:
    experiment = catalog.load(project).experiments[0]
    kernel: Kernel = replace(experiment.kernels[0], **change)  # type: ignore[arg-type]
    assert key(replace(experiment, variants=(kernel,))) != key(experiment)


@pytest.mark.parametrize("change", [{"seed": 2}, {"dtype": "float16"}])
def test_seed_and_type_change_it(project: Path, change: dict[str, object]) -> None:
    experiment = catalog.load(project).experiments[0]
    assert key(replace(experiment, **change)) != key(experiment)  # type: ignore[arg-type]


def test_another_architecture_has_another_key(project: Path) -> None:
    experiment = catalog.load(project).experiments[0]
    assert key(experiment, "sm_89") != key(experiment)
