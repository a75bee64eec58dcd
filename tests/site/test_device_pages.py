"""Pages about cards: spec sheet with sources, limits read on the card itself, every experiment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import site_project
from site_project import convert

from kernelbook import catalog
from kernelbook.errors import PageError
from kernelbook.site import stubs

PAGE = "/// device | nvidia-h200\n///\n"
LIMITS = """\
[[limit]]
zh = "拷贝"
en = "copy"
number = "measured.scale_1k.device_copy.bandwidth | .2f GB/s"
of = "spec.bandwidth"
"""


def cells(html: str) -> list[list[str]]:
    """The rows of all tables, without notes."""
    html = re.sub(r'<span class="kb-tip".*?</span>', "", html, flags=re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.S)
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.split(r"</t[hd]>", row)[:-1]]
        for row in rows
    ]


def test_every_figure_names_its_source_or_what_it_is_computed_from(tiny: Path) -> None:
    rows = cells(convert(PAGE, tiny, language="en"))
    assert ["SMs", "132", "cudaGetDeviceProperties on the card (driver 580, CUDA 13.0)"] in rows
    # 6016 bit times 6.402 GHz over 8
    assert ["DRAM bandwidth", "4,814 GB/s", "memory_bus_bits · memory_bit_rate / 8"] in rows
    assert ["resident threads an SM", "2,048", "limits of architecture sm_90"] in rows


def test_limits_are_read_on_the_card_and_held_against_its_sheet(tiny: Path) -> None:
    (tiny / "docs" / "limits.toml").write_text(LIMITS, encoding="utf-8")
    # 1024 floats read and written in 1 µs: 8.19 GB/s of 4814
    html = convert(PAGE, tiny, language="en")
    assert ["copy", "8.19\xa0GB/smeasured", "0.2%measured"] in cells(html)
    card = site_project.device("my-card", "My Card")
    site_project.measured(tiny, {"device_copy": 2.0}, card=card, local=True)
    own = convert("/// own-devices |\n///\n", tiny, language="en", uri="devices/own.md")
    assert ["copy", "4.10\xa0GB/smeasured", "0.1%measured"] in cells(own)
    assert "My Card" in own


def test_a_card_without_the_records_leaves_the_limit_out(tiny: Path) -> None:
    (tiny / "docs" / "limits.toml").write_text(LIMITS, encoding="utf-8")
    page = "/// device | nvidia-geforce-rtx-4090\n///\n"
    assert "copy" not in [row[0] for row in cells(convert(page, tiny, language="en"))]


def test_a_limit_the_reference_lacks_is_an_error(tiny: Path) -> None:
    text = LIMITS.replace("device_copy", "gone")
    (tiny / "docs" / "limits.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PageError, match=r"limits\.toml: copy: no measured number scale_1k/gone"):
        convert(PAGE, tiny)


def test_every_experiment_is_listed_with_its_best_row_and_a_link(tiny: Path) -> None:
    html = convert(PAGE, tiny, language="en", uri="devices/nvidia-h200.md")
    row = next(row for row in cells(html) if row[0] == "Scaling")
    # copying takes 1 µs, scaling 2: the library has the highest bandwidth
    assert row[1:3] == ["n = 1,024", "copy"]
    assert row[4:] == ["2026-11-29", "0123456789"]
    assert "/results/01_tiny/#scale-1k" in html


def test_without_own_runs_the_page_says_how_to_get_them(tiny: Path) -> None:
    assert "make run" in convert("/// own-devices |\n///\n", tiny, language="en")


def test_a_device_nobody_measured_is_named(tiny: Path) -> None:
    with pytest.raises(PageError, match=r"no published records of 'gone'.*nvidia-h200"):
        convert("/// device | gone\n///\n", tiny)


def test_a_published_card_gets_a_page_and_loses_it_with_its_records(tiny: Path) -> None:
    tree = catalog.load(tiny)
    stubs.ensure(tiny, tree)
    page = tiny / "docs" / "en" / "devices" / "nvidia-geforce-rtx-4090.md"
    assert page.read_text(encoding="utf-8").startswith('---\ntitle: "NVIDIA GeForce RTX 4090"\n')
    for record in (tiny / "results" / "data" / "cited").rglob("*.json"):
        record.unlink()
    assert page in stubs.orphans(tiny, tree)
