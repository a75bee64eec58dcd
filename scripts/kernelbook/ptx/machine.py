"""Executes a kernel over batches of blocks, all lanes of a batch in lockstep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import PtxError
from .barriers import Barriers
from .copies import AsyncCopies
from .events import WARP
from .lanes import Lanes
from .module import Instruction
from .program import Program, compile_program
from .scheduler import Scheduler
from .state import Setup, State

# A control decides where its lanes go: the next pc for all of them; None when it has placed them.
Control = Callable[[Lanes, int], int | None]

_LEAST_IDLE_POLLS = 10_000
_BUDGET_AN_IDLE_POLL = 100_000


class Machine:
    """Runs batches of ``blocks`` blocks of one launch.

    ``budget`` is shared by all batches of a launch: lane-instructions, of which a step costs at
    least 1,024 (what Python takes for it, in the time of lanes).
    """

    def __init__(self, setup: Setup, blocks: int, budget: Budget) -> None:
        self.setup = setup
        self.state = State(setup, blocks)
        self.scheduler = Scheduler(self.state)
        self.barriers = Barriers(self.state)
        self.copies = AsyncCopies(self.state)
        self.budget = budget
        self.waiting: dict[int, np.ndarray] = {}  # pc: lanes waiting for their warp to come
        self.program: Program = compile_program(self)

    def run(self, first_block: int) -> None:
        """Execute the batch that starts at a linear block id."""
        state, scheduler = self.state, self.scheduler
        batch = state.begin(first_block)
        self.barriers.begin()
        self.copies.begin()
        self.waiting.clear()
        scheduler.begin()
        for observer in state.observers:
            observer.begin_batch(batch)
        while (picked := scheduler.pick()) is not None:
            self._run_group(*picked)
        if scheduler.living:
            raise self._stuck()
        for observer in state.observers:
            observer.end_batch(batch)

    def _run_group(self, pc: int, lanes: Lanes) -> None:
        """Run one group until it splits, waits, exits or meets another."""
        scheduler, budget, state = self.scheduler, self.budget, self.state
        steps, controls = self.program.steps, self.program.controls
        limit = scheduler.limit
        cost, started = lanes.cost, state.steps_done
        left = budget.left
        done = 0
        try:
            while pc < limit:
                control = controls[pc]
                done += 1
                if control is None:
                    steps[pc](lanes)
                    pc += 1
                    continue
                state.steps_done = started + done
                if done * cost > left or scheduler.idle > budget.idle_polls:
                    raise self._exhausted(pc)
                following = control(lanes, pc)
                if following is None:
                    return
                pc = following
            scheduler.push(pc, lanes)
        finally:
            state.steps_done = started + done
            budget.left = left - done * cost

    def _exhausted(self, pc: int) -> PtxError:
        gave_up = f"gave up after {self.budget.total:,} lane-instructions"
        why = "an endless loop, or a budget too small"
        if self.scheduler.idle > self.budget.idle_polls:
            gave_up = f"gave up after {self.scheduler.idle:,} polls of memory that nobody changed"
        if self.scheduler.polling:
            why += (
                "; if it waits for another block: blocks start in order, "
                f"and {self.state.blocks} of them finish before the next start"
            )
        instruction = self.program.instruction(pc)
        return self.state.error(instruction, f"{gave_up}: {why}")

    # lanes that wait for each other

    def exit(self, lanes: Lanes) -> None:
        """Lanes finish; whoever waited for them may go on."""
        self.scheduler.exit(lanes)
        if self.barriers.waiters:
            self.release()
        if self.waiting:
            waiting, self.waiting = self.waiting, {}
            for pc, mask in waiting.items():
                self.scheduler.push_mask(pc, mask)

    def release(self) -> None:
        """Complete the barriers that can, and let their lanes run."""
        released = self.barriers.complete(self.scheduler.alive)
        if released:
            self.state.progress += 1
        for release in released:
            self.scheduler.push_mask(release.instruction.pc + 1, release.mask)

    def _stuck(self) -> PtxError:
        """Nobody can run, yet lanes are alive: the deadlock, by name."""
        if self.barriers.waiters:
            return self._stuck_at_barrier()
        pc, mask = next(iter(self.waiting.items()))
        lane = int(np.flatnonzero(mask)[0])
        warp = slice(lane // WARP * WARP, lane // WARP * WARP + WARP)
        here = np.flatnonzero(mask[warp]).tolist()
        return self.state.error(
            self.program.instruction(pc),
            f"deadlock: {self.state.thread_name(lane)} waits with lanes {_ranges(here)} of its "
            "warp for lanes of the membermask that never come",
        )

    def _stuck_at_barrier(self) -> PtxError:
        state = self.state
        waiter = self.barriers.waiters[0]
        block = int(state.block_of_lane[np.flatnonzero(waiter.mask)[0]])
        own = slice(block * state.lanes_per_block, (block + 1) * state.lanes_per_block)
        waits = int(np.count_nonzero(waiter.mask[own]))
        alive = int(np.count_nonzero(self.scheduler.alive[own]))
        name = state.thread_name(block * state.lanes_per_block).split(", thread")[0]
        others = {
            self._line(w.instruction)
            for w in self.barriers.waiters
            if w is not waiter and w.mask[own].any()
        }
        elsewhere = f"; others wait at {', '.join(sorted(others))}" if others else ""
        return state.error(
            waiter.instruction,
            f"divergent barrier: in {name}, {waits} of {alive} running threads wait at barrier "
            f"{waiter.barrier} and the rest never arrive{elsewhere}",
        )

    def _line(self, instruction: Instruction) -> str:
        if instruction.line:
            return f"line {instruction.line}"
        return f"PTX line {instruction.ptx_line}"


class Budget:
    """Lane-instructions a launch may still execute.

    ``idle_polls``: times in a row that lanes may look at memory which nobody changes. Nothing but
    the lanes changes it, so a loop that goes on for so long waits in vain; without this limit it
    would do so for a quarter of an hour.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.left = total
        self.idle_polls = max(_LEAST_IDLE_POLLS, total // _BUDGET_AN_IDLE_POLL)


def _ranges(numbers: list[int]) -> str:
    """``0-3, 7`` for [0, 1, 2, 3, 7]."""
    parts: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], -2]:
        if number != previous + 1:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
            start = number
        previous = number
    return ", ".join(parts)
