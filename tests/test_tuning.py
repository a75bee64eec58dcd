"""Choosing configurations by size: through the real process, on a fake device; and the table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelbook import catalog
from kernelbook.errors import DeviceError, KernelbookError, UsageError
from kernelbook.gpu import device_info
from kernelbook.runner import process, tune_stage
from kernelbook.runner.cli import main
from kernelbook.runner.options import parse
from kernelbook.runner.progress import Display
from kernelbook.runner.provenance import Provenance
from kernelbook.runner.tune_stage import shapes_of, tune_all
from kernelbook.runner.tuning_table import Choice, shape_key, write_table
from test_runner_measuring import DOUBLE_CU
from tiny import ROOT

TESTS = Path(__file__).resolve().parent
ORIGIN = Provenance("0123456789abcdef", False, "2026-11-30T01:02:03Z")

# Doubling with configurations whose behaviour and time tests/fakes/gpu.py makes up by name: "fast"
# takes 50 µs, "slow" 200 µs; "writes_nothing" is as fast as "fast", "impossible" far faster than
# all. Below 64 elements "slow" is offered alone with wrong ones, above it "fast" as well.
EXPERIMENTS = """
import json
from pathlib import Path

from kernelbook.experiment import *

FOLDER = Path(__file__).resolve().parent
TABLE = FOLDER / "tuning.json"
SMALL = ("slow", "writes_nothing")
NAMES = tuple(json.loads(TABLE.read_text())["configurations"])


def kernel(name):
    return Kernel(name=name, source="twice.cu", entry="twice", args=("x", "y", "n"),
                  grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1), block=lambda s, t: (128, 1, 1),
                  title=Text(name, name))


def doubling(shape, names):
    return Experiment(
        name="doubling", title=Text("", ""), shape=shape, emulator_shape={"n": 32}, ragged=(),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=lambda xp, inputs, shape: {"y": inputs["x"].astype(xp.float64) * 2},
        flops=lambda s: s["n"], tolerance=Tolerance(relative=0.0, absolute=1e-30),
        variants=(*map(kernel, names), Library("library", "double", Text("", ""))),
        folder=FOLDER,
    )


TUNING = Tuning(
    table=TABLE,
    shapes=({"n": 32}, {"n": 256}, {"n": 1000}),
    experiment=lambda s: doubling(s, [n for n in NAMES if s["n"] >= 64 or n in SMALL]),
)
EXPERIMENTS = [doubling({"n": 1000}, ["fast"])]
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "tuned"
    chapter = root / "kernels" / "01_fake"
    chapter.mkdir(parents=True)
    (chapter / "twice.cu").write_text(DOUBLE_CU)
    (chapter / "experiments.py").write_text(EXPERIMENTS)
    offer(root, "slow", "fast", "writes_nothing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS))
        patch.setenv("FAKE_GPU_IDENTITY", f"{os.getpid()}-{tmp_path.name}")
        patch.setenv("KERNELBOOK_COMMIT", "0123456789abcdef")
        yield root


def table_of(root: Path) -> Path:
    return root / "kernels" / "01_fake" / "tuning.json"


def offer(root: Path, *names: str) -> None:
    content = {
        "device": "none",
        "configurations": {name: {"BM": 1} for name in names},
        "choices": {"32": "fast", "5": "fast"},
    }
    table_of(root).write_text(json.dumps(content))


def tune(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    options = parse(root, ["--tune", *arguments])
    code = tune_all(Display(), options, catalog.load(root), "fakes.gpu:FakeBackend")
    return code, json.loads(table_of(root).read_text())


def test_the_fastest_right_configuration_is_chosen_at_each_shape(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = tune(project)
    assert table["choices"] == {"32": "slow", "5": "fast", "256": "fast", "1000": "fast"}
    assert table["device"] == "fake-gpu"
    timed = table["times"]["256"]
    assert timed["us"] == pytest.approx(50, rel=0.005)
    assert timed["baseline_us"] == pytest.approx(80, rel=0.005)
    assert timed["ratio"] == pytest.approx(1.6, rel=0.005)
    assert timed["run"].endswith(" fake-gpu 0123456789")
    assert table["times"]["32"]["ratio"] == pytest.approx(0.4, rel=0.005)
    assert "5" not in table["times"]
    said = capsys.readouterr()
    assert "the baseline's time over ours is 0.400 at least (32)" in said.out
    assert code == 1, "a configuration of the table is wrong"
    assert "configuration writes_nothing was left out at 32" in said.err


def test_the_fastest_is_not_chosen_where_it_is_wrong_though_it_hides_all_others(
    project: Path,
) -> None:
    """`vanishing` takes a thousandth of the others' time and writes nothing."""
    offer(project, "vanishing", "slow", "fast")
    code, table = tune(project, "--only", "1000")
    assert (code, table["choices"]["1000"]) == (1, "fast")


def test_only_the_shapes_asked_for_are_tuned(project: Path) -> None:
    offer(project, "slow", "fast")
    code, table = tune(project, "--only", "256")
    assert code == 0
    assert table["choices"] == {"32": "fast", "5": "fast", "256": "fast"}
    tree = catalog.load(project)
    assert shapes_of(tree, []) == {"01_fake": ("32", "256", "1000")}
    assert shapes_of(tree, ["01"]) == {"01_fake": ("32", "256", "1000")}
    assert shapes_of(tree, ["1*", "32"]) == {"01_fake": ("32", "1000")}
    with pytest.raises(UsageError, match="'7' names no chapter with a tuning table"):
        shapes_of(tree, ["1*", "7"])


def test_a_configuration_that_takes_the_device_along_costs_itself_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(project, "faults", "fast", "crashes", "out_of_memory")
    code, table = tune(project, "--only", "256", "1000")
    assert code == 1
    assert (table["choices"]["256"], table["choices"]["1000"]) == ("fast", "fast")
    said = capsys.readouterr().err
    for name in ("faults", "crashes", "out_of_memory"):
        assert f"configuration {name} was left out" in said


def test_an_interrupt_leaves_the_old_table_whole(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table_of(project).read_text()

    def interrupt(*_: object) -> process.Ended:
        raise KeyboardInterrupt

    monkeypatch.setattr(process.Worker, "_follow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tune(project)
    assert table_of(project).read_text() == before
    assert sorted(p.name for p in table_of(project).parent.glob("*.part")) == []


def test_a_tuning_without_a_right_configuration_is_one_sentence(project: Path) -> None:
    offer(project, "writes_nothing")
    before = table_of(project).read_text()
    with pytest.raises(DeviceError, match="no configuration is right at 32"):
        tune(project)
    assert table_of(project).read_text() == before


def test_without_a_gpu_the_command_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device_info, "probe", lambda index: "no NVIDIA driver here")
    monkeypatch.setattr(tune_stage, "backend_class", lambda name: device_info)
    assert main(["--tune"], root=project) == 2
    assert "--tune times kernels" in capsys.readouterr().err
    assert main(["--tune", "--no-gpu"], root=project) == 2
    assert main(["--tune", "--check"], root=project) == 2


# ---- the table ------------------------------------------------------------------------------


def test_a_table_is_written_only_where_it_changes_and_names_what_it_has(project: Path) -> None:
    tuning = catalog.load(project).tunings["01_fake"]
    choices = [Choice("8x8", "slow", 4.0, 5.0)]
    assert write_table(tuning, "card", ORIGIN, choices)
    assert not write_table(tuning, "card", ORIGIN, choices)
    table = json.loads(tuning.table.read_text())
    assert table["choices"] == {"32": "fast", "5": "fast", "8x8": "slow"}
    assert table["times"] == {
        "8x8": {"us": 4.0, "baseline_us": 5.0, "ratio": 1.25, "run": "2026-11-30 card 0123456789"}
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"configurations": {}, "choices": {}}', "has no configuration 'slow'"),
        ("{", "is no tuning table"),
        ('{"configurations": {}}', "is no tuning table"),
        ("[]", "is no tuning table"),
    ],
)
def test_a_broken_table_is_left_alone(project: Path, text: str, what: str) -> None:
    tuning = catalog.load(project).tunings["01_fake"]
    tuning.table.write_text(text)
    with pytest.raises(KernelbookError, match=what):
        write_table(tuning, "card", ORIGIN, [Choice("8x8", "slow", 4.0, 5.0)])
    assert tuning.table.read_text() == text


def test_the_tables_of_this_repository_cover_their_shapes_and_name_their_configurations() -> None:
    tree = catalog.load(ROOT)
    assert tree.tunings
    for tuning in tree.tunings.values():
        table = json.loads(tuning.table.read_text())
        assert {shape_key(s) for s in tuning.shapes} <= set(table["choices"])
        assert set(table["choices"].values()) <= set(table["configurations"])
        for key, timed in table.get("times", {}).items():
            assert key in table["choices"]
            assert timed["ratio"] == pytest.approx(timed["baseline_us"] / timed["us"], abs=2e-3)


def test_the_tuning_tables_offers_are_what_the_experiment_times() -> None:
    for tuning in catalog.load(ROOT).tunings.values():
        configurations = json.loads(tuning.table.read_text())["configurations"]
        experiment = tuning.experiment(tuning.shapes[0])
        assert {k.name for k in experiment.kernels} == set(configurations)
        assert any(v.kind == "library" for v in experiment.variants)


def test_every_member_of_the_published_sweep_is_in_the_table() -> None:
    tree = catalog.load(ROOT)
    choices = json.loads(tree.tunings["04_gemm"].table.read_text())["choices"]
    members = [e for e in tree.of_chapter("04_gemm") if e.sweep is not None]
    assert len(members) == 32 + 5**3 - 1
    for experiment in members:
        key = shape_key(experiment.shape)
        assert {k.configuration for k in experiment.kernels} == {choices[key]}, key
