"""Where an access goes: addresses resolved to elements of a window, checked once per address set.

A base register that has not been written since keeps its resolved addresses, so that the many
loads of an unrolled loop that differ in the immediate offset only share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lanes import Lanes
from .memory import LOCAL_WINDOW, SHARED_WINDOW, Window
from .module import Address, Instruction, Operand, Register, Symbol
from .observers.findings import source_name
from .state import State, bad_operand

Array = NDArray[Any]


class Resolved:
    """The addresses of one set of lanes in one window, without the immediate offset."""

    __slots__ = (
        "_elements",
        "absolute",
        "address",
        "both",
        "either",
        "high",
        "lanes",
        "low",
    )

    def __init__(self, address: Array, window: Window, lanes: Lanes) -> None:
        """``address``: one int64 an active lane (not a lane of the batch, unless all are)."""
        self.address = address
        self.lanes = lanes
        self.low = int(address.min())
        self.high = int(address.max())
        self.either = int(np.bitwise_or.reduce(address))
        self.both = int(np.bitwise_and.reduce(address))
        if window.base is None:
            self.absolute = address
        else:
            self.absolute = address + (window.base if lanes.all else window.base[lanes.index])
        self._elements: dict[int, Array] = {}

    def elements(self, shift: int, offset: int) -> Array:
        """Element indices: of the base alone when the offset is a multiple of the element size."""
        key = shift if offset == 0 else -1
        found = self._elements.get(key) if offset == 0 else None
        if found is None:
            found = (self.absolute + offset if offset else self.absolute) >> shift
            if offset == 0:
                self._elements[key] = found
        return found


Place = tuple[Window, str, Resolved]


class Kept:
    """The last resolution of a base register, valid while register and lanes are the same."""

    __slots__ = ("found", "lanes", "version")

    def __init__(self) -> None:
        self.version = -1
        self.lanes: Lanes | None = None
        self.found: list[Place] = []


class Resolver:
    """Resolves one address operand of one instruction."""

    def __init__(self, state: State, instruction: Instruction, operand: Operand, space: str | None):
        if not isinstance(operand, Address):
            raise bad_operand(instruction, f"{operand} is not an address")
        self.state = state
        self.instruction = instruction
        self.space = space
        self.offset = operand.offset
        self.register = -1
        self._bits: Array
        base = operand.base
        if isinstance(base, Register):
            bits = state.storage(base)
            if bits.dtype not in (np.dtype("u4"), np.dtype("u8")):
                raise bad_operand(instruction, f"{base.name} cannot hold an address")
            self._bits = bits
            self.register = base.index
        else:
            value = 0
            if isinstance(base, Symbol):
                if base.name not in state.setup.symbols:
                    raise bad_operand(instruction, f"{base.name} is not in memory")
                value = state.setup.symbols[base.name]
            self._bits = np.broadcast_to(np.array(value, np.uint64), (state.size,))
        # Instructions with one base register share what was resolved; a generic access also looks
        # at its offset to tell the spaces apart.
        key = (self.register, space, self.offset if space is None else 0)
        if self.register < 0:
            key = (-2 - instruction.pc, space, 0)
        self._kept: Kept = state.addresses.setdefault(key, Kept())

    def resolve(self, lanes: Lanes) -> list[Place]:
        """Windows the lanes touch with the resolved addresses; one unless the access is generic."""
        version = self.state.versions[self.register] if self.register >= 0 else 0
        kept = self._kept
        if kept.version == version and kept.lanes is lanes:
            return kept.found
        address = self._bits if lanes.all else self._bits[lanes.index]
        address = address.view(np.int64) if address.dtype.itemsize == 8 else address.astype("i8")
        if self.space is not None:
            window = self._window(self.space)
            found = [(window, self.space, Resolved(address, window, lanes))]
        else:
            found = self._generic(address, lanes)
        kept.version, kept.lanes, kept.found = version, lanes, found
        return found

    def _window(self, space: str) -> Window:
        if space == "shared":
            return self.state.shared_window
        if space == "local":
            return self.state.local_window
        return self.state.global_window

    def _generic(self, address: Array, lanes: Lanes) -> list[Place]:
        spaces = (("global", 0, SHARED_WINDOW), ("shared", SHARED_WINDOW, LOCAL_WINDOW),
                  ("local", LOCAL_WINDOW, 1 << 62))  # fmt: skip
        shifted = address + self.offset  # a negative offset may cross into a window's first bytes
        low, high = int(shifted.min()), int(shifted.max())
        found: list[Place] = []
        for space, start, end in spaces:
            window = self._window(space)
            if start <= low and high < end:
                found.append((window, space, Resolved(address - start, window, lanes)))
                break
            inside = (shifted >= start) & (shifted < end)
            if inside.any():
                mask = np.zeros(self.state.size, bool)
                mask[lanes.index[inside]] = True
                part = Lanes(mask, -1)
                found.append((window, space, Resolved(address[inside] - start, window, part)))
        if not found:  # only addresses beyond any window: let the global check name them
            window = self._window("global")
            found.append((window, "global", Resolved(address, window, lanes)))
        return found

    def check(self, window: Window, space: str, at: Resolved, size: int, write: bool) -> None:
        """Refuse accesses outside their array or window, and misaligned ones."""
        low, high = at.low + self.offset, at.high + self.offset
        if window.base is None:
            good = self.state.setup.arena.holds(low, high + size, write)
        else:
            good = low >= 0 and high + size <= window.size
        same_bits = not (at.either ^ at.both) & (size - 1)
        if good and same_bits and not (at.both + self.offset) & (size - 1):
            return
        address = at.address + self.offset
        misaligned = np.flatnonzero(address & (size - 1))
        if not good:
            if window.base is None:
                bad = self.state.setup.arena.first_fault(address, size, write)
            else:
                outside = np.flatnonzero((address < 0) | (address + size > window.size))
                bad = int(outside[0]) if outside.size else None
            if bad is not None:
                self._refuse(window, space, at, int(address[bad]), bad, size, write)
        if misaligned.size:
            at_lane = int(misaligned[0])
            self._refuse_misaligned(space, at, int(address[at_lane]), at_lane, size, write)

    def _who(self, at: Resolved, position: int, write: bool, size: int) -> str:
        lane = position if at.lanes.all else int(at.lanes.index[position])
        verb = "writes" if write else "reads"
        return f"{self.state.thread_name(lane)} {verb} {size} bytes"

    def _refuse(
        self, window: Window, space: str, at: Resolved, address: int, position: int, size: int,
        write: bool,
    ) -> None:  # fmt: skip
        arena = self.state.setup.arena
        if window.base is not None:
            where = f"{space} memory at byte {address}, of {window.size}"
            shared = self.state.setup.launch.shared
            if space == "shared" and shared and address >= 0:
                last = max(shared, key=lambda a: (a.base <= address, a.base))
                # The compiler declares shared arrays as bytes; count in what is accessed.
                unit = max(self.instruction.element_bytes, 1)
                name = source_name(last.name)
                where += f" ({name}[{(address - last.base) // unit}])"
            kind = "out of bounds"
        else:
            where = arena.describe(address)
            inside = arena.holds(address, address + size, False)
            kind = "writes to read-only memory" if inside else "out of bounds"
        raise self.state.error(
            self.instruction, f"{kind}: {self._who(at, position, write, size)} at {where}"
        )

    def _refuse_misaligned(
        self, space: str, at: Resolved, address: int, position: int, size: int, write: bool
    ) -> None:
        where = f"{space} address {address:#x}"
        if space != "shared" and space != "local":
            where = f"{self.state.setup.arena.describe(address)} (address {address:#x})"
        raise self.state.error(
            self.instruction,
            f"misaligned: {self._who(at, position, write, size)} at {where}, "
            f"which is not a multiple of {size}",
        )

    def emit(
        self, lanes: Lanes, reached: Lanes, size: int, access: str, first_part: int = 0
    ) -> None:
        """Tell the observers, one event a space touched."""
        state = self.state
        raw = self._bits.view(np.int64) if self._bits.dtype.itemsize == 8 else self._bits
        version = state.versions[self.register] if self.register >= 0 else 0
        key = (self.register if self.register >= 0 else -2 - self.instruction.pc, version)
        starts = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
        for part, (_, space, at) in enumerate(self.resolve(lanes), first_part):
            start = starts.get(space, 0) if self.space is None else 0
            state.emit(
                self.instruction,
                reached,
                at.lanes,
                address=raw + (self.offset - start),
                size=size,
                address_key=key,
                offset=self.offset,
                space="const" if self.space == "const" else space,
                part=part,
                access=access,
            )
