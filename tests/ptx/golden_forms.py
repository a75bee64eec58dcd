"""Instruction forms as tiny PTX kernels over chosen inputs; ``golden_list`` has the forms.

A form is one instruction with its modifiers. Its kernel applies it lane by lane to input slots and
stores the results. The inputs come from a fixed bit mixer, so a file of recorded outputs needs no
inputs: ``scripts/golden_instructions.py`` records outputs on a GPU, ``test_golden.py`` replays
them.
Needs NumPy only.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LANES = 1024
HEADER = ".version 7.8\n.target sm_90\n.address_size 64\n"
Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Form:
    """``text`` uses d, e for results and a, b, c, f for sources (p, q, r are predicates).

    ``inputs``: a kind each, see ``pool``. ``outputs``: a width each ("b16", "b32", "b64", "pred").
    ``bound``: None for bit-equal, else (kind, value): ("ulp32", 2), ("rel", 2**-11), ("abs", x).
    """

    name: str
    text: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bound: tuple[str, float] | None = None


def mix(seed: int, count: int) -> Bits:
    """``count`` well mixed 64-bit words (splitmix64), the same on every machine and version."""
    with np.errstate(over="ignore"):
        state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state += np.uint64(seed)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


F32 = [
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
    0x7F800001, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F7FFFFF,
    0x3F800001, 0x4B000000, 0x4B800001, 0x4F000000, 0xCF000000, 0x33800000,
]  # fmt: skip
F64 = [
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
    0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000123,
    0x7FF0000000000001, 0x0000000000000001, 0x8000000000000001, 0x000FFFFFFFFFFFFF,
    0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3FEFFFFFFFFFFFFF,
    0x3FF0000000000001, 0x4330000000000000, 0x41E0000000000000, 0xC1E0000000000000,
    0x43E0000000000000, 0x3E70000000000000,
]  # fmt: skip
F16 = [
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x0001, 0x8001, 0x03FF,
    0x0400, 0x7BFF, 0xFBFF, 0x3BFF, 0x3C01, 0x6400, 0x6801, 0x7800, 0x0200, 0x1400,
]  # fmt: skip
BF16 = [
    0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x0001, 0x8001, 0x007F,
    0x0080, 0x7F7F, 0xFF7F, 0x3F7F, 0x3F81, 0x4B00, 0x4F00, 0xCF00, 0x3380, 0x0040,
]  # fmt: skip


def _integers(width: int) -> list[int]:
    top = 1 << (width - 1)
    full = (1 << width) - 1
    return [0, 1, 2, 3, 5, 7, 31, full, full - 1, top, top - 1, top + 1, full // 3, full // 5,
            (1 << width // 2) - 1, 1 << width // 2, 10, 100, full - 99, 0x7F, 0x80, 0xFF,
            ]  # fmt: skip


def _floats(words: Bits, mantissa: int, exponent: int, specials: list[int]) -> Bits:
    """Random floats: raw bits, moderate sizes, few-bit values (ties), and the extremes."""
    width = mantissa + exponent + 1
    bias = (1 << (exponent - 1)) - 1
    m, e = np.uint64(mantissa), np.uint64((1 << exponent) - 1)
    fraction = words & np.uint64((1 << mantissa) - 1)
    sign = (words >> np.uint64(62) & np.uint64(1)) << np.uint64(width - 1)
    style = words >> np.uint64(56) & np.uint64(3)
    near = np.uint64(bias - 8) + (words >> np.uint64(40) & np.uint64(15)) % np.uint64(16)
    few = fraction >> np.uint64(mantissa // 2) << np.uint64(mantissa // 2)
    moderate = sign | near << m | fraction
    tied = sign | near << m | few
    raw = words & np.uint64((1 << width) - 1)
    edge_exponent = (words >> np.uint64(44) & np.uint64(3)) + np.where(
        words >> np.uint64(50) & np.uint64(1), e - np.uint64(4), np.uint64(0)
    )
    edge = sign | edge_exponent << m | fraction
    result = np.choose(style.astype(np.int64), [raw, moderate, tied, edge])
    return result.astype(np.uint64)


def pool(kind: str, words: Bits) -> tuple[list[int], Bits]:
    """Special values of a kind, and random ones made of mixed words."""
    floats = {"f32": (23, 8, F32), "f64": (52, 11, F64), "f16": (10, 5, F16), "bf16": (7, 8, BF16)}
    if kind in floats:
        mantissa, exponent, specials = floats[kind]
        return specials, _floats(words, mantissa, exponent, specials)
    if kind in ("f16x2", "bf16x2"):
        single = floats[kind[:-2]]
        low = _floats(words, single[0], single[1], single[2])
        high = _floats(mix(7, words.size) ^ words, single[0], single[1], single[2])
        specials = [v | w << 16 for v, w in zip(single[2], single[2][3:] + single[2][:3],
                                                strict=True)]  # fmt: skip
        return specials, low | high << np.uint64(16)
    if kind == "pred":
        return [0, 1], words & np.uint64(1)
    if kind == "amount":
        small = words % np.uint64(72)
        wild = words & np.uint64(0xFFFFFFFF)
        return list(range(0, 66, 3)), np.where(words >> np.uint64(61) == 0, wild, small)
    if kind.startswith("pi"):  # float32 within [-pi, pi]
        values = (words >> np.uint64(40)).astype(np.float64) / 2.0**23 * np.pi - np.pi
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return [0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40490FDA, 0x3FC90FDB], bits
    if kind == "few":  # so that lanes of a warp agree with some others
        return [0, 1, 2], words % np.uint64(5)
    width = int(kind[1:])
    mask = np.uint64((1 << width) - 1)
    small = (words >> np.uint64(8) & np.uint64(0xFF)) - np.uint64(100)
    style = words >> np.uint64(60) & np.uint64(3)
    return _integers(width), np.where(style == 0, small, words) & mask


def inputs_of(form: Form) -> Bits:
    """(sources, LANES) input slots: pairs of special values first, then random ones."""
    columns = []
    for position, kind in enumerate(form.inputs):
        signature = f"{kind}/{position}/{len(form.inputs)}"
        specials, random = pool(kind, mix(zlib.crc32(signature.encode()), LANES))
        count = len(specials)
        lanes = np.arange(min(count * count, LANES // 2))
        at = (lanes // count, lanes % count, (lanes * 7 + 3) % count, (lanes * 5 + 1) % count)
        column = random.copy()
        column[: lanes.size] = np.array(specials, np.uint64)[at[position]]
        columns.append(column)
    return np.array(columns, np.uint64).reshape(len(form.inputs), LANES)


_WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "amount": 32,
          "pi": 32, "few": 32}  # fmt: skip


def width_of(kind: str) -> int:
    return _WIDTH[kind] if kind in _WIDTH else 32 if kind == "pred" else int(kind[1:])


def kernel_text(form: Form, name: str) -> str:
    """The ``.entry`` that applies a form to slots of 8 bytes a lane."""
    sources = ("a", "b", "c", "f")
    lines = [f".visible .entry {name}(.param .u64 out, .param .u64 in)", "{"]
    lines += [".reg .b64 %src, %dst, %off;", ".reg .b32 %i, %w;", ".reg .pred p, q, r, s;"]
    # An 8-bit value travels in a 16-bit register.
    body = ["ld.param.u64 %dst, [out];", "ld.param.u64 %src, [in];", "mov.u32 %i, %ctaid.x;",
            "mov.u32 %w, %ntid.x;", "mul.lo.s32 %i, %i, %w;", "mov.u32 %w, %tid.x;",
            "add.s32 %i, %i, %w;", "mul.wide.u32 %off, %i, 8;", "add.s64 %src, %src, %off;",
            "add.s64 %dst, %dst, %off;"]  # fmt: skip
    for position, kind in enumerate(form.inputs):
        offset = position * LANES * 8
        if kind == "pred":
            body += [f"ld.global.b32 %w, [%src+{offset}];", "setp.ne.b32 r, %w, 0;"]
            continue
        width = width_of(kind)
        lines.append(f".reg .b{max(width, 16)} {sources[position]};")
        body.append(f"ld.global.b{width} {sources[position]}, [%src+{offset}];")
    stores = []
    for position, (kind, register) in enumerate(zip(form.outputs, ("d", "e"), strict=False)):
        offset = position * LANES * 8
        if kind == "pred":
            stores += [f"selp.b32 %w, 1, 0, {'pq'[position]};",
                       f"st.global.b32 [%dst+{offset}], %w;"]  # fmt: skip
            continue
        lines.append(f".reg .{kind} {register};")
        stores.append(f"st.global.{kind} [%dst+{offset}], {register};")
    return "\n".join([*lines, *body, *form.text.split("\n"), *stores, "ret;", "}", ""])


def module_text(forms: list[Form]) -> str:
    """One module with a kernel ``form_N`` for every form, N its place in the list."""
    return HEADER + "\n".join(kernel_text(f, f"form_{i}") for i, f in enumerate(forms))
