"""Host-code baselines: finding nvcc, building once, calling through ctypes. nvcc is a script here
that calls the C++ compiler, so that what is built is really loaded and called."""

from __future__ import annotations

import ctypes
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelbook.errors import CompileError, DeviceError, NotBuilt
from kernelbook.experiment import Buffer, Experiment, Library, Text, Tolerance
from kernelbook.gpu import baselines
from kernelbook.gpu.libraries import Context, routine

ARCH = "sm_90"
SUM = """
#include "scale.h"
// With temp == nullptr says how much scratch it wants; else adds up x into out, times the factor.
extern "C" int total(void* temp, unsigned long* bytes, const int* x, int* out, long long n,
                     void* stream) {
    if (temp == nullptr) {
        *bytes = 24;
        return stream == nullptr ? 0 : 400;
    }
    *out = 0;
    for (long long i = 0; i < n; ++i) *out += FACTOR * x[i];
    return n < 0 ? 1 : 0;
}
"""
# Only what nvcc is asked for here, handed to the host's compiler; every build leaves a line.
NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; fi
echo built >> "$(dirname "$0")/log"
for last; do :; done
out=
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
exec c++ -x c++ -shared -fPIC -o "$out" "$last"
"""


@pytest.fixture
def nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "nvcc"
    script.write_text(NVCC, encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return script


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "scale.h").write_text("#define FACTOR 3\n", encoding="utf-8")
    path = tmp_path / "total.cu"
    path.write_text(SUM, encoding="utf-8")
    return path


def builds(nvcc: Path) -> int:
    log = nvcc.parent / "log"
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def bound(source: Path, cache: Path, n: int = 3, stream: int = 0) -> tuple[object, list[int]]:
    x, out, asked = (ctypes.c_int * 3)(1, 2, 4), ctypes.c_int(0), []

    def allocate(size: int) -> SimpleNamespace:
        asked.append(size)
        scratch = (ctypes.c_char * size)()
        return SimpleNamespace(ptr=ctypes.addressof(scratch), kept=scratch)

    launch = baselines.launcher(
        baselines.function(source, "total", ARCH, cache),
        [ctypes.addressof(x), ctypes.addressof(out)],
        [n],
        stream,
        allocate,
        lambda code: DeviceError(f"code {code}"),
    )
    launch()
    return out.value, asked


def test_a_baseline_is_called_on_buffers_and_sizes_with_the_scratch_it_asked_for(
    nvcc: Path, source: Path, tmp_path: Path
) -> None:
    assert bound(source, tmp_path / "cache") == (21, [24])


def test_a_row_with_a_source_runs_its_function_on_the_experiments_buffers_and_shape(
    nvcc: Path, source: Path, tmp_path: Path
) -> None:
    chapter = tmp_path / "kernels" / "02_x"
    chapter.mkdir(parents=True)
    for name in (source.name, "scale.h"):
        shutil.copy(tmp_path / name, chapter)
    experiment = Experiment(
        name="total", title=Text("", ""), shape={"n": 3}, emulator_shape={"n": 1}, ragged=(),
        buffers=(Buffer("x", "in", lambda s: (s["n"],), "int32"),
                 Buffer("out", "out", lambda s: (1,), "int32")),
        reference=lambda xp, inputs, shape: {}, flops=lambda s: s["n"],
        tolerance=Tolerance(0.0, 0.0), variants=(), folder=chapter,
    )  # fmt: skip
    held: list[object] = []

    def on_device(values: list[int]) -> SimpleNamespace:
        memory = (ctypes.c_int * len(values))(*values)
        held.append(memory)
        return SimpleNamespace(data=SimpleNamespace(ptr=ctypes.addressof(memory)), memory=memory)

    def allocate(size: int) -> SimpleNamespace:
        return on_device([0] * (size // 4 + 1)).data

    fake = SimpleNamespace(cuda=SimpleNamespace(alloc=allocate, runtime=SimpleNamespace(
        CUDARuntimeError=DeviceError)))  # fmt: skip
    arrays = {"x": on_device([1, 2, 4]), "out": on_device([0])}
    notes: dict[str, str] = {}
    library = Library("total", "total", Text("", ""), source=source.name)
    context = Context(
        fake, SimpleNamespace(ptr=0), library, experiment, {"n": 3}, arrays, ARCH, notes
    )
    bound_routine = routine(context)
    bound_routine.launch()
    assert arrays["out"].memory[0] == 21
    assert bound_routine.check is None  # what it wrote is verified like a kernel's
    assert notes == {"host_baselines": "nvcc 13.0.88"}
    assert list((tmp_path / ".cache" / "kernelbook" / "baselines").glob("total-*.so"))


def test_it_is_built_once_until_it_or_a_header_of_it_changes(
    nvcc: Path, source: Path, tmp_path: Path
) -> None:
    first = baselines.build(source, ARCH, tmp_path / "cache")
    assert baselines.build(source, ARCH, tmp_path / "cache") == first
    assert builds(nvcc) == 1
    (tmp_path / "scale.h").write_text("#define FACTOR 5\n", encoding="utf-8")
    assert bound(source, tmp_path / "cache") == (35, [24])
    assert builds(nvcc) == 2
    assert baselines.build(source, "sm_89", tmp_path / "cache") != first
    left = {p.suffix for p in (tmp_path / "cache").iterdir()}
    assert left == {".so"}  # no half-made file stays behind


def test_a_code_of_the_call_becomes_the_exception_of_the_device(
    nvcc: Path, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(DeviceError, match="code 1"):
        bound(source, tmp_path / "cache", n=-1)
    with pytest.raises(DeviceError, match="code 400"):
        bound(source, tmp_path / "cache", stream=1)


def test_a_function_that_is_not_there_is_named(nvcc: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"total\.cu has no function 'product'"):
        baselines.function(source, "product", ARCH, tmp_path / "cache")


def test_an_error_of_the_compiler_has_its_place(nvcc: Path, source: Path, tmp_path: Path) -> None:
    source.write_text("int f() {\n    return undeclared;\n}\n", encoding="utf-8")
    with pytest.raises(CompileError, match=r"total\.cu:2: .*undeclared"):
        baselines.build(source, ARCH, tmp_path / "cache")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ('k.cu(7): error: identifier "y" is undefined\n', 'k.cu:7: identifier "y" is undefined'),
        ("/opt/cub/a.cuh(12): error: no\n", "k.cu: a.cuh:12: no"),
        ("k.cu:3:10: fatal error: gone.h: No such file\n", "k.cu:3: gone.h: No such file"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_1'\n",
         "k.cu: nvcc fatal   : Unsupported gpu architecture 'compute_1'"),
        ("", "k.cu: nvcc failed"),
    ],
)  # fmt: skip
def test_what_nvcc_says_is_one_sentence(log: str, said: str) -> None:
    assert str(baselines._compile_error(Path("k.cu"), log)) == said


def test_without_nvcc_the_row_is_not_built(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "find_nvcc", lambda: None)
    with pytest.raises(NotBuilt, match="not built: there is no nvcc"):
        baselines.build(source, ARCH, tmp_path / "cache")


def test_nvcc_is_found_on_the_path_then_below_cuda_home_then_in_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*parts: str) -> Path:
        path = tmp_path.joinpath(*parts, "nvcc")
        path.parent.mkdir(parents=True)
        path.write_text("", encoding="utf-8")
        path.chmod(0o755)
        return path

    wheel, home, path = make("nvidia", "cu13", "bin"), make("home", "bin"), make("path")
    monkeypatch.setattr(baselines, "_wheels", lambda: [wheel.parent.parent])
    monkeypatch.setattr(baselines, "DEFAULT_ROOT", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert baselines.find_nvcc() == wheel
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert baselines.find_nvcc() == home
    monkeypatch.setenv("PATH", str(path.parent))
    assert baselines.find_nvcc() == path
