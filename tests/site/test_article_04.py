"""Article 04: its constants and pictures are the kernels' own, and none of its results is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from articles import pages, typed_results
from site_project import ROOT, convert

from kernelbook import catalog
from kernelbook.constants import constants
from kernelbook.devices import sheets
from kernelbook.experiment import Kernel
from kernelbook.pictures.tiles import Tiling

PAGES = pages("04-register-tiling")
PICTURE = re.compile(r"^/// tile-picture \| (\w+) (\w+)$", re.M)
# What the original article says, in the sentences that hold it against what we found.
QUOTED = {
    "6.56 TFLOPS", "0.25 FLOP/B", "81.9 FLOP/B", "1.21 倍", "10%", "15%", "20%", "100%",
    "10 %", "15 %", "20 %", "100 %",
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_result_comes_from_records_or_is_quoted_from_the_original(page: Path) -> None:
    assert typed_results(page) <= QUOTED


def test_a_typed_result_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "快了 26.3%，到 44.7 TFLOPS；`12 µs` 与 $3\\ \\text{ms}$ 不算，{= 1 | .0f % =} 也不算。\n"
    )
    assert typed_results(page) == {"26.3%", "44.7 TFLOPS"}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_picture_of_tiles_is_of_a_kernel_that_launches_such_blocks(page: Path) -> None:
    pictures = PICTURE.findall(page.read_text(encoding="utf-8"))
    assert len(pictures) >= 3
    target = sheets().device("nvidia-h200").target
    for name, variant in pictures:
        experiment = catalog.load(ROOT).experiment(name)
        kernel = experiment.variant(variant)
        assert isinstance(kernel, Kernel)
        found = constants(experiment.folder / kernel.source, kernel.macros)
        (bm, bn), (tm, tn) = (Tiling.of(found).block, Tiling.of(found).thread)
        threads = kernel.block(experiment.shape, target)
        assert bm * bn * found.get("SLICES", 1) == tm * tn * threads[0] * threads[1]
        grid = kernel.grid(experiment.shape, target)
        if not found.get("STREAM"):  # equal shares of the work are no tiles
            assert grid[0] * grid[1] * bm * bn == experiment.shape["m"] * experiment.shape["k"]


def tiled_project(root: Path, side: int) -> Path:
    """A project whose kernel defines the tiles that a picture and a number show."""
    site_project.make(root)
    chapter = root / "kernels" / site_project.CHAPTER
    source = chapter / "scale.cu"
    tiles = f"#define BM {side}\n#define BN 64\n#define BK 8\n#define TM 4\n#define TN 8\n"
    source.write_text(tiles + source.read_text(encoding="utf-8"), encoding="utf-8")
    return root


@pytest.mark.parametrize(("side", "warps"), [(32, 2), (64, 4)])
def test_a_changed_constant_changes_number_and_picture(
    tmp_path: Path, side: int, warps: int
) -> None:
    root = tiled_project(tmp_path, side)
    html = convert(
        "{= macro.scale_1k.scale.BM =}\n\n/// tile-picture | scale_1k scale\n///\n", root
    )
    assert re.search(rf">{side}<", html)
    assert f"{side}×64 个元素，由 {warps} 个 warp 分担" in html


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("tile-picture | scale_1k", "write EXPERIMENT VARIANT"),
        ("tile-picture | scale_1k device_copy", "is no kernel and has no tiles"),
        ("tile-picture | scale_1k scale", "the kernel has no constant BM"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_an_error_with_its_line(
    tiny: Path, block: str, said: str
) -> None:
    with pytest.raises(Exception, match=rf"01-first\.md:1: .*{said}"):
        convert(f"/// {block}\n///\n", tiny)
