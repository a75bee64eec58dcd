"""A sweep's table, section and charts, from made-up records of a chapter of sizes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelbook import catalog, devices
from kernelbook.errors import ExperimentError, PageError
from kernelbook.experiment import Chart, Region, Rule, Text
from kernelbook.report import sweeps
from kernelbook.report.charts import chart_svg
from kernelbook.report.curves import ticks_of
from kernelbook.report.marks import marks
from kernelbook.report.pages import page
from kernelbook.report.tables import kernels_table
from tiny import TINY_CU

from .made_up import HOSTILE, Tree, counted, measured
from .test_charts import texts

EXPERIMENTS = """
from dataclasses import replace
from kernelbook.experiment import *

SIZES = Sweep("sizes", Text("各种规模", "All sizes"), Text("一句话。", "One sentence."))


def scaling(n, width=128):
    kernel = Kernel(
        name="scale", source="scale.cu", entry="scale", args=("x", "y", "n"),
        grid=lambda s, t: (ceil_div(s["n"], width), 1, 1), block=lambda s, t: (width, 1, 1),
        title=Text("加倍", "doubling"), configuration=f"w{width}", macros={"WIDTH": width},
    )
    return Experiment(
        name=f"scale_{n}", title=Text("加倍", "Doubling"), shape={"n": n},
        emulator_shape={"n": 256}, ragged=({"n": 1},),
        buffers=(Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],))),
        reference=lambda xp, inputs, shape: {"y": 2.0 * inputs["x"].astype(xp.float64)},
        flops=lambda s: s["n"], tolerance=Tolerance(relative=0.0, absolute=0.0),
        variants=(kernel, Library("copy", "device_copy", Text("拷贝", "copy"))), sweep=SIZES,
    )


MEMBERS = [scaling(1024), scaling(4096), scaling(16384, width=256)]
EXPERIMENTS = [replace(scaling(100), sweep=None), *MEMBERS]
CHARTS = [
    Chart(
        name="by_size", title=Text("带宽", "Bandwidth by size"), kind="sweep",
        experiments=tuple(e.name for e in MEMBERS), variants=("scale", "copy"),
        metric="bandwidth", x="bytes",
    ),
]
"""


def tree_of_sizes(root: Path) -> Tree:
    """A tree of the one chapter above, without records."""
    chapter = root / "kernels" / "02_sizes"
    chapter.mkdir(parents=True)
    (chapter / "scale.cu").write_text(TINY_CU, encoding="utf-8")
    (chapter / "experiments.py").write_text(EXPERIMENTS, encoding="utf-8")
    return Tree(root, catalog.load(root), devices.sheets())


def measured_sizes(tree: Tree, *, warm: bool) -> Tree:
    """Times in µs: 8 bytes an element, so 1024 elements in 4 µs are 2.048 GB/s."""
    for n, ours, theirs in ((1024, 4.0, 2.0), (4096, 4.0, 4.0), (16384, 10.0, 20.0)):
        times = {"scale": ours, "copy": theirs}
        tree.save(measured(tree.catalog, tree.sheets, f"scale_{n}", times, warm=warm))
    return tree


@pytest.fixture
def sizes(tmp_path: Path) -> Tree:
    return tree_of_sizes(tmp_path)


@pytest.fixture
def run(sizes: Tree) -> Tree:
    return measured_sizes(sizes, warm=True)


def chart(tree: Tree, **changes: object) -> Chart:
    return replace(tree.catalog.charts[0], **changes)  # type: ignore[arg-type]


# ---- members -------------------------------------------------------------------------------


def test_members_of_equal_kernels_are_compiled_and_counted_as_the_first_of_them(
    sizes: Tree,
) -> None:
    tree = sizes.catalog
    stand_ins = {e.name: tree.stands_for(e.name) for e in tree.experiments}
    assert stand_ins == {
        "scale_100": "scale_100", "scale_1024": "scale_1024", "scale_4096": "scale_1024",
        "scale_16384": "scale_16384",
    }  # fmt: skip
    assert tree.holder("compiled", "scale_4096") == "scale_1024"
    assert tree.holder("measured", "scale_4096") == "scale_4096"
    assert tree.holder("counted", "gone") == "gone"
    asked = tree.stand_ins(tree.select(["scale_4096/scale"]))
    assert [(s.experiment.name, s.variants) for s in asked] == [("scale_1024", ("scale",))]
    assert [s.experiment.name for s in tree.select(["sizes"])] == [
        "scale_1024", "scale_4096", "scale_16384",
    ]  # fmt: skip


def test_what_is_counted_of_one_is_known_of_the_members_it_stands_for(sizes: Tree) -> None:
    sizes.save(counted(sizes.catalog, sizes.sheets, "scale_1024", {"scale": {"flops": 256.0}}))
    book = sizes.book()
    (item,) = book.records_of("counted", "scale_4096")
    assert item.record.experiment == "scale_1024"
    assert book.records_of("counted", "scale_16384") == ()
    table = sweeps.sweep_counts(book, sweeps.members_of(book, "sizes"))
    assert [line.cells[1].text.en for line in table.lines] == ["256"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("EXPERIMENTS = [MEMBERS[0], replace(scaling(7), sweep=None), MEMBERS[1]]", "apart"),
        ("EXPERIMENTS = [replace(scaling(7), sweep=None, name='sizes'), *MEMBERS]", "the name of"),
        ("EXPERIMENTS = [MEMBERS[0], replace(MEMBERS[1], sweep=replace(SIZES, title=Text('', '')"
         "))]", "another title"),
    ],
)  # fmt: skip
def test_a_sweep_that_does_not_hold_together_names_its_file(
    sizes: Tree, change: str, says: str
) -> None:
    file = sizes.root / "kernels" / "02_sizes" / "experiments.py"
    file.write_text(file.read_text("utf-8") + f"\nCHARTS = []\n{change}\n", "utf-8")
    with pytest.raises(ExperimentError, match=says) as error:
        catalog.load(sizes.root)
    assert error.value.file == str(file)


# ---- the table -----------------------------------------------------------------------------


def test_a_line_of_the_table_is_a_size_with_its_variants_side_by_side(run: Tree) -> None:
    book = run.book()
    members = sweeps.members_of(book, "sizes")
    (found,) = sweeps.runs(book, members, "measured")
    table = sweeps.sweep_table(book, members, found)
    assert [h.title.en for h in table.header] == [
        "n", "configuration",
        "doubling: time", "doubling: effective bandwidth", "doubling: effective bandwidth ÷ copy",
        "copy: time", "copy: effective bandwidth",
        "doubling: effective bandwidth (warm L2)", "copy: effective bandwidth (warm L2)",
    ]  # fmt: skip
    cells = [[cell.text.en for cell in line.cells] for line in table.lines]
    assert cells[0] == ["1,024", "w128", "4.0", "2.05", "0.500", "2.0", "4.1", "2.28", "4.55"]
    assert cells[2] == ["16,384", "w256", "10.0", "13.1", "2.000", "20.0", "6.55", "14.6", "7.28"]
    with pytest.raises(PageError, match="no sweep 'size'"):
        sweeps.members_of(book, "size")


def test_a_results_page_holds_a_section_for_the_sweep_and_every_place_once(run: Tree) -> None:
    run.save(measured(run.catalog, run.sheets, "scale_4096", {"scale": 9.0}, device=HOSTILE))
    text = page(run.book(), "02_sizes", "en")
    assert re.findall(r"^## .*", text, re.M) == ["## Doubling", "## All sizes"]
    assert "One sentence." in text
    assert text.count("### Measured") == 2, "a table a card"
    places = re.findall(r'<a id="([^"]+)"', text)
    assert len(set(places)) == len(places)
    for member in (1024, 4096, 16384):
        assert {f"scale-{member}", f"scale-{member}--scale", f"scale-{member}--copy"} <= {*places}
    assert "<script>" not in text
    assert "run_all.py --only sizes`" in text


def test_a_member_that_failed_says_why_below_the_table(run: Tree) -> None:
    from kernelbook.records import Result

    failed = (Result("copy", "library", status="failed", reason="it was | wrong"),)
    record = measured(run.catalog, run.sheets, "scale_1024", {"scale": 4.0}, others=failed)
    run.save(record)
    text = page(run.book(), "02_sizes", "en")
    assert "scale_1024: copy: it was &#124; wrong" in text


def test_a_list_of_code_paths_names_a_sweep_not_its_sizes(sizes: Tree) -> None:
    line = kernels_table(sizes.book(), "02_sizes").lines[0]
    assert line.cells[-1].text.en == "n = 100; All sizes (3 sizes)"


# ---- charts --------------------------------------------------------------------------------


def test_bytes_are_those_of_the_model(run: Tree) -> None:
    found = marks(run.book(), chart(run))
    assert [(m.variant, m.x) for m in found if m.variant == "scale"] == [
        ("scale", 8192.0), ("scale", 32768.0), ("scale", 131072.0),
    ]  # fmt: skip
    assert found[0].value == pytest.approx(2.048)
    svg = chart_svg(run.book(), chart(run), "en")
    assert svg is not None
    assert {"8 KiB", "32 KiB", "128 KiB"} <= {*texts(svg)}


def test_over_makes_ratios_of_one_record(run: Tree) -> None:
    ratios = chart(run, over="copy", variants=("scale",), x="n", x_scale="linear")
    found = marks(run.book(), ratios)
    assert [m.value for m in found] == pytest.approx([0.5, 1.0, 2.0])
    svg = chart_svg(run.book(), ratios, "en")
    assert svg is not None
    assert "effective bandwidth ÷ copy (×)" in texts(svg)


def test_rules_and_regions_stand_where_they_are_told_to(run: Tree) -> None:
    marked = chart(
        run, y_scale="log",
        rules=(Rule("y", "bandwidth", Text("峰值", "peak")), Rule("x", 20000, Text("线", "line"))),
        regions=(Region(0, 20000, Text("小", "small")), Region(20000, "l2", Text("L2", "in L2")),
                 Region("l2", math.inf, Text("外", "outside"))),
    )  # fmt: skip
    svg = chart_svg(run.book(), marked, "en")
    assert svg is not None
    assert {"peak", "line", "small", "in L2"} <= {*texts(svg)}
    assert "outside" not in texts(svg), "L2 is larger than every size that is drawn"
    assert svg == chart_svg(run.book(), marked, "en")


def test_words_of_two_close_rules_stand_on_both_sides(run: Tree) -> None:
    close = chart(
        run, over="copy", variants=("scale",), x="n", x_scale="linear",
        rules=(Rule("y", 1.4, Text("低", "lower")), Rule("y", 1.42, Text("高", "upper"))),
    )  # fmt: skip
    svg = chart_svg(run.book(), close, "en")
    assert svg is not None
    lower, upper = (
        float(re.search(rf'y="([\d.]+)"[^>]*>{words}<', svg)[1])  # type: ignore[index]
        for words in ("lower", "upper")
    )
    assert lower - upper > 11  # px of a line of small words; y points downwards


@pytest.mark.parametrize(
    ("sizes", "logarithmic", "ticks"),
    [
        ([1, 3, 10], True, [1, 3, 10]),
        ([256.0 * i for i in range(1, 33)], False, [1024.0 * i for i in range(1, 9)]),
        ([2.0**i for i in range(10, 31)], True, [2.0**i for i in range(10, 31, 2)]),
    ],
)
def test_many_sizes_get_round_ticks(
    sizes: list[float], logarithmic: bool, ticks: list[float]
) -> None:
    assert ticks_of(sizes, logarithmic=logarithmic) == ticks


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('x="z"', "no entry of the shape"),
        ('over="nobody"', "none of its experiments has"),
        ('rules=(Rule("x", "l3", Text("", "")),)', "no figure 'l3' in a spec sheet"),
        ('kind="bars", over="copy"', "is no sweep"),
    ],
)
def test_a_chart_that_asks_for_what_there_is_not_names_its_file(
    sizes: Tree, change: str, says: str
) -> None:
    file = sizes.root / "kernels" / "02_sizes" / "experiments.py"
    more = f"\nCHARTS = [replace(CHARTS[0], {change})]\n"
    file.write_text(file.read_text("utf-8") + more, "utf-8")
    with pytest.raises(ExperimentError, match=says):
        catalog.load(sizes.root)
