"""The block that shows bank maps: drawn from the counted record alone, linked to line and row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from site_project import convert

from kernelbook.records import SharedRequest

STRIDE_32 = SharedRequest("read", 4, tuple(32 * lane for lane in range(32)))
IN_A_ROW = SharedRequest("write", 4, tuple(range(32)))
LINES = {"scale.cu:10": (IN_A_ROW,), "scale.cu:12": (STRIDE_32,)}  # [store] is line 12


@pytest.fixture
def counted(tiny: Path) -> Path:
    site_project.counted(tiny, {"ffma": 1.0}, ("scale", "scale_by_4"), requests=LINES)
    return tiny


def degrees(html: str) -> list[str]:
    return re.findall(r'kb-value">([^<]*)<', html)


def test_a_figure_a_request_with_its_degree_and_where_it_stands(counted: Path) -> None:
    html = convert("/// bank-map | scale_1k scale\n///\n", counted, language="en")
    assert html.count("<figure>") == 2
    assert degrees(html) == ["1", "32"]
    assert 'href="../source/01_tiny/scale/#L12"' in html
    assert 'href="../results/01_tiny/#scale-1k--scale"' in html
    assert "32 lanes hit 1 of 32 banks; wavefronts: 32, without conflicts 1." in html
    assert "scale.cu:12 (read)" in html
    chinese = convert("/// bank-map | scale_1k scale\n///\n", counted)
    assert "32 个 lane 用到 32 个 bank 中的 1 个；32 个 wavefront，没有冲突时 1 个。" in chinese
    assert "scale.cu:12（读）" in chinese


def test_several_variants_and_only_the_access_or_region_that_is_asked_for(counted: Path) -> None:
    block = "/// bank-map | scale_1k scale scale_by_4\n    access: {}\n///\n"
    assert degrees(convert(block.format("read"), counted)) == ["32", "32"]
    assert degrees(convert(block.format("write"), counted)) == ["1", "1"]
    region = "/// bank-map | scale_1k scale\n    region: store\n///\n"
    assert degrees(convert(region, counted)) == ["32"]


def test_what_has_changed_since_is_marked_and_refused_by_a_strict_build(counted: Path) -> None:
    source = counted / "kernels" / site_project.CHAPTER / "scale.cu"
    source.write_text(source.read_text("utf-8").replace("i < n", "i <= n - 1"), "utf-8")
    block = "/// bank-map | scale_1k scale\n///\n"
    assert "kb-stale" in convert(block, counted)
    with pytest.raises(Exception, match=r"01-first\.md:1: .*scale_1k/scale is stale"):
        convert(block, counted, strict=True)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("bank-map | scale_1k", "write EXPERIMENT VARIANT"),
        ("bank-map | scale_1k device_copy", "touches no banks"),
        ("bank-map | scale_1k scale\n    access: atomic", "no such request"),
        ("bank-map | scale_1k scale\n    access: fetch", "no access 'fetch'"),
        ("bank-map | scale_1k scale\n    region: gone", "gone"),
    ],
)
def test_a_map_that_cannot_be_drawn_is_an_error_with_its_line(
    counted: Path, block: str, said: str
) -> None:
    with pytest.raises(Exception, match=rf"(?s)01-first\.md:1: .*{said}"):
        convert(f"/// {block}\n///\n", counted)


def test_a_record_without_requests_says_how_to_take_them(tiny: Path) -> None:
    with pytest.raises(Exception, match="--no-gpu --remeasure --only scale_1k"):
        convert("/// bank-map | scale_1k scale\n///\n", tiny)
