"""Checks global memory for races, between blocks and within one.

Within a block, order.py says what is ordered (barriers). Between blocks nothing is, whatever order
the emulator happened to run them in, except through a flag:

* a thread *releases* when it fences (``__threadfence``) and then writes a flag with a volatile or
  atomic access, or writes it with ``.release``. What it had done, and what other threads of its
  block had done before a barrier before its fence, goes with the flag; so do accesses of threads of
  the block that fenced by themselves before a barrier that it has passed;
* a thread *acquires* when it reads such a flag with a volatile or atomic access and then fences, or
  reads it with ``.acquire``. Barriers pass on to its block what it has learnt. Without the fence,
  only volatile and atomic reads are ordered (the idiom of the CUDA guide's last-block sum).

Two accesses from different blocks to one word, one of them a write, race unless ordered so. Atomic
updates do not race with each other. Volatile or relaxed accesses on both sides are how flags work,
so those are judged only where a flag shows them to be data: reading data that the other block wrote
before a flag one has seen, but with no fence in between, is a race; other unordered pairs of that
kind are reported as not judged. So are those of 64 bits on both sides: such a word can carry a
value together with its own flag, as the state of a look-back does, and then needs no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import WARP, Batch, Event, Launch
from ..module import Instruction
from .findings import Finding, FindingLog, element, place, verb
from .global_shadow import (
    BLOCKS,
    ONE,
    GlobalShadow,
    Touch,
    atomic_of,
    block_of,
    flat_of,
    is_strong,
    lane_of,
    pc_of,
    strong_of,
)
from .handovers import NOT_FOLLOWED, Handovers
from .knowledge import BlockKnowledge, Question
from .order import Order, Synced
from .releases import Releases

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_DETAIL = {"read": "write-read", "write": "write-write", "atomic": "write-atomic"}
_NO_ACQUIRE = "no fence between reading the flag and this access"
_NO_RELEASE = "the flag was written with no fence between the data and it"
_NOT_TOLD = " is shared between blocks in an order that the check cannot tell"
_HINTS = ("", _NO_ACQUIRE, _NO_RELEASE)


@dataclass(frozen=True)
class _Pairs:
    """Accesses ``at`` of an event, each with the earlier one it may race with."""

    touch: Touch
    at: Integers
    code: Integers
    tick: Integers
    number: NDArray[np.uint8]  # ONE, LANES or BLOCKS made the earlier access
    detail: str

    def keep(self, which: Mask) -> _Pairs:
        return _Pairs(
            self.touch,
            self.at[which],
            self.code[which],
            self.tick[which],
            self.number[which],
            self.detail,
        )


class GlobalRaceObserver:
    """Races on global memory. State lasts for the whole launch: on hardware all blocks may run at
    the same time, however they are batched here."""

    def __init__(self) -> None:
        self.log = FindingLog()
        self._launch: Launch | None = None

    def begin_batch(self, batch: Batch) -> None:
        self._batch = batch
        self._width = batch.warps_per_block * WARP
        self._order = Order(batch)
        self._handovers = Handovers(batch)
        if self._launch is not batch.launch:
            self._launch = batch.launch
            self._shadow = GlobalShadow(batch.launch)
            if self._shadow.too_large:
                too_large = "global memory, as its arrays are too large to be followed"
                self.log.add(("size",), 1, Finding("not-judged", "size", too_large))
            self._releases = Releases(self._shadow)
            kernel = batch.launch.kernel
            self._strong = tuple(is_strong(i) for i in kernel.instructions)
            self._fences = tuple(_is_fence(i) for i in kernel.instructions)
        else:
            self._order.tick = self._tick
        self._known: dict[int, BlockKnowledge] = {}  # by linear block id
        self._shadow.begin_batch(batch)
        self._releases.begin_batch(batch, self._order)

    def on_event(self, event: Event) -> None:
        if self._shadow.too_large:
            return
        self._follow(event)
        if self._handovers.possible:
            self._handovers.note(event, self._order)

    def _follow(self, event: Event) -> None:
        if event.space == "global" and event.address is not None:
            self._access(event)
        elif event.space is None:
            synced = self._order.on_event(event)
            if synced is not None:
                self._spread(synced)
            elif self._fences[event.instruction.pc]:
                self._fence(event)

    def on_barrier(self, batch: Batch, blocks: NDArray[np.int64], barrier: int) -> None:
        if not self._shadow.too_large:
            self._spread(self._order.on_barrier(blocks, barrier))

    def end_batch(self, batch: Batch) -> None:
        self._tick = self._order.tick + 1

    def findings(self, files: Mapping[int, str]) -> tuple[Finding, ...]:
        return self.log.findings(files)

    # -- synchronisation ---------------------------------------------------------------------

    def _spread(self, synced: Synced) -> None:
        for block, known in self._known.items():
            at = block - self._batch.first_block
            lanes = np.flatnonzero(synced.lanes[at])
            if synced.full[at]:
                known.spread(lanes, True)
            elif synced.by_warp:
                for warp in np.unique(lanes // WARP):
                    known.spread(lanes[lanes // WARP == warp], False)
            else:
                known.spread(lanes, False)

    def _fence(self, event: Event) -> None:
        self._order.tick += 1
        active = event.active.reshape(-1, self._width)
        self._releases.fence(active)
        for block, known in self._known.items():
            at = block - self._batch.first_block
            everyone = bool((active[at] | ~self._order.live[at]).all())
            known.fence(np.flatnonzero(active[at]), everyone)

    # -- accesses ----------------------------------------------------------------------------

    def _access(self, event: Event) -> None:
        strong = self._strong[event.instruction.pc]
        if strong:  # a tick of its own, apart from the plain accesses around it
            self._order.tick += 1
        touch = self._shadow.touch(event, self._order.tick, strong)
        self._against_writer(touch)  # before the access itself teaches anything
        if event.access == "read":
            self._shadow.note_read(touch, self._batch.first_block, self._order)
            if strong:
                self._releases.note_read(touch, self._known)
        else:
            self._against_reader(touch)
            clash = self._shadow.note_write(touch)
            if clash is not None and not strong:
                self._report_pairs(touch, *clash, "same instruction")
            if event.access == "atomic":
                self._releases.note_atomic(touch, self._known)
            else:
                self._releases.note_write(touch, self._known)
        if strong:
            self._order.tick += 1

    def _against_writer(self, touch: Touch) -> None:
        shadow = self._shadow
        if not shadow.may_be_written(touch):
            return
        at = np.flatnonzero(shadow.written[touch.granule])
        if not at.size:
            return
        granule = touch.granule[at]
        code, number = shadow.writer[granule], shadow.writers[granule]
        harmless = (flat_of(code) == flat_of(touch.code[at])) & (number == ONE)
        if touch.access == "atomic":
            harmless |= atomic_of(code)
        tick = shadow.written[granule].astype(np.int64)
        pairs = _Pairs(touch, at, code, tick, number, _DETAIL[touch.access])
        self._judge(pairs.keep(~harmless))

    def _against_reader(self, touch: Touch) -> None:
        shadow = self._shadow
        at = np.flatnonzero(shadow.readers[touch.granule])
        if not at.size:
            return
        granule = touch.granule[at]
        code, number = shadow.reader[granule], shadow.readers[granule]
        harmless = (flat_of(code) == flat_of(touch.code[at])) & (number == ONE)
        if touch.strong:
            harmless |= strong_of(code)  # someone polls what is written here: a flag
        tick = shadow.read[granule].astype(np.int64)
        pairs = _Pairs(touch, at, code, tick, number, "read-write")
        self._judge(pairs.keep(~harmless))

    # -- judgement ---------------------------------------------------------------------------

    def _judge(self, pairs: _Pairs) -> None:
        """Report which of the pairs race."""
        if not pairs.at.size:
            return
        touch, code = pairs.touch, pairs.code
        block = touch.block[pairs.at]
        inside = block_of(code) == block
        across = ~inside | (pairs.number == BLOCKS)
        within = inside & ~across
        if within.any():
            self._judge_within(pairs.keep(within))
        if across.any():
            self._judge_across(pairs.keep(across))

    def _judge_within(self, pairs: _Pairs) -> None:
        """Pairs of one block: its barriers order them."""
        touch, code = pairs.touch, pairs.code
        local = touch.block[pairs.at] - self._batch.first_block
        racing = pairs.tick > self._order.full[local]
        if touch.strong:
            racing &= ~strong_of(code)
        if not racing.any():
            return
        lane, other = touch.lane[pairs.at], lane_of(code)
        ordered = self._order.ordered(local, lane, other, pairs.tick.astype(np.int32))
        # Of several lanes the last may be this very one: then another's access is as recent.
        racing &= ~ordered | (lane == other)
        # Of several lanes only the latest access is dated; a lock may have ordered another's.
        tick = np.where(pairs.number == ONE, pairs.tick, self._order.full[local] + 1)
        unsure = racing & self._handovers.may_order(
            local, lane, other, tick, touch.instruction.pc, pc_of(code)
        )
        racing &= ~unsure
        self._report_pairs(touch, pairs.at[racing], code[racing], pairs.detail)
        if unsure.any():
            at = pairs.at[unsure]
            self._report_pairs(touch, at, code[unsure], pairs.detail, unjudged=NOT_FOLLOWED)

    def _judge_across(self, pairs: _Pairs) -> None:
        """Pairs of different blocks: what the later block has learnt through flags orders them."""
        touch = pairs.touch
        if touch.strong:  # reading a flag is what flags are for, unless a later one was seen before
            flags = strong_of(pairs.code) & self._releases.flagged[touch.granule[pairs.at]]
            pairs = pairs.keep(~flags | self._saw_later(pairs))
        code = pairs.code
        block, other = touch.block[pairs.at], block_of(code)
        racing = np.ones(block.size, dtype=np.bool_)
        unsure = np.zeros(block.size, dtype=np.bool_)
        hint = np.zeros(block.size, dtype=np.int8)
        pair_ids = np.unique(np.stack([block, other]), axis=1) if self._known else np.zeros((2, 0))
        for own, earlier in pair_ids.T.astype(np.int64).tolist():
            known = self._known.get(own)
            if known is not None:
                at = np.flatnonzero((block == own) & (other == earlier))
                racing[at], unsure[at], hint[at] = self._ask(known, own, earlier, pairs, at)
        unexplained = np.flatnonzero(racing & (hint == 0) & ~self._packed(pairs))
        if unexplained.size:
            hint[unexplained[self._saw_later(pairs.keep(racing & (hint == 0)))]] = 2
        unsure |= racing & (hint == 0) & strong_of(code) & touch.strong
        racing &= ~unsure
        for which in np.unique(hint[racing]):
            at = np.flatnonzero(racing & (hint == which))
            self._report_pairs(touch, pairs.at[at], code[at], pairs.detail, _HINTS[which])
        if unsure.any():
            self._report_pairs(touch, pairs.at[unsure], code[unsure], "", unjudged=_NOT_TOLD)

    def _packed(self, pairs: _Pairs) -> Mask:
        """Whether value and flag may be one word: a strong access of 64 bits to one of 64 bits."""
        if not (pairs.touch.strong and _is_wide(pairs.touch.instruction)):
            return np.zeros(pairs.at.size, dtype=np.bool_)
        instructions = self._batch.launch.kernel.instructions
        wide = np.array([_is_wide(i) for i in instructions], dtype=np.bool_)
        return np.asarray(wide[pc_of(pairs.code)] & strong_of(pairs.code))

    def _saw_later(self, pairs: _Pairs) -> Mask:
        """Whether a block has seen a flag that the other wrote after the earlier access."""
        block, other = pairs.touch.block[pairs.at], block_of(pairs.code)
        return self._releases.saw_flag_after(block, other, pairs.tick)

    def _ask(
        self, known: BlockKnowledge, own: int, other: int, pairs: _Pairs, at: Integers
    ) -> tuple[Mask, Mask, NDArray[np.int8]]:
        """(races, cannot be told, hint) of pairs of one block with one other."""
        touch = pairs.touch
        asked = Question(
            touch.lane[pairs.at[at]],
            lane_of(pairs.code[at]),
            pairs.tick[at],
            touch.granule[pairs.at[at]],
        )
        covered = known.covers(other, asked, touch.strong)
        lenient = covered if touch.strong else known.covers(other, asked, True)
        unsure = np.zeros(at.size, dtype=np.bool_)
        several = pairs.number[at] == BLOCKS
        if several.any():  # the earlier access stands for others, of other blocks
            blocks = int(np.prod(self._batch.launch.grid))
            everything = known.covers_all(own, blocks, asked, touch.strong)
            unsure = several & ~everything & (covered | (own == other))
            covered = np.where(several, everything, covered)
        hint = np.where(~covered & lenient, 1, 0).astype(np.int8)
        return ~covered & ~unsure, unsure, hint

    # -- words -------------------------------------------------------------------------------

    def _report_pairs(
        self,
        touch: Touch,
        at: Integers,
        code: Integers,
        detail: str,
        hint: str = "",
        unjudged: str = "",
    ) -> None:
        pcs = pc_of(code)
        for before in np.unique(pcs).tolist():
            mine = np.flatnonzero(pcs == before)
            kind = "not-judged" if unjudged else "race"
            key = (kind, detail, before, touch.instruction.pc)
            finding = None
            if not self.log.knows(key):
                first = int(mine[0])
                finding = self._finding(touch, int(at[first]), code[first], detail, hint, unjudged)
            self.log.add(key, int(mine.size), finding)

    def _finding(
        self, touch: Touch, at: int, code: np.int64, detail: str, hint: str, unjudged: str
    ) -> Finding:
        batch = self._batch
        earlier = batch.launch.kernel.instructions[int(code) >> 42]
        flat = int(code) & ((1 << 40) - 1)
        address = self._shadow.address(int(touch.granule[at]))
        array, what = element(batch.launch.arrays, address, touch.instruction, earlier)
        first = place(batch, flat >> 10, flat & 1023, earlier, verb(earlier))
        now = touch.instruction
        second = place(batch, int(touch.block[at]), int(touch.lane[at]), now, verb(now))
        if not unjudged:
            return Finding("race", detail, what, first, second, hint=hint, array=array)
        return Finding("not-judged", detail, what + unjudged, first, second, array=array)


def _is_wide(instruction: Instruction) -> bool:
    return instruction.element_bytes * instruction.vector == 8


def _is_fence(instruction: Instruction) -> bool:
    """Whether an instruction orders accesses between blocks: not ``__threadfence_block``, and not
    the fences between a thread's ways to memory."""
    return instruction.opcode in ("fence", "membar") and not any(
        instruction.has(word) for word in ("cta", "proxy", "mbarrier_init")
    )
