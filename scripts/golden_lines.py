"""Take golden data on a GPU: what its counters say of each source line of kernels that move memory.

    PYTHONPATH=scripts python3 scripts/golden_lines.py            # needs a GPU, CuPy and ncu

Kernels are launched at their emulator size, as `golden_counters` does, and ncu sums what each
line's machine instructions did. ``tests/golden/memory_lines.json`` keeps sectors of global memory
and wavefronts of shared memory, by file and by the words of the line: a line that only moves is
still the same line. The emulator's counts by line are held to every one of them. (Requests are not
among ncu's columns by line; its tag requests count the 128-byte lines that a request spans.)
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import golden_counters
from kernelbook.codec import write_atomically
from kernelbook.errors import DeviceError
from kernelbook.profiler import find_ncu, ncu_version

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "memory_lines.json"
TIMEOUT_S = 120.0
ROWS = (
    "access_stride_1", "access_stride_2", "access_stride_8", "access_stride_32", "read_stride_4",
    "write_stride_4", "read_offset_1", "read_offset_8", "write_offset_1", "gather_l2", "aos_all",
    "soa_all", "aos_one", "soa_one", "bank_conflict_1", "bank_conflict_2", "bank_conflict_5",
    "bank_conflict_32", "transpose_8192/transpose_naive_*", "transpose_8192/transpose_conflicts*",
    "transpose_8192/transpose_padded*", "transpose_8192/transpose_swizzled*",
    "transpose_8192/transpose_wide_64x64_down", "relu_64m/relu_scalar",
)  # fmt: skip
# ncu's column -> our word for it.
COLUMNS = {
    "L2 Theoretical Sectors Global": "sectors",
    "L1 Wavefronts Shared": "wavefronts",
}
Lines = dict[tuple[str, int], dict[str, int]]  # by file name and line number


def source_page(text: str) -> list[tuple[str, Lines]]:
    """Entry and lines of each launch of ``ncu --csv --page source --print-source cuda,sass``.

    A launch is a table a file; its next launch begins where a file comes again, or another kernel.
    Lines that touch no memory are left out.
    """
    launches: list[tuple[str, Lines]] = []
    files: set[str] = set()
    file, header = "", [""]
    for row in csv.reader(line for line in text.splitlines() if line.startswith('"')):
        if row[0] == "File Path":
            file = Path(row[1]).name
        elif row[0] == "Function Name":
            entry = row[1].split("(")[0]
            if not launches or launches[-1][0] != entry or file in files:
                launches.append((entry, {}))
                files = set()
            files.add(file)
        elif row[0] == "Line No":
            header = row
        elif row[0]:  # a line; its instructions follow, without a number
            cells = dict(zip(header, row, strict=True))
            found = {word: int(cells.get(column, 0)) for column, word in COLUMNS.items()}
            if any(found.values()):
                launches[-1][1][file, int(row[0])] = found
    return launches


def by_words(lines: Lines, folder: Path) -> dict[str, dict[str, int]]:
    """The same by file and words of the line; equal lines of a file are added.

    Headers are left out: what their inline functions do is counted on the line that calls them.
    """
    out: dict[str, dict[str, int]] = {}
    for (file, number), counts in sorted(lines.items()):
        if Path(file).suffix != ".cu":
            continue
        words = (folder / file).read_text(encoding="utf-8").splitlines()[number - 1].strip()
        entry = out.setdefault(f"{file}: {words}", dict.fromkeys(COLUMNS.values(), 0))
        for word, count in counts.items():
            entry[word] += count
    return out


def read(only: Sequence[str], arch: str) -> list[tuple[str, str, str, Lines]]:
    """(experiment, variant, entry, lines) of each launch; raises DeviceError where ncu fails."""
    kernels = {(e.name, k.name): k for e, k in golden_counters.rows(only, arch)}
    entries = sorted({re.escape(k.entry) for k in kernels.values()})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "done.json"
        command = [
            str(find_ncu()), "--clock-control", "none", "--csv", "--page", "source",
            "--print-source", "cuda,sass", "--section", "SourceCounters",
            "--kernel-name", f"regex:^({'|'.join(entries)})$",
            sys.executable, str(Path(golden_counters.__file__)), "--child", str(report),
            "--arch", arch, *only,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise DeviceError(f"ncu failed (exit {done.returncode}): {done.stderr[-300:]}")
        made = [(e, v) for e, v in json.loads(report.read_text())]
    launches = source_page(done.stdout)
    if [entry for entry, _ in launches] != [kernels[name].entry for name in made]:
        seen = ", ".join(entry for entry, _ in launches)
        raise DeviceError(f"ncu saw {len(launches)} launches, {len(made)} were made: {seen}")
    return [(*name, *launch) for name, launch in zip(made, launches, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=GOLDEN, help="file to write")
    parser.add_argument("only", nargs="*", default=ROWS, help="experiments or variants")
    arguments = parser.parse_args()
    from kernelbook.gpu.cupy_backend import arch_for
    from kernelbook.gpu.device_info import probe

    device = probe(0)
    if isinstance(device, str):
        raise SystemExit(device)
    folder = ROOT / "kernels" / "10_memory"
    rows = [
        {"experiment": experiment, "variant": variant, "lines": by_words(lines, folder)}
        for experiment, variant, _, lines in read(arguments.only, arch_for(device.cc))
    ]
    golden = {"device": device.name, "ncu": ncu_version(), "rows": rows}
    write_atomically(arguments.out, json.dumps(golden, indent=1) + "\n")
    print(f"{len(rows)} kernels -> {arguments.out}")


if __name__ == "__main__":
    main()
