"""What a build knows stays when nothing changed, and is read again exactly where something has."""

from __future__ import annotations

from pathlib import Path

import pytest
import site_project

from kernelbook.errors import KernelbookError
from kernelbook.report.rows import Row
from kernelbook.site.context import Project, load
from kernelbook.staleness import source_digest


def time_of(project: Project, variant: str = "scale") -> Row:
    return project.index.find("measured", "scale_1k", variant, "time", device="nvidia-h200")


def test_nothing_changed_gives_the_same_project(tiny: Path) -> None:
    assert load(tiny) is load(tiny)


def test_a_changed_record_costs_its_own_numbers_only(tiny: Path) -> None:
    before = load(tiny)
    registers = before.rows("compiled", "scale_1k", "scale")[0]
    assert time_of(before).value == 2.0
    site_project.measured(tiny, {"scale": 3.0})
    now = load(tiny)
    assert time_of(now).value == 3.0
    assert now.rows("compiled", "scale_1k", "scale")[0] is registers
    assert now.book.catalog is before.book.catalog


def test_a_changed_source_makes_every_number_of_it_stale(tiny: Path) -> None:
    assert not any(row.stale for row in load(tiny).book.rows)
    source = tiny / "kernels" / "01_tiny" / "scale.cu"
    source.write_text(source.read_text(encoding="utf-8") + "// only words\n", encoding="utf-8")
    assert not any(row.stale for row in load(tiny).book.rows)
    source.write_text(source.read_text(encoding="utf-8") + "int more;\n", encoding="utf-8")
    stale = {(row.evidence, row.variant) for row in load(tiny).book.rows if row.stale}
    kernels = {(grade, "scale") for grade in ("measured", "compiled", "counted")}
    kernels |= {(grade, "scale_by_4") for grade in ("measured", "compiled")}
    assert stale == kernels  # neither the library's copy nor what is cited


def test_a_table_beside_the_experiments_is_read_again(tiny: Path) -> None:
    chapter = tiny / "kernels" / "01_tiny"
    experiments = chapter / "experiments.py"
    text = experiments.read_text(encoding="utf-8").replace('{"n": 1024}', "SHAPE")
    read = "import json, pathlib\nSHAPE = json.loads("
    read += "(pathlib.Path(__file__).parent / 'table.json').read_text())\n"
    experiments.write_text(read + text, encoding="utf-8")
    (chapter / "table.json").write_text('{"n": 1024}', encoding="utf-8")
    assert load(tiny).book.catalog.experiment("scale_1k").shape == {"n": 1024}
    (chapter / "table.json").write_text('{"n": 2048}', encoding="utf-8")
    assert load(tiny).book.catalog.experiment("scale_1k").shape == {"n": 2048}


def test_a_source_is_read_once_for_all_its_numbers(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counting(source: Path) -> str:
        read.append(source)
        return source_digest(source)

    monkeypatch.setattr("kernelbook.report.book.source_digest", counting)
    (tiny / "kernels" / "01_tiny" / "more.h").write_text("\n", encoding="utf-8")  # another tree
    assert len(load(tiny).book.rows) > 20
    assert read == [tiny / "kernels" / "01_tiny" / "scale.cu"]


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        (("measured", "no_such", "scale", "time"), "experiments: scale_1k"),
        (("measured", "scale_1k", "no_such", "time"), "variants: device_copy, scale, scale_by_4"),
        (("cited", "scale_1k", "scale", "power"), "time: nvidia-geforce-rtx-4090"),
        (("counted", "scale_1k", "scale", "x"), "global_load_sectors: yes; warp_instructions: yes"),
    ],
)
def test_a_number_that_is_not_there_says_what_is(
    tiny: Path, wanted: tuple[str, str, str, str], hint: str
) -> None:
    with pytest.raises(KernelbookError) as raised:
        load(tiny).index.find(*wanted, device="")
    assert raised.value.hint == hint


def test_without_records_of_a_grade_that_is_said(tmp_path: Path) -> None:
    root = site_project.make(tmp_path / "project")
    with pytest.raises(KernelbookError) as raised:
        load(root).index.find("measured", "scale_1k", "scale", "time", device="nvidia-h200")
    assert raised.value.hint == "there are no measured records"
