"""The last kernel of chapter 04 in the configuration that the tuning table gives a size.

There are two sources of it: `fast_gemm`, and `parts_gemm` for configurations that say ``PARTS``.
Both compute C (m x k) = A (m x n) B (n x k), and the table names what is fastest at a size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

from kernelbook.experiment import Dim, Kernel, Shape, Target, Text, ceil_div

ARGS = ("a", "b", "c", "m", "n", "k")
TABLE_FILE = Path(__file__).resolve().with_name("tuning.json")
TABLE: Mapping[str, Any] = json.loads(TABLE_FILE.read_text(encoding="utf-8"))
CONFIGURATIONS: Mapping[str, Mapping[str, int]] = TABLE["configurations"]


def configuration_of(shape: Shape) -> str:
    """The configuration that the table gives a shape, or else the most similar shape in it."""
    choices: Mapping[str, str] = TABLE["choices"]
    wanted = [shape[d] for d in "mnk"]

    def distance(key: str) -> float:
        return sum(abs(log2(int(a) / b)) for a, b in zip(key.split("x"), wanted, strict=True))

    return choices[min(choices, key=distance)]


def threads_of(c: Mapping[str, int]) -> int:
    return c["BM"] // c["WM"] * (c["BN"] // c["WN"]) * c["SLICES"] * 32


def shared_bytes(c: Mapping[str, int]) -> int:
    """Dynamic shared memory: the stages, or the way out where it needs more."""
    depth = c["BK"] * c["SLICES"]
    stages = c["STAGES"] * depth * (c["BM"] + 4 + c["BN"])
    if "PARTS" in c:
        return 4 * max(stages, c["SLICES"] * c["BM"] * (c["BN"] + 1))
    return 4 * max(stages, c["BM"] * (c["BN"] + (4 if c["SPLIT_K"] > 1 else 1)))


def tiles_and_steps(c: Mapping[str, int], s: Shape) -> tuple[int, int]:
    """Tiles of C, and how many tiles of A and B each of them takes."""
    tiles = ceil_div(s["m"], c["BM"]) * ceil_div(s["k"], c["BN"])
    return tiles, ceil_div(s["n"], c["BK"] * c["SLICES"])


LEAST_TILES = 4  # along the reduction: a range of the work is not worth its start below that


def fast(configuration: str, name: str, title: Text, **changes: int) -> Kernel:
    """The last kernel in one configuration of the table, with macros changed for an ablation."""
    c = {**CONFIGURATIONS[configuration], **changes}
    in_parts = "PARTS" in c
    source = "parts_gemm" if in_parts else "fast_gemm"
    clusters = not in_parts and c["SPLIT_K"] > 1

    def grid(s: Shape, t: Target) -> Dim:
        return _parts(c, s, t) if in_parts else _ranges(c, s, t)

    return Kernel(
        name=name,
        source=f"{source}.cu",
        entry=source,
        args=ARGS,
        grid=grid,
        block=lambda s, t: (threads_of(c), 1, 1),
        title=title,
        macros={**c, **_rooms(c)} if in_parts else c,
        dynamic_shared=lambda s: shared_bytes(c),
        min_cc=(9, 0) if clusters else (8, 0),
        gpu_only="adds up through distributed shared memory" if clusters else "",
    )


def _ranges(c: Mapping[str, int], s: Shape, t: Target) -> Dim:
    """The grid of `fast_gemm`."""
    tiles, steps = tiles_and_steps(c, s)
    if c["STREAM"]:  # as many ranges of the work as blocks fit on the card
        fit = t.sms * c["MIN_BLOCKS"] // c["SPLIT_K"]
        return max(1, min(fit, tiles * steps // LEAST_TILES)), 1, c["SPLIT_K"]
    return tiles, 1, c["SPLIT_K"]


# ---- parts that add up at once ----------------------------------------------------------------

MOST_ROUNDS = 3  # parts of a tile start in up to so many; the last of them adds up
ROOMS_PER_SM = 2  # for parts, as multiples of the blocks that an SM holds
SMS = 144  # as many as any Hopper card has: rooms are in the kernel's own memory

# What `rounds_of` weighs, fitted to an H200: a wrong value costs time and nothing else.
FMA_PER_US = 0.2e6  # of an SM in the main loop
START_US = 3.0  # to the first multiply-add, and the way out
JOIN_US = 2.0  # until the sums of others are there
READ_US = 0.09  # for each part whose sums are read
BYTES_PER_US = 3e6  # of sums on their way through the L2


def _parts(c: Mapping[str, int], s: Shape, t: Target) -> Dim:
    """The grid of `parts_gemm`."""
    adders, rounds = rounds_of(c, s, t) if c["PARTS"] else (1, 1)
    return tiles_and_steps(c, s)[0], adders, rounds


def _rooms(c: Mapping[str, int]) -> Mapping[str, int]:
    return {"MAX_PARTS": ROOMS_PER_SM * SMS * c["MIN_BLOCKS"]} if c["PARTS"] else {}


def blocks_per_sm(c: Mapping[str, int], t: Target) -> int:
    """Blocks that surely fit on an SM at once; 0 where not even one does.

    Registers allow ``MIN_BLOCKS``; cards differ in what their shared memory and threads allow.
    """
    by_shared = t.shared_bytes_per_sm // (shared_bytes(c) + t.reserved_shared_bytes_per_block)
    return min(c["MIN_BLOCKS"], by_shared, t.max_threads_per_sm // threads_of(c))


def rounds_of(c: Mapping[str, int], s: Shape, t: Target) -> tuple[int, int]:
    """(parts of a tile that add up, rounds of as many parts) for the shortest estimated time.

    The parts that add up, those of all tiles together, fit on the card at once: they wait for one
    another. Where not even one block fits on an SM, a launch is refused, and no part waits.
    """
    tiles, steps = tiles_and_steps(c, s)
    sms, blocks = min(t.sms, SMS), blocks_per_sm(c, t)
    if blocks == 0:
        return 1, 1
    resident = sms * blocks
    fma_of_step = c["BM"] * c["BN"] * c["BK"] * c["SLICES"]

    def time_us(choice: tuple[int, int]) -> float:
        parts = choice[0] * choice[1]
        waves, rest = divmod(tiles * parts, resident)
        # A last wave of few blocks is short, but not in proportion: fewer warps hide less.
        load = float(waves * blocks)
        load += (ceil_div(rest, sms) + blocks) / 2 if rest else 0.0
        main = ceil_div(steps, parts) * fma_of_step * load / FMA_PER_US
        sums = tiles * parts * c["BM"] * c["BN"] * 4 * 2 / BYTES_PER_US
        join = JOIN_US + READ_US * parts + sums if parts > 1 else 0.0
        return main + ceil_div(tiles * parts, resident) * START_US + join

    choices = [(1, 1)]
    for rounds in range(1, MOST_ROUNDS + 1):
        for adders in range(1, resident // tiles + 1):
            parts = adders * rounds
            if parts * LEAST_TILES <= steps and parts * tiles <= ROOMS_PER_SM * resident:
                choices.append((adders, rounds))
    return min(choices, key=time_us)


# ---- by size ----------------------------------------------------------------------------------


def fast_for(shape: Shape) -> Kernel:
    chosen = configuration_of(shape)
    return fast(chosen, "fast_gemm", Text(f"最终版（{chosen}）", f"final kernel ({chosen})"))


def ablations(shape: Shape) -> tuple[Kernel, ...]:
    """The last kernel with one thing taken back at a time."""
    chosen = configuration_of(shape)
    c = CONFIGURATIONS[chosen]
    if "PARTS" in c or c["SLICES"] > 1 or c["SPLIT_K"] > 1:
        return ()
    return (
        fast(chosen, "fast_gemm_whole_tiles", Text("… 按整块分配", "… whole tiles"), STREAM=0),
        fast(chosen, "fast_gemm_direct_stores", Text("… 直接写回", "… direct stores"), EPILOGUE=0),
        fast(chosen, "fast_gemm_row_order", Text("… 按行乘加", "… in row order"), ORDER=0),
        fast(chosen, "fast_gemm_no_bands", Text("… 不分带", "… no bands"), GROUP=1),
    )
