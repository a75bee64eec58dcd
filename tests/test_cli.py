"""The command as a user types it: modes, bad input, exit codes, whole files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kernelbook.errors import CompileError
from kernelbook.gpu import device_info
from kernelbook.records import load
from kernelbook.runner.cli import main
from tiny import ROOT

RUN_ALL = ROOT / "scripts" / "run_all.py"


def run(project: Path, *arguments: str) -> int:
    return main(["--no-gpu", *arguments], root=project)


def test_a_run_writes_records_and_a_second_one_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project) == 0
    out = capsys.readouterr().out
    assert "GPU not used" in out
    record = load(project / "results/data/compiled/scale_1k.json")
    archs = [c.arch for c in record.results[0].compilations]
    assert archs == ["sm_75", "sm_80", "sm_89", "sm_90", "sm_120"]
    files = {p: p.read_bytes() for p in (project / "results").rglob("*") if p.is_file()}
    assert any(p.name == "01_tiny.md" for p in files)
    assert any(p.name == "summary.csv" for p in files)
    assert run(project) == 0
    assert {p: p.read_bytes() for p in (project / "results").rglob("*") if p.is_file()} == files
    assert run(project, "--check") == 0


def test_a_changed_kernel_is_named_by_check_and_taken_again_by_a_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(project)
    source = project / "kernels/01_tiny/scale.cu"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("2.0f * x[i]", "x[i] + x[i]"), encoding="utf-8")
    capsys.readouterr()
    assert run(project, "--check") == 1
    assert "scale_1k" in capsys.readouterr().err
    assert run(project) == 0
    assert run(project, "--check") == 0


def test_a_kernel_that_does_not_compile_costs_its_own_row_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = project / "kernels/01_tiny"
    broken = (chapter / "scale.cu").read_text(encoding="utf-8").replace("2.0f", "two")
    (chapter / "broken.cu").write_text(broken, encoding="utf-8")
    file = chapter / "experiments.py"
    text = file.read_text(encoding="utf-8")
    kernel = re.search(r"            Kernel\(.*?\n            \),\n", text, re.S)
    assert kernel is not None
    second = kernel[0].replace('"scale"', '"broken"', 1).replace("scale.cu", "broken.cu")
    file.write_text(text.replace(kernel[0], kernel[0] + second), encoding="utf-8")
    assert run(project) == 1
    error = capsys.readouterr().err
    failed = [line for line in error.splitlines() if line.startswith("scale_1k/broken")]
    assert len(failed) == 2, "to compile, and to count"
    assert all("broken.cu:5" in line for line in failed)
    assert 'identifier "two" is undefined' in error
    record = load(project / "results/data/compiled/scale_1k.json")
    assert [(r.variant, r.status) for r in record.results] == [
        ("scale", "ok"),
        ("broken", "failed"),
    ]
    assert str(project) not in (project / "results/data/compiled/scale_1k.json").read_text()
    assert run(project, "--only", "scale") == 0


def test_a_kernel_in_two_experiments_is_verified_as_each_of_them_says(project: Path) -> None:
    file = project / "kernels/01_tiny/experiments.py"
    text = file.read_text(encoding="utf-8")
    more = """
from dataclasses import replace
EXPERIMENTS.append(replace(EXPERIMENTS[0], name="scale_2k", ragged=({"n": 7},)))
"""
    file.write_text(text + more, encoding="utf-8")
    counted = project / "results/data/counted"
    assert run(project) == 0
    sizes = {
        name: [v.shape["n"] for v in load(counted / f"{name}.json").results[0].verifications]
        for name in ("scale_1k", "scale_2k")
    }
    assert sizes == {"scale_1k": [256, 1, 33], "scale_2k": [256, 7]}
    files = {p: p.read_bytes() for p in counted.iterdir()}
    assert run(project) == 0
    assert {p: p.read_bytes() for p in counted.iterdir()} == files
    file.write_text(text.replace('{"n": 33}', '{"n": 65}') + more, encoding="utf-8")
    assert run(project) == 0  # the source is the same, but nobody has verified it at 65
    record = load(counted / "scale_1k.json")
    assert [v.shape["n"] for v in record.results[0].verifications] == [256, 1, 65]
    assert (counted / "scale_2k.json").read_bytes() == files[counted / "scale_2k.json"]


def test_a_comment_that_moves_lines_moves_what_was_counted_by_line(project: Path) -> None:
    assert run(project) == 0
    source = project / "kernels/01_tiny/scale.cu"
    file = project / "results/data/counted/scale_1k.json"
    before = load(file).results[0]
    source.write_text("// A remark.\n" + source.read_text(encoding="utf-8"), encoding="utf-8")
    assert run(project, "--check") == 0, "no number has changed"
    assert run(project) == 0
    after = load(file).results[0]
    assert after.counts == before.counts
    moved = {f"scale.cu:{int(line.rpartition(':')[2]) + 1}" for line in before.lines}
    assert set(after.lines) == moved


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--only", "scal_1k"], "did you mean 'scale_1k'"),
        (["--check", "--render"], "exclude each other"),
        (["--publish"], "need a GPU"),
    ],
)
def test_bad_arguments_are_one_sentence(
    project: Path, arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, *arguments) == 2
    error = capsys.readouterr().err
    assert what in error
    assert len(error.strip().splitlines()) == 1


def test_a_foreign_file_among_the_records_is_named_before_anything_runs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = project / "results/data/measured/x/y.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text('{"hello": 1}', encoding="utf-8")
    assert run(project) == 2
    error = capsys.readouterr().err
    assert "y.json" in error
    assert "'hello'" in error
    assert not (project / "results/data/compiled").exists()


def test_a_results_folder_that_cannot_be_written_is_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = project / "blocked"
    blocked.write_text("a file", encoding="utf-8")
    assert run(project, "--results", str(blocked)) != 0
    error = capsys.readouterr().err
    assert "blocked" in error
    assert "Traceback" not in error


def test_list_names_everything_and_runs_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "--list") == 0
    out = capsys.readouterr().out
    assert "01_tiny" in out
    assert "scale_1k" in out
    assert "one element a thread" in out
    assert not list((project / "results").iterdir())


def test_results_can_lie_elsewhere(project: Path, tmp_path: Path) -> None:
    assert run(project, "--results", str(tmp_path / "elsewhere")) == 0
    assert (tmp_path / "elsewhere/data/compiled/scale_1k.json").is_file()
    assert not list((project / "results").iterdir())


@pytest.mark.parametrize(
    ("arguments", "there", "code"), [([], False, 0), (["--profile"], False, 1), ([], True, 1)]
)
def test_a_run_fails_where_it_was_to_measure_and_could_not(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    there: bool,
    code: int,
) -> None:
    """A machine without a GPU is no failure; a GPU whose driver is too old is one."""
    monkeypatch.setattr(device_info, "probe", lambda index: "the driver 1.0 is too old")
    monkeypatch.setattr(device_info, "present", lambda: there)
    assert main(arguments, root=project) == code
    said = capsys.readouterr()
    assert "the driver 1.0 is too old: kernels are compiled" in said.out
    assert ("not measured: the driver 1.0 is too old" in said.err) == (code == 1)
    assert (project / "results/data/counted/scale_1k.json").is_file(), "the rest goes on"


def test_without_its_dependencies_the_command_says_what_to_do(tmp_path: Path) -> None:
    bare = subprocess.run(
        [sys.executable, "-S", "-E", str(RUN_ALL), "--list"], capture_output=True, text=True
    )
    assert bare.returncode != 0
    assert "make run" in bare.stderr
    assert len(bare.stderr.strip().splitlines()) == 1


def test_an_interrupt_leaves_only_whole_files(tmp_path: Path) -> None:
    for delay in (0.4, 0.9, 1.4):
        results = tmp_path / f"results-{delay}"
        process = subprocess.Popen(
            [sys.executable, str(RUN_ALL), "--no-gpu", "--results", str(results)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
        assert process.returncode in (130, -signal.SIGINT), error
        assert "Traceback" not in error or process.returncode == -signal.SIGINT
        assert not list(results.rglob("*.part"))
        for path in results.rglob("data/**/*.json"):
            load(path)


# ---- what a terminal, a disk and a script get ----------------------------------------------


def run_command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "run_all.py"), *arguments],
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_output_that_finds_no_room_is_one_sentence() -> None:
    for arguments in (["--list"], ["--compare", "data", "data", "--json", "-"]):
        with open("/dev/full", "w") as full:
            done = run_command(*arguments, stdout=full)
        assert done.returncode == 2
        assert done.stderr == "run_all: the output cannot be written: No space left on device\n"


def test_a_terminal_that_lacks_characters_gets_the_others() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_command("--list", stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "vector_add_64m" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reproduce", ""], ["--annotate", " "], ["--results", ""], ["--compare", "data", ""],
        ["--selftest", "--json", ""],
    ],
)  # fmt: skip
def test_an_empty_name_is_refused_and_means_nothing_else(
    project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, root=project) == 2
    assert capsys.readouterr().err.endswith("is given an empty name\n")
    assert list((project / "results").iterdir()) == []


def test_a_home_that_is_nobodys_and_a_name_too_long_are_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("~no_such_user/x", "x" * 300):
        assert main(["--compare", name, name], root=project) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_json_on_standard_output_is_json_and_nothing_else(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--selftest", "--no-gpu", "--json", "-"], root=project) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["passed"] is True
    assert "on synthetic series" in captured.err


def test_an_interrupt_within_a_finaliser_is_not_lost(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def interrupted(*_: Any) -> None:
        Finalised()
        time.sleep(60)

    monkeypatch.setattr("kernelbook.runner.cli.list_everything", interrupted)
    assert main(["--list"], root=project) == 130
    assert capsys.readouterr().err.startswith("run_all: interrupted")


def test_an_interrupt_does_not_wait_for_compilations_that_have_not_begun(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def compile_kernel(experiment: Any, kernel: Any, arch: str, cache: Path) -> None:
        begun.append(arch)
        time.sleep(0.2)  # all have been asked for by now
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread waits for this one
        time.sleep(0.2)
        raise CompileError("compiled after all")

    monkeypatch.setattr("kernelbook.runner.compiling.compile_kernel", compile_kernel)
    monkeypatch.setattr("kernelbook.runner.compiling.os.cpu_count", lambda: 1)
    assert run(project) == 130
    assert len(begun) < 5  # of five architectures


def test_a_compiler_that_takes_the_handlers_of_signals_does_not_lose_one(project: Path) -> None:
    """As NVRTC does it: with C handlers of its own, here such that nothing happens."""
    source = (
        "import ctypes, runpy, signal, sys, time\n"
        "import kernelbook.runner.compiling as compiling\n"
        "def compile_kernel(*_):\n"
        "    for number in (2, 15): ctypes.CDLL(None).signal(number, ctypes.c_void_p(1))\n"
        "    print('taken', flush=True); time.sleep(3); raise OSError('compiled after all')\n"
        "compiling.compile_kernel = compile_kernel\n"
        # One at a time: to ignore a signal a second time discards one that waits to be taken.
        "compiling.os.cpu_count = lambda: 1\n"
        "sys.argv = ['run_all.py', '--no-gpu', '--only', 'latency_l1', '--results',"
        f" {str(project)!r}]\n"
        f"runpy.run_path({str(RUN_ALL)!r}, run_name='__main__')\n"
    )
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {2, 15})\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "PYTHONUNBUFFERED": "1"}
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [sys.executable, "-c", block + source],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert process.stdout is not None
        while "taken" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        assert (process.returncode, error.count("run_all: interrupted")) == (130, 1), error
