"""Runs that are killed, share their folder or find no room: whole files, one clear sentence."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kernelbook import codec
from kernelbook.errors import RecordError
from kernelbook.records import Record, load
from kernelbook.runner.cli import main
from kernelbook.sampling import (
    FULL,
    SampleRefused,
    Series,
    WarmUp,
    interleave,
    warm_up,
)
from test_records import RECORD
from tiny import ROOT

TESTS = Path(__file__).resolve().parent
COMMAND = "import sys; from pathlib import Path; from kernelbook.runner.cli import main; "
COMMAND += "sys.exit(main(sys.argv[2:], root=Path(sys.argv[1])))"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "scripts"), str(TESTS)])}


def start(project: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(project), "--no-gpu", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), **options,
    )  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---- killed --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3, 4, 5])  # a hundred moments each
def test_a_run_killed_at_any_moment_leaves_whole_files_and_the_next_one_resumes(
    project: Path, seed: int
) -> None:
    done = subprocess.run(
        [sys.executable, str(TESTS / "killing.py"), str(project), "100", str(seed)],
        capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    # All three signals came while a run was at work, not only before or after it.
    assert found["seen"]["SIGKILL -9"] >= 10
    assert found["seen"]["SIGINT 130"] >= 10
    assert found["seen"]["SIGTERM 130"] >= 10


@pytest.mark.skipif(
    not Path("/proc/self/task").exists() or not any(Path("/proc/self/task").glob("*/children")),
    reason="this kernel does not list the children of a process",
)
def test_workers_do_not_outlive_a_run_that_is_killed(project: Path) -> None:
    run = start(project, start_new_session=True)
    children: list[int] = []
    while run.poll() is None and not children:
        children = workers(run.pid)
    assert children
    run.kill()
    run.communicate()
    deadline = time.monotonic() + 60
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, children))


def workers(pid: int) -> list[int]:
    """Children of a process that execute kernels."""
    try:
        tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [
            c for c in map(int, tasks) if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()
        ]
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_measuring_child_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'from "
        "kernelbook.runner.orphans import die_with_parent; import time; die_with_parent(); "
        "print(1, flush=True); time.sleep(600)'], stdout=subprocess.PIPE, start_new_session=True); "
        "child.stdout.read(1); print(child.pid, flush=True); child.wait()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert run.stdout is not None
    child = int(run.stdout.readline())
    assert alive(child)
    run.kill()
    run.communicate()
    deadline = time.monotonic() + 60
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_what_a_killed_run_left_half_written_is_removed_when_it_is_old(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.json.x.part", tmp_path / "data" / ".b.json.y.part"
    young.parent.mkdir()
    for file in (old, young):
        file.write_text("{")
    hours_ago = time.time() - 2 * codec.LEFTOVER_S
    os.utime(old, (hours_ago, hours_ago))
    codec.ready_to_write(tmp_path)
    assert not old.exists()
    assert young.exists()


# ---- shared --------------------------------------------------------------------------------


def test_runs_at_once_in_one_folder_leave_what_one_leaves(project: Path) -> None:
    assert main(["--no-gpu"], root=project) == 0
    results = project / "results"
    expected = sorted(files(results))
    pages = {n: c for n, c in files(results).items() if not n.startswith("data")}
    for path in results.rglob("*"):
        if path.is_file():
            path.unlink()
    runs = [start(project) for _ in range(3)]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said
    found = files(results)
    assert sorted(found) == expected
    assert {n: c for n, c in found.items() if not n.startswith("data")} == pages
    for path in results.rglob("*.json"):
        load(path)


# ---- no room, no right ---------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file opened for writing is /dev/full: the system's own 'no space left'."""

    def fdopen(handle: int, *args: Any, **kwargs: Any) -> Any:
        os.close(handle)
        return open("/dev/full", *args, **kwargs)

    monkeypatch.setattr(codec.os, "fdopen", fdopen)


def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(
    tmp_path: Path, full_disk: None
) -> None:
    file = tmp_path / "x.json"
    file.write_text("old")
    with pytest.raises(RecordError) as caught:
        codec.write_atomically(file, "new")
    assert str(caught.value) == f"{file}: cannot be written: {os.strerror(errno.ENOSPC)}"
    assert files(tmp_path) == {"x.json": b"old"}


def test_a_disk_without_room_is_said_before_anything_runs(project: Path) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    run = start(project, preexec_fn=little_room)
    out, said = run.communicate()
    assert run.returncode == 2
    assert said == f"run_all: {project / 'results'}: cannot be written: File too large\n"
    assert "compile" not in out
    assert files(project / "results") == {}


def test_a_folder_that_takes_no_files_is_said_before_anything_runs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--no-gpu", "--results", "/proc/kernelbook"], root=project) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("run_all: /proc/kernelbook: cannot be written: ")
    assert len(captured.err.splitlines()) == 1
    assert "compile" not in captured.out


def without_privilege() -> None:
    """What root executes after this has no right to pass over permissions."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_read_only_folder_is_one_sentence(project: Path) -> None:
    results = project / "results"
    results.chmod(0o500)
    try:
        run = start(project, preexec_fn=without_privilege)
        _, said = run.communicate()
    finally:
        results.chmod(0o700)
    assert (run.returncode, said) == (
        2,
        f"run_all: {results}: cannot be written: Permission denied\n",
    )
    assert files(results) == {}


@pytest.mark.parametrize("unreadable", ["results", "results/data/measured", "results/local"])
def test_a_folder_that_cannot_be_read_is_one_sentence(project: Path, unreadable: str) -> None:
    folder = project / unreadable
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0)
    try:
        run = start(project, preexec_fn=without_privilege)
        _, said = run.communicate()
    finally:
        folder.chmod(0o700)
    assert run.returncode == 2
    assert str(folder) in said
    assert said.endswith("Permission denied\n")
    assert len(said.splitlines()) == 1


def test_a_compile_cache_that_cannot_be_written_costs_time_only(project: Path) -> None:
    (project / ".cache").write_text("a file where a folder should be")
    assert main(["--no-gpu"], root=project) == 0


# ---- clocks that jump ----------------------------------------------------------------------


def taken(*times_s: float) -> Series:
    """A series sampled while the host's clock shows these times, one a reading."""
    one = Series("x", FULL)
    readings = iter(times_s)

    def sample(name: str) -> float:
        if len(one.samples) >= FULL.min_samples:
            raise SampleRefused("enough")
        return 100.0

    interleave([one], sample, lambda: next(readings, times_s[-1]))
    return one


def test_a_clock_that_jumps_ahead_ends_a_series_with_enough_samples() -> None:
    assert taken(0.0, 1e6).stop.startswith("95 % interval of the median")
    assert len(taken(0.0, 1e6).samples) == FULL.min_samples


def test_a_clock_that_jumps_back_does_not_keep_a_series_from_ending() -> None:
    assert len(taken(0.0, -1e6).samples) == FULL.min_samples


def test_a_clock_that_jumps_does_not_keep_a_warm_up_from_ending() -> None:
    readings = iter([0.0, 1e6])
    said = warm_up(lambda: None, lambda: next(readings, 1e6), lambda: 1000.0, WarmUp())
    assert "clock" in said


def test_a_host_clock_that_went_back_fails_the_row_and_says_so() -> None:
    one = Series("x", FULL)
    one.add(-5.0, -5e-6)
    assert one.failure.startswith("a sample of -5.00 µs is under the floor of 0.00 µs")


def test_a_record_of_another_century_is_still_a_record(tmp_path: Path) -> None:
    from dataclasses import replace

    old: Record = replace(RECORD, date="1970-01-01T00:00:00Z")
    codec.write_atomically(tmp_path / "x.json", codec.to_json(old))
    assert load(tmp_path / "x.json") == old
