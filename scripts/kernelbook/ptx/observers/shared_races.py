"""Checks shared memory: races between any two lanes, and reads of what nobody has written.

Two accesses of different lanes of a block to one word race when at least one of them writes, not
both are atomic, and no synchronisation orders them (order.py says what does). The order in which
the emulator happened to execute them does not matter, and neither does lockstep within a warp.

``cp.async`` writes land at any time until its lane has waited for their group: before that even
the same lane may not touch the word; other lanes may after the next barrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event
from ..module import Instruction
from .async_copies import AsyncCopies
from .classes import BlockClasses
from .findings import Finding, FindingLog, Kind, element, place, verb
from .handovers import NOT_FOLLOWED, Handovers
from .order import Order, Synced
from .shadow import (
    PENDING,
    Accesses,
    Shadow,
    Ticks,
    code_of,
    code_with_lane,
    lane_of,
    lane_other_than,
    pc_of,
    several,
)

_LARGEST_SHADOW = 256 << 20  # bytes; beyond it the check gives up, and says so
_REMEMBERED = 64

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Pattern:
    """An access all blocks make alike: granules and lanes of one block, flat."""

    active: Mask | None  # None: every existing lane
    offset: int
    granule: Integers
    lane: Integers


@dataclass(frozen=True)
class _Touch:
    """Accesses of one event, flat over granules: who, where, with which code."""

    row: Integers  # class
    block: Integers  # a block of that class, within the batch
    lane: Integers
    granule: Integers
    index: Integers  # row * granules + granule
    code: Integers
    instruction: Instruction


class SharedRaceObserver:
    """Races on shared memory and reads of uninitialised shared memory."""

    def __init__(self) -> None:
        self.log = FindingLog()

    def begin_batch(self, batch: Batch) -> None:
        self._batch = batch
        self._width = batch.warps_per_block * WARP
        self._order = Order(batch)
        self._handovers = Handovers(batch)
        self._classes = BlockClasses(batch.blocks)
        agents = self._width if self._order.fine else batch.warps_per_block
        self._agent_shift = 0 if self._order.fine else 5
        self._shadow = Shadow(batch.launch.shared_bytes, agents)
        self._patterns: dict[tuple[object, ...], _Pattern] = {}
        self._copies = AsyncCopies(self._width)
        self._off = False
        self._shared = any(i.space in ("shared", None) for i in batch.launch.kernel.instructions)

    def on_event(self, event: Event) -> None:
        if self._off:
            return
        if event.space == "shared" and event.address is not None:
            self._access(event)
        else:
            self._other(event)
        if self._handovers.possible:
            self._handovers.note(event, self._order)

    def _other(self, event: Event) -> None:
        synced = self._order.on_event(event)
        if synced is not None:
            self._synchronised(synced)
        elif event.instruction.opcode == "cp" and not event.part:
            self._copy_control(event)
        elif event.instruction.opcode == "mbarrier":
            self._not_judged("mbarrier", "shared memory ordered by mbarrier, which is not followed")

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        if not self._off:
            self._synchronised(self._order.on_barrier(blocks, barrier))

    def end_batch(self, batch: Batch) -> None:
        self._patterns = {}

    def findings(self, files: Mapping[int, str]) -> tuple[Finding, ...]:
        return self.log.findings(files)

    # -- who did what ------------------------------------------------------------------------

    def _access(self, event: Event) -> None:
        if event.size < self._shadow.granule:
            self._copies.refine(self._shadow.granule // event.size)
            self._shadow.refine(event.size)
            self._patterns = {}
        touch = self._touch(event)
        if not touch.lane.size:
            return
        if event.access == "read":
            self._check_initialised(touch)
            self._check_writer(touch, "write-read")
            self._check_table(touch, self._shadow.atomics, "atomic-read")
            self._note(self._shadow.reads, touch)
        elif event.access == "write":
            self._check_writer(touch, "write-write")
            self._check_table(touch, self._shadow.reads, "read-write")
            self._check_table(touch, self._shadow.atomics, "atomic-write")
            self._write(touch, pending=event.instruction.opcode == "cp")
        else:
            self._check_initialised(touch)
            self._check_writer(touch, "write-atomic")
            self._check_table(touch, self._shadow.reads, "read-atomic")
            self._note(self._shadow.need_atomics(), touch)

    def _touch(self, event: Event) -> _Touch:
        pattern = self._uniform(event)
        rows = self._classes.rows
        if pattern is not None:
            shift = (event.offset - pattern.offset) // self._shadow.granule
            granule = pattern.granule + shift if shift else pattern.granule
            lane = pattern.lane
            if rows.size > 1:
                row = np.repeat(rows, lane.size)
                granule, lane = np.tile(granule, rows.size), np.tile(lane, rows.size)
            else:
                row = np.full(lane.size, rows[0])
        else:
            first = self._classes.first[rows]
            assert event.address is not None
            shape = (-1, self._width)
            where, lane = np.nonzero(event.active.reshape(shape)[first])
            address = event.address.reshape(shape)[first[where], lane]
            granule, lane, where = self._granules(address, lane, where, event.size)
            row = rows[where]
        inside = (granule >= 0) & (granule < self._shadow.granules)
        if not inside.all():  # out of bounds: the machine's finding, not a race
            row, lane, granule = row[inside], lane[inside], granule[inside]
        return _Touch(
            row,
            self._classes.first[row],
            lane,
            granule,
            row * self._shadow.granules + granule,
            code_of(event.instruction.pc, lane),
            event.instruction,
        )

    def _granules(
        self, address: Integers, lane: Integers, where: Integers, size: int
    ) -> tuple[Integers, Integers, Integers]:
        granule = address // self._shadow.granule
        count = size // self._shadow.granule
        if count == 1:
            return granule, lane, where
        wide = (granule[:, None] + np.arange(count)).reshape(-1)
        return wide, np.repeat(lane, count), np.repeat(where, count)

    def _uniform(self, event: Event) -> _Pattern | None:
        """The event's pattern if every block of the batch makes it alike; else classes split."""
        granule = self._shadow.granule
        key = (event.address_key, event.size, event.offset % granule)
        found = self._patterns.get(key) if event.address_key is not None else None
        every = event.active is event.batch.exists
        if found is not None and (
            (found.active is None) == every
            and (found.active is None or bool((found.active == event.active).all()))
        ):
            return found
        assert event.address is not None
        shape = (-1, self._width)
        masked = np.where(event.active, event.address, -1).reshape(shape)
        if not (masked == masked[0]).all():
            self._split(masked)
            return None
        lane = np.nonzero(masked[0] >= 0)[0]
        flat, lane, _ = self._granules(masked[0, lane], lane, lane, event.size)
        pattern = _Pattern(None if every else event.active.copy(), event.offset, flat, lane)
        if event.address_key is not None:
            if len(self._patterns) >= _REMEMBERED:
                self._patterns.clear()
            self._patterns[key] = pattern
        return pattern

    def _split(self, pattern: NDArray[Any]) -> None:
        for old, new in self._classes.split(pattern):
            if new >= self._shadow.rows and 2 * self._shadow.nbytes > _LARGEST_SHADOW:
                self._off = True
                self._not_judged("size", "shared memory, as too many blocks behave differently")
                return
            self._shadow.copy_row(old, new)
            self._copies.copy_row(old, new)

    # -- checks ------------------------------------------------------------------------------

    def _check_initialised(self, touch: _Touch) -> None:
        written = self._shadow.written.reshape(-1)[touch.index]
        missing = written == 0
        if not missing.any():
            return
        if self._shadow.atomics is not None:
            missing &= self._shadow.atomics.any.reshape(-1)[touch.index] == 0
        if missing.any():
            weight = int(self._classes.members[touch.row[missing]].sum())
            first = int(np.nonzero(missing)[0][0])
            self._report("uninitialised", "", touch, first, None, weight)

    def _check_writer(self, touch: _Touch, detail: str) -> None:
        """Against the last plain write of each word."""
        written = self._shadow.written.reshape(-1)[touch.index]
        recent = written > self._order.full[touch.block]
        if not recent.any():
            return
        at = np.nonzero(recent)[0]
        tick = written[at]
        writer = self._shadow.writer.reshape(-1)[touch.index[at]]
        other, lane = lane_of(writer), touch.lane[at]
        racing = (other != lane) & ~self._order.ordered(touch.block[at], lane, other, tick)
        racing |= tick == PENDING
        self._races(detail, touch, at[racing], writer[racing], tick[racing])

    def _check_table(self, touch: _Touch, table: Accesses | None, detail: str) -> None:
        """Against every agent's last read or atomic update of each word."""
        if table is None:
            return
        recent = table.any.reshape(-1)[touch.index] > self._order.full[touch.block]
        if not recent.any():
            return
        at = np.nonzero(recent)[0]
        lane = touch.lane[at]
        agents = table.tick.shape[2]
        tick = table.tick.reshape(-1, agents)[touch.index[at]]
        code = table.code.reshape(-1, agents)[touch.index[at]]
        racing = tick > self._order.horizon(touch.block[at], lane)
        mine = (lane_of(code) == lane[:, None]) & ~several(code)
        which, agent = np.nonzero(racing & ~mine)
        if which.size:
            found = code[which, agent]
            previous = code_with_lane(found, lane_other_than(found, lane[which]))
            # Of several lanes only the latest access is dated; a lock may have ordered another's.
            since = self._order.full[touch.block[at[which]]] + 1
            dated = np.where(several(found), since, tick[which, agent])
            self._races(detail, touch, at[which], previous, dated)

    def _races(
        self, detail: str, touch: _Touch, at: Integers, previous: Integers, tick: Ticks
    ) -> None:
        """Report races of accesses ``at`` of the event with earlier ones, by their instruction."""
        if not at.size:
            return
        pcs = pc_of(previous)
        unsure = self._handovers.may_order(
            touch.block[at],
            touch.lane[at],
            lane_of(previous),
            tick,
            touch.instruction.pc,
            pcs,
        )
        for pc, judged in np.unique(np.stack([pcs, ~unsure]), axis=1).T.tolist():
            mine = (pcs == pc) & (unsure != judged)
            first = int(np.nonzero(mine)[0][0])
            weight = int(self._classes.members[touch.row[at[mine]]].sum())
            hint = "the copy by cp.async has not been waited for" if tick[first] == PENDING else ""
            kind: Kind = "race" if judged else "not-judged"
            self._report(kind, detail, touch, int(at[first]), int(previous[first]), weight, hint)

    def _write(self, touch: _Touch, pending: bool) -> None:
        written, writer = self._shadow.written.reshape(-1), self._shadow.writer.reshape(-1)
        written[touch.index] = PENDING if pending else self._order.tick
        writer[touch.index] = touch.code
        stored = writer[touch.index]
        clash = stored != touch.code
        if clash.any():
            now = np.full(int(clash.sum()), self._order.tick, dtype=np.int32)
            self._races("same instruction", touch, np.nonzero(clash)[0], stored[clash], now)
        if pending:
            self._copies.issue(touch.row, touch.lane, touch.granule)

    def _note(self, table: Accesses, touch: _Touch) -> None:
        agent = touch.lane >> self._agent_shift
        if self._order.fine:
            own = self._order.lanes[touch.block, touch.lane >> 5, touch.lane & 31, touch.lane & 31]
        else:
            own = self._order.known[touch.block, agent, agent]
        table.note(touch.index, agent, touch.code, self._order.tick, own)

    # -- synchronisation ---------------------------------------------------------------------

    def _synchronised(self, synced: Synced) -> None:
        if not self._shared:
            return
        if not self._classes.single or not (synced.lanes == synced.lanes[0]).all():
            self._split(synced.lanes)
        self._rejoin(synced.full)

    def _rejoin(self, full: Mask) -> None:
        """Classes past a full barrier are alike again if they have initialised the same words."""
        rows = [int(r) for r in self._classes.rows if full[self._classes.first[r]]]
        if len(rows) < 2 or self._copies:
            return
        target = rows[0]
        initialised = self._shadow.initialised(target)
        alike = [r for r in rows if (self._shadow.initialised(r) == initialised).all()]
        self._classes.merge(alike, target)

    def _copy_control(self, event: Event) -> None:
        if event.instruction.has("mbarrier"):
            self._not_judged("mbarrier", "shared memory ordered by mbarrier, which is not followed")
        elif any(event.instruction.has(m) for m in ("commit_group", "wait_group", "wait_all")):
            self._split(event.active.reshape(-1, self._width))
            self._copies.control(event, self._classes, self._shadow, self._order.tick)

    # -- words -------------------------------------------------------------------------------

    def _report(
        self,
        kind: Kind,
        detail: str,
        touch: _Touch,
        at: int,
        previous: int | None,
        count: int,
        hint: str = "",
    ) -> None:
        instruction = touch.instruction
        before = -1 if previous is None else pc_of(previous)
        key = (kind, detail, before, instruction.pc)
        finding = None
        if not self.log.knows(key):
            batch = self._batch
            block = batch.first_block + int(touch.block[at])
            address = int(touch.granule[at]) * self._shadow.granule
            second = place(batch, block, int(touch.lane[at]), instruction, verb(instruction))
            shared = batch.launch.shared
            if previous is None:
                array, what = element(shared, address, instruction)
                finding = Finding("uninitialised", detail, what, second, array=array)
            else:
                earlier = batch.launch.kernel.instructions[before]
                first = place(batch, block, lane_of(previous), earlier, verb(earlier))
                array, what = element(shared, address, instruction, earlier)
                what += "" if kind == "race" else NOT_FOLLOWED
                finding = Finding(kind, detail, what, first, second, hint=hint, array=array)
        self.log.add(key, count, finding)

    def _not_judged(self, key: str, what: str) -> None:
        self.log.add(("not-judged", key), 1, Finding("not-judged", key, what))
