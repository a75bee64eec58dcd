"""``run_all.py --selftest``: does the harness measure what it says?

Without a GPU its rules are tried on series made up for it. On a GPU it times kernels whose time the
card's own counter says, and shows that the L2 flush leaves nothing behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from ..compare import relation
from ..sampling import FULL, Series, WarmUp, median_interval, warm_up
from .json_output import deliver, text_of
from .options import Options
from .progress import Display
from .synthetic import KINDS, Noise, series

JSON_SCHEMA = 1


@dataclass(frozen=True)
class Check:
    """One thing the harness claims, and what was found. ``figures`` are for scripts."""

    name: str
    passed: bool
    said: str
    figures: dict[str, float]


def selftest(display: Display, options: Options, backend: str = "") -> int:
    """Run all checks, print them; returns 1 where one failed. ``backend`` as in MeasureSettings."""
    said = display.aside() if options.json == "-" else display
    checks = list(policies())
    said.say("Rules of sampling and comparing, on synthetic series:")
    _show(said, checks)
    device, found = _on_device(said, options, backend)
    checks += found
    failed = [c.name for c in checks if not c.passed]
    if options.json:
        content = {
            "schema": JSON_SCHEMA,
            "device": device,
            "passed": not failed,
            "checks": [asdict(c) for c in checks],
        }
        deliver(display, options.json, text_of(content))
    if failed:
        display.problem(f"run_all: the self-test failed: {', '.join(failed)}")
        return 1
    return 0


def _on_device(
    display: Display, options: Options, backend: str
) -> tuple[dict[str, object] | None, list[Check]]:
    from ..gpu.backend import CUPY, backend_class
    from .lock import gpu_lock

    if not options.use_gpu:
        display.say("GPU not used (--no-gpu): its clock and its L2 flush were not tested.")
        return None, []
    kind = backend_class(backend or CUPY)
    device = kind.probe(options.device)
    if isinstance(device, str):
        display.say(f"{device}: the card's clock and L2 flush were not tested.")
        return None, []
    from .selftest_gpu import device_checks

    display.say(f"The method on {device.name} (driver {device.driver}, CUDA {device.cuda}):")
    with gpu_lock(kind.identity(options.device)):
        checks = list(device_checks(kind(options.device)))
    _show(display, checks)
    return asdict(device), checks


def _show(display: Display, checks: Sequence[Check]) -> None:
    for check in checks:
        display.say(f"  {'ok  ' if check.passed else 'FAIL'} {check.name}: {check.said}")


# ---- the rules, without a GPU --------------------------------------------------------------

TIME_US = 100.0
PAIRS = 200


def policies() -> Iterator[Check]:
    """The rules on series whose truth is known; seeded, so always the same."""
    for each in (_coverage, _quiet, _drifting, _loud, _floor, _warm, _alike, _slower):
        yield each()


def _coverage() -> Check:
    """The interval of the median holds the true median at least 95 times in a hundred."""
    rng = random.Random(1)
    runs, held = 2000, 0
    for _ in range(runs):
        low, high = median_interval(sorted(rng.expovariate(1.0) for _ in range(30)))
        held += low <= 0.6931471805599453 <= high  # ln 2 is the median of that distribution
    share = held / runs
    said = f"holds the true median in {share:.1%} of {runs} skewed series"
    return Check("95 % interval of the median", share >= 0.945, said, {"share": share})


def _sampled(noise: Noise, seed: int) -> Series:
    """A series taken until its rule stops it; a sample costs a millisecond."""
    found = Series("", FULL)
    for sample in series(random.Random(seed), TIME_US, noise, FULL.max_samples):
        found.add(sample, 1e-3)
        if not found.open:
            break
    return found


def _stops(name: str, noise: Noise, words: str) -> Check:
    found = [_sampled(noise, seed) for seed in range(20)]
    right = all(words in s.stop and len(s.samples) >= FULL.min_samples for s in found)
    counts = sorted(len(s.samples) for s in found)
    said = f"{found[0].stop}; {counts[0]} to {counts[-1]} samples"
    return Check(name, right, said, {"least": counts[0], "most": counts[-1]})


def _quiet() -> Check:
    return _stops("quiet series end early", KINDS["quiet"], "interval of the median under")


def _drifting() -> Check:
    return _stops("drifting series say so", Noise(drift=1.0), "drifting")


def _loud() -> Check:
    loud = Noise(jitter=0.2, tail_share=0.3, tail=0.5)
    found = _stops("loud series end, and not as precise ones", loud, "")
    precise = any("interval" in _sampled(loud, seed).stop for seed in range(20))
    return Check(found.name, found.passed and not precise, found.said, found.figures)


def _floor() -> Check:
    one = Series("", FULL, floor_us=90.0)
    one.add(100.0, 0.0)
    one.add(89.0, 0.0)
    return Check("a time under the floor is refused", bool(one.failure), one.failure or "taken", {})


def _warm() -> Check:
    """A clock that rises for a second: the warm-up outlasts it."""
    now = [0.0]

    def run() -> None:
        now[0] += 0.05

    def read() -> float | None:
        return min(1980.0, 1200.0 + 780.0 * now[0])

    said = warm_up(run, lambda: now[0], read, WarmUp())
    right = 1.0 <= now[0] < WarmUp().give_up_s
    return Check("warming up waits for the clock", right, said, {"seconds": now[0]})


def _pairs(factor: float) -> Iterator[tuple[list[float], list[float]]]:
    for kind in KINDS.values():
        rng = random.Random(2)
        for _ in range(PAIRS):
            yield series(rng, TIME_US, kind), series(rng, TIME_US * factor, kind)


def _verdicts(name: str, factor: float, right: Callable[[str], bool]) -> Check:
    found = [relation(a, b) for a, b in _pairs(factor)]
    counts = {v: found.count(v) for v in sorted(set(found))}
    said = ", ".join(f"{n} {v}" for v, n in counts.items())
    figures = {str(v): float(n) for v, n in counts.items()}
    return Check(name, all(map(right, found)), said, figures)


def _alike() -> Check:
    return _verdicts("equal runs are never slower", 1.0, lambda v: v not in ("slower", "faster"))


def _slower() -> Check:
    return _verdicts("3 % slower is always caught", 1.03, lambda v: v == "slower")
