"""Read, execute and count PTX without a GPU.

A kernel from a .cu, run on arrays that it changes in place, with what it did:

    ptx_text = compiler.compile_source(Path("add.cu"), "sm_90").ptx
    done = ptx.run(ptx_text, "add", grid=4, block=256, args=[a, b, c, 1000])
    print(done)  # counts per kernel, and what the race and bounds checks found

``run`` executes whole grids in NumPy. Observers count and check; all are on by default, and
``observers=()`` runs without. ``done.counts`` and ``done.findings`` are what they saw.
"""

from .arguments import Pointer, Struct
from .counts import Counts, KernelCounts, LineCounts, together
from .events import Event, Launch, Observer
from .launch import DEFAULT_BATCH_LANES, DEFAULT_BUDGET, run
from .module import Instruction, Kernel, Module
from .observers import Finding, check_observers, count_observers, default_observers
from .parse import parse
from .result import Run

__all__ = [
    "DEFAULT_BATCH_LANES",
    "DEFAULT_BUDGET",
    "Counts",
    "Event",
    "Finding",
    "Instruction",
    "Kernel",
    "KernelCounts",
    "Launch",
    "LineCounts",
    "Module",
    "Observer",
    "Pointer",
    "Run",
    "Struct",
    "check_observers",
    "count_observers",
    "default_observers",
    "parse",
    "run",
    "together",
]
