"""The emulator computes what a GPU recorded for every instruction form."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from golden_forms import LANES, Bits, Form, inputs_of, module_text, width_of
from golden_list import all_forms
from golden_store import Golden, fingerprint, load, save

from kernelbook.ptx import Module, parse, run

GOLDEN = Path(__file__).parent.parent / "golden" / "instructions.npz"
FORMS = all_forms()


@cache
def _module() -> Module:
    return parse(module_text(FORMS))


@cache
def _golden() -> Golden:
    return load(GOLDEN)


def emulate(position: int, form: Form) -> Bits:
    outputs = np.zeros((len(form.outputs), LANES), np.uint64)
    run(_module(), f"form_{position}", LANES // 256, 256, [outputs, inputs_of(form)], observers=())
    return outputs


def _ordered(bits: np.ndarray, width: int) -> np.ndarray:
    """Sign-magnitude patterns as integers in the order of the numbers."""
    top = 1 << (width - 1)
    signed = bits.astype(np.int64)
    return np.where(signed & top, top - signed, signed)


def _as_float(slots: Bits, width: int) -> np.ndarray:
    return slots.astype(f"u{width // 8}").view(f"f{width // 8}").astype(np.float64)


def wrong_lanes(form: Form, ours: Bits, theirs: Bits) -> np.ndarray:
    """(results, LANES) bool: where ours is not theirs, or is beyond the form's stated bound."""
    if form.bound is None:
        return ours != theirs
    kind, limit = form.bound
    packed = form.inputs[0].endswith("x2")
    if packed:  # judge each half by itself
        ours, theirs = (
            np.concatenate([s & np.uint64(0xFFFF), s >> np.uint64(16)], axis=1)
            for s in (ours, theirs)
        )
    width = 16 if kind == "ulp16" else width_of(form.inputs[0])
    x, y = _as_float(ours, width), _as_float(theirs, width)
    if kind.startswith("ulp"):
        distance = np.abs(_ordered(ours, width) - _ordered(theirs, width))
    elif kind.startswith("rel"):
        distance = np.abs(x - y) / np.maximum(np.abs(y), np.finfo(np.float64).tiny)
    elif kind == "lg2":  # absolute near 1, relative (3 ulp) elsewhere
        distance = np.abs(x - y) / np.maximum(1.0, np.abs(y))
    else:
        distance = np.abs(x - y)
    same = (ours == theirs) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        return ~(same | (distance <= limit))


@pytest.mark.skipif(not GOLDEN.is_file(), reason="no tests/golden/instructions.npz recorded yet")
@pytest.mark.parametrize("position", range(len(FORMS)), ids=[f.name for f in FORMS])
def test_form_computes_what_the_gpu_recorded(position: int) -> None:
    form = FORMS[position]
    golden = _golden()
    if form.name in golden.refused:
        pytest.skip(f"the GPU's assembler refuses it: {golden.refused[form.name]}")
    if form.name not in golden.outputs:
        pytest.skip("not recorded yet: run scripts/golden_instructions.py on a GPU")
    assert golden.fingerprints[form.name] == fingerprint(form), (
        "recorded from another kernel or other inputs: run scripts/golden_instructions.py again"
    )
    with np.errstate(all="ignore"):
        ours, theirs = emulate(position, form), golden.outputs[form.name]
        bad = np.argwhere(wrong_lanes(form, ours, theirs))
    if bad.size:
        result, lane = (int(v) for v in bad[0])
        lane %= LANES
        given = ", ".join(f"{int(slots[lane]):#x}" for slots in inputs_of(form))
        pytest.fail(
            f"{form.text} in {len(bad)} of {LANES} lanes; inputs {given}: "
            f"emulator {int(ours[result, lane]):#x}, GPU {int(theirs[result, lane]):#x}"
        )


def test_outputs_survive_the_file(tmp_path: Path) -> None:
    forms = [f for f in FORMS if f.name in ("add.rn.f32", "mul.wide.s32", "setp.lt.and.s32")]
    outputs = {f.name: emulate(FORMS.index(f), f) for f in forms}
    save(tmp_path / "g.npz", forms, Golden(outputs, {}, {"x": "why"}, {"name": "none"}))
    read = load(tmp_path / "g.npz")
    assert set(read.outputs) == set(outputs)
    for form in forms:
        assert np.array_equal(read.outputs[form.name], outputs[form.name])
        assert read.fingerprints[form.name] == fingerprint(form)
    assert read.refused == {"x": "why"}


def test_a_wrong_bit_is_noticed() -> None:
    form = next(f for f in FORMS if f.name == "add.rn.f32")
    ours = emulate(FORMS.index(form), form)
    theirs = ours.copy()
    theirs[0, 5] ^= np.uint64(1)
    assert np.argwhere(wrong_lanes(form, ours, theirs)).tolist() == [[0, 5]]


def test_an_approximate_form_may_differ_by_its_bound_only() -> None:
    form = next(f for f in FORMS if f.name == "rcp.approx.f32")
    ours = np.full((1, LANES), 0x3F800000, np.uint64)
    theirs = ours.copy()
    theirs[0, 1] += np.uint64(1)
    theirs[0, 2] += np.uint64(2)
    assert np.argwhere(wrong_lanes(form, ours, theirs)).tolist() == [[0, 2]]
