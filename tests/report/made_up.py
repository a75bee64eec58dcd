"""Records as a run would leave them, made up: keys are those of the tree they are made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelbook import records
from kernelbook.catalog import Catalog
from kernelbook.devices import Sheets, occupancy
from kernelbook.experiment import Target, model
from kernelbook.records import (
    SCHEMA,
    Compilation,
    DeviceInfo,
    Record,
    Result,
    Timing,
    Verification,
)
from kernelbook.report.book import Book
from kernelbook.staleness import kernel_key, launch_of, variant_key


@dataclass(frozen=True)
class Tree:
    root: Path
    catalog: Catalog
    sheets: Sheets

    @property
    def results(self) -> Path:
        return self.root / "results"

    def save(self, record: Record, *, local: bool = False) -> Path:
        return records.save(self.results, record, local=local)

    def book(self) -> Book:
        return Book.load(self.results, self.catalog, self.sheets)


H200 = DeviceInfo(
    name="NVIDIA H200", slug="nvidia-h200", cc=(9, 0), sms=132, l2_bytes=62914560,
    memory_bytes=150754820096, memory_clock_mhz=3201.0, memory_bus_bits=6016,
    sm_clock_max_mhz=1980.0, power_limit_w=700.0, ecc=True, mig=False, driver="580.95",
    cuda="13.0", cupy="14.2.0",
)  # fmt: skip
HOSTILE = DeviceInfo(
    name='GTX <script>alert(1)</script> | **9000** `x` {: #id }\n# "GT" $a$ [l](javascript:x)',
    slug="gtx-9000", cc=(8, 6), sms=30, l2_bytes=4 * 2**20, memory_bytes=12 * 2**30,
    memory_clock_mhz=7501.0, memory_bus_bits=192, sm_clock_max_mhz=1800.0, power_limit_w=None,
    ecc=None, mig=None, driver="<b>1</b>", cuda="12.9", cupy="14.2.0",
)  # fmt: skip


def timing(median_us: float, cache: str = "cold", throttle: str = "") -> Timing:
    """Five samples around a median: q1 and q3 are 1 % below and 2 % above."""
    samples = tuple(median_us * f for f in (0.98, 0.99, 1.0, 1.02, 1.05))
    return Timing(
        cache=cache, method="event", flush="write and read twice" if cache == "cold" else "",
        launches_per_sample=1, samples_us=samples, median_us=median_us, q1_us=samples[1],
        q3_us=samples[3], min_us=samples[0], ci_low_us=samples[1], ci_high_us=samples[3],
        outliers=0, stop="interval", sm_clock_mhz=1980.0, throttle=throttle,
    )  # fmt: skip


def measured(
    catalog: Catalog,
    sheets: Sheets,
    experiment: str,
    times: Mapping[str, float],
    *,
    device: DeviceInfo = H200,
    warm: bool = False,
    others: tuple[Result, ...] = (),
    counters: Mapping[str, Mapping[str, float]] | None = None,
) -> Record:
    """A measured record with these cold medians in µs (warm: 10 % faster)."""
    e = catalog.experiment(experiment)
    limits = sheets.arch(f"sm_{device.cc[0]}{device.cc[1]}")
    target = limits.target(device.sms, device.l2_bytes)
    results = []
    for name, median in times.items():
        variant = e.variant(name)
        flops, read, written = model(e, variant, e.shape)
        timings = [timing(median)]
        if warm:
            timings.append(timing(median * 0.9, "warm"))
        compilations: tuple[Compilation, ...] = ()
        if variant.kind == "kernel":
            compilations = (compilation(catalog, sheets, experiment, name, limits.name, target),)
        results.append(
            Result(
                name, variant.kind,
                key=variant_key(
                    e, variant, limits.name if compilations else "", e.shape, target
                ),
                flops=flops, bytes_read=read, bytes_written=written, compilations=compilations,
                verifications=(Verification(e.shape, True, 1.5e-5, 0.25, 4e-6),),
                timings=tuple(timings), counters=dict((counters or {}).get(name, {})),
            )
        )  # fmt: skip
    return Record(
        SCHEMA, "measured", e.chapter, experiment, dict(e.shape), e.dtype, e.seed,
        (*results, *others), commit="0123456789abcdef", date="2026-11-29T22:00:00Z",
        device=device, notes={"cpu threads": "16"},
    )  # fmt: skip


def compilation(
    catalog: Catalog, sheets: Sheets, experiment: str, kernel: str, arch: str, target: Target
) -> Compilation:
    e = catalog.experiment(experiment)
    k = e.variant(kernel)
    assert k.kind == "kernel"
    block = launch_of(k, e.shape, target)[1]
    held = occupancy(sheets.arch(arch), block[0] * block[1] * block[2], 32, 8192)
    return Compilation(
        arch=arch, options=(f"-arch={arch}",), nvrtc="12.9", ptx_hash="0" * 16, registers=32,
        shared_bytes=8192, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0,
        blocks_per_sm=held.blocks, occupancy=held.fraction, occupancy_limit=held.limit,
        key=kernel_key(e, k, arch, e.shape, target),
    )  # fmt: skip


def compiled(
    catalog: Catalog, sheets: Sheets, experiment: str, archs: tuple[str, ...] = ("sm_89", "sm_90")
) -> Record:
    """A compiled record of every kernel of an experiment."""
    e = catalog.experiment(experiment)
    target = sheets.device(sheets.reference).target
    results = tuple(
        Result(
            k.name,
            "kernel",
            compilations=tuple(
                compilation(catalog, sheets, experiment, k.name, arch, target) for arch in archs
            ),
        )
        for k in e.kernels
    )
    return Record(
        SCHEMA, "compiled", e.chapter, experiment, dict(e.shape), e.dtype, e.seed, results
    )


def counted(
    catalog: Catalog, sheets: Sheets, experiment: str, counts: Mapping[str, Mapping[str, float]]
) -> Record:
    """A counted record at the emulator's shape."""
    e = catalog.experiment(experiment)
    target = sheets.device(sheets.reference).target
    shape = dict(e.emulator_shape)
    results = []
    for name, values in counts.items():
        k = e.variant(name)
        assert k.kind == "kernel"
        key = kernel_key(e, k, "sm_90", shape, target)
        c = compilation(catalog, sheets, experiment, name, "sm_90", target)
        results.append(Result(name, "kernel", key=key, compilations=(c,), counts=dict(values)))
    return Record(SCHEMA, "counted", e.chapter, experiment, shape, e.dtype, e.seed, tuple(results))
