"""Constants of a kernel's source, held against what NVRTC makes of the same text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.compiler import compile_source
from kernelbook.constants import constants
from kernelbook.errors import PageError
from kernelbook.experiment import Kernel
from tiny import ROOT

SOURCE = """
#ifndef SIDE
#define SIDE 8 /* default */
#endif
#define HALF (SIDE / 2)  // of it
#define WIDE 0x10u
#if HALF > 4 && defined(TALL)
#define ROWS (SIDE > 12 ? 3 : -7 / 2)
#elif !defined LOW
#define ROWS 1
#else
#define ROWS 2
#endif
#define CALL(x) ((x) + 1)
#define NAME float
#undef WIDE
#define SUM 1 + 2 * HALF \\
    - 3
"""


def of(tmp_path: Path, text: str, **macros: int | str) -> dict[str, int]:
    file = tmp_path / "k.cu"
    file.write_text(text)
    return constants(file, macros)


def test_a_macro_of_the_compilation_goes_before_the_sources_default(tmp_path: Path) -> None:
    assert of(tmp_path, SOURCE) == {"SIDE": 8, "HALF": 4, "ROWS": 1, "SUM": 6}
    assert of(tmp_path, SOURCE, SIDE=14, TALL=1)["ROWS"] == 3
    # Towards zero, as C divides.
    assert of(tmp_path, SOURCE, SIDE=10, TALL=1)["ROWS"] == -3
    assert of(tmp_path, SOURCE, LOW=1)["ROWS"] == 2


def test_what_is_no_integer_has_no_value(tmp_path: Path) -> None:
    text = "#define A B\\n#define B A\\n#define C 1.5f\\n#define D 1 / 0\\n#define E 2".replace(
        "\\n", "\n"
    )
    assert of(tmp_path, text) == {"E": 2}


def test_a_project_include_is_followed_and_a_toolkit_header_is_not(tmp_path: Path) -> None:
    (tmp_path / "more.cuh").write_text("#define DEEP 3\n")
    text = '#include "more.cuh"\n#include "cuda.h"\n#include <cuda.h>\n#define TWICE (2 * DEEP)\n'
    assert of(tmp_path, text) == {"DEEP": 3, "TWICE": 6}


@pytest.mark.parametrize("line", ["#endif", "#if 1 +", "#if CALL(", "#else"])
def test_a_condition_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(PageError, match=r"k\.cu:2: .*cannot be read: " + re.escape(line)):
        of(tmp_path, f"#define A 1\n{line}\n")


# One source a compilation: NVRTC takes a few tenths of a second.
SHAPED = ("coarse_gemm_keeps_a", "warp_tiled_gemm", "fast_gemm")


@pytest.mark.parametrize("name", SHAPED)
def test_nvrtc_gives_every_constant_of_the_ladder_the_same_value(
    tmp_path: Path, compile_cache: Path, name: str
) -> None:
    experiment = catalog.load(ROOT).experiment("ladder_4096")
    kernel = experiment.variant(name)
    assert isinstance(kernel, Kernel)
    source = experiment.folder / kernel.source
    ours = constants(source, kernel.macros)
    assert len(ours) >= 4
    stores = "\n".join(f"    out[{i}] = {macro};" for i, macro in enumerate(ours))
    # Headers of the project lie beside the source.
    for header in source.parent.glob("*.cuh"):
        (tmp_path / header.name).write_text(header.read_text())
    text = source.read_text() + f'\nextern "C" __global__ void told(int* out) {{\n{stores}\n}}\n'
    (tmp_path / "told.cu").write_text(text)
    compiled = compile_source(
        tmp_path / "told.cu", "sm_90", macros=kernel.macros, cache_dir=compile_cache
    )
    out = np.zeros(len(ours), np.int32)
    ptx.run(compiled.ptx, "told", 1, 1, [out], observers=())
    assert dict(zip(ours, out.tolist(), strict=True)) == ours
