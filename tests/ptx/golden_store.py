"""The file of recorded outputs: written on a GPU, replayed on the emulator. Needs NumPy only."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from golden_forms import LANES, Bits, Form, inputs_of, kernel_text

_BYTES = {"pred": 1, "b16": 2, "b32": 4, "b64": 8}


def fingerprint(form: Form) -> int:
    """Changes when a form's kernel or inputs do: its recorded outputs are then of another form."""
    return zlib.crc32(inputs_of(form).tobytes(), zlib.crc32(kernel_text(form, "k").encode()))


@dataclass(frozen=True)
class Golden:
    """``outputs[name]``: (results, LANES) slots as a GPU stored them."""

    outputs: Mapping[str, Bits]
    fingerprints: Mapping[str, int]
    refused: Mapping[str, str]  # forms the GPU's assembler did not take, and why
    device: Mapping[str, str]


def save(path: Path, forms: list[Form], golden: Golden) -> None:
    """Write outputs once each (equal ones are shared), by byte planes so that they compress."""
    rows: dict[tuple[str, bytes], int] = {}
    planes: dict[str, list[np.ndarray]] = {width: [] for width in _BYTES}
    index: dict[str, object] = {}
    for form in forms:
        if form.name not in golden.outputs:
            continue
        places = []
        for width, column in zip(form.outputs, golden.outputs[form.name], strict=True):
            size = _BYTES[width]
            octets = column.astype("<u8").view(np.uint8).reshape(LANES, 8)[:, :size].T
            key = (width, octets.tobytes())
            if key not in rows:
                rows[key] = len(planes[width])
                planes[width].append(octets)
            places.append([width, rows[key]])
        index[form.name] = [fingerprint(form), places]
    document = {
        "lanes": LANES,
        "device": dict(golden.device),
        "refused": dict(golden.refused),
        "forms": index,
    }
    arrays = {
        width: np.array(found, np.uint8).reshape(-1, _BYTES[width], LANES)
        for width, found in planes.items()
    }
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part.npz")
    np.savez_compressed(beside, **arrays)
    os.replace(beside, path)


def load(path: Path) -> Golden:
    with np.load(path) as arrays:
        document = json.loads(arrays["document"].tobytes())
        planes = {width: arrays[width] for width in _BYTES}
    outputs, fingerprints = {}, {}
    for name, (mark, places) in document["forms"].items():
        slots = np.zeros((len(places), document["lanes"], 8), np.uint8)
        for position, (width, row) in enumerate(places):
            slots[position, :, : _BYTES[width]] = planes[width][row].T
        outputs[name] = slots.view("<u8").reshape(len(places), -1)
        fingerprints[name] = mark
    return Golden(outputs, fingerprints, document["refused"], document["device"])
