"""What a kernel touches, as pictures: for notebooks, without a GPU.

    from kernelbook import pictures

    seen = pictures.run(SOURCE, "copy", grid=4, block=256, args=[x, y, 2])
    seen.sectors()      # which bytes one warp asks for, and which sectors move
    seen.banks()        # which banks of shared memory its lanes meet in
    seen.divergence()   # which lanes are active, line by line
    seen.lines()        # what each line of the source costs

The kernel is compiled by NVRTC and its PTX executed by the emulator; the arrays hold its results.
"""

from .seen import Seen, beside, run

__all__ = ["Seen", "beside", "run"]
