"""Is what a kernel wrote right, and did it touch only what it may?

Works on NumPy and on CuPy arrays alike (``xp`` is the module), so the emulator's and the GPU's
outputs are held to the same rules:

- inputs are seeded random numbers, the same bits on every machine and for every ``xp`` (`inputs`);
- outputs are poisoned with 0xFF bytes (NaN in every floating-point type) before each launch;
- guard bands lie on both sides of every buffer and must not change;
- inputs must not change;
- an element passes where |out - ref| <= allowed, with a fp64 reference; NaN never passes;
- every kernel is launched at least twice, so that one that works only once is found: on poison, and
  on numbers of no meaning, so that one that works only on poison is found;
- and at last on other inputs, whose reference is computed only when the kernel is done, so that one
  that remembers an answer, or reads ours, is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .errors import ExperimentError
from .experiment import Arrays, Buffer, Experiment, Kernel, Shape, Target, buffer_bytes
from .inputs import chunks, fill_random, random_part
from .records import Verification
from .staleness import launch_of

BAND_BYTES = 1 << 16
POISON = 0xFF  # float16, float32 and float64 of these bytes are NaN
# Bands differ by role, so that copying a band onto another one cannot go unseen: NaN beside what
# is read, a huge negative number beside what is written.
READ_BAND, WRITE_BAND = 0xFF, 0xFE
# What is verified, what is timed, and what no kernel has seen before the last look.
VERIFY_SEED_OFFSET, TIMING_SEED_OFFSET, LAST_SEED_OFFSET = 0, 1_000_003, 2_000_003
LITTER_SEED_OFFSET = 3_000_017

Launch = Callable[[Kernel, Shape, Arrays], None]


# ---- guarded buffers -----------------------------------------------------------------------


@dataclass(frozen=True)
class Guarded:
    """A buffer of the problem between two guard bands, all in one allocation of bytes."""

    buffer: Buffer
    slab: Any  # uint8: band, data, band
    array: Any  # the data, in its own type and shape

    @property
    def pattern(self) -> int:
        return READ_BAND if self.buffer.role == "in" else WRITE_BAND

    def reset_bands(self) -> None:
        self.slab[:BAND_BYTES] = self.pattern
        self.slab[-BAND_BYTES:] = self.pattern

    def poison(self) -> None:
        self.slab[BAND_BYTES:-BAND_BYTES] = POISON

    def check_bands(self, xp: Any) -> str:
        """What was written outside the buffer, "" where nothing was."""
        name, wanted = self.buffer.name, np.uint8(self.pattern)
        changed = xp.nonzero(self.slab[:BAND_BYTES] != wanted)[0]
        if changed.size:
            at = BAND_BYTES - int(changed[-1])
            return f"writes before the start of {name} ({int(changed.size)} bytes, at byte -{at})"
        changed = xp.nonzero(self.slab[-BAND_BYTES:] != wanted)[0]
        if changed.size:
            at = int(changed[0])
            return f"writes past the end of {name} ({int(changed.size)} bytes, at byte +{at})"
        return ""


def guard(xp: Any, buffer: Buffer, shape: Shape) -> Guarded:
    """Allocate a buffer with its bands; the data is poisoned, the bands are set."""
    size = buffer_bytes(buffer, shape)
    slab = xp.empty(size + 2 * BAND_BYTES, dtype=xp.uint8)
    data = slab[BAND_BYTES : BAND_BYTES + size].view(np.dtype(buffer.dtype))
    guarded = Guarded(buffer, slab, data.reshape(buffer.dims(shape)))
    guarded.reset_bands()
    guarded.poison()
    return guarded


# ---- one problem ---------------------------------------------------------------------------


class Problem:
    """The buffers of an experiment at one shape and seed, with the fp64 reference.

    ``arrays`` is what a launch gets. Raises ExperimentError where the author's reference does not
    give every output in its shape.
    """

    def __init__(self, xp: Any, experiment: Experiment, shape: Shape, seed: int) -> None:
        self.xp = xp
        self.experiment = experiment
        self.shape = dict(shape)
        self.seed = seed
        self._buffers = {b.name: guard(xp, b, shape) for b in experiment.buffers}
        self.arrays: dict[str, Any] = {n: g.array for n, g in self._buffers.items()}
        self.restore()
        self._known: dict[str, Any] | None = self._referenced()

    @property
    def reference(self) -> dict[str, Any]:
        """The fp64 outputs for the inputs as they are; after `reseed` computed when first used."""
        if self._known is None:
            self._known = self._referenced()
        return self._known

    def restore(self) -> None:
        """Inputs, outputs and bands as they were at first."""
        for guarded in self._buffers.values():
            guarded.reset_bands()
            if guarded.buffer.role == "in":
                fill_random(self.xp, guarded.array, guarded.buffer, self.seed)
        self.reset_outputs()

    def reset_outputs(self) -> None:
        """Poison outputs; give buffers that are both their input again."""
        for guarded in self._buffers.values():
            if guarded.buffer.role == "out":
                guarded.poison()
            elif guarded.buffer.role == "inout":
                fill_random(self.xp, guarded.array, guarded.buffer, self.seed)

    def litter(self) -> None:
        """Outputs as an earlier launch on other inputs might have left them: numbers, all wrong."""
        for guarded in self._buffers.values():
            if guarded.buffer.role == "out":
                fill_random(self.xp, guarded.array, guarded.buffer, self.seed + LITTER_SEED_OFFSET)

    def reseed(self, seed: int) -> None:
        """Other inputs in the same places; the old reference is gone, the new one not yet there."""
        self.seed = seed
        self._known = None
        self.restore()

    @property
    def writes_its_inputs(self) -> bool:
        return any(b.role == "inout" for b in self.experiment.buffers)

    def check(self) -> Verification:
        """Compare what lies in the outputs now; look at the bands and the inputs."""
        found = compare(self.xp, self.experiment, self.arrays, self.reference, self.shape)
        said = "; ".join(filter(None, [found.reason, self.damage()]))
        if said:
            self._known = None  # may have been computed from inputs that the kernel had changed
        return replace(found, passed=not said, reason=said)

    def damage(self) -> str:
        """What was changed that must not be: bands and inputs. "" for nothing."""
        reasons = [g.check_bands(self.xp) for g in self._buffers.values()]
        reasons += [self._check_input(g) for g in self._buffers.values() if g.buffer.role == "in"]
        return "; ".join(filter(None, reasons))

    def check_outputs(self, outputs: Arrays) -> Verification:
        """Compare outputs computed elsewhere (by a CPU baseline) with the reference."""
        return compare(self.xp, self.experiment, outputs, self.reference, self.shape)

    def _check_input(self, guarded: Guarded) -> str:
        buffer = guarded.buffer
        for start, part in chunks(guarded.array):
            was = random_part(self.xp, start, part.size, buffer, self.seed)
            if not bool((part == was).all()):
                return f"changes its input {buffer.name}"
        return ""

    def _referenced(self) -> dict[str, Any]:
        found = self._computed({b.name: self._given(b) for b in self.experiment.inputs})
        for buffer in self.experiment.outputs:
            out = found.get(buffer.name)
            if out is None or tuple(out.shape) != tuple(buffer.dims(self.shape)):
                what = "nothing" if out is None else f"shape {tuple(out.shape)}"
                raise ExperimentError(
                    f"the reference of {self.experiment.name!r} gives {what} for {buffer.name!r} "
                    f"at {dict(self.shape)}, which is {tuple(buffer.dims(self.shape))}"
                )
        return found

    def _given(self, buffer: Buffer) -> Any:
        """What a launch finds in a buffer; of one that it overwrites, a copy made anew."""
        if buffer.role == "in":
            return self.arrays[buffer.name]
        fresh = self.xp.empty(buffer.dims(self.shape), dtype=np.dtype(buffer.dtype))
        fill_random(self.xp, fresh, buffer, self.seed)
        return fresh

    def _computed(self, inputs: Arrays) -> dict[str, Any]:
        try:
            return dict(self.experiment.reference(self.xp, inputs, self.shape))
        except ImportError:
            if self.xp is np:
                raise
        # A library of the device (cuBLAS, say) is not installed: the host is slower and as right.
        host = {name: self.xp.asnumpy(a) for name, a in inputs.items()}
        found = self.experiment.reference(np, host, self.shape)
        return {name: self.xp.asarray(a) for name, a in found.items()}


# ---- comparison ----------------------------------------------------------------------------


@dataclass
class _Errors:
    """Running extremes over the chunks of the outputs."""

    largest: float = 0.0
    worst: float = 0.0
    squares: float = 0.0
    elements: int = 0
    failing: int = 0
    first: str = ""


def compare(
    xp: Any, experiment: Experiment, outputs: Arrays, reference: Arrays, shape: Shape
) -> Verification:
    """Hold outputs to the fp64 reference within the experiment's tolerance, element by element."""
    errors = _Errors()
    for buffer in experiment.outputs:
        out, ref = outputs[buffer.name], reference[buffer.name]
        if tuple(out.shape) != tuple(ref.shape):
            reason = f"{buffer.name} has shape {tuple(out.shape)}, not {tuple(ref.shape)}"
            return Verification(dict(shape), False, 0.0, 0.0, 0.0, reason)
        flat = ref.reshape(-1)
        for start, part in chunks(out):
            _compare_chunk(xp, experiment, shape, buffer.name, part, flat, start, errors)
    reason = ""
    if errors.failing:
        reason = f"{errors.failing} of {errors.elements} elements are wrong; {errors.first}"
    return Verification(
        shape=dict(shape),
        passed=not errors.failing,
        max_error=errors.largest,
        worst_ratio=errors.worst,
        rms_error=math.sqrt(errors.squares / max(errors.elements, 1)),
        reason=reason,
    )


def _compare_chunk(
    xp: Any,
    experiment: Experiment,
    shape: Shape,
    name: str,
    out: Any,
    reference: Any,
    start: int,
    errors: _Errors,
) -> None:
    tolerance = experiment.tolerance
    scale = tolerance.scale(shape)
    got = out.astype(xp.float64)
    ref = reference[start : start + got.size].astype(xp.float64)
    error = xp.abs(got - ref)
    allowed = scale * (tolerance.absolute + tolerance.relative * xp.abs(ref))
    passing = error <= allowed  # False for NaN on either side
    finite = xp.where(xp.isfinite(error), error, 0.0)
    # Where nothing is allowed the ratio of an error would be infinite, which no record holds.
    ratio = finite / xp.maximum(allowed, 1e-300)
    errors.largest = max(errors.largest, float(finite.max()))
    errors.worst = max(errors.worst, min(float(ratio.max()), 1e300))
    errors.squares += min(float((finite * finite).sum()), 1e300)
    errors.elements += int(got.size)
    failing = int(got.size) - int(passing.sum())
    if failing and not errors.first:
        at = int(xp.nonzero(~passing)[0][0])
        index = np.unravel_index(start + at, experiment_dims(experiment, name, shape))
        place = ", ".join(str(int(i)) for i in index)
        errors.first = (
            f"first {name}[{place}] is {_shown(float(got[at]))}, should be {float(ref[at]):.9g} "
            f"(allowed error {float(allowed[at]):.2g})"
        )
    errors.failing += failing


def experiment_dims(experiment: Experiment, name: str, shape: Shape) -> tuple[int, ...]:
    """Dimensions of a buffer of an experiment at a shape."""
    return next(b.dims(shape) for b in experiment.buffers if b.name == name)


def _shown(value: float) -> str:
    return "NaN (never written, or computed so)" if math.isnan(value) else f"{value:.9g}"


# ---- a kernel ------------------------------------------------------------------------------


def verify_run(problem: Problem, run: Callable[[Arrays], None], launches: int = 2) -> Verification:
    """Run something ``launches`` times and check after each: first on poison, then on litter.

    ``run`` must have finished, or be ordered before what ``xp`` does next, when it returns.
    """
    found = None
    for launch in range(1, launches + 1):
        problem.reset_outputs()
        if launch > 1:
            problem.litter()
        run(problem.arrays)
        found = problem.check()
        if not found.passed:
            problem.restore()
            where = f"launch {launch}: " if launch > 1 else ""
            return replace(found, reason=where + found.reason)
    assert found is not None
    return found


def check_launch(experiment: Experiment, kernel: Kernel, shape: Shape, target: Target) -> None:
    """Raise ExperimentError for a grid or block that no CUDA device takes."""
    for each in kernel.launches:
        grid, block, dynamic = launch_of(each, shape, target)
        limits = ((grid, (2**31 - 1, 65535, 65535)), (block, (1024, 1024, 64)))
        fits = all(1 <= n <= most for dim, top in limits for n, most in zip(dim, top, strict=True))
        if not fits or math.prod(block) > 1024 or dynamic < 0:
            raise ExperimentError(
                f"{experiment.name}/{kernel.name} has grid {grid}, block {block} and {dynamic} "
                f"bytes of dynamic shared memory at {dict(shape)}, which no CUDA device can launch"
            )


def verify_kernel(
    experiment: Experiment,
    kernel: Kernel,
    shape: Shape,
    target: Target,
    launch: Launch,
    xp: Any,
    *,
    seed: int | None = None,
    launches: int = 2,
) -> Verification:
    """Verify one kernel at one shape. ``launch(kernel, shape, arrays)`` runs it.

    Every launch gets other inputs in the same buffers; figures are those of the first.

    Raises what ``launch`` raises, and ExperimentError for a launch shape that no card takes or a
    reference that does not fit the outputs.
    """
    check_launch(experiment, kernel, shape, target)
    wanted = experiment.seed + VERIFY_SEED_OFFSET if seed is None else seed
    problem = Problem(xp, experiment, shape, wanted)
    run = partial(launch, kernel, shape)
    found = verify_run(problem, run, 1)
    for number in range(2, launches + 1):
        if not found.passed:
            return found
        problem.reseed(wanted + number - 1)
        problem.litter()
        run(problem.arrays)
        again = problem.check()
        if not again.passed:
            return replace(again, reason=f"launch {number}: {again.reason}")
    return found
