"""Reading ncu's table: launches in order, units skipped, parts of split-up metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelbook.errors import DeviceError
from kernelbook.profiler import parse_raw_page, profile

TABLE = """==PROF== Connected to process 12
hello from the child
==PROF== Disconnected from process 12
"ID","Process ID","Kernel Name","Block Size","Grid Size","a.sum","b.sum","c.sum"
"","","","","","","inst",""
"0","12","first","(32, 1, 1)","(4, 2, 1)","1,024.000000","n/a","7 (FFMA: 1,000; LDS.128: 24.5)"
"1","12","second","(64, 1, 1)","(1, 1, 1)","3","0","0"
"""


def test_launches_come_in_order_with_their_numbers() -> None:
    first, second = parse_raw_page(TABLE, ["a.sum", "b.sum"])
    assert (first.kernel, first.block, first.grid) == ("first", "(32, 1, 1)", "(4, 2, 1)")
    assert first.values == {"a.sum": 1024.0}  # "n/a" is no number
    assert second.values == {"a.sum": 3.0, "b.sum": 0.0}


def test_a_split_up_metric_has_a_whole_and_parts() -> None:
    first, second = parse_raw_page(TABLE, ["c.sum"])
    assert first.values == {"c.sum": 7.0}
    assert first.parts == {"c.sum": {"FFMA": 1000.0, "LDS.128": 24.5}}
    assert second.parts == {}


def test_output_without_a_table_is_one_sentence() -> None:
    with pytest.raises(DeviceError, match="no table: ==ERROR== no permission"):
        parse_raw_page("==ERROR== no permission\n", ["a.sum"])


def test_without_ncu_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kernelbook.profiler._PLACES", (str(tmp_path / "ncu"),))
    with pytest.raises(DeviceError, match="ncu"):
        profile(["true"], ["a.sum"])
