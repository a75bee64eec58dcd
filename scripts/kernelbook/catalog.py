"""Finds kernels/NN_chapter/experiments.py and filters experiments by name."""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from pathlib import Path

from .devices import SHEET, sheets
from .errors import ExperimentError, KernelbookError, UsageError
from .experiment import BYTES, Chart, Experiment, Kernel, Library, Region, Rule, Tuning
from .staleness import launch_of

_CHAPTER = re.compile(r"^\d\d_\w+$")
_CHART = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True)
class Selection:
    """An experiment and the variants of it that are asked for, in the author's order."""

    experiment: Experiment
    variants: tuple[str, ...]


@dataclass(frozen=True)
class Catalog:
    """All experiments of the tree, by chapter and then in the author's order."""

    root: Path
    experiments: tuple[Experiment, ...]
    charts: tuple[Chart, ...] = ()
    tunings: Mapping[str, Tuning] = field(default_factory=dict)  # by chapter

    @property
    def chapters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e.chapter for e in self.experiments))

    def experiment(self, name: str) -> Experiment:
        """The experiment of this name; raises UsageError with the nearest name."""
        if (found := self._by_name.get(name)) is not None:
            return found
        raise UsageError(f"there is no experiment {name!r}", hint=_nearest(name, self._names()))

    @cached_property
    def _by_name(self) -> Mapping[str, Experiment]:
        return {e.name: e for e in self.experiments}

    def of_chapter(self, chapter: str) -> tuple[Experiment, ...]:
        return tuple(e for e in self.experiments if e.chapter == chapter)

    def groups(self, chapter: str) -> tuple[tuple[Experiment, ...], ...]:
        """A chapter's experiments, each alone, the members of a sweep together."""
        found = groupby(self.of_chapter(chapter), lambda e: e.sweep.name if e.sweep else e.name)
        return tuple(tuple(members) for _, members in found)

    def members(self, sweep: str) -> tuple[Experiment, ...]:
        """The experiments of a sweep, in the author's order; none where there is no such sweep."""
        return self._by_sweep.get(sweep, ())

    @cached_property
    def _by_sweep(self) -> Mapping[str, tuple[Experiment, ...]]:
        found: dict[str, list[Experiment]] = {}
        for experiment in self.experiments:
            if experiment.sweep is not None:
                found.setdefault(experiment.sweep.name, []).append(experiment)
        return {name: tuple(members) for name, members in found.items()}

    def stands_for(self, name: str) -> str:
        """The experiment that is compiled and counted in place of this one.

        Of a sweep's members whose kernels differ in nothing but the measured size, the first one;
        every other experiment stands for itself. Raises UsageError for an unknown name.
        """
        return self._stand_ins[self.experiment(name).name]

    def holder(self, evidence: str, name: str) -> str:
        """The experiment whose record says what is known of this one in a grade of evidence."""
        if evidence in ("compiled", "counted"):
            return self._stand_ins.get(name, name)
        return name

    @cached_property
    def _stand_ins(self) -> Mapping[str, str]:
        first: dict[object, str] = {}
        return {e.name: first.setdefault(_code_of(e), e.name) for e in self.experiments}

    def stand_ins(self, selections: Sequence[Selection]) -> tuple[Selection, ...]:
        """What is compiled and counted for these selections: each once."""
        asked: dict[str, set[str]] = {}
        for selection in selections:
            stand_in = self.stands_for(selection.experiment.name)
            asked.setdefault(stand_in, set()).update(selection.variants)
        return tuple(
            Selection(e, tuple(v.name for v in e.variants if v.name in asked[e.name]))
            for e in self.experiments
            if e.name in asked
        )

    def sources(self) -> tuple[Path, ...]:
        """Every .cu of the chapters that have experiments, sorted."""
        folders = {e.folder for e in self.experiments}
        return tuple(sorted(path for folder in folders for path in folder.rglob("*.cu")))

    def select(self, patterns: Sequence[str]) -> tuple[Selection, ...]:
        """What the patterns name: chapters (all or by number), sweeps, experiments or variants.

        A pattern may hold ``*`` and ``?``; ``EXPERIMENT/VARIANT`` narrows to one row. Without
        patterns, everything. Raises UsageError for a pattern that names nothing.
        """
        chosen: dict[str, set[str]] = {}
        for pattern in patterns or ["*"]:
            hits = list(self._hits(pattern))
            if not hits:
                raise UsageError(
                    f"{pattern!r} names no chapter, sweep, experiment or variant",
                    hint=_nearest(pattern, self._names()),
                )
            for experiment, variant in hits:
                chosen.setdefault(experiment, set()).add(variant)
        return tuple(
            Selection(e, tuple(v.name for v in e.variants if v.name in chosen[e.name]))
            for e in self.experiments
            if e.name in chosen
        )

    def _hits(self, pattern: str) -> Iterable[tuple[str, str]]:
        for e in self.experiments:
            names = [e.name, e.chapter, e.chapter.split("_")[0]]
            names += [e.sweep.name] if e.sweep else []
            whole = any(fnmatchcase(name, pattern) for name in names)
            for v in e.variants:
                if (
                    whole
                    or fnmatchcase(v.name, pattern)
                    or fnmatchcase(f"{e.name}/{v.name}", pattern)
                ):
                    yield e.name, v.name

    def _names(self) -> list[str]:
        names = [*self.chapters, *(e.name for e in self.experiments)]
        names += dict.fromkeys(e.sweep.name for e in self.experiments if e.sweep)
        return names + sorted({v.name for e in self.experiments for v in e.variants})


def load(root: Path) -> Catalog:
    """Import every chapter's experiments.py under ``root``; raises ExperimentError."""
    found: list[Experiment] = []
    charts: list[Chart] = []
    tunings: dict[str, Tuning] = {}
    for file in sorted(root.glob("kernels/*/experiments.py")):
        if not _CHAPTER.match(file.parent.name):
            raise ExperimentError("a chapter's folder is named NN_name", file=file)
        experiments, drawn, tuning = _load_chapter(file)
        _check_sweeps(experiments, found, file)
        if tuning is not None:
            tunings[file.parent.name] = tuning
        for experiment in experiments:
            if any(e.name == experiment.name for e in found):
                raise ExperimentError(f"experiment {experiment.name!r} exists twice", file=file)
            found.append(experiment)
        for chart in drawn:
            _check_chart(chart, experiments, [c.name for c in charts], file)
            charts.append(chart)
    if not found:
        raise ExperimentError("no kernels/NN_chapter/experiments.py found", file=root / "kernels")
    return Catalog(root, tuple(found), tuple(charts), tunings)


def _load_chapter(
    file: Path,
) -> tuple[tuple[Experiment, ...], tuple[Chart, ...], Tuning | None]:
    name = f"kernelbook_chapter_{file.parent.name}"
    # A package, so that a long one can be several modules; those of another tree are forgotten.
    for other in [m for m in sys.modules if m.startswith(f"{name}.")]:
        del sys.modules[other]
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(file.parent)]
    )
    if spec is None or spec.loader is None:
        raise ExperimentError("cannot be imported", file=file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KernelbookError as error:
        raise ExperimentError(error.what, file=file, hint=error.hint) from error
    except Exception as error:
        raise ExperimentError(
            f"{type(error).__name__}: {error}", file=file, line=_line_in(error, file)
        ) from error
    experiments = tuple(
        replace(experiment, chapter=file.parent.name, folder=file.parent)
        for experiment in getattr(module, "EXPERIMENTS", ())
    )
    for experiment in experiments:
        for variant in experiment.variants:
            if isinstance(variant, Kernel) or (isinstance(variant, Library) and variant.source):
                _check_source(experiment, variant, file)
    return experiments, tuple(getattr(module, "CHARTS", ())), getattr(module, "TUNING", None)


def _code_of(experiment: Experiment) -> object:
    """What compiling and counting a member of a sweep depends on; alone, an experiment is itself.

    The emulator runs it at its own shape, with the reference device's launch.
    """
    if experiment.sweep is None:
        return experiment.name
    target = sheets().device(sheets().reference).target
    shape = experiment.emulator_shape
    kernels = tuple(
        (k.name, k.source, tuple(sorted(k.macros.items())), k.options, k.gpu_only,
         tuple((each.entry, launch_of(each, shape, target)) for each in k.launches))
        for k in experiment.kernels
    )  # fmt: skip
    sizes = tuple(tuple(sorted(s.items())) for s in (shape, *experiment.ragged))
    return experiment.chapter, experiment.sweep.name, sizes, kernels


def _check_sweeps(
    experiments: Sequence[Experiment], others: Sequence[Experiment], file: Path
) -> None:
    """Members of a sweep follow each other and have the same entries of the shape.

    Its name is neither an experiment's nor a sweep's of the ``others``, other chapters'.
    """
    seen = {e.name for e in (*experiments, *others)}
    seen |= {e.sweep.name for e in others if e.sweep}
    for name, group in groupby(experiments, lambda e: e.sweep and e.sweep.name):
        if name is None:
            continue
        if name in seen:
            what = "has members apart, or the name of an experiment"
            raise ExperimentError(f"sweep {name!r} {what}", file=file)
        seen.add(name)
        first, *others = group
        for member in others:
            if member.sweep != first.sweep or tuple(member.shape) != tuple(first.shape):
                what = f"{member.name!r} has another title or other entries than {first.name!r}"
                raise ExperimentError(f"sweep {name!r}: {what}", file=file)


def _check_source(experiment: Experiment, variant: Kernel | Library, file: Path) -> None:
    source = experiment.folder / variant.source
    if not source.is_file():
        raise ExperimentError(f"{experiment.name}/{variant.name}: no file {source}", file=file)


def _check_chart(
    chart: Chart, experiments: Sequence[Experiment], names: Sequence[str], file: Path
) -> None:
    """A chart draws what its own chapter has; raises ExperimentError where it does not."""
    if not _CHART.match(chart.name) or chart.name in names:
        what = "exists twice" if chart.name in names else "is not a file's name"
        raise ExperimentError(f"chart {chart.name!r} {what}", file=file)
    known = {e.name: e for e in experiments}
    for name in chart.experiments:
        if name not in known:
            what = f"chart {chart.name!r} draws {name!r}, which is no experiment of this chapter"
            raise ExperimentError(what, file=file)
        if chart.kind == "sweep" and chart.x not in (*known[name].shape, BYTES):
            what = f"chart {chart.name!r} sweeps {chart.x!r}, no entry of the shape of {name!r}"
            raise ExperimentError(what, file=file)
    drawn = {v.name for name in chart.experiments for v in known[name].variants}
    for variant in (*chart.variants, *filter(None, [chart.over])):
        if variant not in drawn:
            what = f"chart {chart.name!r} draws {variant!r}, which none of its experiments has"
            raise ExperimentError(what, file=file)
    if (chart.rules or chart.regions or chart.over) and chart.kind != "sweep":
        what = f"chart {chart.name!r} is no sweep, which alone has rules, regions and ratios"
        raise ExperimentError(what, file=file)
    marked: tuple[Rule | Region, ...] = (*chart.rules, *chart.regions)
    for end in (end for mark in marked for end in _ends(mark)):
        if isinstance(end, str) and end not in SHEET:
            what = f"chart {chart.name!r}: no figure {end!r} in a spec sheet"
            raise ExperimentError(what, file=file, hint="known: " + ", ".join(SHEET))


def _ends(mark: Rule | Region) -> tuple[float | str, ...]:
    return (mark.at,) if isinstance(mark, Rule) else (mark.low, mark.high)


def _line_in(error: BaseException, file: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.strip("*?"), known, n=1, cutoff=0.3)
    return f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known[:12])
