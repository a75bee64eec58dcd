"""A kernel's source with what the emulator counted beside each line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..catalog import Catalog
from ..devices import Sheets
from ..errors import KernelbookError, UsageError
from ..experiment import Experiment, Kernel
from ..records import Result
from .counting import count_kernel
from .options import Options

COLUMNS: Sequence[tuple[str, str]] = (
    ("warp_instructions", "warp instr"),
    ("global_load_sectors", "ld sectors"),
    ("global_store_sectors", "st sectors"),
    ("shared_load_wavefronts", "lds waves"),
    ("shared_store_wavefronts", "sts waves"),
    ("flops", "FLOP"),
)


def annotate(catalog: Catalog, sheets: Sheets, options: Options) -> str:
    """Execute a kernel at its emulator size and lay its counts beside its source.

    ``options.annotate`` names a variant or EXPERIMENT/VARIANT. Raises UsageError where it names no
    kernel, KernelbookError where the kernel cannot be counted.
    """
    experiment, kernel = _find(catalog, options.annotate)
    reference = sheets.device(sheets.reference)
    row = count_kernel(experiment, kernel, options.cache, reference.target, reference.arch.name)
    if not row.counts:
        raise KernelbookError(f"{kernel.name} cannot be counted: {row.reason}")
    return render(experiment, kernel, row)


def render(experiment: Experiment, kernel: Kernel, row: Result) -> str:
    """Source lines with counts; lines of other files (headers) are summed below."""
    path = experiment.folder / kernel.source
    by_line: dict[int, Mapping[str, float]] = {}
    elsewhere: dict[str, Mapping[str, float]] = {}
    for place, counts in row.lines.items():
        name, _, line = place.rpartition(":")
        if name.rpartition("/")[2] == kernel.source and line.isdigit():
            by_line[int(line)] = counts
        else:
            elsewhere[place] = counts
    shown = [c for c in COLUMNS if row.counts.get(c[0])]
    out = [
        f"{experiment.name}/{kernel.name} at "
        + ", ".join(f"{k}={v}" for k, v in experiment.emulator_shape.items()),
        _row([title for _, title in shown], "", "source"),
    ]
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        out.append(_row(_cells(by_line.get(number, {}), shown), str(number), text))
    for place, counts in elsewhere.items():
        out.append(_row(_cells(counts, shown), "", place))
    out.append(_row(_cells(row.counts, shown), "", "total"))
    return "\n".join([*out, *(f"! {finding}" for finding in row.findings)])


def _find(catalog: Catalog, name: str) -> tuple[Experiment, Kernel]:
    for selection in catalog.select([name]):
        for kernel in selection.experiment.kernels:
            if kernel.name in selection.variants:
                return selection.experiment, kernel
    raise UsageError(f"{name!r} names no kernel of ours")


def _cells(counts: Mapping[str, float], shown: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{counts[name]:,.0f}" if counts.get(name) else "" for name, _ in shown]


def _row(cells: Sequence[str], number: str, text: str) -> str:
    return " ".join(f"{cell:>11}" for cell in cells) + f" {number:>4} │ {text}"
