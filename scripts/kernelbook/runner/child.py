"""The process that measures one experiment: ``python -m kernelbook.runner.child REQUEST RESPONSE``.

It says on standard output what it is about to do, a line each, and leaves the record at RESPONSE.
``--profile-child REQUEST`` launches each kernel once and is what ncu runs.

Exit codes: 0 the record is written; 2 bad input (said); 3 a row lost the device (said).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import catalog, codec
from ..errors import KernelbookError
from ..experiment import Experiment, Kernel
from ..gpu.backend import Backend, backend_class
from ..gpu.device_info import target_of
from ..resources import compile_kernel
from ..verify import TIMING_SEED_OFFSET, fill_random, guard
from .orphans import die_with_parent
from .request import Request, Teller
from .session import ContextLost, Session

OK, BAD_INPUT, CONTEXT_LOST = 0, 2, 3


def main(arguments: Sequence[str]) -> int:
    """Measure or launch what the request says; returns the exit code."""
    tell = Teller()
    try:
        if arguments[0] == "--profile-child":
            launch_once(codec.from_file(Request, Path(arguments[1])))
            return OK
        request = codec.from_file(Request, Path(arguments[0]))
        tell.at("", "start")
        experiment = find(request)
        backend = backend_class(request.backend)(request.device_index)
        record = Session(experiment, request, backend, tell).run()
        codec.write_atomically(Path(arguments[1]), codec.to_json(record))
        return OK
    except ContextLost as lost:
        tell.fault(lost.variant, lost.reason)
        return CONTEXT_LOST
    except KernelbookError as error:
        tell.error(str(error))
        return BAD_INPUT


def find(request: Request) -> Experiment:
    """The experiment of a request, from the tree it names."""
    return catalog.load(Path(request.root)).experiment(request.experiment)


def launch_once(request: Request) -> None:
    """Launch every kernel of the request once at the full shape, in the request's order."""
    experiment = find(request)
    backend: Backend = backend_class(request.backend)(request.device_index)
    target = target_of(backend.info)
    buffers = {b.name: guard(backend.xp, b, experiment.shape) for b in experiment.buffers}
    arrays = {name: g.array for name, g in buffers.items()}
    seed = experiment.seed + TIMING_SEED_OFFSET
    for buffer in experiment.inputs:
        fill_random(backend.xp, arrays[buffer.name], buffer, seed)
    for name in request.variants:
        kernel = experiment.variant(name)
        assert isinstance(kernel, Kernel)
        compiled = compile_kernel(experiment, kernel, backend.arch, request.cache)
        backend.bind(experiment, kernel, compiled, experiment.shape, target)(arrays)()
        backend.synchronize()


if __name__ == "__main__":
    die_with_parent()
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if code == CONTEXT_LOST:
        os._exit(code)  # after a lost context CuPy's destructors would only complain
    sys.exit(code)
