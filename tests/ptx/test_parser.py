"""Reading PTX: what an instruction carries, scopes, source lines, and refusals by line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_cuda, compile_text

from kernelbook.errors import PtxError
from kernelbook.ptx import parse
from kernelbook.ptx.module import Address, Immediate, Pair, Register, Symbol, Vector

HEADER = ".version 8.8\n.target sm_90\n.address_size 64\n"


def body(text: str, params: str = "") -> str:
    return f"{HEADER}.visible .entry k({params})\n{{\n{text}\n}}\n"


def test_instruction_fields() -> None:
    text = body(".reg .pred %p<2>; .reg .f32 %f<5>; .reg .b64 %rd<2>;\n"
                "@!%p1 ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+-16];")  # fmt: skip
    (load,) = parse(text).kernels[0].instructions
    assert (load.opcode, load.name) == ("ld", "ld.global.nc.v4.f32")
    assert (load.space, load.type, load.vector, load.element_bytes) == ("global", "f32", 4, 4)
    assert load.guard is not None
    assert load.guard.name == "%p1"
    assert load.guard_negated
    assert load.ptx_line == 7
    values, address = load.operands
    assert isinstance(values, Vector)
    assert [e.name for e in values.elements if isinstance(e, Register)] == [
        "%f1", "%f2", "%f3", "%f4"]  # fmt: skip
    assert isinstance(address, Address)
    assert address.offset == -16


def test_destination_type_comes_first() -> None:
    text = body(".reg .b32 %r<2>; .reg .f32 %f<2>;\ncvt.rzi.s32.f32 %r1, %f1;")
    (convert,) = parse(text).kernels[0].instructions
    assert convert.types == ("s32", "f32")
    assert convert.type == "s32"


def test_literals() -> None:
    text = body(".reg .f32 %f<2>; .reg .b64 %d<2>; .reg .b32 %r<3>;\n"
                "mov.f32 %f1, 0fBF800000; mov.b64 %d1, 0d4000000000000000;\n"
                "mov.u32 %r1, -1; mov.u32 %r2, 0x10U;")  # fmt: skip
    found = [i.operands[1] for i in parse(text).kernels[0].instructions]
    values = [v.value for v in found if isinstance(v, Immediate)]
    assert values == [-1.0, 2.0, -1, 16]


def test_inner_scope_has_its_own_registers() -> None:
    text = body(".reg .b32 %r<3>;\nmov.u32 %r1, 1;\n{.reg .b32 %r1; mov.u32 %r1, 2;}\n"
                "mov.u32 %r2, %r1;")  # fmt: skip
    first, inner, last = parse(text).kernels[0].instructions
    assert inner.operands[0] != first.operands[0]
    assert last.operands[1] == first.operands[0]


def test_branches_resolve_to_pcs() -> None:
    text = body(".reg .pred %p<2>; .reg .b32 %r<2>;\n"
                "$top:\n@%p1 bra $end;\nbra.uni $top;\n"
                "table: .branchtargets $top, $end;\nbrx.idx %r1, table;\n$end:\nret;")  # fmt: skip
    kernel = parse(text).kernels[0]
    assert [i.targets for i in kernel.instructions] == [(3,), (0,), (0, 3), ()]
    assert dict(kernel.labels) == {"$top": 0, "$end": 3}


def test_parameters_are_laid_out_with_alignment() -> None:
    params = (".param .u32 a, .param .u64 .ptr .global .align 16 b, .param .u8 c,"
              ".param .align 8 .b8 d[12]")  # fmt: skip
    kernel = parse(body("ret;", params)).kernels[0]
    assert [(p.offset, p.size) for p in kernel.params] == [(0, 4), (8, 8), (16, 1), (24, 12)]
    assert kernel.param_bytes == 36


def test_module_variables_with_initial_values() -> None:
    text = HEADER + (".const .align 4 .b8 t[8] = {1, 0, 0, 0, 255, 255, 255, 255};\n"
                     ".global .align 8 .u64 p = generic(t)+4;\n.global .f32 f = 0f3F800000;\n"
                     ".extern .shared .align 16 .b8 s[];")  # fmt: skip
    table, pointer, number, dynamic = parse(text).variables
    assert table.initial == bytes([1, 0, 0, 0, 255, 255, 255, 255])
    assert pointer.relocations == ((0, "t", 4, True),)
    assert number.initial == b"\x00\x00\x80\x3f"
    assert (dynamic.size, dynamic.extern, dynamic.align) == (0, True, 16)


def test_symbols_and_pairs() -> None:
    text = body(".shared .align 4 .b8 s[64]; .reg .b64 %rd<2>; .reg .b32 %r<5>; .reg .pred %p<2>;\n"
                "mov.u64 %rd1, s;\nshfl.sync.bfly.b32 %r1|%p1, %r2, %r3, %r4, -1;")  # fmt: skip
    move, shuffle = parse(text).kernels[0].instructions
    assert move.operands[1] == Symbol("s")
    assert isinstance(shuffle.operands[0], Pair)


SOURCE = """#include <cuda_fp16.h>
__device__ float twice(float v) {
    return v * 2.0f;
}
extern "C" __global__ void k(float* x, half2* h) {
    x[threadIdx.x] = twice(x[threadIdx.x]);
    h[threadIdx.x] = __hadd2(h[threadIdx.x], h[threadIdx.x]);
}
"""


def test_source_lines_follow_inlining_out_of_headers_only() -> None:
    kernel = compile_cuda(SOURCE).kernels[0]
    lines = {i.opcode: i.line for i in kernel.instructions if i.opcode in ("add", "mul")
             and i.type.startswith("f")}  # fmt: skip
    doubled = [i.line for i in kernel.instructions if i.name in ("add.f32", "mul.f32")]
    assert doubled == [3]  # the function's own line
    assert lines
    packed = [i for i in kernel.instructions if i.type == "f16x2"]
    assert [i.line for i in packed] == [7]  # the call, not cuda_fp16.hpp
    assert all(i.file == kernel.file for i in packed)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("hello", 1, "must begin with .version"),
        (".version 7.0\n.target sm_70", 2, "older than 7.8"),
        (body("add.s32 %r1, %r2, %r3;"), 6, "not declared"),
        (body("bra $nowhere;"), 6, "no label"),
        (body(".reg .b32 %r<3>;\nadd.s32 %r1, %r2"), 8, "expected ','"),
        (HEADER + ".visible .entry k()\n{\nret;", 6, "ends inside kernel"),
        (HEADER + '.global .b8 x[4] = {1, 2, 3, 4, 5};', 4, "more initial values"),
        (HEADER + "\x01", 4, "unexpected character"),
        (body("$a:\nret;\n$a:\nret;"), 8, "defined twice"),
        (body("@%p1 ret;"), 6, "not a declared predicate"),
        (body("ld.global.u32 %r1, [%rd1"), 6, "not declared"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(PtxError, match=what) as error:
        parse(text)
    assert f"PTX line {line}:" in str(error.value)


def test_every_prefix_of_real_ptx_parses_or_is_refused() -> None:
    text = compile_text(SOURCE)
    for end in range(0, len(text), 97):
        try:
            parse(text[:end])
        except PtxError:
            continue


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(PtxError, match="PTX must be text, not NoneType"):
        parse(None)  # type: ignore[arg-type]


def test_newer_versions_are_accepted() -> None:
    assert parse(".version 9.3\n.target sm_120a\n.address_size 64\n").version == (9, 3)
