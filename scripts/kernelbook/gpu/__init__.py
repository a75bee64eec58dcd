"""The GPU room: allocate, load a cubin, launch, time with events and graphs, read the clocks.

`backend` says what the runner needs; `cupy_backend` does it. Nothing here imports CuPy before a
backend is made, so that a machine without a driver pays nothing and gets one clear sentence.
"""
