"""The part of the self-test that needs a card: its clock, the floor, and the L2 flush."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

from ..compiler import compile_source
from ..experiment import Arrays, Buffer, Experiment, Kernel, Text, Tolerance
from ..gpu import flush
from ..gpu.backend import Backend, Launch
from ..gpu.device_info import target_of
from ..sampling import median
from .selftest import Check

SOURCE = flush.SOURCE.with_name("selftest.cu")
KNOWN_US = (500, 1000, 5000)
GRAPH_LAUNCHES = 10
WITHIN = 0.01
SAMPLES = 31
LONGEST_EMPTY_US = 20.0
PARTS = 4  # what is read is this part of the L2, so it fits with room to spare
SETS = 4 * PARTS  # so many buffers are four times the L2: a round leaves nothing of the first
WARM_GAIN = 1.15  # L2 is at least this much faster than memory, or it was not what was read
COLD_WITHIN = 0.10


class _Kernels:
    """The kernels of selftest.cu on a backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._compiled = compile_source(SOURCE, backend.arch)
        self._target = target_of(backend.info)
        self._blocks = backend.info.sms * 8

    def launch(self, entry: str, arrays: Arrays, **scalars: int) -> Launch:
        """A launch of a kernel on these buffers; scalars are 64-bit."""
        grid = (1, 1, 1) if entry == "wait_ns" else (self._blocks, 1, 1)
        block = (1, 1, 1) if entry == "wait_ns" else (256, 1, 1)
        kernel = Kernel(
            name=entry, source=SOURCE.name, entry=entry, args=(*arrays, *scalars),
            grid=lambda s, t: grid, block=lambda s, t: block, title=Text("", ""),
            scalars=dict.fromkeys(scalars, "int64"),
        )  # fmt: skip
        buffers = tuple(
            Buffer(name, "inout", lambda s, a=a: a.shape, str(a.dtype))  # type: ignore[misc]
            for name, a in arrays.items()
        )
        experiment = Experiment(
            name="selftest", title=Text("", ""), shape=scalars, emulator_shape=scalars, ragged=(),
            buffers=buffers, reference=lambda xp, inputs, shape: {}, flops=lambda s: 0,
            tolerance=Tolerance(0.0, 0.0), variants=(kernel,), folder=SOURCE.parent,
        )  # fmt: skip
        bind = self._backend.bind(experiment, kernel, self._compiled, scalars, self._target)
        return bind(arrays)


def device_checks(backend: Backend) -> Iterator[Check]:
    """Every claim of the method that can be tried on this card."""
    kernels = _Kernels(backend)
    empty, in_graph = empty_times(backend)
    passed = 0 < in_graph < LONGEST_EMPTY_US and 0 < empty < LONGEST_EMPTY_US
    yield Check(
        "floor of the method",
        passed,
        f"an empty kernel seems to take {empty:.2f} µs alone, {in_graph:.2f} µs in a graph",
        {"empty_kernel_us": empty, "empty_kernel_in_graph_us": in_graph},
    )
    for time_us in KNOWN_US:
        yield known_duration(backend, kernels, time_us, empty)
    yield known_duration(backend, kernels, KNOWN_US[0], in_graph, GRAPH_LAUNCHES)
    yield flush_check(backend, kernels)


def empty_times(backend: Backend) -> tuple[float, float]:
    """What an empty kernel seems to take, in µs: alone, and each of a graph of them."""
    empty = backend.empty()
    graph = backend.batch([empty] * GRAPH_LAUNCHES)
    single = _median(lambda: backend.sample(empty, cold=True))
    return single, _median(lambda: backend.sample(graph, cold=True) / GRAPH_LAUNCHES)


def known_duration(
    backend: Backend, kernels: _Kernels, time_us: int, floor_us: float, launches: int = 1
) -> Check:
    """A kernel that waits by the card's counter, timed by the method; the floor is taken off."""
    took = backend.xp.zeros(1, dtype="int64")
    wait = kernels.launch("wait_ns", {"took": took}, ns=time_us * 1000)
    timed = backend.batch([wait] * launches) if launches > 1 else wait
    for _ in range(3):
        backend.sample(timed, cold=True)
    errors, times = [], []
    for _ in range(SAMPLES):
        found = backend.sample(timed, cold=True) / launches
        known = float(backend.to_host(took)[0]) / 1e3
        times.append(found)
        errors.append((found - floor_us) / known - 1)
    error = median(errors)
    how = f", {launches} in a graph" if launches > 1 else ""
    return Check(
        f"a kernel of {time_us:,} µs{how}",
        abs(error) <= WITHIN,
        f"timed {median(times):,.2f} µs, without the floor {error:+.2%} off its own count",
        {"known_us": float(time_us), "timed_us": median(times), "error": error},
    )


def flush_check(backend: Backend, kernels: _Kernels) -> Check:
    """Read a quarter of the L2: from L2, after each kind of flush, and from memory never cached.

    The method's flush is right where reading after it takes as long as reading what cannot be in
    L2. A flush that only writes leaves dirty lines, and the time of writing them back falls on
    whoever comes next: that is what the difference between the two kinds shows.
    """
    count = backend.info.l2_bytes // 4 // PARTS
    xp = backend.xp
    sink = xp.zeros(1, dtype="float32")
    buffers = [xp.full(count, 0.5, dtype="float32") for _ in range(SETS)]
    reads = [kernels.launch("sum_up", {"x": x, "sink": sink}, n=count) for x in buffers]
    scratch = xp.zeros(backend.info.l2_bytes // 4, dtype="float32")
    write = kernels.launch("fill", {"scratch": scratch}, m=scratch.size)
    one, in_turn = reads[0], _in_turn(reads)
    warm = _median(lambda: backend.sample(one, cold=False))
    flushed = _median(lambda: backend.sample(one, cold=True))
    # A warm sample runs the launch once before: with `before` in between, that is a flush of it.
    written = _median(lambda: backend.sample(one, cold=False, before=write))
    fresh = _median(lambda: backend.sample(in_turn, cold=False))
    cold = abs(flushed / fresh - 1) <= COLD_WITHIN
    mib = count * 4 / 2**20
    return Check(
        "the L2 flush leaves nothing behind",
        cold and fresh >= WARM_GAIN * warm,
        f"reading {mib:.1f} MiB takes {warm:.2f} µs from L2, {fresh:.2f} µs from memory not in L2; "
        f"{flushed:.2f} µs after our flush ({backend.flush}), {written:.2f} µs after one that only "
        f"writes {scratch.nbytes / 2**20:.0f} MiB",
        {
            "warm_us": warm,
            "fresh_us": fresh,
            "write_and_read_flush_us": flushed,
            "write_only_flush_us": written,
        },
    )


def _in_turn(launches: Sequence[Launch]) -> Launch:
    """A launch that is another one of these each time."""
    following = cycle(launches)

    def launch() -> None:
        next(following)()

    return launch


def _median(take: Callable[[], Any]) -> float:
    for _ in range(3):
        take()
    return median([float(take()) for _ in range(SAMPLES)])
