"""Bank conflicts of every degree."""

from __future__ import annotations

from typing import Any

from kernelbook.experiment import Arrays, Buffer, Experiment, Shape, Sweep, Text, Tolerance

from .common import elementwise

WAYS = Sweep(
    "bank_conflicts",
    Text("共享内存 n 路冲突", "Bank conflicts of n ways"),
    Text("每次读的字节数不变", "the same number of bytes a load"),
)


def conflict_reference(xp: Any, inputs: Arrays, shape: Shape) -> Arrays:
    tile = inputs["x"].astype(xp.float64).reshape(-1, 32)
    lane = xp.arange(32)
    row, column = lane % shape["ways"], lane // shape["ways"]
    total = xp.zeros(32, dtype=xp.float64)
    for step in range(shape["rounds"]):
        for down in range(32):
            total = total + tile[row + step % 32 + down, column]
    return {"sums": xp.resize(total, shape["n"])}


def conflict(ways: int) -> Experiment:
    return Experiment(
        name=f"bank_conflict_{ways}",
        title=Text(f"{ways} 路", f"{ways}-way"),
        shape={"n": 2**20, "ways": ways, "rounds": 8},
        emulator_shape={"n": 512, "ways": ways, "rounds": 2},
        ragged=({"n": 1, "ways": ways, "rounds": 1}, {"n": 300, "ways": ways, "rounds": 3}),
        buffers=(
            Buffer("x", "in", lambda s: (94 * 32,)),
            Buffer("sums", "out", lambda s: (s["n"],)),
        ),
        reference=conflict_reference,
        flops=lambda s: s["n"] * s["rounds"] * 32,
        # Every addition rounds by up to half an ulp of a sum of less than rounds * 32.
        tolerance=Tolerance(
            relative=0.0, absolute=2.0**-24, scale=lambda s: (32.0 * s["rounds"]) ** 2
        ),
        variants=(
            elementwise(
                "bank_conflicts", "bank_conflicts.cu", ("x", "sums", "n", "ways", "rounds"),
                Text("读共享内存", "loads from shared memory"),
            ),
        ),
        sparse=True,
        sweep=WAYS,
    )  # fmt: skip
