"""What the command line can ask for, as one frozen value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError

EPILOG = """examples:
  run_all.py                        everything this machine can do
  run_all.py --list                 what there is
  run_all.py --only 01_basics       one chapter; also an experiment, a variant, EXPERIMENT/VARIANT
  run_all.py --no-gpu               compile and count, even where there is a GPU
  run_all.py --check                exit 1 if a published number is stale or missing; runs nothing
  run_all.py --compare A B          two results folders: exit 1 if something in B is slower
  run_all.py --reproduce gemm_1024  a published row and your own run of it, side by side
  run_all.py --tune --only 04_gemm  choose configurations by size for this card, write the table
"""

MODES = ("list", "render", "check", "annotate", "compare", "reproduce", "selftest", "tune")


@dataclass(frozen=True)
class Options:
    """The parsed command line. ``results`` is absolute."""

    root: Path
    results: Path
    only: tuple[str, ...]
    list_only: bool
    render_only: bool
    check_only: bool
    use_gpu: bool
    device: int
    quick: bool
    charts: bool
    remeasure: bool
    publish: bool
    count: bool
    profile: bool
    annotate: str
    compare: tuple[str, ...]
    selftest: bool
    tune: bool
    reproduce: str
    json: str

    @property
    def cache(self) -> Path:
        return self.root / ".cache" / "kernelbook"


def parse(root: Path, arguments: Sequence[str] | None) -> Options:
    """Parse the command line; exits with argparse's message for an unknown option."""
    parser = argparse.ArgumentParser(
        prog="run_all.py",
        description="Compile, verify and measure (with a GPU) or count (without one) every kernel; "
        "write results/*.md, charts and summary.csv.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--list", action="store_true", help="list chapters, experiments and variants, run nothing")
    add("--only", nargs="+", default=[], metavar="PATTERN", action="extend",
        help="chapters, experiments or variants; * and ? match")  # fmt: skip
    add("--no-gpu", action="store_true", help="compile and count only, even where there is a GPU")
    add("--device", type=int, default=0, metavar="N", help="which GPU (default 0)")
    add("--quick", action="store_true", help="fewer samples: a look, not a result")
    add("--no-charts", action="store_true", help="do not draw charts")
    add("--render", action="store_true", help="only render results/ from the records in the tree")
    add("--check", action="store_true",
        help="name what is stale or missing and exit 1 if anything is; run nothing")  # fmt: skip
    add("--results", default=str(root / "results"), metavar="DIR",
        help="folder of records and results (default: results/)")  # fmt: skip
    add("--remeasure", action="store_true", help="take current records again, too")
    add("--publish", action="store_true",
        help="write measurements to results/data/ (ours) instead of results/local/")  # fmt: skip
    add("--count", action="store_true", help="with a GPU: also execute and count on the emulator")
    add("--profile", action="store_true", help="with a GPU: also read ncu's counters")
    add("--annotate", default=None, metavar="KERNEL",
        help="print a kernel's source with its counts by line, run nothing else")  # fmt: skip
    add("--compare", nargs=2, default=[], metavar=("A", "B"),
        help="hold the measurements of results folder B against those of A; `data` and `local` "
        "name the published ones and yours; exit 1 if something is slower")  # fmt: skip
    add(
        "--reproduce",
        default=None,
        metavar="ROW",
        help="measure EXPERIMENT or EXPERIMENT/VARIANT here and print it beside what is published",
    )
    add(
        "--selftest",
        action="store_true",
        help="test the harness itself: its rules, and on a GPU its clock and its L2 flush",
    )
    add(
        "--tune",
        action="store_true",
        help="time every configuration of tuned kernels by size and write their tables; --only "
        "takes chapters and shapes (4096x*)",
    )
    add(
        "--json",
        default=None,
        metavar="FILE",
        help="with --compare, --reproduce or --selftest: write the outcome as JSON (- to print it)",
    )
    a = parser.parse_args(arguments)
    _refuse_empty(a)
    modes = [n for n in MODES if getattr(a, n)]
    if len(modes) > 1:
        raise UsageError(f"--{modes[0]} and --{modes[1]} exclude each other")
    if a.json and not {*modes} & {"compare", "reproduce", "selftest"}:
        raise UsageError("--json goes with --compare, --reproduce or --selftest")
    if a.no_gpu and (a.publish or a.profile or a.tune):
        raise UsageError("--publish, --profile and --tune need a GPU, --no-gpu forbids one")
    if a.quick and a.publish:
        raise UsageError("--quick takes too few samples to publish")
    return Options(
        root=root,
        results=path_of(a.results),
        only=tuple(a.only),
        list_only=a.list,
        render_only=a.render,
        check_only=a.check,
        use_gpu=not a.no_gpu,
        device=a.device,
        quick=a.quick,
        charts=not a.no_charts,
        remeasure=a.remeasure,
        publish=a.publish,
        count=a.count,
        profile=a.profile,
        annotate=a.annotate or "",
        compare=tuple(a.compare),
        selftest=a.selftest,
        tune=a.tune,
        reproduce=a.reproduce or "",
        json=a.json or "",
    )


def path_of(name: str) -> Path:
    """The absolute path of what a user typed; ``~`` is a home folder.

    Raises UsageError where nobody has such a home.
    """
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        raise UsageError(f"there is no home folder for {name!r}") from None


def _refuse_empty(a: argparse.Namespace) -> None:
    """A name that is there and empty is a mistake (an unset variable of a script), and never means
    "all", "here" or "nothing"."""
    for name in ("annotate", "reproduce", "json", "results"):
        if getattr(a, name) is not None and not getattr(a, name).strip():
            raise UsageError(f"--{name} is given an empty name")
    if a.compare and not all(folder.strip() for folder in a.compare):
        raise UsageError("--compare is given an empty name")
