"""From a compiled kernel and its launch shape to what a record stores of it.

Compiled and measured records describe a compilation in the same words: what ptxas reports, and the
theoretical occupancy that follows from it at the experiment's own launch shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .compiler import Compiled, compile_source
from .devices import occupancy, sheets
from .errors import ExperimentError
from .experiment import Experiment, Kernel, Target
from .records import Compilation
from .staleness import kernel_key, launch_of


def compile_kernel(
    experiment: Experiment, kernel: Kernel, arch: str, cache_dir: Path | None = None
) -> Compiled:
    """Compile a kernel of an experiment for an architecture such as ``sm_90``.

    Raises CompileError where the compiler refuses the source, ExperimentError where the source
    compiles but has no kernel of the name that the experiment launches.
    """
    compiled = compile_source(
        experiment.folder / kernel.source,
        arch,
        macros=kernel.macros,
        options=kernel.options,
        cache_dir=cache_dir,
    )
    for entry in (launch.entry for launch in kernel.launches):
        if entry not in compiled.resources:
            known = ", ".join(compiled.resources) or "none"
            raise ExperimentError(
                f"{experiment.name}/{kernel.name} launches {entry!r}, no kernel of this file",
                file=compiled.source,
                hint=f'its extern "C" kernels: {known}',
            )
    return compiled


def compilation_of(
    experiment: Experiment,
    kernel: Kernel,
    compiled: Compiled,
    shape: Mapping[str, int],
    target: Target,
) -> Compilation:
    """The stored description of a kernel compiled for ``compiled.arch``, launched at ``shape``.

    ``target`` is the card whose launch shape is meant; occupancy is that of one SM of
    ``compiled.arch``. Of a row of several launches it is the first one's. Raises DeviceError for an
    architecture older than any supported one.
    """
    found = compiled.resources[kernel.entry]
    _, block, dynamic = launch_of(kernel, shape, target)
    threads = block[0] * block[1] * block[2]
    resident = occupancy(
        sheets().arch(compiled.arch), threads, found.registers, found.shared_bytes + dynamic
    )
    return Compilation(
        arch=compiled.arch,
        options=compiled.options,
        nvrtc=compiled.nvrtc,
        ptx_hash=compiled.ptx_hash,
        registers=found.registers,
        shared_bytes=found.shared_bytes,
        spill_store_bytes=found.spill_store_bytes,
        spill_load_bytes=found.spill_load_bytes,
        stack_bytes=found.stack_bytes,
        blocks_per_sm=resident.blocks,
        occupancy=resident.fraction,
        occupancy_limit=resident.limit,
        key=kernel_key(experiment, kernel, compiled.arch, shape, target),
    )
