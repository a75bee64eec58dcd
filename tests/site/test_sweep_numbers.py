"""``lowest`` and ``highest`` over the sizes of a sweep, and its table in an article."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_project import convert
from test_blocks import rows

from kernelbook.errors import KernelbookError, PageError
from kernelbook.quantities import Grade
from kernelbook.site import context
from kernelbook.site.expressions import holds, number
from kernelbook.site.scope import ProjectScope
from report.made_up import HOSTILE, Tree, measured
from report.test_sweeps import measured_sizes, tree_of_sizes


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Ratios of the kernel's time to the copy's: 2 at 1024, 1 at 4096, 0.5 at 16384 elements."""
    return measured_sizes(tree_of_sizes(tmp_path), warm=False)


@pytest.fixture
def scope(tree: Tree) -> ProjectScope:
    return ProjectScope(context.load(tree.root), "en")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lowest(measured.sizes.scale.time / measured.sizes.copy.time)", 0.5),
        ("highest(measured.sizes.scale.time / measured.sizes.copy.time)", 2.0),
        # Of those where the copy takes under 10 µs, the fastest ratio is that of 4096.
        (
            'lowest(measured["nvidia-h200"].sizes.scale.time / measured.sizes.copy.time, '
            "measured.sizes.copy.time < 10e-6*s)",
            1.0,
        ),
        ("highest(shape.sizes.n) - lowest(shape.sizes.n)", 15360.0),
        ("lowest(shape.sizes.n / shape.scale_100.n)", 10.24),
    ],
)
def test_the_extremes_over_a_sweep_are_those_worked_out_by_hand(
    scope: ProjectScope, text: str, value: float
) -> None:
    assert number(text, scope).quantity.value == pytest.approx(value)


def test_an_extreme_carries_the_grade_and_place_of_the_size_it_was_found_at(
    scope: ProjectScope,
) -> None:
    found = number("highest(measured.sizes.scale.bandwidth)", scope).quantity
    assert found.grade is Grade.MEASURED
    assert [s.anchor for s in found.sources] == ["02_sizes#scale-16384--scale"]
    assert holds("lowest(measured.sizes.scale.time) > 3.9e-6*s", scope)
    assert not holds("highest(measured.sizes.scale.time) < 10e-6*s", scope)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lowest(measured.scale_1024.scale.time)", "names no sweep"),
        ("lowest(measured.sizes.nobody.time)", "no measured number scale_1024/nobody time"),
        ("lowest(1, 2, 3)", "takes a number"),
        ("lowest(shape.sizes.n, shape.sizes.n < 5)", "holds at no size of 'sizes'"),
        ("measured.sizes.scale.time", "no measured number sizes/scale time"),
        ("lowest(lowest(shape.sizes.n))", "names no sweep"),
    ],
)
def test_what_cannot_be_an_extreme_is_one_sentence(
    scope: ProjectScope, text: str, says: str
) -> None:
    with pytest.raises(KernelbookError, match=says):
        number(text, scope)


def test_a_sweep_block_is_a_table_a_card(tree: Tree) -> None:
    tree.save(measured(tree.catalog, tree.sheets, "scale_4096", {"scale": 9.0}, device=HOSTILE))
    html = convert("/// sweep | sizes\n///\n", tree.root)
    assert html.count("<table") == 2
    assert "<script>" not in html
    assert rows(html)[0][:2] == ["1,024", "w128"]
    assert [row[0] for row in rows(html)] == ["1,024", "4,096", "16,384"]
    with pytest.raises(PageError, match="there is no sweep 'size'"):
        convert("/// sweep | size\n///\n", tree.root)
