"""The table of gains: two rows and a bound in, ratio and bound of every card out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import site_project
from site_project import ROOT, convert

from kernelbook.site import gains
from kernelbook.site.context import load as load_project

ENTRY = """\
[[gain]]
zh = "少乘一点"
en = "Smaller factors"
when_zh = "总是"
when_en = "always"
slow = "{slow}"
fast = "{fast}"
metric = "{metric}"
bound = "{bound}"
bound_zh = "拷贝"
bound_en = "a copy"
"""
BLOCK = "/// gains |\n///\n"


def entry(
    root: Path, slow: str = "scale_1k.scale_by_4", fast: str = "scale_1k.scale",
    metric: str = "time",
    bound: str = "measured.scale_1k.scale_by_4.time / measured.scale_1k.device_copy.time",
) -> Path:  # fmt: skip
    text = ENTRY.format(slow=slow, fast=fast, metric=metric, bound=bound)
    (root / "docs" / gains.FILE).write_text(text, encoding="utf-8")
    return root


def values(html: str) -> list[str]:
    return re.findall(r'kb-value">([^<]*)<', html)


def test_the_gain_and_its_bound_with_grades(tiny: Path) -> None:
    """4.0 µs against 2.0 µs is twofold; against a copy of 1.0 µs it could be fourfold."""
    html = convert(BLOCK, entry(tiny), language="en")
    assert values(html) == ["2.00×", "4.00×"]
    assert "times 4 → times 2" in html
    assert html.count('class="kb-number kb-measured"') == 2
    assert 'data-device="nvidia-h200"' in html
    assert "<small>at most" in html
    assert "<small>in theory" not in html


def test_a_rate_is_compared_the_other_way_round(tiny: Path) -> None:
    """The same bytes in half the time are twice the bandwidth."""
    html = convert(BLOCK, entry(tiny, metric="bandwidth", bound="2"), language="en")
    assert values(html) == ["2.00×", "2.00×"]
    assert 'class="kb-number kb-theory"' in html
    assert "<small>in theory" in html


def test_every_card_is_a_column_cited_and_local_too(tiny: Path) -> None:
    root = entry(tiny)
    other = site_project.device("nvidia-geforce-rtx-3090", "NVIDIA GeForce RTX 3090")
    times = {"scale": 1.0, "scale_by_4": 5.0, "device_copy": 0.5}
    site_project.measured(root, times, card=other, local=True)
    html = convert(BLOCK, root, language="en")
    assert values(html) == ["2.00×", "4.00×", "5.00×", "10.0×"]
    assert 'data-device="nvidia-geforce-rtx-3090@local"' in html


def test_what_is_cited_is_shown_as_cited_and_a_bound_it_lacks_is_left_out(tiny: Path) -> None:
    """The card of the cited record has one time: 3 µs, equal to itself."""
    html = convert(BLOCK, entry(tiny, slow="scale_1k.scale"), language="en")
    assert values(html) == ["1.00×", "4.00×", "1.00×"]
    assert 'class="kb-number kb-cited"' in html


def test_without_measurements_a_row_says_so_and_keeps_a_counted_bound(tmp_path: Path) -> None:
    root = site_project.make(tmp_path / "bare")
    site_project.counted(root, {"ffma": 6.0})
    bound = "counted.scale_1k.scale.ffma / 2"
    html = convert(BLOCK, entry(root, bound=bound), language="en")
    assert "not measured yet" in html
    assert values(html) == ["3.00×"]
    assert "尚未测量" in convert(BLOCK, entry(root))
    assert values(convert(BLOCK, root)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fast": "scale_1k.gone"}, "Smaller factors: .*no variant 'gone'"),
        ({"slow": "gone.scale"}, "Smaller factors: .*gone"),
        ({"metric": "registers_of"}, "no metric of which more or less is better"),
        ({"bound": "measured.scale_1k.scale.bandwidths"}, "bandwidths"),
    ],
)
def test_what_is_not_in_the_tree_is_an_error(tiny: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=rf"(?s){said}"):
        convert(BLOCK, entry(tiny, **change))


def test_a_stale_row_is_refused_by_a_strict_build(tiny: Path) -> None:
    site_project.measured(tiny, {"scale": 2.0, "scale_by_4": 4.0, "device_copy": 1.0}, stale=True)
    assert "kb-stale" in convert(BLOCK, entry(tiny))
    with pytest.raises(Exception, match="is stale"):
        convert(BLOCK, tiny, strict=True)


def test_the_entries_of_this_repository_are_of_its_tree() -> None:
    project = load_project(ROOT)
    found = gains.load(ROOT)
    assert len(found) >= 7
    for gain in found:
        gains.check(project.book, gain, ROOT)
        assert gain.fast != gain.slow
    # A name that is gone would be noticed.
    with pytest.raises(Exception, match=r"gains\.toml"):
        gains.check(project.book, replace(found[0], fast="access_stride_1.gone"), ROOT)
