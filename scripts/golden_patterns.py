"""Take golden data on a GPU: what its counters say of several hundred memory access patterns.

    PYTHONPATH=scripts python3 scripts/golden_patterns.py            # needs a GPU, CuPy and ncu

Each pattern is one instruction of one warp: 32 addresses and a mask of active lanes. A kernel per
width and direction executes exactly that instruction (inline PTX, so that it stays one), and ncu
counts shared-memory wavefronts or global requests and sectors. ``tests/golden/patterns.json`` keeps
the pattern's description and the counts; addresses are made again from the description, so the
emulator's rule can be held to every one of them on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LANES = 32
SIZES = (4, 8, 16)
FULL = 0xFFFFFFFF
GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "patterns.json"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"


@dataclass(frozen=True)
class Pattern:
    """One warp-wide access. ``family`` with ``a`` and ``b`` says which element each lane takes."""

    space: str  # "shared" or "global"
    op: str  # "ld" or "st"
    size: int  # bytes a lane accesses
    family: str
    a: int
    b: int
    mask: int  # bit i: lane i is active

    @property
    def kernel(self) -> str:
        return f"{self.space}_{self.op}{self.size}"

    def addresses(self) -> NDArray[np.int64]:
        """(32,) byte offsets, multiples of ``size``."""
        return elements(self.family, self.a, self.b) * self.size

    def active(self) -> NDArray[np.bool_]:
        """(32,) bool."""
        return np.array([bool(self.mask >> lane & 1) for lane in range(LANES)])


def elements(family: str, a: int, b: int) -> NDArray[np.int64]:
    """Which element (in units of the access size) each lane of a pattern takes: (32,)."""
    lane = np.arange(LANES, dtype=np.int64)
    match family:
        case "stride":  # every a-th element, starting at b; a = 0 is a broadcast
            return lane * a + b
        case "groups":  # runs of a lanes share an element, runs b elements apart
            return lane // a * b
        case "modulo":  # the same a elements again and again, b elements apart
            return lane % a * b
        case "xor":  # a permutation of neighbours
            return (lane ^ a) + b
        case "reverse":
            return (LANES - 1 - lane) * a + b
        case "swizzle":  # column b of a tile with rows of a elements, columns swizzled by row
            return lane * a + (b ^ lane) % a
        case "halves":  # the upper half-warp is a elements from the lower one, stride b
            return lane % 16 * b + lane // 16 * a
        case "quarters":  # each quarter-warp is a elements from the one before, stride b
            return lane % 8 * b + lane // 8 * a
        case "random":  # anywhere in a window of a elements
            return _random(b, LANES) % a
        case "shuffle":  # a random permutation of 32 elements, a apart
            return np.asarray(np.argsort(_random(b, LANES), kind="stable") * a, dtype=np.int64)
        case "pairs":  # random elements, shared by lanes a apart (a = 1, 2, 4, 8 or 16)
            return np.asarray((_random(b, LANES) % 256)[lane & ~a], dtype=np.int64)
        case "broken":  # as "pairs", but one lane goes its own way
            found = np.array((_random(b, LANES) % 256)[lane & ~a], dtype=np.int64)
            found[b % LANES] ^= 1
            return found
        case "mixed":  # lanes of each quarter-warp pair up 1 apart where a has its bit, else 2
            apart = np.where(a >> (lane // 8) & 1, lane & ~1, lane & ~2)
            return np.asarray((_random(b, LANES) % 256)[apart], dtype=np.int64)
    raise ValueError(f"no pattern family {family!r}")


def _random(seed: int, count: int) -> NDArray[np.int64]:
    """splitmix64: the same numbers whatever the versions of Python and NumPy."""
    out, state, wrap = [], seed * 0x9E3779B97F4A7C15, (1 << 64) - 1
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & wrap
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wrap
        out.append((z ^ (z >> 31)) >> 34)
    return np.array(out, dtype=np.int64)


MASKS = (
    1, 1 << 31, 1 << 17, 0xFFFF, 0xFFFF0000, 0x55555555, 0xAAAAAAAA, 0x33333333, 0x0F0F0F0F,
    0xFF, 0xFF00FF00, 0x11111111, 0x80000001, 0x7FFFFFFF, 0x5A3C96E1, 0x00FFFF00,
)  # fmt: skip


def _shared_shapes() -> Iterator[tuple[str, int, int, int]]:
    """(family, a, b, mask) of the shared-memory patterns, for each width and direction."""
    strides = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33)
    yield from (("stride", s, 0, FULL) for s in strides)
    yield from (("stride", 1, b, FULL) for b in (1, 7))
    yield from (("groups", g, s, FULL) for g in (2, 4, 8, 16) for s in (1, 32))
    yield from (("modulo", m, s, FULL) for m in (2, 4, 8, 16) for s in (1, 32))
    yield from (("xor", a, 0, FULL) for a in (1, 5, 31))
    yield from (("swizzle", a, b, FULL) for a, b in ((32, 0), (32, 5), (8, 3), (16, 9)))
    yield ("reverse", 1, 0, FULL)
    yield ("reverse", 2, 1, FULL)
    yield from (("halves", a, b, FULL) for a, b in ((0, 1), (1, 0), (32, 1), (16, 2), (33, 0)))
    yield from (("quarters", a, b, FULL) for a, b in ((0, 1), (1, 0), (32, 1), (8, 4), (32, 0)))
    yield from (("random", 1 << n, n, FULL) for n in (1, 3, 5, 6, 8, 9))
    yield from (("shuffle", a, 40 + a, FULL) for a in (1, 2, 3, 32))
    yield from (("pairs", a, 60 + a, FULL) for a in (1, 2, 4, 8, 16))
    yield from (("broken", a, 70 + a, FULL) for a in (1, 2))
    yield from (("broken", 1, lane, FULL) for lane in (0, 9, 18, 27))
    yield from (("mixed", a, 80 + a, FULL) for a in (0b0011, 0b1100, 0b0101, 0b0001, 0b0111))
    for mask in MASKS:
        yield ("stride", 1, 0, mask)
        yield ("random", 64, mask % 97, mask)
    for mask in (0x55555555, 0x33333333, 0xFFFF, 0x0F0F0F0F, 0x5A3C96E1):
        yield ("stride", 0, 3, mask)
        yield ("stride", 2, 0, mask)
        yield ("stride", 32, 0, mask)
        yield ("pairs", 1, mask % 89, mask)


def _global_shapes() -> Iterator[tuple[str, int, int, int]]:
    """(family, a, b, mask) of the global-memory patterns, for each width and direction."""
    yield from (("stride", s, 0, FULL) for s in (0, 1, 2, 3, 4, 8, 9, 32))
    yield from (("stride", 1, b, FULL) for b in (1, 3, 5))
    yield from (("groups", g, 8, FULL) for g in (2, 8))
    yield from (("modulo", m, 8, FULL) for m in (4, 16))
    yield ("reverse", 1, 0, FULL)
    yield from (("random", 1 << n, n, FULL) for n in (5, 9))
    yield ("shuffle", 1, 7, FULL)
    yield ("halves", 0, 1, FULL)
    yield ("quarters", 0, 1, FULL)
    yield from (("stride", 1, 0, mask) for mask in (1, 0xFFFF, 0x55555555, 0x5A3C96E1))
    yield ("random", 128, 11, 0x5A3C96E1)


def patterns() -> tuple[Pattern, ...]:
    """Every pattern, in the order in which the child program launches them."""
    return tuple(
        Pattern(space, op, size, *shape)
        for space, shapes in (("shared", _shared_shapes), ("global", _global_shapes))
        for op in ("ld", "st")
        for size in SIZES
        for shape in shapes()
    )


def kernel_source(every: tuple[Pattern, ...]) -> str:
    """CUDA source of the twelve kernels; addresses come from constant memory, so that a kernel
    makes no other shared or global access (loads keep their result alive by a branch never taken).
    """
    offsets = [int(e) for p in every for e in elements(p.family, p.a, p.b)]
    if max(offsets) >= 1 << 16:
        raise ValueError("a pattern's offset does not fit 16 bits")
    body = [
        f"__constant__ unsigned short offsets[] = {{{','.join(map(str, offsets))}}};",
        f"__constant__ unsigned masks[] = {{{','.join(str(p.mask) for p in every)}}};",
    ]
    for size in SIZES:
        n = size // 4
        width = {1: "u32", 2: "v2.u32", 4: "v4.u32"}[n]
        names = [f"v{i}" for i in range(n)]
        declare = f"unsigned {', '.join(f'{v} = lane' for v in names)};"
        outs = ", ".join(f'"=r"({v})' for v in names)
        ins = ", ".join(f'"r"({v})' for v in names)
        alive = " ^ ".join(names)
        loaded, stored = _vector(range(n)), _vector(range(1, n + 1))
        for space, letter in (("shared", "r"), ("global", "l")):
            base = "(unsigned)__cvta_generic_to_shared(tile)" if space == "shared" else "data"
            at = f'"{letter}"(at)'
            load = f'asm volatile("ld.{space}.{width} {loaded}, [%{n}];" : {outs} : {at});'
            store = f'asm volatile("st.{space}.{width} [%0], {stored};" :: {at}, {ins});'
            keep = f"if (({alive}) == 0x9E3779B9u) *sink = lane;"
            for op, code, tail in (("ld", load, keep), ("st", store, "")):
                body.append(
                    f'extern "C" __global__ void {space}_{op}{size}'
                    "(int pattern, char* data, unsigned* sink) {\n"
                    "  extern __shared__ __align__(16) unsigned char tile[];\n"
                    "  unsigned lane = threadIdx.x;\n"
                    f"  {declare}\n"
                    f"  auto at = {base} + offsets[pattern * {LANES} + lane] * {size}u;\n"
                    "  if (masks[pattern] >> lane & 1) {\n"
                    f"    {code}\n  }}\n  {tail}\n}}"
                )
    return "\n".join(body)


def _vector(numbers: range) -> str:
    """Operand placeholders of an inline assembly vector: ``%0`` or ``{%0, %1}``."""
    listed = ", ".join(f"%{i}" for i in numbers)
    return listed if len(numbers) == 1 else f"{{{listed}}}"


def child() -> None:
    """Launch every pattern once, on one warp each. Runs under ncu."""
    import cupy

    every = patterns()
    module = cupy.RawModule(code=kernel_source(every), options=("--std=c++17",))
    span = max(int(p.addresses().max()) + p.size for p in every)
    data = cupy.zeros(span, dtype=cupy.uint8)
    sink = cupy.zeros(1, dtype=cupy.uint32)
    for i, pattern in enumerate(every):
        kernel = module.get_function(pattern.kernel)
        shared = 0
        if pattern.space == "shared":
            shared = int(pattern.addresses().max()) + pattern.size
            if shared > 48 << 10:
                raise ValueError(f"{pattern} does not fit 48 KiB of shared memory")
        kernel((1,), (LANES,), (np.int32(i), data, sink), shared_mem=shared)
    cupy.cuda.runtime.deviceSynchronize()


def take() -> dict[str, object]:
    """Profile the child and return what goes into the golden file."""
    from kernelbook.profiler import ncu_version, profile

    names = [form.format(op) for form in (WAVEFRONTS, REQUESTS, SECTORS) for op in ("ld", "st")]
    command = [sys.executable, str(Path(__file__).resolve()), "--child"]
    launches = profile(command, names, kernel_regex="^(shared|global)_(ld|st)[0-9]+$")
    every = patterns()
    if [x.kernel for x in launches] != [p.kernel for p in every]:
        raise SystemExit(f"ncu saw {len(launches)} launches, {len(every)} were made")
    rows = []
    for pattern, launch in zip(every, launches, strict=True):
        wanted = (WAVEFRONTS,) if pattern.space == "shared" else (REQUESTS, SECTORS)
        counts = [int(launch.values[form.format(pattern.op)]) for form in wanted]
        shape = [pattern.family, pattern.a, pattern.b, pattern.mask]
        rows.append([pattern.space, pattern.op, pattern.size, *shape, counts])
    return {"device": _device(), "ncu": ncu_version(), "patterns": rows}


def _device() -> dict[str, str]:
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    return {"name": name, "cuda": str(runtime.runtimeGetVersion()), "cupy": cupy.__version__}


def read(path: Path = GOLDEN) -> list[tuple[Pattern, list[int]]]:
    """The golden patterns with their counts: [wavefronts] or [requests, sectors]."""
    rows = json.loads(path.read_text(encoding="utf-8"))["patterns"]
    return [(Pattern(*row[:7]), row[7]) for row in rows]


def write(data: dict[str, object], path: Path = GOLDEN) -> None:
    """Write the golden file, one pattern a line."""
    rows = data["patterns"]
    assert isinstance(rows, list)
    head = json.dumps({k: v for k, v in data.items() if k != "patterns"})[:-1]
    body = ",\n".join(json.dumps(row) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head}, "patterns": [\n{body}\n]}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--child", action="store_true", help="launch the kernels (run by ncu)")
    parser.add_argument("--out", type=Path, default=GOLDEN, help="where to write")
    arguments = parser.parse_args()
    if arguments.child:
        child()
        return
    write(take(), arguments.out)
    print(f"{len(patterns())} patterns -> {arguments.out}")


if __name__ == "__main__":
    main()
