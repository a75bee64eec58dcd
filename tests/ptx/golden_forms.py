"""Every arithmetic instruction form the emulator executes, as tiny PTX kernels over chosen inputs.

A form is one instruction with its modifiers. Its kernel applies it lane by lane to input slots and
stores the results. The inputs come from a fixed bit mixer, so a file of recorded outputs needs no
inputs: ``scripts/golden_instructions.py`` records outputs on a GPU, ``test_golden.py`` replays
them.
Needs NumPy only.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
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
          "pi": 32}  # fmt: skip


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


# The list of forms


def _simple(opcode: str, kinds: str, out: str, bound: tuple[str, float] | None = None) -> Form:
    """``opcode d, a, b, ...`` with one register a source kind."""
    inputs = tuple(kinds.split())
    names = [{"pred": "r"}.get(k, "abcf"[i]) for i, k in enumerate(inputs)]
    result = "p" if out == "pred" else "d"
    return Form(opcode, f"{opcode} {result}, {', '.join(names)};", inputs, (out,), bound)


def _float_arithmetic() -> Iterator[Form]:
    for mode in ("rn", "rz", "rm", "rp"):
        for kind, width in (("f32", "b32"), ("f64", "b64")):
            for opcode in ("add", "sub", "mul", "div"):
                yield _simple(f"{opcode}.{mode}.{kind}", f"{kind} {kind}", width)
            yield _simple(f"fma.{mode}.{kind}", f"{kind} {kind} {kind}", width)
            yield _simple(f"sqrt.{mode}.{kind}", kind, width)
            yield _simple(f"rcp.{mode}.{kind}", kind, width)
        yield _simple(f"add.{mode}.ftz.f32", "f32 f32", "b32")
        yield _simple(f"mul.{mode}.ftz.f32", "f32 f32", "b32")
        yield _simple(f"fma.{mode}.ftz.f32", "f32 f32 f32", "b32")
        yield _simple(f"fma.{mode}.sat.f32", "f32 f32 f32", "b32")
    for opcode in ("add", "sub", "mul"):
        yield _simple(f"{opcode}.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.sat.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.ftz.sat.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.f64", "f64 f64", "b64")
    for opcode in ("div", "sqrt", "rcp"):
        kinds = "f32 f32" if opcode == "div" else "f32"
        yield _simple(f"{opcode}.rn.ftz.f32", kinds, "b32")
    for opcode in ("min", "max"):
        yield _simple(f"{opcode}.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.ftz.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.NaN.f32", "f32 f32", "b32")
        yield _simple(f"{opcode}.f64", "f64 f64", "b64")
    for opcode in ("neg", "abs"):
        yield _simple(f"{opcode}.f32", "f32", "b32")
        yield _simple(f"{opcode}.ftz.f32", "f32", "b32")
        yield _simple(f"{opcode}.f64", "f64", "b64")
    yield _simple("copysign.f32", "f32 f32", "b32")
    yield _simple("copysign.f64", "f64 f64", "b64")
    for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield _simple(f"testp.{test}.f32", "f32", "pred")
        yield _simple(f"testp.{test}.f64", "f64", "pred")


def _approximate() -> Iterator[Form]:
    for ftz in ("", ".ftz"):
        yield _simple(f"div.approx{ftz}.f32", "f32 f32", "b32", ("ulp32", 2))
        yield _simple(f"div.full{ftz}.f32", "f32 f32", "b32", ("ulp32", 2))
        yield _simple(f"rcp.approx{ftz}.f32", "f32", "b32", ("ulp32", 1))
        yield _simple(f"sqrt.approx{ftz}.f32", "f32", "b32", ("ulp32", 1))
        yield _simple(f"rsqrt.approx{ftz}.f32", "f32", "b32", ("ulp32", 1))
        yield _simple(f"ex2.approx{ftz}.f32", "f32", "b32", ("ulp32", 2))
        yield _simple(f"lg2.approx{ftz}.f32", "f32", "b32", ("lg2", 2.0**-22))
        yield _simple(f"sin.approx{ftz}.f32", "pi", "b32", ("abs", 2.0**-21))
        yield _simple(f"cos.approx{ftz}.f32", "pi", "b32", ("abs", 2.0**-21))
    yield _simple("tanh.approx.f32", "f32", "b32", ("rel32", 2.0**-16))
    yield _simple("rcp.approx.ftz.f64", "f64", "b64", ("rel64", 2.0**-20))
    yield _simple("rsqrt.approx.f64", "f64", "b64", ("rel64", 2.0**-20))
    yield _simple("rsqrt.approx.ftz.f64", "f64", "b64", ("rel64", 2.0**-20))
    yield _simple("ex2.approx.f16", "f16", "b16", ("ulp16", 1))
    yield _simple("ex2.approx.f16x2", "f16x2", "b32", ("ulp16", 1))
    yield _simple("tanh.approx.f16", "f16", "b16", ("ulp16", 1))
    yield _simple("tanh.approx.f16x2", "f16x2", "b32", ("ulp16", 1))


def _half() -> Iterator[Form]:
    for kind, width in (("f16", "b16"), ("f16x2", "b32")):
        for opcode in ("add", "sub", "mul"):
            for extra in ("", ".rn", ".ftz", ".sat", ".ftz.sat"):
                yield _simple(f"{opcode}{extra}.{kind}", f"{kind} {kind}", width)
        for extra in ("", ".ftz", ".sat", ".relu", ".ftz.relu"):
            yield _simple(f"fma.rn{extra}.{kind}", f"{kind} {kind} {kind}", width)
        for opcode in ("min", "max"):
            for extra in ("", ".ftz", ".NaN"):
                yield _simple(f"{opcode}{extra}.{kind}", f"{kind} {kind}", width)
        for opcode in ("neg", "abs"):
            for extra in ("", ".ftz"):
                yield _simple(f"{opcode}{extra}.{kind}", kind, width)
    for kind, width in (("bf16", "b16"), ("bf16x2", "b32")):
        for opcode in ("add", "sub", "mul"):
            yield _simple(f"{opcode}.rn.{kind}", f"{kind} {kind}", width)
        yield _simple(f"fma.rn.{kind}", f"{kind} {kind} {kind}", width)
        for opcode in ("min", "max", "min.NaN", "max.NaN"):
            yield _simple(f"{opcode}.{kind}", f"{kind} {kind}", width)
        for opcode in ("neg", "abs"):
            yield _simple(f"{opcode}.{kind}", kind, width)


def _integer() -> Iterator[Form]:
    for width in (16, 32, 64):
        for sign in "su":
            kind = f"{sign}{width}"
            two = f"{kind} {kind}"
            for opcode in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
                yield _simple(f"{opcode}.{kind}", two, f"b{width}")
            yield _simple(f"mad.lo.{kind}", f"{two} {kind}", f"b{width}")
            yield _simple(f"mad.hi.{kind}", f"{two} {kind}", f"b{width}")
            yield _simple(f"sad.{kind}", f"{two} {kind}", f"b{width}")
            yield _simple(f"shr.{kind}", f"{kind} amount", f"b{width}")
            if width < 64:
                wide = f"{sign}{2 * width}"
                yield _simple(f"mul.wide.{kind}", two, f"b{2 * width}")
                yield _simple(f"mad.wide.{kind}", f"{two} {wide}", f"b{2 * width}")
        yield _simple(f"abs.s{width}", f"s{width}", f"b{width}")
        yield _simple(f"neg.s{width}", f"s{width}", f"b{width}")
        yield _simple(f"shl.b{width}", f"u{width} amount", f"b{width}")
        for opcode in ("and", "or", "xor"):
            yield _simple(f"{opcode}.b{width}", f"u{width} u{width}", f"b{width}")
        yield _simple(f"not.b{width}", f"u{width}", f"b{width}")
        yield _simple(f"cnot.b{width}", f"u{width}", f"b{width}")
    yield _simple("add.sat.s32", "s32 s32", "b32")
    yield _simple("sub.sat.s32", "s32 s32", "b32")
    for sign in "su":
        for part in ("lo", "hi"):
            yield _simple(f"mul24.{part}.{sign}32", f"{sign}32 {sign}32", "b32")
            yield _simple(f"mad24.{part}.{sign}32", f"{sign}32 {sign}32 {sign}32", "b32")
        for other in "su":
            yield _simple(f"dp4a.{sign}32.{other}32", "u32 u32 u32", "b32")
            yield _simple(f"dp2a.lo.{sign}32.{other}32", "u32 u32 u32", "b32")
            yield _simple(f"dp2a.hi.{sign}32.{other}32", "u32 u32 u32", "b32")
    for width in (32, 64):
        u = f"u{width}"
        chain = f"add.cc.{u} d, a, b;\naddc.{u} e, c, a;"
        yield Form(f"add.cc/addc.{u}", chain, (u, u, u), (f"b{width}", f"b{width}"))
        chain = f"sub.cc.{u} d, a, b;\nsubc.{u} e, c, a;"
        yield Form(f"sub.cc/subc.{u}", chain, (u, u, u), (f"b{width}", f"b{width}"))
        chain = f"mad.lo.cc.{u} d, a, b, c;\nmadc.hi.{u} e, a, b, c;"
        yield Form(f"mad.lo.cc/madc.hi.{u}", chain, (u, u, u), (f"b{width}", f"b{width}"))


def _bits() -> Iterator[Form]:
    for width in (32, 64):
        u, s, b = f"u{width}", f"s{width}", f"b{width}"
        for opcode in ("popc", "clz"):
            yield _simple(f"{opcode}.{b}", u, "b32")
        yield _simple(f"brev.{b}", u, b)
        for kind in (u, s):
            yield _simple(f"bfind.{kind}", kind, "b32")
            yield _simple(f"bfind.shiftamt.{kind}", kind, "b32")
            yield _simple(f"bfe.{kind}", f"{kind} amount amount", b)
        yield _simple(f"bfi.{b}", f"{u} {u} amount amount", b)
        yield _simple(f"selp.{b}", f"{u} {u} pred", b)
        yield _simple(f"slct.{b}.s32", f"{u} {u} s32", b)
        yield _simple(f"slct.{b}.f32", f"{u} {u} f32", b)
    for side in "lr":
        for mode in ("wrap", "clamp"):
            yield _simple(f"shf.{side}.{mode}.b32", "u32 u32 amount", "b32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield _simple(f"prmt.b32{mode}", "u32 u32 u32", "b32")
    for table in (0x00, 0x1B, 0x6A, 0x80, 0x96, 0xCA, 0xE8, 0xF8, 0xFE, 0xFF):
        text = f"lop3.b32 d, a, b, c, {table:#x};"
        yield Form(f"lop3.b32/{table:#x}", text, ("u32", "u32", "u32"), ("b32",))
    for mode in ("clamp", "wrap"):
        yield _simple(f"bmsk.{mode}.b32", "amount amount", "b32")
        yield _simple(f"szext.{mode}.s32", "s32 amount", "b32")
        yield _simple(f"szext.{mode}.u32", "u32 amount", "b32")


def _compare() -> Iterator[Form]:
    ordered = ("eq", "ne", "lt", "le", "gt", "ge")
    floating = (*ordered, *(f"{o}u" for o in ordered[:1]), "neu", "ltu", "leu", "gtu", "geu",
                "num", "nan")  # fmt: skip
    for test in floating:
        for kind in ("f16", "f32", "f64"):
            yield _simple(f"setp.{test}.{kind}", f"{kind} {kind}", "pred")
        yield _simple(f"set.{test}.u32.f32", "f32 f32", "b32")
        yield _simple(f"set.{test}.f32.f32", "f32 f32", "b32")
        text = f"setp.{test}.f16x2 p|q, a, b;"
        yield Form(f"setp.{test}.f16x2", text, ("f16x2", "f16x2"), ("pred", "pred"))
        yield _simple(f"set.{test}.f16x2.f16x2", "f16x2 f16x2", "b32")
    yield _simple("setp.lt.ftz.f32", "f32 f32", "pred")
    for test in ordered:
        for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
            yield _simple(f"setp.{test}.{kind}", f"{kind} {kind}", "pred")
        yield _simple(f"set.{test}.s32.s32", "s32 s32", "b32")
    for test in ("lo", "ls", "hi", "hs"):
        yield _simple(f"setp.{test}.u32", "u32 u32", "pred")
    for join in ("and", "or", "xor"):
        for kind in ("s32", "f32"):
            text = f"setp.lt.{join}.{kind} p|q, a, b, r;"
            yield Form(f"setp.lt.{join}.{kind}", text, (kind, kind, "pred"), ("pred", "pred"))


def _holds(to: str, source: str) -> bool:
    """Whether every value of one integer type is one of another (then .sat is no valid form)."""
    if to[0] == source[0]:
        return int(to[1:]) >= int(source[1:])
    return source[0] == "u" and int(to[1:]) > int(source[1:])


def _convert() -> Iterator[Form]:
    integers = [f"{s}{w}" for w in (8, 16, 32, 64) for s in "su"]
    floats = {"f16": 16, "f32": 32, "f64": 64}

    def out(kind: str) -> str:
        return f"b{max(width_of(kind), 16)}"

    for source in integers:
        for to in integers:
            if source != to:
                yield _simple(f"cvt.{to}.{source}", source, out(to))
                if not _holds(to, source):
                    yield _simple(f"cvt.sat.{to}.{source}", source, out(to))
        for to in floats:
            for mode in ("rn", "rz", "rm", "rp"):
                yield _simple(f"cvt.{mode}.{to}.{source}", source, out(to))
    for source in floats:
        for to in integers:
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield _simple(f"cvt.{mode}.{to}.{source}", source, out(to))
        for mode in ("rni", "rzi", "rmi", "rpi"):
            yield _simple(f"cvt.{mode}.{source}.{source}", source, out(source))
        yield _simple(f"cvt.sat.{source}.{source}", source, out(source))
    for to, source in (("f16", "f32"), ("f16", "f64"), ("f32", "f64")):
        for mode in ("rn", "rz", "rm", "rp"):
            yield _simple(f"cvt.{mode}.{to}.{source}", source, out(to))
    for to, source in (("f32", "f16"), ("f64", "f16"), ("f64", "f32")):
        yield _simple(f"cvt.{to}.{source}", source, out(to))
    yield _simple("cvt.ftz.f32.f16", "f16", "b32")
    yield _simple("cvt.rn.ftz.f32.f64", "f64", "b32")
    yield _simple("cvt.rzi.ftz.s32.f32", "f32", "b32")
    yield _simple("cvt.rpi.ftz.s32.f32", "f32", "b32")
    yield _simple("cvt.ftz.sat.f32.f32", "f32", "b32")
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            yield _simple(f"cvt.{mode}{relu}.f16x2.f32", "f32 f32", "b32")
            yield _simple(f"cvt.{mode}{relu}.bf16x2.f32", "f32 f32", "b32")
            yield _simple(f"cvt.{mode}{relu}.bf16.f32", "f32", "b16")
            yield _simple(f"cvt.{mode}{relu}.f16.f32", "f32", "b16")
    yield _simple("cvt.f32.bf16", "bf16", "b32")


def all_forms() -> list[Form]:
    """Every form, names unique."""
    makers = (_float_arithmetic, _approximate, _half, _integer, _bits, _compare, _convert)
    unique = {form.name: form for maker in makers for form in maker()}
    return list(unique.values())
