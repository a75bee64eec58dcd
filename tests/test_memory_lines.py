"""Chapter 10 by source line: a card's counters are the emulator's counts, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from golden_lines import by_words, source_page
from kernelbook.records import load
from tiny import ROOT

FOLDER = ROOT / "kernels" / "10_memory"
GOLDEN: list[dict[str, Any]] = json.loads(
    (ROOT / "tests" / "golden" / "memory_lines.json").read_text(encoding="utf-8")
)["rows"]
SUMS = {
    "sectors": ("global_load_sectors", "global_store_sectors"),
    "wavefronts": ("shared_load_wavefronts", "shared_store_wavefronts"),
}


def counted_lines(experiment: str, variant: str) -> dict[str, dict[str, int]]:
    """Of the published counts, what a card counts too, by the words of each line."""
    result = load(ROOT / "results/data/counted" / f"{experiment}.json").result(variant)
    assert result is not None
    lines = {}
    for place, counts in result.lines.items():
        file, _, number = place.rpartition(":")
        sums = {word: int(sum(counts.get(n, 0) for n in names)) for word, names in SUMS.items()}
        if any(sums.values()):
            lines[file, int(number)] = sums
    return by_words(lines, FOLDER)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['experiment']}/{row['variant']}")
def test_a_card_counts_for_each_line_what_the_emulator_counts(row: dict[str, Any]) -> None:
    assert counted_lines(row["experiment"], row["variant"]) == row["lines"]


def test_the_golden_lines_are_of_every_way_to_touch_memory() -> None:
    having = {row["experiment"] for row in GOLDEN}
    wanted = {"access_stride_1", "access_stride_32", "read_offset_1", "write_offset_1", "gather_l2"}
    wanted |= {"aos_all", "soa_all", "aos_one", "soa_one", "transpose_8192", "relu_64m"}
    assert wanted | {f"bank_conflict_{ways}" for ways in (1, 2, 5, 32)} <= having


def table(file: str, entry: str, *lines: str) -> str:
    head = '"Line No","Source","L1 Tag Requests Global","L2 Theoretical Sectors Global",'
    return "\n".join(
        (f'"File Path","/a/{file}"', f'"Function Name","{entry}"', head + '"L1 Wavefronts Shared"',
         *lines)
    )  # fmt: skip


def test_a_launch_is_a_table_a_file_and_the_next_begins_where_a_file_comes_again() -> None:
    text = "\n".join(
        (
            "==PROF== Connected",
            table("a.cu", "one", '"3","y = x;","1","4","0"', '"","LDG","1","4","0"'),
            table("b.cuh", "one", '"7","tile","0","0","8"', '"8","}","0","0","0"'),
            table("a.cu", "one", '"3","y = x;","2","8","0"'),
            table("a.cu", "two", '"9","z","1","1","0"'),
        )
    )
    assert source_page(text) == [
        (
            "one",
            {
                ("a.cu", 3): {"sectors": 4, "wavefronts": 0},
                ("b.cuh", 7): {"sectors": 0, "wavefronts": 8},
            },
        ),
        ("one", {("a.cu", 3): {"sectors": 8, "wavefronts": 0}}),
        ("two", {("a.cu", 9): {"sectors": 1, "wavefronts": 0}}),
    ]


def test_equal_lines_of_a_file_are_added_and_headers_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.cu").write_text("int i;\n  y = x;\n\ty = x;\n", encoding="utf-8")
    one = {"sectors": 4, "wavefronts": 0}
    lines = {("a.cu", 2): one, ("a.cu", 3): one, ("b.cuh", 100): one}
    both = {"sectors": 8, "wavefronts": 0}
    assert by_words(lines, tmp_path) == {"a.cu: y = x;": both}
