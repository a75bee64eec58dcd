"""Kernels that cheat: on the emulator, and in the real session on a fake card or a real one.

A kernel here is wrong in one way only, and each must fail for that reason.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fakes.cheats import (
    FOLDER,
    SEED,
    BatchingCard,
    CheatingCard,
    double,
    experiment,
    kernel,
)
from kernelbook.devices import sheets
from kernelbook.experiment import (
    Arrays,
    Experiment,
    Library,
    Shape,
    Text,
)
from kernelbook.gpu.backend import Backend, Routine
from kernelbook.records import Record, Result
from kernelbook.runner.counting import count_kernel
from kernelbook.runner.request import Request, Teller
from kernelbook.runner.session import Session
from kernelbook.verify import Problem

H200 = sheets().device("nvidia-h200")


# Name (what stands after the colon is a variant of the same entry) -> what must be said of it.
CHEATS = {
    "writes_nothing": "elements are wrong; first y[0, 0] is NaN",
    "writes_zeros": "is 0, should be",
    "writes_nan": "elements are wrong; first y[0, 0] is NaN",
    "past_the_end": "writes 4 bytes at y[512], of an array of 512 elements",
    "wrong_last_row": "elements are wrong; first y[7, 0]",
    "ragged_only": "1 of 1 elements are wrong",
    "changes_input": "changes its input x",
    "first_call_only": "wrong",
    "every_other_call": "wrong",
    "remembers": "launch 2: ",
    "previous_result": "launch 2: ",
    "one_seed:verified": "launch 2: ",
    "one_seed:timed": "elements are wrong; first y[0, 0] is NaN",
    "races": "tile",
    "reads_past_the_end": "out of bounds: ",
    "restores_the_band": "bytes at y[512], of an array of 512 elements",
    "works_on_poison": "launch 2: ",
}
# Right whenever somebody looks, which is all that an emulator can do: what they lie about is time.
# Name -> what the session says.
TIME_CHEATS = {
    "leaves_what_is_done": "a launch takes ",
    "answers_from_a_table": "a launch takes ",
}


# ---- on the emulator -----------------------------------------------------------------------


def emulated(name: str, cache: Path) -> Result:
    return count_kernel(experiment(), kernel(name), cache, H200.target, H200.arch.name)


def test_the_one_that_does_not_cheat_passes(compile_cache: Path) -> None:
    found = emulated("right", compile_cache)
    assert (found.status, found.reason) == ("ok", "")


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_every_cheat_fails_on_the_emulator(name: str, compile_cache: Path) -> None:
    found = emulated(name, compile_cache)
    assert found.status == "failed"
    assert CHEATS[name] in found.reason


# ---- in the real session -------------------------------------------------------------------


def session(backend: Backend, whole: Experiment, cache: Path) -> Record:
    """What a measuring child makes of the experiment, in this process."""
    names = tuple(v.name for v in whole.variants)
    request = Request(str(FOLDER.parents[1]), whole.name, names, 0, True, str(cache), "")
    return Session(whole, request, backend, Teller(io.StringIO())).run()


# No card shows what these do.
UNSEEN = ("races", "reads_past_the_end", "restores_the_band")
ON_A_CARD = [name for name in sorted(CHEATS) if name not in UNSEEN]
# Only by what happens after the timing: everything before is right.
AFTERWARDS = {
    "one_seed:verified": "wrong after timing",
    "remembers": "wrong after timing",
    "previous_result": "wrong on fresh inputs",
    **dict.fromkeys(TIME_CHEATS, "wrong on fresh inputs"),
}


@pytest.fixture(scope="module")
def fake_record(compile_cache: Path) -> Record:
    whole = experiment(*(kernel(name) for name in ("right", *ON_A_CARD, *TIME_CHEATS)))
    return session(CheatingCard(0), whole, compile_cache)


def test_the_one_that_does_not_cheat_is_measured(fake_record: Record) -> None:
    right = fake_record.result("right")
    assert right is not None
    assert right.status == "ok", right.reason
    assert len(right.timings) == 2


@pytest.mark.parametrize("name", [*ON_A_CARD, *TIME_CHEATS])
def test_every_cheat_fails_in_the_session(fake_record: Record, name: str) -> None:
    row = fake_record.result(name)
    assert row is not None
    assert row.status == "failed"
    assert row.timings == ()
    assert TIME_CHEATS.get(name, "") in row.reason
    if name in AFTERWARDS:
        assert row.reason.startswith(AFTERWARDS[name])
    else:
        assert row.reason.startswith("wrong at ")


def test_work_done_by_the_first_launch_of_a_batch_only_fails(compile_cache: Path) -> None:
    record = session(BatchingCard(0), experiment(kernel("right")), compile_cache)
    assert record.results[0].status == "failed"
    reason = "wrong as timed at m=64 n=64: launch 2 of a batch: 4096 of 4096 elements are wrong"
    assert record.results[0].reason.startswith(reason)


def test_the_reference_of_fresh_inputs_does_not_exist_while_a_kernel_runs() -> None:
    seen: list[bool] = []

    def reference(xp: Any, inputs: Arrays, shape: Shape) -> dict[str, Any]:
        seen.append(launched)
        return {"y": inputs["x"].astype(xp.float64) * 2}

    launched = False
    problem = Problem(np, experiment(reference=reference), {"m": 4, "n": 8}, SEED)
    problem.reseed(SEED + 1)
    double(problem.arrays)
    launched = True
    assert problem.check().passed
    assert seen == [False, True]  # the constructor's own, and that of the new inputs afterwards


@pytest.mark.parametrize(
    ("hidden", "reason"), [("late", "elements are wrong"), ("early", "is under the floor")]
)
def test_work_hidden_on_another_stream_fails(
    hidden: str, reason: str, compile_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheatingCard, "hidden", hidden)
    hiding = Library("hiding", "hiding", Text("", ""))
    record = session(CheatingCard(0), experiment(hiding), compile_cache)
    assert record.results[0].status == "failed"
    assert reason in record.results[0].reason


# ---- on a real card ------------------------------------------------------------------------


REAL = [*ON_A_CARD, "idle_when_hurried"]


@pytest.mark.gpu
class TestOnACard:
    """The same kernels, for real; shapes are larger, so that hiding work would pay."""

    @pytest.fixture(scope="class")
    def real(self, compile_cache: Path) -> Record:
        from kernelbook.gpu.cupy_backend import CupyBackend

        whole = experiment(*(kernel(name) for name in ("right", *REAL)))
        return session(CupyBackend(0), whole, compile_cache)

    @pytest.fixture(scope="class")
    def real_and_long(self, compile_cache: Path) -> Record:
        """At a size at which one launch is timed by itself."""
        from kernelbook.gpu.cupy_backend import CupyBackend

        whole = experiment(
            *(kernel(name) for name in ("right", *REAL, *TIME_CHEATS)), shape={"m": 256, "n": 256}
        )
        return session(CupyBackend(0), whole, compile_cache)

    def test_the_one_that_does_not_cheat_is_measured(self, real: Record) -> None:
        right = real.result("right")
        assert right is not None
        assert right.status == "ok", right.reason

    def test_the_one_that_does_not_cheat_is_measured_alone(self, real_and_long: Record) -> None:
        right = real_and_long.result("right")
        assert right is not None
        assert right.status == "ok", right.reason
        assert {t.method for t in right.timings} == {"event"}

    @pytest.mark.parametrize("name", REAL)
    def test_every_cheat_fails(self, real: Record, real_and_long: Record, name: str) -> None:
        for record in (real, real_and_long):
            row = record.result(name)
            assert row is not None
            assert row.status == "failed", name
            assert row.timings == ()

    @pytest.mark.parametrize("name", sorted(TIME_CHEATS))
    def test_every_cheat_on_time_fails(self, real_and_long: Record, name: str) -> None:
        row = real_and_long.result(name)
        assert row is not None
        assert row.status == "failed", name
        assert TIME_CHEATS[name] in row.reason

    def test_work_hidden_on_another_stream_fails(self, compile_cache: Path) -> None:
        from kernelbook.gpu.cupy_backend import CupyBackend

        class Hiding(CupyBackend):
            def routine(
                self, library: Library, experiment: Experiment, shape: Shape, arrays: Arrays
            ) -> Routine:
                aside = self.xp.cuda.Stream(non_blocking=True)

                def launch() -> None:
                    with aside:
                        self.xp.multiply(arrays["x"], np.float32(2), out=arrays["y"])

                return Routine(launch)

        hiding = Library("hiding", "hiding", Text("", ""))
        whole = experiment(hiding, shape={"m": 1 << 13, "n": 1 << 13})
        record = session(Hiding(0), whole, compile_cache)
        assert record.results[0].status == "failed"
