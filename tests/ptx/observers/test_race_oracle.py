"""The race check against an oracle: random programs, judged pair by pair with a clock per lane."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from kernelbook.ptx.events import Batch, Event, Launch
from kernelbook.ptx.module import Immediate, Instruction, Kernel, Register
from kernelbook.ptx.observers import SharedRaceObserver

WARPS, LANES = 2, 64
ALIVE = np.arange(LANES) < 56  # the last warp is not full
OPCODES = {"read": "ld", "write": "st", "atomic": "atom"}


@dataclass
class Oracle:
    """Every access with its lane's clock; a lane's knowledge is a clock for each lane."""

    clocks: np.ndarray = field(default_factory=lambda: np.eye(LANES, dtype=np.int64))
    accesses: list[tuple[int, int, str, int]] = field(default_factory=list)
    raced: bool = False

    def races(self, lanes: np.ndarray, words: np.ndarray, kind: str) -> bool:
        """Whether accesses to these words would race with earlier ones or with each other."""
        active = np.flatnonzero(lanes).tolist()
        if kind == "write" and len({int(words[lane]) for lane in active}) < len(active):
            return True
        for lane in active:
            for other, there, how, clock in self.accesses:
                if there != words[lane] or other == lane or kind == how != "write":
                    continue
                if self.clocks[lane, other] < clock:
                    return True
        return False

    def access(self, lanes: np.ndarray, words: np.ndarray, kind: str) -> None:
        self.raced |= self.races(lanes, words, kind)
        for lane in np.flatnonzero(lanes).tolist():
            self.accesses.append((lane, int(words[lane]), kind, int(self.clocks[lane, lane])))

    def meet(self, lanes: np.ndarray, arrived: np.ndarray | None = None) -> None:
        """``lanes`` wait for each other; ``arrived`` (lanes, lanes) are clocks brought along."""
        who = np.flatnonzero(lanes)
        joined = self.clocks[who].max(axis=0)
        if arrived is not None:
            joined = np.maximum(joined, arrived.max(axis=0))
        self.clocks[who] = joined
        self.clocks[who, who] += 1


class Driver:
    """Tells the observer and the oracle the same story, for one block of ``blocks``."""

    def __init__(self, generator: np.random.Generator, blocks: int, partial: bool) -> None:
        self.generator = generator
        self.partial = partial
        self.instructions: list[Instruction] = []
        mask: Immediate | Register = Immediate(-1, 2**64 - 1, "int")
        if partial:
            mask = Register(0, "%r1", "b32")
        self.sync = self._instruction("bar", ("warp", "sync"), (mask,))
        self.bar = self._instruction("bar", ("sync",), ())
        self.arrive = self._instruction("bar", ("arrive",), ())
        for access in OPCODES:
            for _ in range(3):
                self._instruction(OPCODES[access], ("shared", "u32"), (), "shared")
        kernel = Kernel("k", (), (), (), tuple(self.instructions), ())
        launch = Launch(kernel, (blocks, 1, 1), (56, 1, 1), 64)
        self.batch = Batch(launch, 0, blocks, WARPS, np.tile(ALIVE, blocks))
        self.oracles = [Oracle() for _ in range(blocks)]
        self.observer = SharedRaceObserver()
        self.observer.begin_batch(self.batch)

    def _instruction(
        self, opcode: str, modifiers: tuple[str, ...], operands: tuple[object, ...], space: str = ""
    ) -> Instruction:
        pc = len(self.instructions)
        made = Instruction(
            pc, opcode, modifiers, operands, opcode, 1, space=space or None, line=pc + 1
        )  # type: ignore[arg-type]
        self.instructions.append(made)
        return made

    def _event(self, instruction: Instruction, active: np.ndarray, **more: object) -> None:
        flat = active.reshape(-1)
        self.observer.on_event(Event(self.batch, instruction, flat, flat, **more))  # type: ignore[arg-type]

    def _some_lanes(self) -> np.ndarray:
        """(blocks, lanes): few or all lanes, alike or different from block to block."""
        blocks = len(self.oracles)
        rate = self.generator.choice([0.03, 0.3, 1.0])
        alike = self.generator.random((1, LANES)) < rate
        mixed = self.generator.random((blocks, LANES)) < rate
        return (
            mixed if self.generator.random() < 0.3 else np.repeat(alike, blocks, axis=0)
        ) & ALIVE

    def access(self) -> None:
        kind = str(self.generator.choice(["read", "read", "write", "atomic"]))
        fitting = [i for i in self.instructions if i.opcode == OPCODES[kind]]
        instruction = fitting[self.generator.integers(len(fitting))]
        active = self._some_lanes()
        if kind == "write" and self.generator.random() < 0.8:  # else every program races at once
            active &= np.cumsum(active, axis=1) == 1
        words = self.generator.integers(0, 3, (1, LANES)).repeat(len(self.oracles), axis=0)
        told = zip(self.oracles, active, words, strict=True)
        if any(o.races(lanes, where, kind) for o, lanes, where in told) and (
            self.generator.random() < 0.95
        ):
            return  # mostly keep the story clean, so that it gets long
        address = (words * 4).reshape(-1).astype(np.int64)
        self._event(instruction, active, address=address, size=4, space="shared", access=kind)
        for oracle, lanes, where in zip(self.oracles, active, words, strict=True):
            oracle.access(lanes, where, kind)

    def block_barrier(self) -> None:
        blocks = len(self.oracles)
        self._event(self.bar, np.tile(ALIVE, (blocks, 1)), barrier=0)
        self.observer.on_barrier(self.batch, np.arange(blocks), 0)
        for oracle in self.oracles:
            oracle.meet(ALIVE)

    def warp_barrier(self) -> None:
        warp = int(self.generator.integers(WARPS))
        lanes = ALIVE & (np.arange(LANES) // 32 == warp)
        masks = np.full(LANES, 0xFFFFFFFF, dtype=np.uint32)
        groups = [lanes]
        if self.partial:  # halves, each by itself
            half = np.arange(LANES) % 32 < 16
            masks = np.where(half, 0xFFFF, 0xFFFF0000).astype(np.uint32)
            groups = [lanes & half, lanes & ~half]
        blocks = len(self.oracles)
        members = np.tile(masks, blocks)
        self._event(self.sync, np.tile(lanes, (blocks, 1)), members=members)
        for oracle in self.oracles:
            for group in groups:
                if group.any():
                    oracle.meet(group)

    def named_barrier(self) -> None:
        """One warp arrives, something happens, the other comes to wait."""
        blocks = len(self.oracles)
        first = np.arange(LANES) // 32 == int(self.generator.integers(WARPS))
        arriving, waiting = ALIVE & first, ALIVE & ~first
        self._event(self.arrive, np.tile(arriving, (blocks, 1)), barrier=1)
        brought = []
        for oracle in self.oracles:
            brought.append(oracle.clocks[arriving].copy())
            who = np.flatnonzero(arriving)
            oracle.clocks[who, who] += 1
        if self.generator.random() < 0.6:
            self.access()
        self._event(self.bar, np.tile(waiting, (blocks, 1)), barrier=1)
        self.observer.on_barrier(self.batch, np.arange(blocks), 1)
        for oracle, clocks in zip(self.oracles, brought, strict=True):
            oracle.meet(waiting, clocks)

    def step(self) -> None:
        kind = self.generator.choice(["access"] * 6 + ["block", "warp", "warp", "named"])
        {
            "access": self.access,
            "block": self.block_barrier,
            "warp": self.warp_barrier,
            "named": self.named_barrier,
        }[str(kind)]()


@pytest.mark.parametrize("partial", [False, True], ids=["whole warps", "half warps"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_the_check_and_the_oracle_agree_at_every_step(blocks: int, partial: bool) -> None:
    racy = clean = 0
    for seed in range(50):
        driver = Driver(np.random.default_rng([seed, blocks, partial]), blocks, partial)
        for _ in range(40):
            driver.step()
            expected = any(oracle.raced for oracle in driver.oracles)
            found = [f for f in driver.observer.findings({}) if f.kind == "race"]
            assert bool(found) == expected, f"seed {seed}: {[str(f) for f in found]}"
            if expected:
                break
        racy += expected
        clean += not expected
    assert racy > 10
    assert clean > 10
