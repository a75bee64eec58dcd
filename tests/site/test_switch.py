"""What the hardware switch works on: keys on rows, boxes and charts, and the list of devices."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import site_project
from site_project import convert

from kernelbook import catalog
from kernelbook.devices import sheets
from kernelbook.report.render import render

TABLE = "/// results | scale_1k\n    columns: [time]\n///\n"
CHART = "/// chart | scale_chart\n\n说明\n///\n"
DECLARED = """
CHARTS = [Chart("scale_chart", Text("图", "A chart"), "bars", ("scale_1k",),
                ("scale", "scale_by_4"), metric="time")]
"""


def listed(html: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="kb-device-list">(.*?)</script>', html)
    return json.loads(found[1]) if found else []


def with_chart(root: Path) -> None:
    file = root / "kernels" / site_project.CHAPTER / "experiments.py"
    file.write_text(file.read_text(encoding="utf-8") + DECLARED, encoding="utf-8")
    render(root, root / "results", catalog.load(root), sheets())


def test_a_page_lists_the_devices_it_shows_the_reference_first(tiny: Path) -> None:
    devices = listed(convert(TABLE, tiny, language="en"))
    assert [(d["key"], d["role"], d["about"]) for d in devices] == [
        ("nvidia-h200", "reference", "reference device"),
        ("nvidia-geforce-rtx-4090", "cited", "cited figures only"),
    ]


def test_a_page_without_devices_lists_none(tiny: Path) -> None:
    assert listed(convert("# 标题\n\n/// compiled | scale_1k\n///\n", tiny)) == []


def test_a_readers_own_run_of_the_reference_card_is_a_device_of_its_own(tiny: Path) -> None:
    site_project.measured(tiny, {"scale": 7.0}, local=True)
    html = convert(TABLE, tiny)
    assert html.count('data-device="nvidia-h200"') == 3
    assert html.count('data-device="nvidia-h200@local"') == 1
    assert [d["key"] for d in listed(html)][1] == "nvidia-h200@local"


def test_names_of_strangers_cards_cannot_end_the_list(tiny: Path) -> None:
    card = site_project.device("my-card", "</script><b>x</b>")
    site_project.measured(tiny, {"scale": 7.0}, card=card, local=True)
    html = convert(TABLE, tiny)
    assert "</script><b>x" not in html
    assert listed(html)[1]["name"] == "</script><b>x</b>"


def test_a_chart_has_a_drawing_for_each_choice_and_ids_of_their_own(tiny: Path) -> None:
    with_chart(tiny)
    html = convert(CHART, tiny)
    drawings = re.findall(r'class="kb-figure__drawing".*?data-devices="([^"]*)"( hidden)?>', html)
    assert drawings == [
        ("nvidia-h200 nvidia-geforce-rtx-4090", ""),
        ("nvidia-h200", " hidden"),
        ("nvidia-geforce-rtx-4090", " hidden"),
    ]
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    one = html.split('data-devices="nvidia-h200" hidden>')[1].split("</svg>")[0]
    assert "NVIDIA H200" in one
    assert "RTX 4090" not in one


def test_a_chart_of_one_device_has_one_drawing(tmp_path: Path) -> None:
    root = site_project.make(tmp_path / "project")
    site_project.measured(root, {"scale": 2.0, "scale_by_4": 4.0})
    with_chart(root)
    assert convert(CHART, root).count('kb-figure__drawing"') == 1
