"""What the experiments of this chapter share."""

from __future__ import annotations

from collections.abc import Callable

from kernelbook.experiment import Dim, Kernel, Library, Shape, Target, Text, ceil_div, device_copy

Grid = Callable[[Shape, Target], Dim]


def blocks_of(per_block: int, entry: str = "n") -> Grid:
    """A grid that covers ``entry`` with so many elements a block; at least one block."""
    return lambda s, t: (max(1, ceil_div(s[entry], per_block)), 1, 1)


def elementwise(name: str, source: str, args: tuple[str, ...], title: Text) -> Kernel:
    """One thread an element, 256 threads a block; ``name`` is the entry, too."""
    return Kernel(
        name=name,
        source=source,
        entry=name,
        args=args,
        grid=blocks_of(256),
        block=lambda s, t: (256, 1, 1),
        title=title,
    )


def copy_of(size: Callable[[Shape], int]) -> Library:
    """A copy that reads and writes ``size`` bytes each."""
    return device_copy(size, Text("读写的有用字节数相同", "reads and writes as many useful bytes"))


COPY_OF_N = copy_of(lambda s: 4 * s["n"])
