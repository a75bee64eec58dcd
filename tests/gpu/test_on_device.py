"""On a real GPU (``pytest -m gpu``): every kernel on every ragged shape, and the harness itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelbook import catalog
from kernelbook.experiment import Arrays, Experiment, Kernel, Library, Shape
from kernelbook.gpu import device_info
from kernelbook.gpu.backend import Backend, Launch
from kernelbook.gpu.cupy_backend import CupyBackend
from kernelbook.gpu.libraries import ROUTINES
from kernelbook.inputs import make_inputs
from kernelbook.records import Record
from kernelbook.resources import compile_kernel
from kernelbook.runner.measuring import MeasureSettings, measure
from kernelbook.runner.process import Crew
from kernelbook.sampling import median
from kernelbook.verify import Problem, verify_kernel, verify_run

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]
CATALOG = catalog.load(ROOT)

PLANTED_CU = """
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
extern "C" __global__ void far_out(const float* x, float* y, int n) {
    y[(1ll << 40) + threadIdx.x] = x[0];  // a terabyte away: no allocation is there
}
extern "C" __global__ void one_past(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2.0f * x[i];
}
extern "C" __global__ void forever(const float* x, float* y, int n) {
    volatile const float* seen = x;
    while (seen[0] < 2.0f) {  // inputs are below 1
    }
}
extern "C" __global__ void wait_1ms(const float* x, float* y, int n) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < 1000000ull);
    if (n > 0) y[0] = x[0];
}
extern "C" __global__ void chase(const float* x, float* y, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        unsigned i = 0;
        for (int s = 0; s < 2000; ++s) {
            i = (i + 4099u + static_cast<unsigned>(x[i])) % n;  // waits for the load before it
        }
        y[0] = i;
    }
}
"""

PLANTED_EXPERIMENTS = """
from kernelbook.experiment import *


def kernel(entry):
    return Kernel(name=entry, source="planted.cu", entry=entry, args=("x", "y", "n"),
                  grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1), block=lambda s, t: (128, 1, 1),
                  title=Text("", ""))


EXPERIMENTS = [
    Experiment(
        name="planted", title=Text("", ""), shape={"n": 1 << 20}, emulator_shape={"n": 256},
        ragged=({"n": 1}, {"n": 300}),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=lambda xp, inputs, shape: {"y": inputs["x"].astype(xp.float64) * 2},
        flops=lambda s: s["n"], tolerance=Tolerance(relative=0.0, absolute=1e-30),
        variants=tuple(kernel(e) for e in
                       ("twice", "far_out", "one_past", "forever", "wait_1ms", "chase")),
    )
]
"""


@pytest.fixture(scope="module")
def backend() -> CupyBackend:
    found = device_info.probe(0)
    if isinstance(found, str):
        pytest.fail(found)
    return CupyBackend(0)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    root = tmp_path_factory.mktemp("planted")
    chapter = root / "kernels" / "01_planted"
    chapter.mkdir(parents=True)
    (chapter / "planted.cu").write_text(PLANTED_CU)
    (chapter / "experiments.py").write_text(PLANTED_EXPERIMENTS)
    return catalog.load(root).experiment("planted")


def bound(
    backend: Backend, experiment: Experiment, kernel: Kernel, shape: Shape
) -> Callable[[Arrays], Launch]:
    compiled = compile_kernel(experiment, kernel, backend.arch)
    target = device_info.target_of(backend.info)
    return backend.bind(experiment, kernel, compiled, shape, target)


def launch_of(backend: Backend, experiment: Experiment, name: str, size: int) -> Launch:
    """A planted kernel on zeroed buffers of ``size`` floats."""
    kernel = experiment.variant(name)
    assert isinstance(kernel, Kernel)
    x = backend.xp.zeros(size, dtype=np.float32)
    y = backend.xp.zeros(size, dtype=np.float32)
    return bound(backend, experiment, kernel, {"n": size})({"x": x, "y": y})


CASES = [
    pytest.param(e, k, s, id=f"{e.name}-{k.name}-{'x'.join(str(v) for v in s.values())}")
    for e in (s.experiment for s in CATALOG.stand_ins(CATALOG.select([])))
    for k in e.kernels
    if not k.counter_example
    for s in e.ragged
]


@pytest.mark.parametrize(("experiment", "kernel", "shape"), CASES)
def test_a_kernel_is_right_on_a_ragged_shape(
    backend: CupyBackend, experiment: Experiment, kernel: Kernel, shape: Shape
) -> None:
    if backend.info.cc < kernel.min_cc:
        pytest.skip(f"needs compute capability {kernel.min_cc}")
    bind = bound(backend, experiment, kernel, shape)

    def launch(kernel: Kernel, shape: Shape, arrays: Arrays) -> None:
        bind(arrays)()
        backend.synchronize()

    target = device_info.target_of(backend.info)
    found = verify_kernel(experiment, kernel, shape, target, launch, backend.xp)
    assert found.passed, found.reason


def test_inputs_are_the_same_bits_on_the_device_as_on_the_host(backend: CupyBackend) -> None:
    experiment = CATALOG.experiment("gemm_1024")
    shape = {"m": 100, "n": 65, "k": 31}
    here = make_inputs(np, experiment, shape, 5)
    there = make_inputs(backend.xp, experiment, shape, 5)
    for name, array in here.items():
        assert np.array_equal(array, backend.to_host(there[name]))


def test_a_kernel_of_known_duration_takes_that_long(
    backend: CupyBackend, planted: Experiment
) -> None:
    launch = launch_of(backend, planted, "wait_1ms", 128)
    found = median([backend.sample(launch, cold=True) for _ in range(15)])
    assert found == pytest.approx(1000.0, rel=0.02)
    batch = backend.batch([launch] * 5)
    assert backend.sample(batch, cold=True) / 5 == pytest.approx(1000.0, rel=0.02)


def test_a_flush_leaves_nothing_of_a_buffer_in_l2(
    backend: CupyBackend, planted: Experiment
) -> None:
    # A chain of loads has no bandwidth to hide behind: it takes L2's latency or the DRAM's.
    size = backend.info.l2_bytes // 4 // 4  # a quarter of the L2, in floats
    launch = launch_of(backend, planted, "chase", size)
    warm = median([backend.sample(launch, cold=False) for _ in range(15)])
    cold = median([backend.sample(launch, cold=True) for _ in range(15)])
    assert cold > 1.5 * warm


def test_an_empty_kernel_takes_a_few_microseconds(backend: CupyBackend) -> None:
    found = median([backend.sample(backend.empty(), cold=True) for _ in range(15)])
    assert 0 < found < 20


def test_a_kernel_that_writes_one_element_too_many_is_caught_by_the_bands(
    backend: CupyBackend, planted: Experiment
) -> None:
    kernel = planted.variant("one_past")
    assert isinstance(kernel, Kernel)
    shape = {"n": 300}
    bind = bound(backend, planted, kernel, shape)

    def launch(kernel: Kernel, shape: Shape, arrays: Arrays) -> None:
        bind(arrays)()
        backend.synchronize()

    target = device_info.target_of(backend.info)
    found = verify_kernel(planted, kernel, shape, target, launch, backend.xp)
    assert found.reason == "writes past the end of y (4 bytes, at byte +0)"


@pytest.mark.parametrize("name", sorted(ROUTINES))
def test_a_library_routine_does_what_it_says(backend: CupyBackend, name: str) -> None:
    for experiment in CATALOG.experiments:
        for library in experiment.variants:
            if isinstance(library, Library) and library.routine.partition(" ")[0] == name:
                shape = experiment.ragged[-1]
                problem = Problem(backend.xp, experiment, shape, 1)
                routine = backend.routine(library, experiment, shape, problem.arrays)

                def run(arrays: Any, routine: Any = routine) -> None:
                    routine.launch()
                    backend.synchronize()

                if routine.check is None:
                    assert verify_run(problem, run).passed
                else:
                    run(None)
                    assert routine.check() == ""
                return
    pytest.skip("no experiment uses it")


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_copies_between_host_and_device_arrive(
    backend: CupyBackend, direction: Any, pinned: bool
) -> None:
    array = backend.xp.arange(100_003, dtype=np.float32)
    copies = backend.copies(direction, pinned, [array])
    copies.run()
    assert copies.check() == ""


def measured(planted: Experiment, *variants: str) -> Record:
    settings = MeasureSettings(
        root=planted.folder.parents[1], quick=True, step_limit_s=20.0, time_limit_s=120.0
    )
    return measure(planted, variants, settings, lambda text: None)


def test_members_of_a_sweep_are_measured_one_after_another_by_one_process() -> None:
    members = [e for e in CATALOG.experiments if e.sweep and e.sweep.name == "squares"][:2]
    settings = MeasureSettings(root=ROOT, quick=True, cache_dir=ROOT / ".cache" / "kernelbook")
    with Crew(settings) as crew:
        records = [measure(e, None, settings, lambda text: None, crew) for e in members]
    for record in records:
        assert {r.status for r in record.results} == {"ok"}
        # What the first one loaded and noted is not the second one's.
        assert set(record.notes) == set(records[0].notes)


def test_a_kernel_that_faults_costs_its_own_row(planted: Experiment) -> None:
    record = measured(planted, "far_out", "twice")
    fault, good = record.result("far_out"), record.result("twice")
    assert fault is not None
    assert good is not None
    assert fault.status == "failed"
    assert "illegal" in fault.reason.lower() or "address" in fault.reason.lower()
    assert good.status == "ok", good.reason
    assert {t.cache for t in good.timings} == {"cold", "warm"}


def test_a_kernel_that_never_ends_is_stopped_and_costs_its_own_row(planted: Experiment) -> None:
    record = measured(planted, "forever", "twice")
    hung, good = record.result("forever"), record.result("twice")
    assert hung is not None
    assert good is not None
    assert hung.status == "failed"
    assert "stopped: no end of" in hung.reason
    assert good.status == "ok", good.reason
