"""The instruction forms that a GPU and the emulator must agree on. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Iterator

from golden_forms import LANES, Form, width_of


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


def _warp() -> Iterator[Form]:
    """Exchanges among all lanes of a warp."""
    for mode in ("up", "down", "bfly", "idx"):
        text = f"shfl.sync.{mode}.b32 d|p, a, b, c, -1;\nselp.b32 e, 1, 0, p;"
        yield Form(f"shfl.sync.{mode}.b32", text, ("u32", "u32", "u32"), ("b32", "b32"))
    for mode in ("all", "any", "uni"):
        yield Form(f"vote.sync.{mode}.pred", f"vote.sync.{mode}.pred p, r, -1;", ("pred",),
                   ("pred",))  # fmt: skip
    yield Form("vote.sync.ballot.b32", "vote.sync.ballot.b32 d, r, -1;", ("pred",), ("b32",))
    yield Form("match.any.sync.b32", "match.any.sync.b32 d, a, -1;", ("few",), ("b32",))
    text = "match.all.sync.b32 d|p, a, -1;\nselp.b32 e, 1, 0, p;"
    yield Form("match.all.sync.b32", text, ("few",), ("b32", "b32"))
    for operation in ("add", "min", "max"):
        for kind in ("u32", "s32"):
            text = f"redux.sync.{operation}.{kind} d, a, -1;"
            yield Form(f"redux.sync.{operation}.{kind}", text, (kind,), ("b32",))
    for operation in ("and", "or", "xor"):
        text = f"redux.sync.{operation}.b32 d, a, -1;"
        yield Form(f"redux.sync.{operation}.b32", text, ("u32",), ("b32",))
    # Two disjoint halves of a warp name their own lanes.
    text = ("mov.u32 %w, %laneid;\nsetp.lt.u32 p, %w, 16;\nselp.b32 d, 0xFFFF, 0xFFFF0000, p;\n"
            "redux.sync.add.u32 d, a, d;")  # fmt: skip
    yield Form("redux.sync.add.u32/halves", text, ("u32",), ("b32",))


def _atomic() -> Iterator[Form]:
    """Read-modify-write on a cell of the lane's own; d is what it found, e what it left."""
    cell = f"[%dst+{LANES * 8}]"
    operations = [(f"{o}.{k}", k) for k in ("u32", "s32", "u64") for o in ("add", "min", "max")]
    operations += [("min.s64", "s64"), ("max.s64", "s64"), ("inc.u32", "u32"), ("dec.u32", "u32")]
    operations += [(f"{o}.b{w}", f"u{w}") for w in (32, 64) for o in ("and", "or", "xor", "exch")]
    operations += [("add.f32", "f32"), ("add.f64", "f64"), ("add.noftz.f16", "f16"),
                   ("add.noftz.f16x2", "f16x2"), ("add.noftz.bf16", "bf16"),
                   ("add.noftz.bf16x2", "bf16x2")]  # fmt: skip
    for operation, kind in operations:
        width = f"b{width_of(kind)}"
        text = (f"st.global.{width} {cell}, a;\natom.global.{operation} d, {cell}, b;\n"
                f"ld.global.{width} e, {cell};")  # fmt: skip
        yield Form(f"atom.global.{operation}", text, (kind, kind), (width, width))
        shared = f"""{{
.shared .align 8 .b8 cells[2048];
.reg .b32 %at;
mov.u32 %at, cells;
mov.u32 %w, %tid.x;
mad.lo.u32 %at, %w, 8, %at;
st.shared.{width} [%at], a;
atom.shared.{operation} d, [%at], b;
ld.shared.{width} e, [%at];
}}"""
        yield Form(f"atom.shared.{operation}", shared, (kind, kind), (width, width))
    for width in (32, 64):
        text = (f"st.global.b{width} {cell}, a;\natom.global.cas.b{width} d, {cell}, b, c;\n"
                f"ld.global.b{width} e, {cell};")  # fmt: skip
        kinds = (f"u{width}",) * 3
        yield Form(f"atom.global.cas.b{width}", text, kinds, (f"b{width}", f"b{width}"))


def all_forms() -> list[Form]:
    """Every form, names unique."""
    makers = (_float_arithmetic, _approximate, _half, _integer, _bits, _compare, _convert, _warp,
              _atomic)  # fmt: skip
    unique = {form.name: form for maker in makers for form in maker()}
    return list(unique.values())
