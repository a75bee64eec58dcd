"""A sweep's members share a measuring process as long as nothing goes wrong in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelbook import catalog
from kernelbook.catalog import Catalog
from kernelbook.errors import RecordError
from kernelbook.records import Record
from kernelbook.runner.compiling import drop_stood_for
from kernelbook.runner.measure_stage import has_what_is_asked
from kernelbook.runner.measuring import MeasureSettings, measure
from kernelbook.runner.options import parse
from kernelbook.runner.process import Crew
from test_runner_measuring import DOUBLE_CU

TESTS = Path(__file__).resolve().parent

EXPERIMENTS = """
from dataclasses import replace
from kernelbook.experiment import *

SIZES = Sweep("sizes", Text("", ""))


def kernel(name):
    return Kernel(name=name, source="twice.cu", entry="twice", args=("x", "y", "n"),
                  grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1), block=lambda s, t: (128, 1, 1),
                  title=Text(name, name))


def doubling(n, *names):
    return Experiment(
        name=f"doubling_{n}", title=Text("", ""), shape={"n": n}, emulator_shape={"n": 32},
        ragged=(),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=lambda xp, inputs, shape: {"y": inputs["x"].astype(xp.float64) * 2},
        flops=lambda s: s["n"], tolerance=Tolerance(relative=0.0, absolute=1e-30),
        variants=(*map(kernel, names), Library("library", "double", Text("", ""))), sweep=SIZES,
    )


EXPERIMENTS = [
    doubling(100, "fast"), doubling(200, "fast"), doubling(300, "writes_nothing"),
    doubling(400, "faults"), doubling(500, "fast"), doubling(600, "fast"),
    replace(doubling(700, "fast"), sweep=None), replace(doubling(800, "fast"), sweep=None),
]
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    root = tmp_path_factory.mktemp("swept")
    chapter = root / "kernels" / "01_fake"
    chapter.mkdir(parents=True)
    (chapter / "twice.cu").write_text(DOUBLE_CU)
    (chapter / "experiments.py").write_text(EXPERIMENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS))
        patch.setenv("FAKE_GPU_IDENTITY", f"{os.getpid()}-{root.name}")
        yield catalog.load(root)


@pytest.fixture(scope="module")
def records(tree: Catalog, compile_cache: Path) -> dict[str, Record]:
    settings = MeasureSettings(
        tree.root, quick=True, profile=True, cache_dir=compile_cache,
        backend="fakes.gpu:FakeBackend",
    )  # fmt: skip
    found = {}
    with Crew(settings) as crew:
        for experiment in tree.experiments:
            if experiment.sweep is not None:
                found[experiment.name] = measure(experiment, None, settings, str, crew)
        alone = MeasureSettings(
            tree.root, quick=True, cache_dir=compile_cache, backend="fakes.gpu:FakeBackend"
        )
        for name in ("doubling_700", "doubling_800"):
            found[name] = measure(tree.experiment(name), None, alone, str, crew)
    return found


Process = Callable[[int], str]


@pytest.fixture
def process(records: dict[str, Record]) -> Process:
    return lambda n: records[f"doubling_{n}"].notes["process"]


def test_members_share_a_process_while_all_goes_well(
    records: dict[str, Record], process: Process
) -> None:
    assert process(100) == process(200) == process(300)
    for n in (100, 200, 500, 600):
        assert {r.status for r in records[f"doubling_{n}"].results} == {"ok"}


def test_a_member_with_a_failed_row_is_the_last_of_its_process(
    records: dict[str, Record], process: Process
) -> None:
    wrong = records["doubling_300"].result("writes_nothing")
    assert wrong is not None
    assert wrong.reason.startswith("wrong at n=300")
    assert process(400) != process(300)


def test_a_fault_costs_its_row_and_a_process(records: dict[str, Record], process: Process) -> None:
    lost = records["doubling_400"].result("faults")
    assert lost is not None
    assert "illegal memory access" in lost.reason
    library = records["doubling_400"].result("library")
    assert library is not None
    assert library.status == "ok"
    # What is left of it was measured by a fresh process, in which nothing has gone wrong.
    assert process(300) != process(400) == process(500) == process(600)


def test_experiments_of_no_sweep_have_processes_of_their_own(process: Process) -> None:
    assert len({process(600), process(700), process(800)}) == 3


def test_a_sweep_is_not_read_by_ncu_though_a_profile_was_asked_for(
    tree: Catalog, records: dict[str, Record]
) -> None:
    record = records["doubling_100"]
    assert "ncu" not in record.notes
    asked = parse(tree.root, ["--profile", "--quick"])
    assert has_what_is_asked(record, tree.experiment("doubling_100"), asked)


def test_records_of_members_that_another_one_stands_for_are_removed(
    tree: Catalog, tmp_path: Path
) -> None:
    for evidence in ("compiled", "counted"):
        folder = tmp_path / "data" / evidence
        folder.mkdir(parents=True)
        for n in (100, 200, 300, 700):
            (folder / f"doubling_{n}.json").write_text("{}")
    drop_stood_for(tmp_path, tree)
    left = sorted(p.relative_to(tmp_path / "data").as_posix() for p in tmp_path.rglob("*.json"))
    assert left == [f"{e}/doubling_{n}.json" for e in ("compiled", "counted")
                    for n in (100, 300, 700)]  # fmt: skip
    (tmp_path / "data" / "compiled" / "doubling_200.json").mkdir()
    with pytest.raises(RecordError, match="cannot be removed"):
        drop_stood_for(tmp_path, tree)
