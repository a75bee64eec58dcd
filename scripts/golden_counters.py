"""Hold the emulator's counts to a GPU's counters: the same cubin profiled, the same PTX counted.

    PYTHONPATH=scripts python3 scripts/golden_counters.py            # needs a GPU, CuPy and ncu

Every kernel of the repository is compiled once, launched under ncu at its emulator size, and the
PTX of that same compilation is executed by the emulator. Both numbers of every counter, and the
instructions of the machine code by opcode, go into ``results/data/counters/CHAPTER.json``;
``results/counters.md`` lists where they differ, and why.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from kernelbook import catalog, ptx
from kernelbook.catalog import Catalog
from kernelbook.codec import write_atomically
from kernelbook.devices import sheets
from kernelbook.errors import DeviceError, KernelbookError
from kernelbook.experiment import Experiment, Kernel
from kernelbook.inputs import make_inputs
from kernelbook.profiler import ProfiledLaunch, find_ncu, ncu_version, profile
from kernelbook.report.counters import COUNTERS, EXECUTED, Comparison, pages, save
from kernelbook.resources import compile_kernel
from kernelbook.staleness import kernel_key, launch_of

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
CACHE = ROOT / ".cache" / "kernelbook" / "compile"  # the same as run_all's
TIMEOUT_S = 400.0


@cache
def chapters() -> Catalog:
    """The catalog of the tree, read once: nothing changes it while this runs."""
    return catalog.load(ROOT)


def rows(only: Sequence[str], arch: str) -> Iterator[tuple[Experiment, Kernel]]:
    """Every kernel the emulator can run, once for each key."""
    reference = sheets().device(sheets().reference)
    seen = set()
    for selection in chapters().select(only):
        experiment = selection.experiment
        for kernel in experiment.kernels:
            if kernel.gpu_only or kernel.name not in selection.variants:
                continue
            shape = experiment.emulator_shape
            key = kernel_key(experiment, kernel, arch, shape, reference.target)
            if key not in seen:
                seen.add(key)
                yield experiment, kernel


def child(only: Sequence[str], arch: str, report: Path) -> None:
    """Launch every row once and note which launches went well. Runs under ncu."""
    from kernelbook.gpu.cupy_backend import CupyBackend

    backend = CupyBackend(0)
    target = sheets().device(sheets().reference).target
    done = []
    for experiment, kernel in rows(only, arch):
        shape = experiment.emulator_shape
        try:
            compiled = compile_kernel(experiment, kernel, arch, CACHE)
            arrays = make_inputs(backend.xp, experiment, shape, experiment.seed)
            for buffer in experiment.outputs:
                if buffer.name not in arrays:
                    dtype = np.dtype(buffer.dtype)
                    arrays[buffer.name] = backend.xp.zeros(buffer.dims(shape), dtype)
            backend.bind(experiment, kernel, compiled, shape, target)(arrays)()
            backend.synchronize()
        except KernelbookError as error:
            print(f"{experiment.name}/{kernel.name}: {error}", file=sys.stderr)
            continue
        done.append([experiment.name, kernel.name])
        report.write_text(json.dumps(done))


def profiled(only: Sequence[str], arch: str) -> dict[tuple[str, str], ProfiledLaunch]:
    """ncu's counters by (experiment, variant)."""
    entries = sorted({re.escape(kernel.entry) for _, kernel in rows(only, arch)})
    wanted = sorted({m for c in COUNTERS for m in (*c.metrics, *c.attributed)} | {EXECUTED})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "done.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--child", str(report)]
        command += ["--arch", arch, *only]
        while True:
            try:
                launches = profile(
                    command,
                    wanted,
                    kernel_regex=f"^({'|'.join(entries)})$",
                    timeout_s=TIMEOUT_S,
                    details=True,
                )
                break
            except DeviceError as error:
                said = str(error)
                unknown = [m for m in wanted if re.search(rf"\b{m.split('.')[0]}\b", said)]
                if not unknown:
                    raise
                print(f"not known to this ncu: {', '.join(unknown)}", file=sys.stderr)
                wanted = [m for m in wanted if m not in unknown]
        done = [(e, v) for e, v in json.loads(report.read_text())]
    by_name = {(e.name, k.name): k.entry for e, k in rows(only, arch)}
    if [x.kernel.split("(")[0] for x in launches] != [by_name[name] for name in done]:
        raise SystemExit(f"ncu saw {len(launches)} launches, {len(done)} were made")
    return dict(zip(done, launches, strict=True))


def counted(experiment_name: str, kernel_name: str, text: str) -> dict[str, float]:
    """The emulator's counts of a kernel at its emulator size, of this PTX."""
    experiment = chapters().experiment(experiment_name)
    kernel = next(k for k in experiment.kernels if k.name == kernel_name)
    shape = experiment.emulator_shape
    grid, block, shared = launch_of(kernel, shape, sheets().device(sheets().reference).target)
    arrays = make_inputs(np, experiment, shape, experiment.seed)
    for buffer in experiment.outputs:
        if buffer.name not in arrays:
            arrays[buffer.name] = np.zeros(buffer.dims(shape), np.dtype(buffer.dtype))
    arguments: list[Any] = [
        arrays[a] if a in arrays else np.dtype(kernel.scalars.get(a, "int32")).type(shape[a])
        for a in kernel.args
    ]
    from kernelbook.ptx.observers import count_observers

    run = ptx.run(
        text, kernel.entry, grid, block, arguments, shared=shared, observers=count_observers()
    )
    return run.counts.to_dict()


def machine_code(cubin: bytes, entry: str) -> dict[str, int]:
    """Instructions of the cubin by opcode, as cuobjdump lists them; {} where it is missing."""
    tool = shutil.which("cuobjdump") or str(find_ncu().parent / "cuobjdump")
    if not Path(tool).exists():
        tool = "/usr/local/cuda/bin/cuobjdump"
    if not Path(tool).exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        listing = subprocess.run(
            [tool, "-sass", "-fun", entry, str(file)], capture_output=True, text=True
        ).stdout
    return opcodes(listing)


def opcodes(listing: str) -> dict[str, int]:
    """Opcodes of a cuobjdump listing and how often each stands in it."""
    found = re.findall(
        r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", listing, flags=re.M
    )
    return dict(sorted(Counter(found).items()))


def take(only: Sequence[str]) -> dict[str, list[Comparison]]:
    """Profile and count everything; comparisons by chapter."""
    from kernelbook.gpu.cupy_backend import arch_for
    from kernelbook.gpu.device_info import probe

    device = probe(0)
    if isinstance(device, str):
        raise DeviceError(device)
    arch = arch_for(device.cc)
    launches = profiled(only, arch)
    compiled = {(e.name, k.name): compile_kernel(e, k, arch, CACHE) for e, k in rows(only, arch)}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = {name: pool.submit(counted, *name, compiled[name].ptx) for name in launches}
        out: dict[str, list[Comparison]] = {}
        target = sheets().device(sheets().reference).target
        version, code_of = ncu_version(), cache(machine_code)  # a program each, for what many share
        for experiment, kernel in rows(only, arch):
            name = (experiment.name, kernel.name)
            if name not in launches:
                continue
            try:
                counts = jobs[name].result()
            except KernelbookError as error:
                print(f"{'/'.join(name)}: {error}", file=sys.stderr)
                continue
            grid, block, shared = launch_of(kernel, experiment.emulator_shape, target)
            launch = launches[name]
            out.setdefault(experiment.chapter, []).append(
                Comparison(
                    experiment=experiment.name,
                    variant=kernel.name,
                    entry=kernel.entry,
                    shape=dict(experiment.emulator_shape),
                    grid=grid,
                    block=block,
                    dynamic_shared=shared,
                    device=device.name,
                    nvrtc=compiled[name].nvrtc,
                    ncu=version,
                    ptx_hash=compiled[name].ptx_hash,
                    counted=counts,
                    profiled=_whole(launch.values),
                    executed=_whole(launch.parts.get(EXECUTED, {})),
                    code=code_of(compiled[name].cubin, kernel.entry),
                )
            )
    return out


def _whole(values: Mapping[str, float]) -> dict[str, float]:
    """The same numbers, whole ones as integers."""
    return {name: int(v) if v == int(v) else v for name, v in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--child", type=Path, help="launch the kernels (run by ncu)")
    parser.add_argument("--arch", default="", help="architecture of the child's kernels")
    parser.add_argument("--out", type=Path, default=RESULTS, help="results folder to write into")
    parser.add_argument("--render", action="store_true", help="only render what has been taken")
    parser.add_argument("only", nargs="*", help="chapters, experiments or variants; all if none")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.only, arguments.arch, arguments.child)
        return
    if not arguments.render:
        for chapter, comparisons in take(arguments.only).items():
            path = save(arguments.out, chapter, comparisons)
            print(f"{len(comparisons)} kernels -> {path}")
    for name, text in pages(arguments.out).items():
        write_atomically(arguments.out / name, text)


if __name__ == "__main__":
    main()
