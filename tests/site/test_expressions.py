"""Expressions: what they compute, the grade they carry, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
import site_project

from kernelbook.errors import KernelbookError
from kernelbook.quantities import Grade
from kernelbook.site import context
from kernelbook.site.expressions import holds, number
from kernelbook.site.scope import ProjectScope


@pytest.fixture
def scope(tiny: Path) -> ProjectScope:
    return ProjectScope(context.load(tiny), "en")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("2 + 3 * 4", "", 14.0),
        ("-(2 - 5)", "", 3.0),
        ("2**10 / 4", "", 256.0),
        ("12*B / FLOP", "B/FLOP", 12.0),
        ("shape.scale_1k.n * 4*B", "KiB", 4.0),
        ("emulator_shape.scale_1k.n", "", 256.0),
        ("model.scale_1k.scale.bytes", "B", 8192.0),  # 1024 floats read, 1024 written
        ("model.scale_1k.scale.flops / model.scale_1k.scale.bytes_read", "FLOP/B", 0.25),
        ("launch.scale_1k.scale.blocks", "", 8.0),  # 1024 / 128
        ("emulator_launch.scale_1k.scale.blocks", "", 2.0),  # 256 / 128
        ("macro.scale_1k.scale_by_4.FACTOR", "", 4.0),
        ("min(3, 2, 5) + max(1, 7)", "", 9.0),
        ("ceil(33 / 32) + floor(2.5) + round(2.6)", "", 7.0),
        ("sqrt(16) + log2(8) + abs(-1)", "", 8.0),
        ("measured.scale_1k.scale.time", "µs", 2.0),
        ("measured.scale_1k.scale.warm.time", "µs", 1.0),
        ("measured.scale_1k.scale.bandwidth", "GB/s", 4.096),  # 8192 B in 2 µs
        ("measured.scale_1k.scale_by_4.time / measured.scale_1k.scale.time", "×", 2.0),
        ('measured["nvidia-h200"].scale_1k.scale.time', "µs", 2.0),
        ("cited.scale_1k.scale.time", "µs", 3.0),
        ("counted.scale_1k.scale.global_load_sectors * 32*B", "KiB", 1.0),
        ("compiled.scale_1k.scale.registers", "", 10.0),
        ('compiled["sm_89"].scale_1k.scale.registers', "", 12.0),
        ("spec.sms", "", 132.0),
        ('spec["nvidia-geforce-rtx-4090"].sms', "", 128.0),
    ],
)
def test_an_expression_has_the_value_worked_out_by_hand(
    scope: ProjectScope, text: str, unit: str, value: float
) -> None:
    assert number(text, scope).quantity.to(unit) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("2 * spec.sms", Grade.THEORY),
        ("compiled.scale_1k.scale.registers * 2", Grade.COMPILED),
        ("counted.scale_1k.scale.warp_instructions / shape.scale_1k.n", Grade.COUNTED),
        ("measured.scale_1k.scale.bandwidth / spec.bandwidth", Grade.MEASURED),
        ("measured.scale_1k.scale.time / cited.scale_1k.scale.time", Grade.CITED),
        ("max(spec.sms, counted.scale_1k.scale.warp_instructions)", Grade.COUNTED),
    ],
)
def test_a_derived_number_carries_the_weakest_grade(
    scope: ProjectScope, text: str, grade: Grade
) -> None:
    assert number(text, scope).quantity.grade is grade


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1 < 2", True),
        ("1 < 2 < 2", False),
        ("0.1 + 0.2 == 0.3", True),
        ("0.1 + 0.2 > 0.3", False),
        ("0.1 + 0.2 <= 0.3", True),
        ("not 1 > 2 and (2 >= 3 or 3 >= 3)", True),
        ("measured.scale_1k.device_copy.time < measured.scale_1k.scale.time", True),
        ("1.9 <= measured.scale_1k.scale_by_4.time / measured.scale_1k.scale.time <= 2.1", True),
    ],
)
def test_a_claim_is_true_or_false(scope: ProjectScope, text: str, truth: bool) -> None:
    assert holds(text, scope) is truth


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 +", "is not an expression"),
        ("spec.smz", "no figure 'smz'"),
        ("spec", "no unit 'spec'"),
        ("FLOPS", "did you mean 'FLOP'"),
        ("mesured.scale_1k.scale.time", "no name 'mesured'"),
        ("measured.scale_2k.scale.time", "experiments: scale_1k"),
        ("measured.scale_1k.scael.time", "variants: device_copy, scale, scale_by_4"),
        ("measured.scale_1k.scale.tme", "time: nvidia-h200"),
        ('measured["nvidia-b200"].scale_1k.scale.time', "on nvidia-b200"),
        ("measured.scale_1k.time", "measured.EXPERIMENT.VARIANT.METRIC"),
        ("shape.scale_1k.m", "no 'm' in the shape of scale_1k"),
        ("shape.scale_2k.n", "did you mean 'scale_1k'"),
        ("launch.scale_1k.device_copy.blocks", "is no kernel"),
        ("launch.scale_1k.scale.warps", "no 'warps' in the launch of scale"),
        ("macro.scale_1k.scale.TILE", "there are: FACTOR"),
        ('shape["x"].scale_1k.n', "takes no [ ]"),
        ("1*B + 1*FLOP", "cannot add"),
        ("sqrt(4*B)", "without unit"),
        ("1 / 0", "division by zero"),
        ("9**9**9", "cannot be computed"),
        ("(-8)**0.5", "whole number"),
        ("log2(0)", "cannot be computed"),
        ("len(3)", "no function 'len'"),
        ("abs(1, 2)", "takes one number"),
        ("__import__('os').system('true')", "no function"),
        ("(lambda: 1)()", "no function"),
        ("[1][0]", "is not allowed"),
        ("'a'", "is not a number"),
        ("True", "is not a number"),
        ("1 < 2", "is a comparison"),
    ],
)
def test_a_wrong_expression_is_refused_with_what_exists(
    scope: ProjectScope, text: str, says: str
) -> None:
    with pytest.raises(KernelbookError, match=r".") as error:
        number(text, scope)
    assert says in str(error.value)


@pytest.mark.parametrize("text", ["1 + 1", "1 < 2*B", "1 in (1, 2)", "1 != 2", "1 and 2 > 1"])
def test_what_is_no_claim_is_refused(scope: ProjectScope, text: str) -> None:
    with pytest.raises(KernelbookError):
        holds(text, scope)


def test_a_broken_part_of_a_claim_is_found_although_another_decides(scope: ProjectScope) -> None:
    with pytest.raises(KernelbookError, match="no name 'nowhere'"):
        holds("1 > 0 or nowhere.at_all > 1", scope)


def test_a_citation_of_two_cards_must_say_which(tiny: Path) -> None:
    site_project.cited(tiny, {"time": (9.0, "µs")}, "nvidia-a100-sxm4-80gb")
    scope = ProjectScope(context.load(tiny), "en")
    with pytest.raises(KernelbookError, match="cited for several devices"):
        number("cited.scale_1k.scale.time", scope)
    named = number('cited["nvidia-a100-sxm4-80gb"].scale_1k.scale.time', scope)
    assert named.quantity.to("µs") == pytest.approx(9.0)


def test_a_record_that_changes_on_disk_is_read_again(tiny: Path) -> None:
    before = context.load(tiny)
    assert context.load(tiny) is before
    site_project.measured(tiny, {"scale": 5.0})
    scope = ProjectScope(context.load(tiny), "en")
    assert number("measured.scale_1k.scale.time", scope).quantity.to("µs") == pytest.approx(5.0)
