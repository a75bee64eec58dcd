"""Baselines that are host code: CUB's device-wide algorithms, say, which need nvcc.

``kernels/NN_chapter/baselines/*.cu`` holds functions that enqueue work on a stream. nvcc makes a
shared library of the file, kept by content; ctypes calls it. A function is

    extern "C" int NAME(void* temp, size_t* temp_bytes, BUFFERS..., SHAPE..., cudaStream_t stream)

with a device pointer for every buffer of the experiment and a ``long long`` for every entry of
its shape, both in the experiment's own order. With ``temp == nullptr`` it only says how much
scratch memory it wants (CUB's own convention), else it enqueues. It returns a cudaError_t.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..compiler import STANDARD
from ..errors import CompileError, DeviceError, NotBuilt
from ..sources import includes_of

BUILD_LIMIT_S = 300.0
DEFAULT_ROOT = Path("/usr/local/cuda")
FOLDERS_OF_WHEELS = ("cu13", "cuda_nvcc")  # below nvidia/: CUDA 13, CUDA 12
_ERROR = re.compile(
    r"^(?P<file>[^\s(:][^(:\n]*)(?:\((?P<line>\d+)\)|:(?P<gnu>\d+)(?::\d+)?):\s*"
    r"(?:fatal |catastrophic )?error:?\s*(?P<what>.*)$",
    re.M,
)


def find_nvcc() -> Path | None:
    """nvcc on PATH, below CUDA_HOME or CUDA_PATH, or in NVIDIA's wheels; None where there is none.

    The CUDA 12 wheel of that name brings ptxas and no nvcc; that of CUDA 13 brings both.
    """
    if (found := shutil.which("nvcc")) is not None:
        return Path(found)
    roots = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    places = [root / "bin" / "nvcc" for root in (*roots, DEFAULT_ROOT)]
    places += [package / "bin" / "nvcc" for package in _wheels()]
    return next((p for p in places if os.access(p, os.X_OK)), None)


def _wheels() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec is not None else None
    return [Path(root) / name for root in roots or () for name in FOLDERS_OF_WHEELS]


@cache
def nvcc_version(nvcc: Path) -> str:
    """The release of an nvcc, e.g. '13.0.88'; raises DeviceError where it does not run."""
    said = _run([str(nvcc), "--version"], 60.0)
    found = re.search(r"\bV(\d+\.\d+\.\d+)", said.stdout)
    if said.returncode or found is None:
        raise DeviceError(f"{nvcc} does not say its version", hint=_first_line(said.stderr))
    return found[1]


def build(source: Path, arch: str, cache_dir: Path) -> Path:
    """The shared library of a baseline for an architecture such as ``sm_90``.

    Kept under ``cache_dir`` by content, options and nvcc's version. Raises NotBuilt where there is
    no nvcc, CompileError with the compiler's first error and its place.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise NotBuilt("not built: there is no nvcc", hint="install the CUDA toolkit")
    options = _options(arch)
    target = cache_dir / f"{source.stem}-{_key(source, options, nvcc)}.so"
    if target.is_file():
        return target
    with _scratch_folder(cache_dir) as folder:
        made = Path(folder) / target.name
        command = [str(nvcc), *options, *_folders(nvcc), "-o", str(made), str(source)]
        said = _run(command, BUILD_LIMIT_S)
        if said.returncode or not made.is_file():
            raise _compile_error(source, said.stderr + said.stdout)
        os.replace(made, target)
    return target


def _scratch_folder(cache_dir: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=cache_dir)
    except OSError as error:
        raise DeviceError(f"{cache_dir} cannot be written: {error.strerror}") from error


def _options(arch: str) -> tuple[str, ...]:
    number = arch.removeprefix("sm_")
    return (
        "-shared", "-Xcompiler", "-fPIC", "-O3", STANDARD,
        "-gencode", f"arch=compute_{number},code=sm_{number}",
    )  # fmt: skip


def _folders(nvcc: Path) -> list[str]:
    """What an nvcc of the wheels does not find by itself: the other wheels' headers, libraries."""
    package = nvcc.resolve().parent.parent
    if package not in [p.resolve() for p in _wheels()]:
        return []
    packages = [package, *sorted(package.parent.glob("cuda_*"))]
    headers = [p / "include" for p in packages] + [package / "include" / "cccl"]
    libraries = [p / "lib" for p in packages]
    return [f"-I{p}" for p in headers if p.is_dir()] + [f"-L{p}" for p in libraries if p.is_dir()]


def _key(source: Path, options: Sequence[str], nvcc: Path) -> str:
    digest = hashlib.sha256()
    for part in (nvcc_version(nvcc), *options):
        digest.update(part.encode() + b"\0")
    for path in (source, *includes_of(source)):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _compile_error(source: Path, log: str) -> CompileError:
    found = _ERROR.search(log)
    if found is None:
        return CompileError(_first_line(log) or "nvcc failed", file=source)
    name, line = Path(found["file"]).name, int(found["line"] or found["gnu"])
    if name == source.name:
        return CompileError(found["what"].strip(), file=source, line=line)
    return CompileError(f"{name}:{line}: {found['what'].strip()}", file=source)


def _run(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{command[0]} did not end within {limit_s:g} s") from None
    except OSError as error:
        raise DeviceError(f"{command[0]} cannot be run: {error.strerror}") from error


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


@cache
def _library(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise DeviceError(f"{path.name} cannot be loaded: {error}") from error


def function(source: Path, entry: str, arch: str, cache_dir: Path) -> Callable[..., int]:
    """A function of a baseline; raises as `build`, and DeviceError where it is not there."""
    library = _library(build(source, arch, cache_dir))
    try:
        found = getattr(library, entry)
    except AttributeError:
        raise DeviceError(f"{source.name} has no function {entry!r}") from None
    found.restype = ctypes.c_int
    return found  # type: ignore[no-any-return]


def launcher(
    call: Callable[..., int],
    pointers: Sequence[int],
    sizes: Sequence[int],
    stream: int,
    allocate: Callable[[int], Any],
    failed: Callable[[int], Exception],
) -> Callable[[], None]:
    """Bind a baseline's function to device buffers, with scratch memory that exists beforehand.

    ``pointers`` and ``stream`` are addresses; ``allocate(bytes)`` gives scratch memory with the
    address as ``.ptr``; ``failed(code)`` makes the exception of a cudaError_t.
    """
    needed = ctypes.c_size_t(0)
    arguments = [
        ctypes.byref(needed),
        *(ctypes.c_void_p(p) for p in pointers),
        *(ctypes.c_longlong(s) for s in sizes),
        ctypes.c_void_p(stream),
    ]

    def checked(scratch: ctypes.c_void_p | None) -> None:
        if code := call(scratch, *arguments):
            raise failed(code)

    checked(None)
    memory = allocate(max(needed.value, 1))  # none at all would be a null pointer: only a question
    address = ctypes.c_void_p(memory.ptr)
    # Holds `memory` as long as the launch itself lives.
    return lambda kept=memory: checked(address)  # type: ignore[misc]
