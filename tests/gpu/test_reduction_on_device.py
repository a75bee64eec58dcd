"""On a real GPU: what the emulator's one order of blocks cannot show of the reductions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelbook import catalog
from kernelbook.experiment import Kernel
from kernelbook.gpu import device_info
from kernelbook.gpu.cupy_backend import CupyBackend
from kernelbook.resources import compile_kernel
from kernelbook.verify import Problem

pytestmark = pytest.mark.gpu
CATALOG = catalog.load(Path(__file__).resolve().parents[2])
LAUNCHES = 50


@pytest.mark.parametrize("name", ["last_block_sum", "single_pass_sum"])
def test_a_sum_has_the_same_bits_in_every_launch(name: str, compile_cache: Path) -> None:
    backend = CupyBackend(0)
    experiment = CATALOG.experiment("reduce_sum_256m")
    kernel = experiment.variant(name)
    assert isinstance(kernel, Kernel)
    compiled = compile_kernel(experiment, kernel, backend.arch, compile_cache)
    target = device_info.target_of(backend.info)
    problem = Problem(backend.xp, experiment, {"n": 2**24 + 3}, seed=5)
    launch = backend.bind(experiment, kernel, compiled, problem.shape, target)(problem.arrays)
    found = set()
    for _ in range(LAUNCHES):
        problem.reset_outputs()
        launch()
        backend.synchronize()
        found.add(backend.to_host(problem.arrays["sum"]).tobytes())
    assert len(found) == 1
    assert problem.check().passed
