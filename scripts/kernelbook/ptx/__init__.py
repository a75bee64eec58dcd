"""Read, execute and count PTX without a GPU.

    from kernelbook.ptx import run
    run(ptx, "add", grid=4, block=256, args=[a, b, c, 1000])

executes a kernel over whole grids in NumPy and stores into the arrays it was given.
"""

from .arguments import Pointer, Struct
from .events import Event, Launch, Observer
from .launch import DEFAULT_BATCH_LANES, DEFAULT_BUDGET, run
from .module import Instruction, Kernel, Module
from .observers.findings import Finding
from .parse import parse
from .result import Run

__all__ = [
    "DEFAULT_BATCH_LANES",
    "DEFAULT_BUDGET",
    "Event",
    "Finding",
    "Instruction",
    "Kernel",
    "Launch",
    "Module",
    "Observer",
    "Pointer",
    "Run",
    "Struct",
    "parse",
    "run",
]
