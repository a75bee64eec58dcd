"""Which pages show a file: those that name what is in it, in any way a page can."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelbook.site.dependents import dependents

QUOTES, NUMBER, SWEEP, MEMBER = "quotes.md", "number.md", "sweep.md", "member.md"
TABLE, GAINS, PROSE, COPY = "table.md", "gains.md", "prose.md", "copy.md"
MACRO, CITED = "macro.md", "cited.md"
SOURCE, RESULTS = "source/01_tiny/scale.md", "results/01_tiny.md"
DEVICE, OTHER_DEVICE, OWN = (
    "devices/nvidia-h200.md",
    "devices/nvidia-geforce-rtx-4090.md",
    "devices/own.md",
)
PAGES = {
    QUOTES: "/// excerpt | 01_tiny/scale.cu#store\n///\n",
    NUMBER: '{= measured["nvidia-h200"].scale_1k.scale.time =}\n',
    SWEEP: "{= lowest(measured.sizes.scale.time) =} {= lowest(counted.sizes.scale.x) =}\n",
    MEMBER: "{= counted.size_2k.scale.x =}\n",
    TABLE: "    /// results | scale_1k\n    ///\n",
    COPY: "{= measured.scale_1k.device_copy.time =}\n",
    MACRO: "{= macro.scale_1k.scale.FACTOR =}\n",
    CITED: "{= cited.scale_1k.scale.time =}\n",
    GAINS: "/// gains |\n///\n",
    PROSE: "/// excerpt | 01_other/a.cu#sizes\n///\n"
    "`python scripts/run_all.py --only scale_1k`, scale_1k, sizes and counted.\n",
    DEVICE: "/// device | nvidia-h200\n///\n",
    OTHER_DEVICE: "/// device | nvidia-geforce-rtx-4090\n///\n",
    OWN: "/// own-devices |\n///\n",
}
MEMBERS = """

def member(name, n):
    return replace(
        EXPERIMENTS[0], name=name, shape={"n": n},
        sweep=Sweep("sizes", Text("规模", "sizes")),
    )


EXPERIMENTS += [member("size_1k", 1024), member("size_2k", 2048)]
"""


@pytest.fixture
def site(tiny: Path) -> Path:
    experiments = tiny / "kernels" / "01_tiny" / "experiments.py"
    text = experiments.read_text(encoding="utf-8")
    experiments.write_text(f"from dataclasses import replace\n{text}{MEMBERS}", encoding="utf-8")
    for name, content in PAGES.items():
        page = tiny / "docs" / "zh" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(content, encoding="utf-8")
    gains = 'slow = "scale_1k.scale"\nfast = "scale_1k.scale_by_4"\n'
    (tiny / "docs" / "gains.toml").write_text(gains, encoding="utf-8")
    return tiny


def shown(site: Path, *changed: str) -> set[str]:
    docs = site / "docs" / "zh"
    return {page.relative_to(docs).as_posix() for page in dependents(site, "zh", changed)}


H200 = "results/data/measured/nvidia-h200"
OF_ALONE = {NUMBER, COPY, TABLE, GAINS}
OF_KERNELS = {
    QUOTES,
    NUMBER,
    TABLE,
    GAINS,
    SWEEP,
    MEMBER,
    SOURCE,
    RESULTS,
    DEVICE,
    OTHER_DEVICE,
    OWN,
    MACRO,
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # An experiment of its own: numbers, blocks, the table of gains, its chapter and its card.
        (f"{H200}/scale_1k.json", {*OF_ALONE, RESULTS, DEVICE}),
        # Of a member, expressions name the sweep.
        (f"{H200}/size_1k.json", {SWEEP, RESULTS, DEVICE}),
        # Counted once for all sizes, and shown beside the source.
        ("results/data/counted/size_1k.json", {SWEEP, MEMBER, RESULTS, SOURCE}),
        ("results/data/compiled/scale_1k.json", {TABLE, GAINS, RESULTS, SOURCE}),
        ("results/data/cited/nvidia-h200/scale_1k.json", {CITED, TABLE, GAINS, RESULTS, DEVICE}),
        ("results/local/my-card/scale_1k.json", {*OF_ALONE, RESULTS, OWN}),
        # What is measured of a kernel is stale where the kernel is another one.
        ("kernels/01_tiny/scale.cu", OF_KERNELS),
        ("kernels/01_tiny/common.cuh", {*OF_KERNELS, COPY, CITED}),
        ("results/charts/scaling.zh.svg", set()),
    ],
)
def test_a_file_shows_on_the_pages_that_name_what_it_holds(
    site: Path, changed: str, expected: set[str]
) -> None:
    assert shown(site, changed) == expected


def test_a_record_of_an_experiment_that_is_gone_still_shows_where_it_is_named(site: Path) -> None:
    (site / "docs" / "zh" / PROSE).write_text("{= measured.gone.a.time =}\n", encoding="utf-8")
    gone = f"{H200}/gone.json"
    assert shown(site, gone) == {PROSE, DEVICE, RESULTS}


def test_a_tree_whose_experiments_are_broken_still_has_its_pages_found(site: Path) -> None:
    experiments = site / "kernels" / "01_tiny" / "experiments.py"
    experiments.write_text("EXPERIMENTS = [\n", encoding="utf-8")
    assert shown(site, "kernels/01_tiny/experiments.py") == {QUOTES, SOURCE, RESULTS}
    assert shown(site, f"{H200}/scale_1k.json") == {*OF_ALONE, RESULTS, DEVICE}
