"""What a batch of blocks holds while it runs: registers, special registers, memory windows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PtxError, UnsupportedPtx
from .events import WARP, Batch, Event, Launch, Observer
from .lanes import Lanes
from .memory import Arena, Window
from .module import (
    TYPE_BYTES,
    Immediate,
    Instruction,
    Kernel,
    Label,
    Module,
    Negated,
    Opaque,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
)

Array = NDArray[Any]
# An operand's value: an array that lives as long as the machine, or a function that makes one.
Source = Array | Callable[[], Array]
SM_COUNT = 132  # %nsmid: as many as the reference device has


@dataclass(frozen=True)
class Setup:
    """Everything about a launch that does not depend on how blocks are batched."""

    module: Module
    launch: Launch
    arena: Arena
    symbols: dict[str, int]  # address of every variable and parameter in its own space
    param_bytes: bytes
    local_bytes: int
    dynamic_bytes: int
    observers: tuple[Observer, ...]


class State:
    """Registers and memory of ``blocks`` blocks that execute together."""

    def __init__(self, setup: Setup, blocks: int) -> None:
        self.setup = setup
        self.kernel: Kernel = setup.launch.kernel
        block = setup.launch.block
        self.blocks = blocks
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = -(-self.threads // WARP)
        self.lanes_per_block = self.warps_per_block * WARP
        self.size = blocks * self.lanes_per_block
        self.observers = setup.observers
        self.steps_done = 0
        self.polled = False  # a strong load or an atomic since the last backward branch
        self.progress = 0  # plain stores so far: a spinning warp that sees none is stuck
        self.changes = 0  # atomic updates that left another value than they found
        self.carry = np.zeros(self.size, bool)
        # A register's version changes with every write, so addresses derived from it can be kept.
        self.versions = [0] * len(self.kernel.registers)
        # What address operands resolved to last; kept here so that instructions share it.
        self.addresses: dict[tuple[int, str | None, int], Any] = {}
        self._registers: dict[int, Array] = {}
        self._specials: dict[str, Array] = {}
        within = np.arange(self.lanes_per_block)
        self.exists = np.tile(within < self.threads, blocks)
        self.block_of_lane = np.repeat(np.arange(blocks), self.lanes_per_block)
        self._fill_constant_specials(np.minimum(within, self.threads - 1))
        self._make_windows()
        self.batch = Batch(setup.launch, 0, blocks, self.warps_per_block, self.exists)

    def _fill_constant_specials(self, thread: Array) -> None:
        block, grid = self.setup.launch.block, self.setup.launch.grid
        lane = np.arange(self.lanes_per_block) % WARP
        one = np.uint64(1)
        equal = one << lane.astype(np.uint64)
        below = equal - one
        per_block = {
            "tid.x": thread % block[0],
            "tid.y": thread // block[0] % block[1],
            "tid.z": thread // (block[0] * block[1]),
            "laneid": lane,
            "warpid": np.arange(self.lanes_per_block) // WARP,
            "lanemask_eq": equal,
            "lanemask_lt": below,
            "lanemask_le": below | equal,
            "lanemask_gt": ~(below | equal),
            "lanemask_ge": ~below,
        }
        for name, values in per_block.items():
            self._specials[name] = np.tile(values.astype(np.uint32), self.blocks)
        for axis, name in enumerate("xyz"):
            self._specials[f"ntid.{name}"] = self._constant(block[axis], np.uint32)
            self._specials[f"nctaid.{name}"] = self._constant(grid[axis], np.uint32)
            self._specials[f"ctaid.{name}"] = np.zeros(self.size, np.uint32)
        self._specials["smid"] = np.zeros(self.size, np.uint32)
        for name, value in {
            "nwarpid": 64,
            "nsmid": SM_COUNT,
            "gridid": 1,
            "dynamic_smem_size": self.setup.dynamic_bytes,
            "total_smem_size": self.setup.launch.shared_bytes,
        }.items():
            self._specials[name] = self._constant(value, np.uint32)

    def _constant(self, value: int, dtype: Any) -> Array:
        return np.broadcast_to(np.array(value).astype(dtype), (self.size,))

    def _make_windows(self) -> None:
        setup = self.setup
        self.global_window = Window(setup.arena.data, None, setup.arena.size)
        shared = setup.launch.shared_bytes
        stride = -(-max(shared, 1) // 16) * 16
        self.shared_window = Window(
            np.zeros(self.blocks * stride, np.uint8), self.block_of_lane * stride, shared
        )
        stride = -(-max(setup.local_bytes, 1) // 16) * 16
        data = np.zeros(self.size * stride if setup.local_bytes else 16, np.uint8)
        self.local_window = Window(data, np.arange(self.size) * stride, setup.local_bytes)

    def begin(self, first_block: int) -> Batch:
        """Aim the state at ``blocks`` blocks from a linear block id on."""
        grid = self.setup.launch.grid
        linear = first_block + self.block_of_lane
        self._specials["ctaid.x"][:] = linear % grid[0]
        self._specials["ctaid.y"][:] = linear // grid[0] % grid[1]
        self._specials["ctaid.z"][:] = linear // (grid[0] * grid[1])
        self._specials["smid"][:] = linear % SM_COUNT
        self.shared_window.data[:] = 0
        self.versions[:] = [v + 1 for v in self.versions]
        self.batch = Batch(
            self.setup.launch, first_block, self.blocks, self.warps_per_block, self.exists
        )
        return self.batch

    # operands

    def storage(self, register: Register) -> Array:
        """The bits of a register, one unsigned element (bool for predicates) a lane."""
        found = self._registers.get(register.index)
        if found is None:
            size = TYPE_BYTES[register.type]
            if size > 8:
                raise UnsupportedPtx(f"128-bit register {register.name} is not supported")
            dtype = f"u{size}" if size else "?"
            found = np.zeros(self.size, dtype)
            self._registers[register.index] = found
        return found

    def source(self, operand: Operand, dtype: str, instruction: Instruction) -> Source:
        """The value of an operand as an array of ``dtype`` (or what computes it)."""
        if isinstance(operand, Register):
            return self._register_source(operand, dtype, instruction)
        if isinstance(operand, Negated):
            bits = self.storage(operand.operand)
            if bits.dtype.kind == "b" and dtype == "?":
                return lambda: ~bits
        if isinstance(operand, Immediate):
            return np.broadcast_to(_immediate(operand, dtype, instruction), (self.size,))
        if isinstance(operand, Symbol) and operand.name in self.setup.symbols:
            address = self.setup.symbols[operand.name] + operand.offset
            return np.broadcast_to(np.array(address, np.int64).astype(dtype), (self.size,))
        if isinstance(operand, Special):
            return self._special_source(operand.name, dtype)
        if isinstance(operand, Opaque):
            raise refuse(self.setup.module, instruction, f": it does not know {operand.text}")
        if isinstance(operand, Label):
            if operand.name in self.setup.module.functions:
                why = f": {operand.name} is a function, and device functions must be inlined"
                raise refuse(self.setup.module, instruction, why)
            raise bad_operand(instruction, f"label {operand.name} has no value here")
        raise bad_operand(instruction, f"operand {operand} has no value here")

    def _register_source(self, register: Register, dtype: str, instruction: Instruction) -> Array:
        bits = self.storage(register)
        wanted = np.dtype(dtype)
        if bits.dtype.kind == "b" or wanted.kind == "b":
            if bits.dtype != wanted:
                raise bad_operand(instruction, f"{register.name} is of type {register.type}")
            return bits
        if bits.dtype.itemsize < wanted.itemsize:
            raise bad_operand(
                instruction, f"{register.name} holds fewer than {8 * wanted.itemsize} bits"
            )
        # The low bytes of a wider register (PTX allows it for ld, st and cvt).
        return bits.view(wanted)[:: bits.dtype.itemsize // wanted.itemsize]

    def _special_source(self, name: str, dtype: str) -> Source:
        if name in self._specials:
            values = self._specials[name]
            if values.dtype == np.dtype(dtype):
                return values
            return lambda: values.astype(dtype)
        if name.startswith("globaltimer"):
            shift = 32 if name.endswith("_hi") else 0
            return lambda: self._constant(time.time_ns() >> shift & (1 << 63) - 1, dtype)
        shift = 32 if name == "clock_hi" else 0
        return lambda: self._constant(self.steps_done >> shift, dtype)

    def destination(self, operand: Operand, dtype: str, instruction: Instruction) -> Destination:
        """Where a result of ``dtype`` goes."""
        if isinstance(operand, Sink):
            return Destination(np.zeros(self.size, dtype), None, None)
        if not isinstance(operand, Register):
            raise bad_operand(instruction, f"cannot write to {operand}")
        bits = self.storage(operand)
        result = np.dtype(dtype)
        same_kind = (bits.dtype.kind == "b") == (result.kind == "b")
        if not same_kind or bits.dtype.itemsize < result.itemsize:
            raise bad_operand(instruction, f"{operand.name} cannot hold the result")
        if bits.dtype.itemsize == result.itemsize:
            return Destination(bits.view(result), operand.index, None)
        # A narrow result is extended by its sign, or by zeros.
        kind = "i" if result.kind == "i" else "u"
        unsigned = np.dtype(f"u{result.itemsize}")
        wide = bits.view(f"{kind}{bits.dtype.itemsize}")
        return Destination(wide, operand.index, unsigned if result.kind == "f" else result)

    # observers

    def emit(self, instruction: Instruction, reached: Lanes, active: Lanes, **more: Any) -> None:
        every = active.count == int(self.batch.blocks * self.threads)
        event = Event(
            batch=self.batch,
            instruction=instruction,
            reached=self.exists if every else reached.mask,
            active=self.exists if every else active.mask,
            **more,
        )
        for observer in self.observers:
            observer.on_event(event)

    def emit_idle(self, instruction: Instruction, reached: Lanes) -> None:
        """Lanes came here and the guard held for none of them."""
        nobody = np.zeros(self.size, bool)
        address = np.zeros(self.size, np.int64) if instruction.space else None
        event = Event(self.batch, instruction, reached.mask, nobody, address)
        for observer in self.observers:
            observer.on_event(event)

    # places

    def thread_name(self, lane: int) -> str:
        """``block (x, y, z), thread (x, y, z)`` of a lane of the batch."""
        names = []
        for prefix in ("ctaid", "tid"):
            values = (int(self._specials[f"{prefix}.{axis}"][lane]) for axis in "xyz")
            names.append(f"({', '.join(map(str, values))})")
        return f"block {names[0]}, thread {names[1]}"

    def error(self, instruction: Instruction, what: str) -> PtxError:
        """An error at an instruction: the source line if the compiler told it, and the PTX line."""
        return place(self.setup.module, instruction, what)


@dataclass(frozen=True)
class Destination:
    """``bits`` to assign to; ``narrow``: cast to this first when the register is wider."""

    bits: Array
    register: int | None
    narrow: np.dtype[Any] | None

    def fit(self, value: Array) -> Array:
        if self.narrow is None:
            return value
        if value.dtype.kind == "f":
            value = np.ascontiguousarray(value).view(self.narrow)
        return value.astype(self.narrow, copy=False).astype(self.bits.dtype)


def _immediate(operand: Immediate, dtype: str, instruction: Instruction) -> Array:
    wanted = np.dtype(dtype)
    if wanted.kind == "b":
        return np.array(operand.bits != 0)
    if wanted.kind == "f":
        if wanted.itemsize == 4 and operand.kind == "f32":
            return np.array(operand.bits, np.uint32).view(np.float32)
        return np.array(float(operand.value)).astype(wanted)
    if operand.kind == "f64" and wanted.itemsize < 8:
        raise bad_operand(instruction, f"a {operand.kind} literal does not fit")
    return np.array(operand.bits, np.uint64).astype(wanted)


def bad_operand(instruction: Instruction, what: str) -> PtxError:
    return PtxError(f"PTX line {instruction.ptx_line}: {instruction.text}: {what}")


def place(
    module: Module, instruction: Instruction, what: str, kind: type[PtxError] = PtxError
) -> PtxError:
    """An error that names source file and line when known, and the PTX line always."""
    sentence = f"{what} [{instruction.text}; PTX line {instruction.ptx_line}]"
    file = module.file_name(instruction.file)
    if file and instruction.line:
        return kind(sentence, file=file, line=instruction.line)
    return kind(sentence)


def refuse(module: Module, instruction: Instruction, why: str = "") -> PtxError:
    """The refusal of an instruction by name."""
    what = f"the emulator does not execute {instruction.name}{why}"
    return place(module, instruction, what, UnsupportedPtx)
