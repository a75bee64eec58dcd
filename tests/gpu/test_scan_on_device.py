"""On a real GPU: single-pass scans whose blocks really run at once, in an order nobody chose."""

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
MANY_TILES = 2**24 + 3  # several tiles a block of the pipeline, and three elements of one more


class Scan:
    """A kernel of an experiment, bound to inputs of one length."""

    def __init__(self, experiment: str, name: str, n: int, cache: Path) -> None:
        self.backend = CupyBackend(0)
        found = CATALOG.experiment(experiment)
        kernel = found.variant(name)
        assert isinstance(kernel, Kernel)
        compiled = compile_kernel(found, kernel, self.backend.arch, cache)
        target = device_info.target_of(self.backend.info)
        self.problem = Problem(self.backend.xp, found, {"n": n}, seed=5)
        bind = self.backend.bind(found, kernel, compiled, self.problem.shape, target)
        self.launch = bind(self.problem.arrays)

    def bits(self) -> bytes:
        self.problem.reset_outputs()
        self.launch()
        self.backend.synchronize()
        return bytes(self.backend.to_host(self.problem.arrays["y"]).tobytes())


@pytest.mark.parametrize(
    "name",
    [
        "lookback_scan_fixed",
        "lookback_scan_large",
        "pipelined_scan",
        "pipelined_scan_lockstep",
        "pipelined_scan_tickets",
    ],
)
def test_a_scan_in_a_fixed_order_has_the_same_bits_in_every_launch(
    name: str, compile_cache: Path
) -> None:
    scan = Scan("scan_1g", name, MANY_TILES, compile_cache)
    assert len({scan.bits() for _ in range(LAUNCHES)}) == 1
    assert scan.problem.check().passed


@pytest.mark.parametrize("name", ["lookback_scan", "pipelined_scan", "pipelined_scan_nearest"])
@pytest.mark.parametrize("n", [0, 1, 4, 16_383, 20_481, 132 * 10_240 + 1])
def test_any_length_is_scanned_launch_after_launch(name: str, n: int, compile_cache: Path) -> None:
    """Nothing is cleared in between: the launch before has left its state words."""
    scan = Scan("scan_1g", name, n, compile_cache)
    for _ in range(3):
        scan.bits()
        assert scan.problem.check().passed


@pytest.mark.parametrize("name", ["pipelined_scan", "lookback_scan_large"])
def test_integers_are_exact_across_many_tiles(name: str, compile_cache: Path) -> None:
    scan = Scan("scan_int_256m", name, MANY_TILES, compile_cache)
    assert len({scan.bits() for _ in range(3)}) == 1
    assert scan.problem.check().passed
