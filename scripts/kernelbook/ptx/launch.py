"""Launching: place memory, convert arguments, run the batches, copy results back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PtxError
from .arguments import Encoder, Region, check_array, collect_arrays, label_of, regions
from .events import WARP, Allocation, Launch, Observer
from .machine import Budget, Machine
from .memory import Arena
from .module import TYPE_BYTES, Address, Kernel, Module, Variable
from .observers import default_observers
from .parse import parse
from .result import Run
from .state import Setup

Array = NDArray[Any]
Shape = int | Sequence[int]

DEFAULT_BUDGET = 20_000_000_000
DEFAULT_BATCH_LANES = 1 << 15
MAX_SHARED = 227 * 1024  # bytes a block may have on compute capability 9.0
_MAX_THREADS = 1024
# Registers and windows of a batch stay within this, whatever the kernel unrolls to.
_BATCH_BYTES = 192 << 20


def run(
    ptx: str | bytes | Module,
    kernel: str,
    grid: Shape,
    block: Shape,
    args: Sequence[Any],
    *,
    shared: int = 0,
    observers: Sequence[Observer] | None = None,
    budget: int = DEFAULT_BUDGET,
    batch_lanes: int = DEFAULT_BATCH_LANES,
    names: Sequence[str] = (),
    variables: Mapping[str, Array] | None = None,
) -> Run:
    """Execute one kernel on the CPU and write what it stored back into the argument arrays.

    Parameters
    ----------
    ptx : PTX text, or a module already parsed.
    grid, block : an int or up to three ints (x, y, z).
    args : one a parameter: NumPy arrays (C-contiguous; changed in place), ``Pointer``, numbers,
        ``Struct`` or bytes for structs, None for a null pointer. A store to a read-only array is
        refused.
    shared : bytes of dynamic shared memory.
    observers : told of every instruction; by default all of them, which count and check. ``()``
        executes without.
    budget : lane-instructions after which an endless loop is given up; a step costs at least 1,024.
    batch_lanes : lanes to execute together, at most (whole blocks, at least one).
    names : what errors call the arguments; "argument 0" and so on by default.
    variables : initial values of ``__constant__`` or ``__device__`` variables by name; changed in
        place like arrays.

    Raises
    ------
    PtxError : malformed PTX, arguments that do not fit, out-of-bounds or misaligned accesses,
        deadlock, budget exhausted.
    UnsupportedPtx : the kernel has an instruction the emulator does not execute.
    """
    module = ptx if isinstance(ptx, Module) else parse(ptx)
    found = module.kernel(kernel)
    if found is None:
        known = ", ".join(k.name for k in module.kernels) or "none"
        raise PtxError(f"no kernel {kernel!r} in the PTX; it has: {known}")
    shape = _shape(grid, "grid"), _shape(block, "block")
    launch = _Launcher(module, found, *shape, _whole(shared, "shared"))
    budget = _whole(budget, "budget")
    launch.check(budget)
    launch.place(args, names, dict(variables or {}))
    watching = default_observers() if observers is None else tuple(observers)
    return launch.run(watching, budget, _whole(batch_lanes, "batch_lanes"))


def _shape(value: Shape, what: str) -> tuple[int, int, int]:
    try:
        numbers = [int(value)] if isinstance(value, int | np.integer) else [int(v) for v in value]
    except (TypeError, ValueError):
        numbers = []
    if not 1 <= len(numbers) <= 3 or any(n < 1 for n in numbers):
        raise PtxError(f"{what} must be one to three positive integers, not {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _whole(value: Any, what: str) -> int:
    if isinstance(value, int | np.integer) and value >= 0:
        return int(value)
    raise PtxError(f"{what} must be a whole number that is not negative, not {value!r}")


class _Launcher:
    def __init__(
        self,
        module: Module,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic: int,
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.dynamic = dynamic
        self.threads = block[0] * block[1] * block[2]
        self.blocks = grid[0] * grid[1] * grid[2]
        self.symbols: dict[str, int] = {}
        self.shared_variables: list[Allocation] = []
        self.shared_bytes = self._layout_shared()
        self.local_bytes = self._layout_local()

    # limits

    def check(self, budget: int) -> None:
        """Refuse launches that hardware refuses, and those too large to emulate."""
        kernel = self.kernel
        where = f"{kernel.name}<<<{self.grid}, {self.block}>>>"
        if self.threads > _MAX_THREADS or self.block[2] > 64:
            raise PtxError(f"{where}: a block has at most {_MAX_THREADS} threads, 64 in z")
        if self.grid[0] >= 1 << 31 or max(self.grid[1:]) > 65535:
            raise PtxError(f"{where}: the grid is larger than 2**31-1 x 65535 x 65535")
        if kernel.required_threads and kernel.required_threads != self.block:
            raise PtxError(f"{where}: the kernel requires blocks of {kernel.required_threads}")
        limit = kernel.max_threads
        if limit and self.threads > limit[0] * limit[1] * limit[2]:
            raise PtxError(f"{where}: __launch_bounds__ allows {limit[0] * limit[1] * limit[2]}")
        if self.shared_bytes > MAX_SHARED:
            raise PtxError(
                f"{where}: {self.shared_bytes} bytes of shared memory a block, "
                f"the limit is {MAX_SHARED}"
            )
        estimate = self.blocks * self.threads * len(kernel.instructions)
        if estimate > budget:
            raise PtxError(
                f"{where}: the grid is too large to emulate: about {estimate:,} lane-instructions, "
                f"the budget is {budget:,}",
                hint="use a smaller problem, or raise budget=",
            )

    # memory

    def _shared_sources(self) -> list[Variable]:
        used = {v.name: v for v in self.module.variables if v.space == "shared"}
        used.update({v.name: v for v in self.kernel.variables if v.space == "shared"})
        return list(used.values())

    def _layout_shared(self) -> int:
        position = 0
        dynamic = []
        for variable in self._shared_sources():
            if variable.extern or variable.size == 0:
                dynamic.append(variable)
                continue
            position = -(-position // variable.align) * variable.align
            self.symbols[variable.name] = position
            self.shared_variables.append(_allocation(variable, position, variable.size))
            position += variable.size
        # All extern arrays name the same bytes, after the static ones.
        position = -(-position // 16) * 16 if dynamic or self.dynamic else position
        for variable in dynamic:
            position = -(-position // variable.align) * variable.align
        for variable in dynamic:
            self.symbols[variable.name] = position
        if dynamic and self.dynamic:
            self.shared_variables.append(_allocation(dynamic[0], position, self.dynamic))
        return position + self.dynamic

    def _layout_local(self) -> int:
        position = 0
        for variable in self.kernel.variables:
            if variable.space in ("local", "param"):
                position = -(-position // variable.align) * variable.align
                self.symbols[variable.name] = position
                position += variable.size
        return position

    def place(self, args: Sequence[Any], names: Sequence[str], given: dict[str, Array]) -> None:
        """Build the arena: parameters, module variables, argument arrays."""
        kernel = self.kernel
        if len(args) != len(kernel.params):
            raise PtxError(f"{kernel.name} takes {len(kernel.params)} argument(s), got {len(args)}")
        labels = [label_of(p, i, kernel) for i, p in enumerate(kernel.params)]
        shown = [names[i] if i < len(names) else f"argument {i}" for i in range(len(args))]
        arrays: list[tuple[str, Array]] = []
        for value, name, label in zip(args, shown, labels, strict=True):
            arrays += collect_arrays(value, name, label)
        self.arrays = arrays
        placed_regions = regions(arrays)
        variables = [v for v in self.module.variables if v.space in ("global", "const")]
        self._arena(placed_regions, variables)
        self._initialise(variables, given)
        bases = [self.arena.allocations[self.first_array + i] for i in range(len(placed_regions))]
        self.placed = [(r, a.base) for r, a in zip(placed_regions, bases, strict=True)]
        encoder = Encoder(self.placed)
        raw = bytearray(kernel.param_bytes)
        for value, param, label in zip(args, kernel.params, labels, strict=True):
            raw[param.offset : param.offset + param.size] = encoder.encode(value, param, label)
        self.param_bytes = bytes(raw)
        self.arena.bytes_of(0)[: len(raw)] = np.frombuffer(self.param_bytes, np.uint8)
        for _, array in arrays:
            at = encoder.address(array)
            self.arena.data[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)

    def _arena(self, placed: list[Region], variables: list[Variable]) -> None:
        requests = [("the parameters", max(self.kernel.param_bytes, 1), 0, 1, False)]
        for variable in variables:
            element = TYPE_BYTES[variable.type]
            size = max(variable.size, 1)
            requests.append((variable.name, size, 0, element, variable.space == "global"))
        self.first_array = len(requests)
        for region in placed:
            size = region.end - region.start
            requests.append(
                (region.name, size, region.residue, region.element_bytes, region.writable)
            )
        self.arena = Arena(requests)
        base = self.arena.allocations[0].base
        self.symbols[""] = base
        for param in self.kernel.params:
            self.symbols[param.name] = base + param.offset
        for at, variable in enumerate(variables, 1):
            self.symbols[variable.name] = self.arena.allocations[at].base

    def _initialise(self, variables: list[Variable], given: dict[str, Array]) -> None:
        self.given: list[tuple[Array, Array]] = []
        for at, variable in enumerate(variables, 1):
            cells = self.arena.bytes_of(at)
            cells[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
            for offset, symbol, addend, _ in variable.relocations:
                if symbol not in self.symbols:
                    raise PtxError(
                        f"PTX line {variable.ptx_line}: {variable.name} holds the address of "
                        f"{symbol}, which is not a variable"
                    )
                address = (self.symbols[symbol] + addend).to_bytes(8, "little")
                size = min(8, TYPE_BYTES[variable.type]) if variable.type != "b8" else 8
                cells[offset : offset + size] = np.frombuffer(address[:size], np.uint8)
            if variable.name in given:
                array = check_array(given.pop(variable.name), f"variable {variable.name}")
                if array.nbytes > variable.size:
                    raise PtxError(
                        f"variable {variable.name} has {variable.size} bytes, got {array.nbytes}"
                    )
                cells[: array.nbytes] = array.reshape(-1).view(np.uint8)
                if variable.space == "global":
                    self.given.append((array, cells))
        if given:
            raise PtxError(f"the PTX has no variable {next(iter(given))!r}")

    # running

    def run(self, observers: tuple[Observer, ...], budget: int, batch_lanes: int) -> Run:
        setup = self._setup(observers)
        per_batch = self._blocks_per_batch(batch_lanes)
        purse = Budget(budget)
        batches = steps = 0
        machine: Machine | None = None
        with np.errstate(all="ignore"):
            try:
                for first in range(0, self.blocks, per_batch):
                    count = min(per_batch, self.blocks - first)
                    if machine is None or machine.state.blocks != count:
                        machine = Machine(setup, count, purse)
                    before = machine.state.steps_done
                    machine.run(first)
                    steps += machine.state.steps_done - before
                    batches += 1
            finally:
                self._copy_back()
        return Run(
            module=self.module,
            kernel=self.kernel,
            grid=self.grid,
            block=self.block,
            batches=batches,
            steps=steps,
            lane_instructions=budget - purse.left,
            observers=observers,
        )

    def _setup(self, observers: tuple[Observer, ...]) -> Setup:
        launch = Launch(
            kernel=self.kernel,
            grid=self.grid,
            block=self.block,
            shared_bytes=self.shared_bytes,
            arrays=tuple(self.arena.allocations[1:]),
            shared=tuple(self.shared_variables),
        )
        return Setup(
            module=self.module,
            launch=launch,
            arena=self.arena,
            symbols=self.symbols,
            param_bytes=self.param_bytes,
            local_bytes=self.local_bytes,
            dynamic_bytes=self.dynamic,
            observers=observers,
        )

    def _blocks_per_batch(self, batch_lanes: int) -> int:
        lanes = -(-self.threads // WARP) * WARP
        registers = sum(max(TYPE_BYTES[r.type], 1) for r in self.kernel.registers)
        # Resolved addresses are kept for every register that serves as one: three int64 each.
        bases = {
            (operand.base, instruction.space)
            for instruction in self.kernel.instructions
            for operand in instruction.operands
            if isinstance(operand, Address)
        }
        lane_bytes = registers + self.local_bytes + 24 * len(bases) + 160
        block_bytes = lanes * lane_bytes + self.shared_bytes
        fitting = min(batch_lanes // lanes, _BATCH_BYTES // block_bytes)
        return max(1, min(fitting, self.blocks))

    def _copy_back(self) -> None:
        encoder = Encoder(self.placed)
        for _, array in self.arrays:
            if array.flags.writeable:
                at = encoder.address(array)
                array.reshape(-1).view(np.uint8)[:] = self.arena.data[at : at + array.nbytes]
        for array, cells in self.given:
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = cells[: array.nbytes]


def _allocation(variable: Variable, base: int, size: int) -> Allocation:
    return Allocation(variable.name, base, size, TYPE_BYTES[variable.type])
