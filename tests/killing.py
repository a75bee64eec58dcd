"""Kills run_all at random moments, again and again: a program of its own, since it forks.

``python killing.py PROJECT ITERATIONS SEED`` prints one JSON object: what was seen, and everything
that was wrong. Imports and the compiler's cache are shared by all the runs, so that a run takes a
fraction of a second and the moments fall on its work, not on Python's start.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
INTERRUPTED = 130
KINDS, WEIGHTS = ("nothing", "rendered", "compiled"), (1, 4, 4)  # the first takes much longer
LONGEST_S = 60.0  # after this long an interrupted run counts as hanging


def start(project: Path, results: Path, errors: Path) -> int:
    """A run in a process group of its own; returns its process id."""
    from kernelbook.runner.cli import main

    child = os.fork()
    if child:
        return child
    code = INTERRUPTED
    try:
        os.setpgid(0, 0)
        for number, file in ((1, "/dev/null"), (2, str(errors))):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        code = main(["--no-gpu", "--results", str(results)], root=project)
        sys.stderr.flush()
    except KeyboardInterrupt:
        pass  # before the command was ready for it
    finally:
        os._exit(code)
    return 0


def wait(child: int, longest_s: float) -> int | None:
    """The exit code, negative for a signal; None where the process is still there."""
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def prepare(results: Path, whole: Path, kind: str) -> None:
    """A state to start from: nothing, or all but what ``kind`` names."""
    shutil.rmtree(results, ignore_errors=True)
    if kind == "nothing":
        return
    shutil.copytree(whole, results)
    if kind == "rendered":
        for path in results.glob("*.*"):
            path.unlink()
    else:
        shutil.rmtree(results / "data" / kind)


def undated(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d(T[\d:]+Z)?", "DATE", text)


def contents(results: Path) -> dict[str, str]:
    """Every file by name, dates left out."""
    return {
        str(path.relative_to(results)): undated(path.read_text(encoding="utf-8"))
        for path in sorted(results.rglob("*"))
        if path.is_file()
    }


def look(results: Path, expected: dict[str, str]) -> list[str]:
    """What is wrong with the files that are there; leftovers of a kill are no files of ours."""
    found = contents(results) if results.is_dir() else {}
    return [
        f"{name} is not whole"
        for name, text in found.items()
        if not Path(name).name.endswith(".part") and expected.get(name) != text
    ]


def main(project: Path, iterations: int, seed: int) -> dict[str, object]:
    from kernelbook.compiler import nvrtc_version

    nvrtc_version()
    rng = random.Random(seed)
    whole, results = project / "whole", project / "results"
    errors = project / "errors"
    code = wait(start(project, whole, errors), LONGEST_S)
    wrong = [] if code == 0 else [f"the first run ended with {code}: {errors.read_text()}"]
    expected = contents(whole)
    lengths = {}
    for kind in KINDS:
        prepare(results, whole, kind)
        started = time.monotonic()
        wait(start(project, results, errors), LONGEST_S)
        lengths[kind] = time.monotonic() - started
    seen: Counter[str] = Counter()
    for iteration in range(iterations):
        kind = rng.choices(KINDS, WEIGHTS)[0]
        prepare(results, whole, kind)
        errors = project / f"errors-{iteration}"  # what a killed run's workers still say is its own
        errors.write_text("")
        child = start(project, results, errors)
        time.sleep(rng.uniform(0.0, lengths[kind]))
        number = rng.choice(SIGNALS)
        os.kill(child, number)
        code = wait(child, LONGEST_S)
        where = f"{iteration} ({kind}, {number.name})"
        if code is None:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            wrong.append(f"{where}: hangs")
            continue
        seen[f"{number.name} {code}"] += 1
        if code not in (0, INTERRUPTED, -number):
            wrong.append(f"{where}: ended with {code}")
        said = errors.read_text(encoding="utf-8")
        if "Traceback" in said and number != signal.SIGKILL:
            wrong.append(f"{where}: {said[-600:]}")
        wrong += [f"{where}: {text}" for text in look(results, expected)]
        if iteration % 10 == 9:  # the next run takes up what is missing
            code = wait(start(project, results, errors), LONGEST_S)
            left = {n: t for n, t in contents(results).items() if not n.endswith(".part")}
            if code != 0 or left != expected:
                wrong.append(f"after {where} the next run ended with {code}, not as the first did")
    return {"seen": seen, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
