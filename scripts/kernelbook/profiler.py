"""Hardware counters of a program's kernels, through Nsight Compute's command line (ncu).

A child program launches the kernels; ncu runs it and prints a table, one row a launch. Clocks are
left alone (``--clock-control none``), caches are flushed by ncu before each launch, its default.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .errors import DeviceError

_PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")


@dataclass(frozen=True)
class ProfiledLaunch:
    """Counters of one launch; ``values`` by metric name, absent where ncu gave none ("n/a").

    ``parts`` holds, for metrics that ncu splits up (instructions by opcode), each part's value.
    """

    kernel: str
    grid: str
    block: str
    values: dict[str, float]
    parts: dict[str, dict[str, float]] = field(default_factory=dict)


def find_ncu() -> Path:
    """Path of ncu; raises DeviceError where it is not installed."""
    if found := shutil.which("ncu"):
        return Path(found)
    for place in _PLACES:
        matches = sorted(Path("/").glob(place.lstrip("/")))
        if matches:
            return matches[-1]
    raise DeviceError(
        "Nsight Compute's command line (ncu) is not installed",
        hint="it comes with the CUDA toolkit; put it on PATH",
    )


def ncu_version() -> str:
    """Version of ncu as it prints it, e.g. '2025.3.1.0'."""
    output = subprocess.run([str(find_ncu()), "--version"], capture_output=True, text=True)
    words = output.stdout.split("Version", 1)[-1].split()
    return words[0] if words else ""


def profile(
    command: Sequence[str],
    metrics: Sequence[str],
    *,
    kernel_regex: str = "",
    timeout_s: float = 300.0,
    env: Mapping[str, str] | None = None,
    details: bool = False,
) -> list[ProfiledLaunch]:
    """Run ``command`` under ncu and return one entry per profiled launch, in launch order.

    ``kernel_regex`` restricts profiling to kernels whose name it matches; ``env`` replaces the
    environment; ``details`` asks for the parts of metrics that have some. Raises DeviceError when
    ncu is missing, fails, or takes longer than ``timeout_s``.
    """
    arguments = [
        str(find_ncu()), "--clock-control", "none", "--csv", "--page", "raw",
        "--print-units", "base", "--print-fp", "--metrics", ",".join(metrics),
    ]  # fmt: skip
    if details:
        arguments += ["--print-metric-instances", "details"]
    if kernel_regex:
        arguments += ["--kernel-name", f"regex:{kernel_regex}"]
    try:
        done = subprocess.run(
            [*arguments, *command], capture_output=True, text=True, timeout=timeout_s, env=env
        )
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"ncu did not finish within {timeout_s:g} s") from error
    errors = [line for line in done.stdout.splitlines() if line.startswith("==ERROR==")]
    if done.returncode != 0 or errors:
        said = errors or (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise DeviceError(
            f"ncu failed (exit {done.returncode}): {' / '.join(said[-3:]) or 'nothing said'}"
        )
    return parse_raw_page(done.stdout, metrics)


def parse_raw_page(text: str, metrics: Sequence[str]) -> list[ProfiledLaunch]:
    """Read ``ncu --csv --page raw``: a header row, a row of units, then one row a launch.

    What the child or ncu print around the table ("==PROF== ...") is skipped. Raises DeviceError
    when there is no table.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        last = lines[-1] if lines else "no output"
        raise DeviceError(f"ncu printed no table: {last}")
    body = "\n".join(line for line in lines[start:] if line.startswith('"'))
    launches = []
    for row in csv.DictReader(io.StringIO(body)):
        if not row["ID"]:  # the row of units
            continue
        values, parts = {}, {}
        for metric in metrics:
            whole, _, rest = (row.get(metric) or "").partition("(")
            value = _number(whole)
            if value is not None:
                values[metric] = value
            if rest:
                parts[metric] = _parts(rest)
        grid, block = row.get("Grid Size", ""), row.get("Block Size", "")
        launches.append(ProfiledLaunch(row["Kernel Name"], grid, block, values, parts))
    return launches


def _parts(text: str) -> dict[str, float]:
    """``FFMA: 1,024; LDS.128: 256)`` as a mapping."""
    found = {}
    for name, number in re.findall(r"([^;:()\s][^;:()]*):\s*([\d.,]+)", text):
        value = _number(number)
        if value is not None:
            found[name.strip()] = value
    return found


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
