"""What the dotted names in an article mean: records, spec sheets, shapes, models and launches."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelbook.constants import constants
from kernelbook.devices import Device
from kernelbook.errors import PageError
from kernelbook.experiment import Experiment, Kernel, model
from kernelbook.metrics import METRICS
from kernelbook.quantities import UNITS, Grade, Quantity, Source
from kernelbook.report.rows import Row, anchor_of
from kernelbook.site import provenance
from kernelbook.site.context import Project
from kernelbook.site.expressions import Resolved
from kernelbook.staleness import launch_of

_RECORDED = ("measured", "cited", "counted", "compiled")
_ROOTS = (
    *_RECORDED, "spec", "shape", "emulator_shape", "model", "launch", "emulator_launch", "macro",
)  # fmt: skip
_CACHES = ("cold", "warm")
_FORMS = {
    "measured": "measured.EXPERIMENT.VARIANT.METRIC",
    "cited": "cited.EXPERIMENT.VARIANT.METRIC",
    "counted": "counted.EXPERIMENT.VARIANT.METRIC",
    "compiled": "compiled.EXPERIMENT.VARIANT.METRIC",
    "spec": "spec.FIGURE",
    "shape": "shape.EXPERIMENT.ENTRY",
    "emulator_shape": "emulator_shape.EXPERIMENT.ENTRY",
    "model": "model.EXPERIMENT.VARIANT.flops",
    "launch": "launch.EXPERIMENT.VARIANT.blocks",
    "emulator_launch": "emulator_launch.EXPERIMENT.VARIANT.blocks",
    "macro": "macro.EXPERIMENT.VARIANT.NAME",
}


@dataclass(frozen=True)
class ProjectScope:
    """Names over one project. ``strict``: a stale number of ours is an error, not a mark."""

    project: Project
    language: str
    strict: bool = False

    def unit(self, name: str) -> Quantity:
        """A unit by its bare name (``B``, ``FLOP``, ``cycle``); raises PageError."""
        if name == "cycle":
            return Quantity.of(1.0, "cycles")
        if name in UNITS and name:
            return Quantity.of(1.0, name)
        raise PageError(
            f"no unit {name!r}", hint=_nearest(name, ["B", "FLOP", "s", "cycle", *_ROOTS])
        )

    def members(self, name: str) -> Sequence[str]:
        """The experiments of a sweep, none where there is no sweep of this name."""
        return [member.name for member in self.project.book.catalog.members(name)]

    def path(self, root: str, subscript: str | None, parts: Sequence[str]) -> Resolved:
        """The number ``root["subscript"].part.part…`` names; raises KernelbookError."""
        if root not in _ROOTS:
            raise PageError(f"no name {root!r}", hint="there are: " + ", ".join(_ROOTS))
        if subscript is not None and root not in (*_RECORDED, "spec"):
            raise PageError(f"{root} takes no [ ]", hint=_FORMS[root])
        if root in _RECORDED:
            return self._recorded(root, subscript, parts)
        if root == "spec":
            return self._figure(subscript, parts)
        if root in ("shape", "emulator_shape"):
            return self._shape(root, parts)
        return self._of_variant(root, parts)

    # ---- records ---------------------------------------------------------------------------

    def _recorded(self, evidence: str, device: str | None, parts: Sequence[str]) -> Resolved:
        experiment, variant, cache, name = _split(evidence, parts)
        if device is None:
            device = self._default_device(evidence, experiment, variant, name, cache)
        holder = self.project.book.catalog.holder(evidence, experiment)
        row = self.project.index.find(evidence, holder, variant, name, device=device, cache=cache)
        if row.stale and self.strict and self._ours(row):
            raise PageError(
                f"{experiment}/{variant} {name} is stale: the tree has changed since",
                hint=f"run scripts/run_all.py --only {experiment}",
            )
        return of_row(row, self.language)

    def _default_device(
        self, evidence: str, experiment: str, variant: str, name: str, cache: str
    ) -> str:
        if evidence == "measured":
            return self.project.reference
        if evidence == "compiled":
            return self.project.book.sheets.device(self.project.reference).arch.name
        if evidence == "counted":
            return ""
        having = {
            row.device
            for row in self.project.rows(evidence, experiment, variant)
            if row.metric == name and cache in ("", row.cache)
        }
        if len(having) > 1:
            raise PageError(
                f"{experiment}/{variant} {name} is cited for several devices",
                hint="say which: " + ", ".join(f'cited["{slug}"]' for slug in sorted(having)),
            )
        return next(iter(having), "")

    def _ours(self, row: Row) -> bool:
        """Whether a stale row is ours to renew: other people's devices only carry the mark."""
        if row.local:
            return False
        return row.evidence in ("counted", "compiled") or row.device == self.project.reference

    # ---- theory ----------------------------------------------------------------------------

    def _figure(self, slug: str | None, parts: Sequence[str]) -> Resolved:
        device: Device = self.project.book.sheets.device(slug or self.project.reference)
        if len(parts) != 1:
            raise PageError(f"spec.{'.'.join(parts)} is not a figure", hint=_FORMS["spec"])
        return Resolved(device.figure(parts[0]))

    def _shape(self, root: str, parts: Sequence[str]) -> Resolved:
        if len(parts) != 2:
            raise PageError(f"{root}.{'.'.join(parts)} is not an entry", hint=_FORMS[root])
        experiment = self.project.book.catalog.experiment(parts[0])
        shape = experiment.shape if root == "shape" else experiment.emulator_shape
        value = _entry(shape, parts[1], f"shape of {experiment.name}")
        return Resolved(_theory(value, "", f"{experiment.name}: {parts[1]} = {value:,}"))

    def _of_variant(self, root: str, parts: Sequence[str]) -> Resolved:
        if len(parts) != 3:
            raise PageError(f"{root}.{'.'.join(parts)} is not a number", hint=_FORMS[root])
        experiment = self.project.book.catalog.experiment(parts[0])
        variant = experiment.variant(parts[1])
        if root == "model":
            flops, read, written = model(experiment, variant, experiment.shape)
            values = {
                "flops": flops, "bytes": read + written, "bytes_read": read,
                "bytes_written": written,
            }  # fmt: skip
            value, unit = _entry(values, parts[2], root), "FLOP" if parts[2] == "flops" else "B"
        else:
            if not isinstance(variant, Kernel):
                raise PageError(f"{parts[1]} is no kernel and has no {root}")
            values = (
                constants_of(experiment, variant)
                if root == "macro"
                else self._launch(root, experiment, variant)
            )
            value, unit = _entry(values, parts[2], f"{root} of {variant.name}"), ""
        anchor = f"{experiment.chapter}#{anchor_of(experiment.name, variant.name)}"
        label = f"{experiment.name} / {variant.name}: {parts[2]} = {value:,}"
        return Resolved(_theory(value, unit, label, anchor))

    def _launch(self, root: str, experiment: Experiment, kernel: Kernel) -> dict[str, int]:
        shape = experiment.shape if root == "launch" else experiment.emulator_shape
        target = self.project.book.sheets.device(self.project.reference).target
        grid, block, shared = launch_of(kernel, shape, target)
        return {
            "blocks": grid[0] * grid[1] * grid[2],
            "threads": block[0] * block[1] * block[2],
            "block_x": block[0], "block_y": block[1], "block_z": block[2],
            "grid_x": grid[0], "grid_y": grid[1], "grid_z": grid[2],
            "dynamic_shared": shared,
        }  # fmt: skip


def of_row(row: Row, language: str) -> Resolved:
    """A row's number, with where it came from in the reader's language."""
    metric = METRICS.get(row.metric)
    quantity = row.quantity()
    detail = provenance.of_row(row, language)
    sources = tuple(replace(source, detail=detail) for source in quantity.sources)
    show = metric.show if metric is not None and metric.unit == row.unit else ""
    return Resolved(replace(quantity, sources=sources), show, row.unit)


def _split(evidence: str, parts: Sequence[str]) -> tuple[str, str, str, str]:
    """(experiment, variant, cache, metric) of a record's path."""
    if len(parts) == 4 and parts[2] in _CACHES:
        return parts[0], parts[1], parts[2], parts[3]
    if len(parts) != 3:
        raise PageError(f"{evidence}.{'.'.join(parts)} is not a number", hint=_FORMS[evidence])
    return parts[0], parts[1], "", parts[2]


def _theory(value: float, unit: str, label: str, anchor: str = "") -> Quantity:
    return Quantity.of(value, unit, Grade.THEORY, (Source(Grade.THEORY, label, anchor),))


def constants_of(experiment: Experiment, kernel: Kernel) -> dict[str, int]:
    """What the kernel is compiled with and what its source defines; raises PageError."""
    return constants(experiment.folder / kernel.source, kernel.macros)


def _entry(values: Mapping[str, int], name: str, what: str) -> int:
    try:
        return values[name]
    except KeyError:
        raise PageError(
            f"no {name!r} in the {what}", hint="there are: " + (", ".join(values) or "none")
        ) from None


def _nearest(name: str, known: Iterable[str]) -> str:
    options = list(known)
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else "there are: " + ", ".join(options)
