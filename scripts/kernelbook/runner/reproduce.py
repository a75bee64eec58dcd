"""``run_all.py --reproduce ROW``: a published row and the reader's own run of it, side by side.

Nothing is stored. What differs between the two machines is printed below the times, since that is
where an explanation begins: another card, driver, compiler, clock or power limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..catalog import Catalog, Selection
from ..compare import CompareError, Comparison, compare
from ..errors import DeviceError, UsageError, printable
from ..gpu.backend import CUPY, backend_class
from ..records import DeviceInfo, Record, Result, Timing, load_all
from .json_output import deliver, text_of
from .measuring import MeasureSettings, measure
from .options import Options
from .progress import Display

JSON_SCHEMA = 1


@dataclass(frozen=True)
class Pair:
    """One row in one state of the caches: published, and here. Times in µs, None where there is
    none; ``reason`` says why there is none here."""

    variant: str
    cache: str
    published_us: float
    here_us: float | None
    spread: str  # published q1 to q3
    here_spread: str
    reason: str = ""

    @property
    def change(self) -> float | None:
        """Share by which the time here is longer."""
        return None if self.here_us is None else self.here_us / self.published_us - 1


def reproduce(display: Display, options: Options, catalog: Catalog, backend: str = CUPY) -> int:
    """Measure what ``options.reproduce`` names and print it beside the published row.

    Returns 1 where a row that is published fails here. Raises UsageError where nothing is published
    under the name, DeviceError where there is no GPU.
    """
    selection = _selection(catalog, options.reproduce)
    experiment = selection.experiment
    device = backend_class(backend).probe(options.device)
    if isinstance(device, str):
        raise DeviceError(device, hint="--reproduce measures on a GPU")
    published = published_record(options.results, experiment.name, device)
    wanted = tuple(
        r.variant for r in published.results if r.timings and r.variant in selection.variants
    )
    if not wanted:
        names = ", ".join(r.variant for r in published.results if r.timings) or "none"
        raise UsageError(f"{options.reproduce!r} is no published row", hint=f"published: {names}")
    progress = display.aside() if options.json == "-" else display
    settings = MeasureSettings(
        root=options.root,
        device_index=options.device,
        quick=options.quick,
        cache_dir=options.cache,
        backend=backend,
    )
    here = measure(experiment, wanted, settings, lambda text: progress.say(f"measure: {text}"))
    rows = pairs(published, here, wanted)
    differing = environment(published, here, wanted)
    verdicts = _verdicts(published, here, wanted)
    if options.json:
        _write_json(display, options, published, here, rows, differing, verdicts)
    if options.json != "-":
        _show(display, published, here, rows, differing, verdicts)
    return 1 if any(row.here_us is None for row in rows) else 0


def _selection(catalog: Catalog, name: str) -> Selection:
    chosen = catalog.select([name])
    if len(chosen) != 1:
        names = ", ".join(s.experiment.name for s in chosen)
        raise UsageError(f"{name!r} names {len(chosen)} experiments", hint=f"one of: {names}")
    return chosen[0]


def published_record(results: Path, experiment: str, device: DeviceInfo) -> Record:
    """The published measurement of an experiment: of this card, else the first there is.

    Raises UsageError where there is none.
    """
    found = [
        s.record
        for s in load_all(results)
        if not s.local and s.record.evidence == "measured" and s.record.experiment == experiment
    ]
    if not found:
        raise UsageError(f"no measurement of {experiment!r} is published in {results}")
    return next((r for r in found if r.slug == device.slug), found[0])


def pairs(published: Record, here: Record, wanted: Sequence[str]) -> tuple[Pair, ...]:
    """Every published time with the one taken here."""
    out = []
    for name in wanted:
        ours, own = published.result(name), here.result(name)
        assert ours is not None
        for timing in ours.timings:
            found = _timing(own, timing.cache)
            out.append(
                Pair(
                    name, timing.cache, timing.median_us,
                    found.median_us if found else None,
                    _spread(timing), _spread(found) if found else "",
                    "" if found else (own.reason if own else "not measured"),
                )
            )  # fmt: skip
    return tuple(out)


def _timing(result: Result | None, cache: str) -> Timing | None:
    return next((t for t in result.timings if t.cache == cache), None) if result else None


def _spread(timing: Timing) -> str:
    return f"{timing.q1_us:,.2f} to {timing.q3_us:,.2f}"


def environment(
    published: Record, here: Record, wanted: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """What the times may depend on, as (published, here); "" where a record does not say."""
    facts = [_facts(record, wanted) for record in (published, here)]
    return {name: (facts[0].get(name, ""), facts[1].get(name, "")) for name in facts[0] | facts[1]}


def _facts(record: Record, wanted: Sequence[str]) -> dict[str, str]:
    device = record.device
    assert device is not None
    limit = device.power_limit_w
    facts = {
        "device": device.name,
        "driver": device.driver,
        "CUDA": device.cuda,
        "CuPy": device.cupy,
        "power limit": "" if limit is None else f"{limit:g} W",
        "ECC": _yes(device.ecc),
        "MIG": _yes(device.mig),
        "highest SM clock": f"{device.sm_clock_max_mhz:g} MHz",
        "method version": str(record.method_version),
        "commit": record.commit[:12] + ("+" if record.dirty else ""),
    }
    for name in wanted:
        result = record.result(name)
        for compilation in result.compilations[:1] if result else ():
            facts[f"{name}: NVRTC"] = compilation.nvrtc
            facts[f"{name}: architecture"] = compilation.arch
            facts[f"{name}: PTX"] = compilation.ptx_hash
        for timing in result.timings[:1] if result else ():
            facts |= {f"{name}: {key}": value for key, value in _run_facts(timing).items()}
        if result is not None:
            facts[f"{name}: source, shape and options"] = result.key
    return facts


def _run_facts(timing: Timing) -> dict[str, str]:
    clocks = (timing.sm_clock_mhz, timing.memory_clock_mhz)
    sm, memory = ("" if clock is None else f"{clock:.0f} MHz" for clock in clocks)
    return {
        "SM clock": sm,
        "memory clock": memory,
        "slowed by": timing.throttle or "nothing",
        "timed by": timing.method,
        "flush": timing.flush or "none",
    }


def _yes(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _verdicts(published: Record, here: Record, wanted: Sequence[str]) -> Comparison | None:
    """By the rule of comparing, where both are of one card; None where they are not."""
    try:
        return compare([published], [here], asked=lambda record, name: name in wanted)
    except CompareError:
        return None


def _show(
    display: Display,
    published: Record,
    here: Record,
    rows: Sequence[Pair],
    differing: Mapping[str, tuple[str, str]],
    verdicts: Comparison | None,
) -> None:
    assert published.device is not None
    assert here.device is not None
    found = {(r.variant, r.cache): r.verdict for r in verdicts.rows} if verdicts else {}
    cells = []
    for row in rows:
        change = "" if row.change is None else f"{row.change:+.1%}"
        here_us = "" if row.here_us is None else f"{row.here_us:,.2f} µs"
        verdict = found.get((row.variant, row.cache), "")
        name = f"{published.experiment}/{row.variant}"
        cells.append(
            [name, row.cache, f"{row.published_us:,.2f} µs", row.spread, here_us, row.here_spread,
             change, verdict]
        )  # fmt: skip
    header = ("row", "L2", f"published: {published.device.name}, {published.date[:10]}", "q1 to q3",
              f"here: {here.device.name}", "q1 to q3", "change", "verdict")  # fmt: skip
    display.table("Reproduced", header, cells)
    for row in rows:
        if row.reason:
            display.problem(f"{row.variant}: {row.reason}")
    different = [[n, a, b] for n, (a, b) in differing.items() if a != b]
    if different:
        display.table("What differs", ("what", "published", "here"), different)
    same = [n for n, (a, b) in differing.items() if a == b and a]
    display.say("The same on both: " + printable(", ".join(same) or "nothing"))
    if verdicts is None:
        display.say("The cards differ, so there is no verdict.")


def _write_json(
    display: Display,
    options: Options,
    published: Record,
    here: Record,
    rows: Sequence[Pair],
    differing: Mapping[str, tuple[str, str]],
    verdicts: Comparison | None,
) -> None:
    content = {
        "schema": JSON_SCHEMA,
        "experiment": published.experiment,
        "published": {"device": published.slug, "date": published.date},
        "here": {"device": here.slug, "date": here.date},
        "rows": [{**asdict(row), "change": row.change} for row in rows],
        "environment": {n: {"published": a, "here": b} for n, (a, b) in differing.items()},
        "verdicts": [asdict(row) for row in verdicts.rows] if verdicts else None,
    }
    deliver(display, options.json, text_of(content))
