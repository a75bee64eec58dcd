"""What an instruction computes does not depend on how many lanes execute it together."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from golden_forms import HEADER, LANES, Form, inputs_of, kernel_text
from golden_list import all_forms

from kernelbook.ptx import run

FORMS = [f for f in all_forms() if "sync" not in f.name]


def _run(form: Form, condition: str) -> np.ndarray:
    """Outputs where lanes for which ``condition`` sets predicate s jump over the instruction."""
    entry = kernel_text(form, "k")
    start, end = entry.index(form.text), entry.index(form.text) + len(form.text)
    text = f"{HEADER}{entry[:start]}{condition}\n@s bra $over;\n{form.text}\n"
    stores = entry[end:].replace("ret;", "$over:\nret;")
    outputs = np.zeros((len(form.outputs), LANES), np.uint64)
    run(text + stores, "k", LANES // 256, 256, [outputs, inputs_of(form)], observers=())
    return outputs


@pytest.mark.parametrize("part", range(6))
def test_few_and_many_lanes_compute_what_all_do(part: int) -> None:
    for form in FORMS[part::36]:
        everyone = _run(form, "setp.ne.u32 s, %w, %w;")
        few = np.arange(LANES) % 256 % 8 == 0
        some = _run(form, "mov.u32 %w, %tid.x;\nand.b32 %w, %w, 7;\nsetp.ne.u32 s, %w, 0;")
        most = _run(form, "mov.u32 %w, %tid.x;\nand.b32 %w, %w, 7;\nsetp.eq.u32 s, %w, 0;")
        assert np.array_equal(some[:, few], everyone[:, few]), form.name
        assert np.array_equal(most[:, ~few], everyone[:, ~few]), form.name
        if "atom.global" not in form.name:  # those keep their cell in the output slot
            assert not some[:, ~few].any(), form.name
            assert not most[:, few].any(), form.name
