"""Floating-point arithmetic against rationals; single instructions on values worked out by hand."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rational import round_rational

from kernelbook.ptx import floats as fp
from kernelbook.ptx import run

MODES = ("rn", "rz", "rm", "rp")
RNG = np.random.default_rng(5)


def _same(ours: np.ndarray, expected: list[float]) -> None:
    wanted = np.array(expected, ours.dtype)
    bits = f"u{ours.dtype.itemsize}"
    wrong = np.flatnonzero(ours.view(bits) != wanted.view(bits))
    assert not wrong.size, [(int(i), float(ours[i]), float(wanted[i])) for i in wrong[:3]]


def _exact(values: tuple[Any, ...], fmt: str, mode: str) -> float:
    a, b, c = (Fraction(float(v)) for v in values)
    total = a * b + c
    return round_rational(total, fmt, mode) if total else float("nan")


def _fma_cases(dtype: Any, mantissa: int, count: int) -> list[np.ndarray]:
    """a, b, c whose sum often lies on a midpoint, a hair beside one, or among the subnormals."""
    few = RNG.integers(1, 1 << (mantissa // 2 + 1), (2, count))
    scale = RNG.integers(-6, 6, (2, count))
    a, b = np.ldexp(few.astype(np.float64), scale).astype(dtype)
    product = a.astype(np.longdouble) * b
    gap = RNG.integers(mantissa - 2, mantissa + 4, count)
    c = np.ldexp(product * RNG.choice([-1, 1, -2, 3], count), gap * RNG.choice([-1, 1], count))
    return [a, b, c.astype(dtype)]


@pytest.mark.parametrize("mode", MODES)
def test_fma32_rounds_once(mode: str) -> None:
    a, b, c = _fma_cases(np.float32, 24, 400)
    kept = [
        i
        for i in range(400)
        if Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
    ]
    ours = fp.fma32(a[kept], b[kept], c[kept], mode)
    _same(ours, [_exact((a[i], b[i], c[i]), "f32", mode) for i in kept])


def test_fma32_where_rounding_through_float64_is_wrong() -> None:
    # The sum is 1 + 2**-23 + 2**-24 - 2**-70: just below the midpoint of two float32. float64
    # cannot hold the last term and lands on the midpoint, and the tie goes up, to the even one.
    a = np.array([1 + 2.0**-23], np.float32)
    b = np.array([2.0**-24 * (1 - 2.0**-23)], np.float32)
    c = np.array([1 + 2.0**-23], np.float32)
    through = (a.astype(np.float64) * b + c).astype(np.float32)
    assert through[0] == np.float32(1 + 2.0**-22)
    assert fp.fma32(a, b, c)[0] == np.float32(1 + 2.0**-23)


@pytest.mark.parametrize("mode", MODES)
def test_fma32_subnormal_results(mode: str) -> None:
    a = RNG.integers(1, 1 << 12, 300).astype(np.float32) * np.float32(2.0**-75)
    b = RNG.integers(1, 1 << 12, 300).astype(np.float32) * np.float32(2.0**-76)
    c = (RNG.integers(-(1 << 20), 1 << 20, 300) * 2.0**-149).astype(np.float32)
    ours = fp.fma32(a, b, c, mode)
    _same(ours, [_exact(v, "f32", mode) for v in zip(a, b, c, strict=True)])


@pytest.mark.parametrize("mode", MODES)
def test_fma64_rounds_once(mode: str) -> None:
    a, b, c = _fma_cases(np.float64, 53, 300)
    _same(fp.fma64(a, b, c, mode), [_exact(v, "f64", mode) for v in zip(a, b, c, strict=True)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=3, max_size=3),
    st.sampled_from(MODES),
)
def test_fma64_at_any_magnitude(values: list[float], mode: str) -> None:
    expected = _exact(tuple(values), "f64", mode)
    a, b, c = (np.array([v]) for v in values)
    with np.errstate(all="ignore"):
        ours = fp.fma64(a, b, c, mode)
    if not np.isnan(expected):
        _same(ours, [expected])


def test_fma16_rounds_once() -> None:
    a, b = (RNG.integers(0, 0x7C00, 3000).astype(np.uint16).view(np.float16) for _ in range(2))
    sign = np.where(RNG.integers(0, 2, 3000) > 0, 0x8000, 0).astype(np.uint16)
    c = (RNG.integers(0, 0x7C00, 3000).astype(np.uint16) | sign).view(np.float16)
    cases = list(zip(a, b, c, strict=True))
    with np.errstate(over="ignore"):
        ours = fp.fma16(a, b, c)
    expected = [_exact(v, "f16", "rn") for v in cases]
    with np.errstate(over="ignore"):
        _same(ours[~np.isnan(expected)], [e for e in expected if not np.isnan(e)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "mul", "div", "sqrt"])
@pytest.mark.parametrize("fmt", ["f32", "f64"])
def test_operations_round_as_asked(name: str, mode: str, fmt: str) -> None:
    dtype = np.float32 if fmt == "f32" else np.float64
    spread = 40 if fmt == "f32" else 400
    a, b = (
        np.ldexp(RNG.random(100) + 0.5, RNG.integers(-spread, spread, 100)).astype(dtype)
        for _ in range(2)
    )
    b = b * RNG.choice(np.array([-1, 1], dtype), 100)
    function = getattr(fp, f"{name}{fmt[1:]}")
    with np.errstate(all="ignore"):
        ours = function(a, mode) if name == "sqrt" else function(a, b, mode)
    x, y = ([Fraction(float(v)) for v in column] for column in (a, b))
    if name == "sqrt":
        # The result r is right if r is the format's neighbour on the side that mode asks for.
        for value, root in zip(x, ours, strict=True):
            up, down = (Fraction(float(np.nextafter(root, dtype(s)))) for s in (np.inf, 0))
            r = Fraction(float(root))
            if mode in ("rz", "rm"):
                assert r * r <= value < up * up
            elif mode == "rp":
                assert down * down < value <= r * r
            else:
                assert ((r + down) / 2) ** 2 <= value <= ((r + up) / 2) ** 2
        return
    results = {
        "add": [p + q for p, q in zip(x, y, strict=True)],
        "mul": [p * q for p, q in zip(x, y, strict=True)],
        "div": [p / q for p, q in zip(x, y, strict=True)],
    }[name]
    _same(ours, [round_rational(v, fmt, mode) for v in results])


def test_nan_is_canonical() -> None:
    nan = np.array([0xFFC12345], np.uint32).view(np.float32)
    one = np.ones(1, np.float32)
    for value in (fp.add32(nan, one), fp.mul32(nan, one), fp.fma32(one, one, nan),
                  fp.minimum(nan, nan)[:0]):  # fmt: skip
        assert (value.view(np.uint32) == 0x7FFFFFFF).all()


def test_minimum_prefers_the_number_and_orders_zeros() -> None:
    a = np.array([np.nan, 1, -0.0, 0.0], np.float32)
    b = np.array([2, np.nan, 0.0, -0.0], np.float32)
    low, high = fp.minimum(a, b), fp.maximum(a, b)
    assert low[:2].tolist() == [2, 1]
    assert np.signbit(low[2:]).all()
    assert not np.signbit(high[2:]).any()


def apply(text: str, sources: list[tuple[str, int]], result: str) -> int:
    """Execute one instruction with sources (width, bits), through PTX."""
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    lines += [".visible .entry k(.param .u64 out)", "{", ".reg .b64 %o;", ".reg .pred p;"]
    lines.append(f".reg .{result} d;")
    for name, (width, bits) in zip("abcf", sources, strict=False):
        lines += [f".reg .{width} {name};", f"mov.{width} {name}, {bits:#x};"]
    lines += ["ld.param.u64 %o, [out];", text, f"st.global.{result} [%o], d;", "ret;", "}"]
    out = np.zeros(1, np.uint64)
    run("\n".join(lines), "k", 1, 1, [out], observers=())
    return int(out[0])


@pytest.mark.parametrize(
    ("text", "sources", "result", "expected"),
    [
        ("div.s32 d, a, b;", [("b32", -7 & 0xFFFFFFFF), ("b32", 2)], "b32", -3 & 0xFFFFFFFF),
        ("rem.s32 d, a, b;", [("b32", -7 & 0xFFFFFFFF), ("b32", 2)], "b32", -1 & 0xFFFFFFFF),
        ("div.s32 d, a, b;", [("b32", 1 << 31), ("b32", 0xFFFFFFFF)], "b32", 1 << 31),
        ("mul.hi.u64 d, a, b;", [("b64", (1 << 64) - 1), ("b64", (1 << 64) - 1)], "b64",
         (1 << 64) - 2),
        ("mul.hi.s64 d, a, b;", [("b64", (1 << 64) - 1), ("b64", 5)], "b64", (1 << 64) - 1),
        ("shl.b32 d, a, b;", [("b32", 1), ("b32", 32)], "b32", 0),
        ("shr.s32 d, a, b;", [("b32", 1 << 31), ("b32", 99)], "b32", 0xFFFFFFFF),
        ("shf.l.wrap.b32 d, a, b, c;", [("b32", 0x80000000), ("b32", 1), ("b32", 33)], "b32", 3),
        ("bfe.s32 d, a, b, c;", [("b32", 0x00000F80), ("b32", 7), ("b32", 5)], "b32", 0xFFFFFFFF),
        ("bfi.b32 d, a, b, c, f;", [("b32", 0xF), ("b32", 0), ("b32", 4), ("b32", 3)], "b32", 0x70),
        ("prmt.b32 d, a, b, 0x7F40;", [("b32", 0x33221180), ("b32", 0x77665544)], "b32",
         0x77004480),
        ("lop3.b32 d, a, b, c, 0x96;", [("b32", 0b1100), ("b32", 0b1010), ("b32", 0b1111)], "b32",
         0b1001),
        ("brev.b32 d, a;", [("b32", 1)], "b32", 0x80000000),
        ("clz.b64 d, a;", [("b64", 1)], "b32", 63),
        ("dp4a.s32.s32 d, a, b, c;", [("b32", 0x01FF02FE), ("b32", 0x01010101), ("b32", 10)], "b32",
         10),
        ("cvt.rni.s32.f32 d, a;", [("b32", 0x40200000)], "b32", 2),  # 2.5 to even
        ("cvt.rzi.u8.f32 d, a;", [("b32", 0x43960000)], "b16", 255),  # 300 saturates
        ("cvt.rzi.s32.f32 d, a;", [("b32", 0x7FC00000)], "b32", 0),  # NaN
        ("cvt.rn.f16x2.f32 d, a, b;", [("b32", 0x3F800000), ("b32", 0x40000000)], "b32",
         0x3C004000),
        ("cvt.s32.s8 d, a;", [("b32", 0x80)], "b32", 0xFFFFFF80),
        ("cvt.rz.f32.s32 d, a;", [("b32", 0x01000001)], "b32", 0x4B800000),
        ("cvt.rp.f32.s32 d, a;", [("b32", 0x01000001)], "b32", 0x4B800001),
        ("add.sat.s32 d, a, b;", [("b32", 0x7FFFFFFF), ("b32", 1)], "b32", 0x7FFFFFFF),
        ("mov.b64 d, {a, b};", [("b32", 1), ("b32", 2)], "b64", 0x200000001),
        ("cvt.u16.u32 d, a;", [("b32", 0x12345)], "b16", 0x2345),
        ("mad.hi.s32 d, a, b, c;", [("b32", 1 << 30), ("b32", 8), ("b32", 5)], "b32", 7),
        ("sad.u32 d, a, b, c;", [("b32", 3), ("b32", 10), ("b32", 100)], "b32", 107),
        ("copysign.f32 d, a, b;", [("b32", 0x80000000), ("b32", 0x3F800000)], "b32", 0xBF800000),
        ("ex2.approx.f32 d, a;", [("b32", 0x40400000)], "b32", 0x41000000),  # 2**3
        ("slct.b32.s32 d, a, b, c;", [("b32", 1), ("b32", 2), ("b32", 0xFFFFFFFF)], "b32", 2),
        ("fma.rn.relu.f16 d, a, b, c;", [("b16", 0x3C00), ("b16", 0xBC00), ("b16", 0)], "b16", 0),
    ],
)  # fmt: skip
def test_instruction(text: str, sources: list[Any], result: str, expected: int) -> None:
    assert apply(text, sources, result) == expected


def test_carry_travels_through_a_wide_sum() -> None:
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b64 %o; .reg .b32 %a, %b, %lo, %hi;
ld.param.u64 %o, [out];
ld.global.b32 %a, [%o]; ld.global.b32 %b, [%o+8];
add.cc.u32 %lo, %a, %b;
ld.global.b32 %a, [%o+4]; ld.global.b32 %b, [%o+12];
addc.u32 %hi, %a, %b;
st.global.v2.b32 [%o+16], {%lo, %hi};
ret;
}"""
    x, y = 0x00000001FFFFFFFF, 0x0000000200000002
    out = np.array([x, y, 0], np.uint64)
    run(text, "k", 1, 1, [out], observers=())
    assert int(out[2]) == x + y
