"""What was counted while a kernel ran, for the whole kernel and for each source line."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from typing import Any


@dataclass(frozen=True)
class Traffic:
    """Global or local memory, one direction.

    A request is one warp-wide instruction with at least one active lane. ``bytes`` is what the
    threads asked for; sectors are 32 bytes each.
    """

    requests: int = 0
    sectors: int = 0
    bytes: int = 0

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class SharedTraffic:
    """Shared memory, one direction.

    ``wavefronts`` are the passes taken, ``ideal_wavefronts`` those without a bank conflict,
    ``worst`` the most passes of one warp-wide instruction.
    """

    instructions: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    bytes: int = 0
    worst: int = 0

    @property
    def conflict_degree(self) -> float:
        """Passes over passes without conflicts: 1 means no conflict at all."""
        return self.wavefronts / self.ideal_wavefronts if self.ideal_wavefronts else 1.0


@dataclass(frozen=True)
class InstructionCounts:
    """Instructions executed.

    ``threads`` counts lanes that reached an instruction, guard true or not; ``warps`` counts it
    once a warp. ``classes`` is thread instructions by class, ``arithmetic`` those of floating-point
    additions, multiplications and fused multiply-adds ("f32.fma": ...), guard true only, and
    ``flops`` the operations by kind ("f32": ...). ``barriers`` and ``branches`` count warps;
    a branch diverges when it sends lanes of one warp both ways. ``atomics`` counts warp-wide
    atomic instructions.
    """

    threads: int = 0
    warps: int = 0
    classes: Mapping[str, int] = field(default_factory=dict)
    arithmetic: Mapping[str, int] = field(default_factory=dict)
    flops: Mapping[str, int] = field(default_factory=dict)
    barriers: int = 0
    atomics: int = 0
    branches: int = 0
    divergent_branches: int = 0

    @property
    def threads_per_warp_instruction(self) -> float:
        """32 when no warp ever diverges and every warp is full."""
        return self.threads / self.warps if self.warps else 0.0


@dataclass(frozen=True)
class GlobalCounts:
    """Global memory by direction; ``cp.async`` reads with the loads. Local memory apart."""

    load: Traffic = Traffic()
    store: Traffic = Traffic()
    atomic: Traffic = Traffic()
    local_load: Traffic = Traffic()
    local_store: Traffic = Traffic()


@dataclass(frozen=True)
class SharedCounts:
    """Shared memory by direction; ``cp.async`` writes with the stores."""

    load: SharedTraffic = SharedTraffic()
    store: SharedTraffic = SharedTraffic()
    atomic: SharedTraffic = SharedTraffic()

    @property
    def conflict_degree(self) -> float:
        every = (self.load, self.store, self.atomic)
        ideal = sum(t.ideal_wavefronts for t in every)
        return sum(t.wavefronts for t in every) / ideal if ideal else 1.0


@dataclass(frozen=True)
class Counts:
    """What the counting observers saw; None for an observer that was off."""

    instructions: InstructionCounts | None = None
    global_memory: GlobalCounts | None = None
    shared_memory: SharedCounts | None = None

    def to_dict(self) -> dict[str, float]:
        """Flat mapping of metric name to number, as stored in records. Rare metrics only if not 0.

        ``ffma``, ``fadd`` and ``fmul`` are thread instructions, as a GPU's counters of these names.
        """
        out: dict[str, float] = {}
        if self.global_memory is not None:
            out |= _traffic("global_load", self.global_memory.load)
            out |= _traffic("global_store", self.global_memory.store)
            for name in ("atomic", "local_load", "local_store"):
                traffic: Traffic = getattr(self.global_memory, name)
                if traffic.requests:
                    prefix = "global_atomic" if name == "atomic" else name
                    out |= _traffic(prefix, traffic)
        if self.shared_memory is not None:
            out |= _shared("shared_load", self.shared_memory.load)
            out |= _shared("shared_store", self.shared_memory.store)
            if self.shared_memory.atomic.instructions:
                out |= _shared("shared_atomic", self.shared_memory.atomic)
            out["shared_conflict_degree"] = self.shared_memory.conflict_degree
        if self.instructions is not None:
            out |= _instructions(self.instructions)
        return out


def _traffic(prefix: str, traffic: Traffic) -> dict[str, float]:
    return {
        f"{prefix}_requests": traffic.requests,
        f"{prefix}_sectors": traffic.sectors,
        f"{prefix}_bytes": traffic.bytes,
    }


def _shared(prefix: str, traffic: SharedTraffic) -> dict[str, float]:
    return {
        f"{prefix}_instructions": traffic.instructions,
        f"{prefix}_wavefronts": traffic.wavefronts,
        f"{prefix}_bytes": traffic.bytes,
    }


def _instructions(counts: InstructionCounts) -> dict[str, float]:
    out: dict[str, float] = {
        "ffma": counts.arithmetic.get("f32.fma", 0),
        "fadd": counts.arithmetic.get("f32.add", 0),
        "fmul": counts.arithmetic.get("f32.mul", 0),
        "flops": sum(counts.flops.values()),
    }
    for kind in ("f16", "f64"):
        if counts.flops.get(kind):
            out[f"flops_{kind}"] = counts.flops[kind]
    return out | {
        "warp_instructions": counts.warps,
        "thread_instructions": counts.threads,
        "threads_per_instruction": counts.threads_per_warp_instruction,
        "barriers": counts.barriers,
        "atomics": counts.atomics,
        "branches": counts.branches,
        "divergent_branches": counts.divergent_branches,
    }


@dataclass(frozen=True)
class LineCounts:
    """Counts of one source line. ``file`` is a path as the compiler wrote it, "" if unknown."""

    file: str
    line: int
    counts: Counts


@dataclass(frozen=True)
class KernelCounts:
    """Counts of one launch. In a notebook it shows itself as a table."""

    kernel: str
    total: Counts
    lines: tuple[LineCounts, ...] = ()

    def to_dict(self) -> dict[str, float]:
        """Flat mapping of metric name to number for the whole kernel."""
        return self.total.to_dict()

    def lines_dict(self) -> dict[str, dict[str, float]]:
        """By "file:line", the flat mapping without its zeros."""
        return {
            f"{row.file}:{row.line}": {k: v for k, v in row.counts.to_dict().items() if v}
            for row in self.lines
        }

    def __str__(self) -> str:
        rows = [(name, _number(value)) for name, value in self.to_dict().items()]
        wide = max((len(name) for name, _ in rows), default=0)
        deep = max((len(value) for _, value in rows), default=0)
        return "\n".join([self.kernel, *(f"  {n:<{wide}}  {v:>{deep}}" for n, v in rows)])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td>"
            f'<td style="text-align:right">{_number(value)}</td></tr>'
            for name, value in self.to_dict().items()
        )
        return f"<table><caption>{html.escape(self.kernel)}</caption>{cells}</table>"


def together(launches: Sequence[KernelCounts]) -> KernelCounts:
    """The counts of several launches, one after another, as of one; named as the first."""
    rows: dict[tuple[str, int], Counts] = {}
    for row in (row for launch in launches for row in launch.lines):
        at = row.file, row.line
        rows[at] = _sum(rows[at], row.counts) if at in rows else row.counts
    return KernelCounts(
        launches[0].kernel,
        reduce(_sum, (launch.total for launch in launches)),
        tuple(LineCounts(file, line, counts) for (file, line), counts in sorted(rows.items())),
    )


def _sum(a: Any, b: Any) -> Any:
    """Counts added field by field; of ``worst`` the larger one."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Mapping):
        return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}
    if not is_dataclass(a) or isinstance(a, type):
        return a + b
    pairs = {f.name: (getattr(a, f.name), getattr(b, f.name)) for f in fields(a)}
    return replace(a, **{n: max(p) if n == "worst" else _sum(*p) for n, p in pairs.items()})


def _number(value: float) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
