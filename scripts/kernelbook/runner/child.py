"""The process that measures: ``python -m kernelbook.runner.child``.

It reads what to do from standard input, a JSON list a line: ``["measure", REQUEST, RECORD]`` or
``["tune", REQUEST, ""]``, the names of files. It says on what was its standard output what it is
about to do, a line each, and "done" when a request is done; whatever else is printed goes to
standard error. ``--profile-child REQUEST`` launches each kernel once
and is what ncu runs.

Exit codes: 0 nothing more to do; 2 bad input (said); 3 a row lost the device (said).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .. import catalog, codec
from ..catalog import Catalog
from ..errors import KernelbookError
from ..experiment import Experiment, Kernel
from ..gpu.backend import Backend, backend_class
from ..gpu.device_info import target_of
from ..inputs import fill_random
from ..resources import compile_kernel
from ..verify import TIMING_SEED_OFFSET, guard
from .orphans import die_with_parent
from .request import Request, Teller, TuneRequest
from .session import ContextLost, Session
from .tuning import tune

OK, BAD_INPUT, CONTEXT_LOST = 0, 2, 3


def main(arguments: Sequence[str], tell: Teller) -> int:
    """Measure or launch what is asked for; returns the exit code."""
    try:
        if arguments[:1] == ["--profile-child"]:
            launch_once(codec.from_file(Request, Path(arguments[1])))
            return OK
        desk = Desk(tell)
        for line in sys.stdin:
            desk.answer(*json.loads(line))
            tell.done()
        return OK
    except ContextLost as lost:
        tell.fault(lost.variant, lost.reason)
        return CONTEXT_LOST
    except KernelbookError as error:
        tell.error(str(error))
        return BAD_INPUT


class Desk:
    """What stays from one request to the next: the device and the tree."""

    def __init__(self, tell: Teller) -> None:
        self._tell = tell
        self._backends: dict[tuple[str, int], Backend] = {}
        self._catalogs: dict[str, Catalog] = {}

    def answer(self, what: str, asked: str, answer: str) -> None:
        """Do one request; raises ContextLost or a KernelbookError."""
        self._tell.at("", "start")
        if what == "tune":
            self._tune(codec.from_file(TuneRequest, Path(asked)))
            return
        request = codec.from_file(Request, Path(asked))
        experiment = self._catalog(request.root).experiment(request.experiment)
        backend = self._backend(request.backend, request.device_index)
        record = Session(experiment, request, backend, self._tell).run()
        codec.write_atomically(Path(answer), codec.to_json(record))

    def _tune(self, request: TuneRequest) -> None:
        tuning = self._catalog(request.root).tunings[request.chapter]
        backend = self._backend(request.backend, request.device_index)
        for choice in tune(backend, tuning, request, self._tell):
            self._tell.choice(choice.key, json.dumps(asdict(choice)))

    def _catalog(self, root: str) -> Catalog:
        if root not in self._catalogs:
            self._catalogs[root] = catalog.load(Path(root))
        return self._catalogs[root]

    def _backend(self, name: str, device_index: int) -> Backend:
        key = name, device_index
        if key in self._backends:
            self._backends[key].forget()
        else:
            self._backends[key] = backend_class(name)(device_index)
        return self._backends[key]


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
    # Messages have the parent's pipe for themselves: what kernels print must not look like one.
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    code = main(sys.argv[1:], Teller(told))
    sys.stdout.flush()
    sys.stderr.flush()
    if code == CONTEXT_LOST:
        os._exit(code)  # after a lost context CuPy's destructors would only complain
    sys.exit(code)
