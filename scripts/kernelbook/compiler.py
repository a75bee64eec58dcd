"""From a .cu to PTX, cubin and resources, in one NVRTC call, cached by content.

NVRTC needs no GPU and no driver. The pair (PTX, cubin) of one call is what is measured, profiled
and counted, so that all numbers of a kernel speak of the same code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .errors import CompileError, DeviceError
from .sources import includes_of

STANDARD = "--std=c++17"
CACHE_FORMAT = 1  # raise when what is cached changes shape
_ERROR = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\):\s*(?:catastrophic )?error:?\s*(?P<what>.*)$", re.M
)


@dataclass(frozen=True)
class Resources:
    """What ptxas reports for one kernel. Bytes a thread, except shared memory: bytes a block."""

    registers: int
    shared_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    constant_bytes: int


@dataclass(frozen=True)
class Compiled:
    """One .cu for one architecture."""

    source: Path
    arch: str
    options: tuple[str, ...]
    nvrtc: str
    ptx: str
    cubin: bytes
    resources: Mapping[str, Resources]
    log: str = field(compare=False)  # holds compile times

    @property
    def ptx_hash(self) -> str:
        return ptx_hash(self.ptx)


def compile_source(
    source: Path,
    arch: str,
    *,
    macros: Mapping[str, int | str] | None = None,
    options: tuple[str, ...] = (),
    cache_dir: Path | None = None,
) -> Compiled:
    """Compile a .cu file for an architecture such as ``sm_90``.

    Raises CompileError with the compiler's own first error and its place.
    """
    flags = compile_options(arch, macros or {}, options)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cannot be read: {error}", file=source) from error
    entry = None
    if cache_dir is not None:
        entry = cache_dir / f"{_content_key(source, text, flags)}.json"
        if (found := _load(entry, source)) is not None:
            return found
    compiled = _compile(source, text, arch, flags)
    if entry is not None:
        _store(entry, compiled)
    return compiled


def compile_options(
    arch: str, macros: Mapping[str, int | str], options: tuple[str, ...]
) -> tuple[str, ...]:
    """The options a kernel is compiled with, without include paths (which differ by machine)."""
    defines = tuple(f"-D{name}={value}" for name, value in sorted(macros.items()))
    return (f"-arch={arch}", STANDARD, "-lineinfo", "--ptxas-options=-v", *defines, *options)


def ptx_hash(ptx: str) -> str:
    """Hash of what PTX says, without what differs by machine or compiler build: comments,
    ``.version``, ``.loc``, ``.file`` and ``.section`` blocks."""
    text = re.sub(r"/\*.*?\*/", "", ptx, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"\.section\s+[^{]*\{[^}]*\}", "", text, flags=re.S)
    dropped = (".version", ".loc", ".file", ".section")
    kept = [line.strip() for line in text.splitlines()]
    kept = [line for line in kept if line and not line.startswith(dropped)]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]


@cache
def _nvrtc() -> Any:
    try:
        from cupy_backends.cuda.libs import nvrtc  # works without a driver, unlike cupy itself

        nvrtc.getVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise DeviceError(
            "the CUDA compiler NVRTC cannot be loaded: " + " ".join(str(error).split()),
            hint="pip install -e .",
        ) from error
    return nvrtc


@cache
def nvrtc_version() -> str:
    """NVRTC's version, e.g. '12.9'; raises DeviceError where it cannot be loaded."""
    return "{}.{}".format(*_nvrtc().getVersion())


@cache
def include_directories() -> tuple[str, ...]:
    """Toolkit header folders of this machine (CUDA runtime and CCCL), as far as installed."""
    from cuda import pathfinder

    found = []
    for library in ("cudart", "cccl"):
        header = pathfinder.locate_nvidia_header_directory(library)
        if header is not None and header.abs_path:
            found.append(str(header.abs_path))
    return tuple(found)


def _compile(source: Path, text: str, arch: str, flags: tuple[str, ...]) -> Compiled:
    nvrtc = _nvrtc()
    local = [f"-I{source.parent}", *(f"-I{d}" for d in include_directories())]
    if nvrtc.getVersion() >= (12, 9):
        # NVRTC keeps a cache of its own from 12.9 on, and what comes out of it has no ptxas report.
        local.append("--no-cache")
    program = nvrtc.createProgram(text, source.name, [], [])
    try:
        try:
            nvrtc.compileProgram(program, [*flags, *local])
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise _compile_error(source, log or str(error)) from None
        log = nvrtc.getProgramLog(program).rstrip("\0")
        ptx = _decode(nvrtc.getPTX(program))
        # CuPy drops the last byte of a cubin; without it the disassembler finds no code.
        cubin = nvrtc.getCUBIN(program) + b"\0"
    finally:
        nvrtc.destroyProgram(program)
    return Compiled(
        source, arch, flags, nvrtc_version(), _portable(ptx), cubin, parse_resources(log), log
    )


def _decode(ptx: bytes | str) -> str:
    return ptx if isinstance(ptx, str) else ptx.decode().rstrip("\0")


def _portable(ptx: str) -> str:
    """PTX with file names instead of this machine's absolute paths in ``.file``."""
    return re.sub(r'(\.file\s+\d+\s+")([^"]*/)', r"\1", ptx)


def _compile_error(source: Path, log: str) -> CompileError:
    found = _ERROR.search(log)
    if found is None:
        return CompileError(log.strip().splitlines()[0] if log.strip() else "failed", file=source)
    name = found["file"]
    place = source if Path(name).name == source.name else source.parent / name
    return CompileError(found["what"].strip(), file=place, line=int(found["line"]))


def parse_resources(log: str) -> dict[str, Resources]:
    """Resources by kernel name from ptxas' -v report."""
    out: dict[str, Resources] = {}
    name = ""
    spill = (0, 0, 0)
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            name = found[1]
            spill = (0, 0, 0)
        elif found := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            spill = (int(found[1]), int(found[2]), int(found[3]))
        elif name and (found := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            constant = sum(int(n) for n in re.findall(r"(\d+) bytes cmem", line))
            out[name] = Resources(
                registers=int(found[1]),
                shared_bytes=int(shared[1]) if shared else 0,
                spill_store_bytes=spill[1],
                spill_load_bytes=spill[2],
                stack_bytes=spill[0],
                constant_bytes=constant,
            )
            name = ""
    return out


def _content_key(source: Path, text: str, flags: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    parts = [str(CACHE_FORMAT), nvrtc_version(), source.name, text, *flags]
    parts += [p.read_text(encoding="utf-8") for p in includes_of(source)]
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _load(entry: Path, source: Path) -> Compiled | None:
    """A cache entry, or None where there is none or it cannot be used."""
    try:
        data = json.loads(entry.read_text(encoding="utf-8"))
        resources = {k: Resources(**v) for k, v in data.pop("resources").items()}
        cubin = bytes.fromhex(data.pop("cubin"))
        data["options"] = tuple(data["options"])
        return Compiled(source=source, cubin=cubin, resources=resources, **data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _store(entry: Path, compiled: Compiled) -> None:
    data = {
        "arch": compiled.arch,
        "options": list(compiled.options),
        "nvrtc": compiled.nvrtc,
        "ptx": compiled.ptx,
        "cubin": compiled.cubin.hex(),
        "resources": {k: asdict(v) for k, v in compiled.resources.items()},
        "log": compiled.log,
    }
    name = ""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=entry.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(data, out)
        os.replace(name, entry)
    except OSError:  # a cache that cannot be written costs time, not the run
        if name:
            Path(name).unlink(missing_ok=True)
