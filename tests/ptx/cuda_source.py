"""Compile CUDA C++ to a parsed PTX module for a test, once per source."""

from __future__ import annotations

from functools import cache

from kernelbook.compiler import include_directories
from kernelbook.ptx import Module, parse


@cache
def compile_text(source: str, *options: str) -> str:
    """PTX of a CUDA source, with line information."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(source, "test.cu", [], [])
    includes = [f"-I{path}" for path in include_directories()]
    flags = ["-arch=sm_90", "-lineinfo", "--std=c++17", *includes, *options]
    try:
        nvrtc.compileProgram(program, flags)
    except Exception as error:
        raise AssertionError(nvrtc.getProgramLog(program)) from error
    ptx = nvrtc.getPTX(program)
    return ptx.decode() if isinstance(ptx, bytes) else ptx


@cache
def compile_cuda(source: str, *options: str) -> Module:
    """The parsed module of a CUDA source."""
    return parse(compile_text(source, *options))
