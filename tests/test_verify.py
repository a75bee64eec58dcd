"""Verification against planted faults: every way of being wrong that a kernel has found so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelbook import inputs, verify
from kernelbook.devices import sheets
from kernelbook.errors import ExperimentError
from kernelbook.experiment import (
    Arrays,
    Buffer,
    Experiment,
    Kernel,
    Shape,
    Text,
    Tolerance,
)
from kernelbook.inputs import fill_random, make_inputs
from kernelbook.verify import BAND_BYTES, Problem, guard, verify_kernel

TARGET = sheets().arch("sm_90").target(sms=132, l2_bytes=60 << 20)
SHAPE = {"m": 5, "n": 7}

KERNEL = Kernel(
    name="double",
    source="double.cu",
    entry="double_it",
    args=("x", "y", "m", "n"),
    grid=lambda s, t: (s["m"], 1, 1),
    block=lambda s, t: (32, 1, 1),
    title=Text("", ""),
)


def double_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    return {"y": inputs["x"].astype(xp.float64) * 2}


def experiment(**changes: Any) -> Experiment:
    values: dict[str, Any] = {
        "name": "double",
        "title": Text("", ""),
        "shape": SHAPE,
        "emulator_shape": SHAPE,
        "ragged": ({"m": 1, "n": 3},),
        "buffers": (
            Buffer("x", "in", lambda s: (s["m"], s["n"])),
            Buffer("y", "out", lambda s: (s["m"], s["n"])),
        ),
        "reference": double_reference,
        "flops": lambda s: s["m"] * s["n"],
        "tolerance": Tolerance(relative=1e-6, absolute=1e-7),
        "variants": (KERNEL,),
    }
    return Experiment(**{**values, **changes})


Body = Callable[[Shape, Arrays], None]


def check(body: Body, shape: Shape = SHAPE, **changes: Any) -> verify.Verification:
    def launch(kernel: Kernel, shape: Shape, arrays: Arrays) -> None:
        body(shape, arrays)

    return verify_kernel(experiment(**changes), KERNEL, shape, TARGET, launch, np)


def right(shape: Shape, arrays: Arrays) -> None:
    arrays["y"][...] = arrays["x"] * np.float32(2)


def beyond(array: Any, elements: int) -> Any:
    """The float32 element that many places past the end (or before the start) of an array."""
    slab = array
    while slab.base is not None and slab.base.dtype == np.uint8:
        slab = slab.base
    slab = slab if slab.dtype == np.uint8 else slab.base
    start = BAND_BYTES + (array.nbytes + 4 * elements if elements >= 0 else 4 * elements)
    return slab[start : start + 4].view(np.float32)


def test_a_right_kernel_passes_with_no_error() -> None:
    found = check(right)
    assert found.passed
    assert found.reason == ""
    assert found.max_error == 0.0
    assert found.shape == SHAPE


def test_an_error_within_tolerance_is_reported_as_its_share_of_what_is_allowed() -> None:
    def off(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["y"][2, 3] += np.float32(0.25)

    found = check(off, tolerance=Tolerance(relative=0.0, absolute=0.5))
    assert found.passed
    assert found.max_error == pytest.approx(0.25, abs=1e-6)
    assert found.worst_ratio == pytest.approx(0.5, abs=1e-6)
    assert found.rms_error == pytest.approx(0.25 / 35**0.5, rel=1e-5)


def test_the_scale_of_a_tolerance_is_taken_at_the_shape() -> None:
    def off(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["y"] += np.float32(0.25)

    loose = Tolerance(relative=0.0, absolute=0.1, scale=lambda s: float(s["m"]))
    assert check(off, tolerance=loose).passed  # allowed 0.1 * 5
    assert not check(off, {"m": 2, "n": 7}, tolerance=loose).passed  # allowed 0.1 * 2


def test_a_kernel_that_writes_nothing_fails_on_the_poison() -> None:
    found = check(lambda shape, arrays: None)
    assert not found.passed
    assert "35 of 35 elements are wrong" in found.reason
    assert "y[0, 0] is NaN" in found.reason


def test_a_kernel_that_writes_zeros_fails() -> None:
    found = check(lambda shape, arrays: arrays["y"].fill(0.0))
    assert not found.passed
    assert found.max_error == pytest.approx(2.0, rel=0.2)  # inputs reach nearly 1


def test_one_nan_fails_and_is_named() -> None:
    def with_nan(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["y"][1, 4] = np.nan

    found = check(with_nan, tolerance=Tolerance(relative=1e9, absolute=1e9))
    assert not found.passed
    assert "1 of 35 elements are wrong; first y[1, 4] is NaN" in found.reason


def test_an_infinite_output_fails_and_leaves_figures_that_a_record_can_hold() -> None:
    def with_infinity(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["y"][0, 0] = np.inf

    found = check(with_infinity)
    assert not found.passed
    assert np.isfinite([found.max_error, found.worst_ratio, found.rms_error]).all()


def test_a_write_one_element_past_the_end_fails_although_the_output_is_right() -> None:
    def past(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        beyond(arrays["y"], 0)[0] = 1.0

    found = check(past)
    assert not found.passed
    assert found.reason == "writes past the end of y (4 bytes, at byte +0)"


def test_a_write_before_the_start_of_an_input_fails() -> None:
    def before(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        beyond(arrays["x"], -1)[0] = 1.0

    found = check(before)
    assert not found.passed
    assert found.reason == "writes before the start of x (4 bytes, at byte -1)"


def test_copying_the_band_of_an_input_past_the_end_of_an_output_is_seen() -> None:
    def copies_too_much(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        beyond(arrays["y"], 0)[...] = beyond(arrays["x"], 0)

    assert "past the end of y" in check(copies_too_much).reason


def test_a_wrong_last_row_fails_and_names_its_first_element() -> None:
    def last_row(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["y"][-1] = 0.0

    found = check(last_row)
    assert "7 of 35 elements are wrong; first y[4, 0] is 0" in found.reason


def test_a_kernel_wrong_only_on_ragged_sizes_passes_the_others() -> None:
    def multiple_of_seven(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        if shape["n"] % 7:
            arrays["y"].reshape(-1)[-1] = 0.0

    assert check(multiple_of_seven).passed
    assert not check(multiple_of_seven, {"m": 1, "n": 3}).passed


def test_a_kernel_that_changes_its_input_fails() -> None:
    def in_place(shape: Shape, arrays: Arrays) -> None:
        right(shape, arrays)
        arrays["x"][4, 6] = 0.5

    assert check(in_place).reason == "changes its input x"


def test_a_kernel_that_works_only_on_the_first_call_fails_on_the_second() -> None:
    calls: list[int] = []

    def once(shape: Shape, arrays: Arrays) -> None:
        calls.append(1)
        if len(calls) == 1:
            right(shape, arrays)

    found = check(once)
    assert not found.passed
    assert found.reason.startswith("launch 2: ")


def test_a_faulty_kernel_does_not_spoil_the_problem_for_the_next_one() -> None:
    problem = Problem(np, experiment(), SHAPE, 1)

    def spoil(arrays: Arrays) -> None:
        arrays["x"].fill(0.0)
        beyond(arrays["x"], 0)[0] = 0.0

    assert not verify.verify_run(problem, spoil).passed
    assert verify.verify_run(problem, lambda arrays: right(SHAPE, arrays)).passed


def test_a_buffer_that_is_read_and_written_gets_its_input_again_before_each_launch() -> None:
    inplace = experiment(
        buffers=(Buffer("y", "inout", lambda s: (s["m"], s["n"])),),
        reference=lambda xp, inputs, shape: {"y": inputs["y"].astype(xp.float64) * 2},
        variants=(),
    )
    problem = Problem(np, inplace, SHAPE, 1)

    def double(arrays: Arrays) -> None:
        arrays["y"] *= np.float32(2)

    assert verify.verify_run(problem, double, launches=3).passed


def test_integer_outputs_are_compared_exactly() -> None:
    ints = experiment(
        buffers=(
            Buffer("x", "in", lambda s: (s["m"], s["n"]), "int32", 0, 10),
            Buffer("y", "out", lambda s: (s["m"], s["n"]), "int32"),
        ),
        tolerance=Tolerance(0.0, 0.0),
    )
    problem = Problem(np, ints, SHAPE, 1)
    assert set(np.unique(problem.arrays["x"])) <= set(range(10))
    assert verify.verify_run(problem, lambda a: np.copyto(a["y"], a["x"] * 2)).passed
    wrong = verify.verify_run(problem, lambda a: np.copyto(a["y"], a["x"] * 2 + 1))
    assert not wrong.passed
    assert wrong.max_error == 1.0


def test_inputs_are_the_same_for_a_seed_and_differ_between_seeds_and_buffers() -> None:
    x = make_inputs(np, experiment(), SHAPE, 1)["x"]
    again = make_inputs(np, experiment(), SHAPE, 1)["x"]
    other = make_inputs(np, experiment(), SHAPE, 2)["x"]
    assert np.array_equal(x, again)
    assert not np.array_equal(x, other)
    one, two = np.empty(1000, np.float32), np.empty(1000, np.float32)
    fill_random(np, one, Buffer("a", "in", lambda s: (1000,)), 1)
    fill_random(np, two, Buffer("b", "in", lambda s: (1000,)), 1)
    assert not np.intersect1d(one, two).size > 3


def test_a_long_input_does_not_depend_on_how_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = np.empty(1000, np.float32), np.empty(1000, np.float32)
    buffer = Buffer("a", "in", lambda s: (1000,))
    fill_random(np, whole, buffer, 3)
    monkeypatch.setattr(inputs, "CHUNK", 64)
    fill_random(np, cut, buffer, 3)
    assert np.array_equal(whole, cut)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_inputs_are_uniform_in_the_half_open_interval(dtype: str) -> None:
    values = np.empty(200_000, dtype)
    fill_random(np, values, Buffer("a", "in", lambda s: (1,), dtype, -3.0, 5.0), 7)
    assert values.min() >= -3.0
    assert values.max() < 5.0
    wide = values.astype(np.float64)
    # Mean 1 and standard deviation 8 / sqrt(12): 200 000 values put the mean within 4 sigma/447.
    assert abs(wide.mean() - 1.0) < 0.025
    assert abs(wide.std() - 8 / 12**0.5) < 0.02
    counts, _ = np.histogram(wide, bins=8, range=(-3, 5))
    assert counts.min() > 24_000
    assert counts.max() < 26_000


def test_bands_surround_a_buffer_and_the_data_is_poisoned() -> None:
    guarded = guard(np, Buffer("y", "out", lambda s: (3,)), {})
    assert guarded.slab.size == 12 + 2 * BAND_BYTES
    assert np.isnan(guarded.array).all()
    assert guarded.check_bands(np) == ""


def test_a_reference_that_forgets_an_output_is_the_authors_error() -> None:
    with pytest.raises(ExperimentError, match="gives nothing for 'y'"):
        Problem(np, experiment(reference=lambda xp, inputs, shape: {}), SHAPE, 1)


def test_a_reference_of_the_wrong_shape_is_the_authors_error() -> None:
    def flat(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
        return {"y": inputs["x"].reshape(-1)}

    with pytest.raises(ExperimentError, match=r"shape \(35,\)"):
        Problem(np, experiment(reference=flat), SHAPE, 1)


class DeviceModule:
    """NumPy under another name, as CuPy is, without one of its libraries."""

    def __getattr__(self, name: str) -> Any:
        return np.asarray if name == "asnumpy" else getattr(np, name)


def test_a_reference_whose_device_library_is_missing_is_computed_on_the_host() -> None:
    def needs_library(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
        if xp is not np:
            raise ImportError("libcublas.so.12")
        return double_reference(xp, inputs, shape)

    problem = Problem(DeviceModule(), experiment(reference=needs_library), SHAPE, 1)
    assert verify.verify_run(problem, lambda arrays: right(SHAPE, arrays)).passed


@pytest.mark.parametrize(
    ("grid", "block"),
    [((0, 1, 1), (32, 1, 1)), ((1, 70000, 1), (32, 1, 1)), ((1, 1, 1), (64, 32, 1))],
)
def test_a_launch_shape_that_no_card_takes_is_refused(grid: Any, block: Any) -> None:
    from dataclasses import replace

    kernel = replace(KERNEL, grid=lambda s, t: grid, block=lambda s, t: block)
    with pytest.raises(ExperimentError, match="no CUDA device can launch"):
        verify_kernel(experiment(), kernel, SHAPE, TARGET, lambda k, s, a: None, np)
