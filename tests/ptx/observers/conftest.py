"""Small kernels, compiled by NVRTC and executed with observers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kernelbook import ptx
from kernelbook.compiler import compile_source
from kernelbook.ptx.observers import Finding

Launch = Callable[..., ptx.Run]


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """launch(source, grid, block, args, macros=..., shared=...): run the source's kernel ``k``."""
    folder = tmp_path_factory.mktemp("kernels")

    @cache
    def compiled(source: str, macros: tuple[tuple[str, int], ...]) -> ptx.Module:
        file: Path = folder / "k.cu"
        file.write_text(source)
        return ptx.parse(compile_source(file, "sm_90", macros=dict(macros)).ptx)

    def run(
        source: str,
        grid: Any,
        block: Any,
        args: Sequence[Any],
        *,
        macros: Mapping[str, int] | None = None,
        **more: Any,
    ) -> ptx.Run:
        module = compiled(source, tuple((macros or {}).items()))
        return ptx.run(module, module.kernels[0].name, grid, block, args, **more)

    return run


def kernel(body: str, parameters: str = "int* out") -> str:
    """A kernel ``k`` around a body; ``t`` is the thread of the block."""
    head = f'extern "C" __global__ void k({parameters}) {{ int t = threadIdx.x;\n'
    return f"{head}{body}\n}}"


def races(run: ptx.Run) -> list[Finding]:
    return [f for f in run.findings if f.kind == "race"]
