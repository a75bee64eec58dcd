"""The GPU through CuPy, for CUDA 12 and 13: one stream, events, graphs, our cubins."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ..compiler import Compiled, compile_source
from ..errors import DeviceError, ExperimentError
from ..experiment import Arrays, Experiment, Kernel, Library, Shape, Target
from ..records import DeviceInfo
from ..staleness import launch_of
from . import device_info
from .backend import ClockReading, Copies, Fault, Launch, Routine
from .clocks import open_clocks
from .flush import SOURCE, Flush
from .libraries import Context, routine

# A launch may use this much shared memory, static and dynamic, without asking for more.
SHARED_WITHOUT_ASKING = 48 * 1024
SCALARS = {"int32": np.int32, "int64": np.int64, "float32": np.float32}


class CupyBackend:
    """One card through CuPy. Everything runs on one stream of its own, which it makes current."""

    probe = staticmethod(device_info.probe)
    identity = staticmethod(device_info.identity)

    def __init__(self, device_index: int) -> None:
        found = device_info.probe(device_index)
        if isinstance(found, str):
            raise DeviceError(found)
        self.info: DeviceInfo = found
        self._clocks = open_clocks(device_info.pci_bus_id(device_index))
        # Asked before this process has a context of its own, which would be counted, too.
        others = self._clocks.processes() if self._clocks else 0
        import cupy

        self._cupy = cupy
        self.xp: Any = cupy
        cupy.cuda.Device(device_index).use()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._stream.use()
        self._start, self._end = cupy.cuda.Event(), cupy.cuda.Event()
        self.arch = arch_for(self.info.cc)
        self._modules: dict[bytes, Any] = {}
        harness = compile_source(SOURCE, self.arch)
        self._flush = Flush(cupy, lambda entry: self._function(harness, entry), self.info)
        self.flush = self._flush.words
        self.notes: dict[str, str] = {"clock_settings": "as found, never set"}
        if others:
            self.notes["other_processes"] = f"{others} other compute processes on the card"
        if self._clocks is None:
            self.notes["clocks"] = "not read: NVML or its Python module is missing"
        self._own_notes = dict(self.notes)

    # ---- kernels ---------------------------------------------------------------------------

    def _function(self, compiled: Compiled, entry: str) -> Any:
        module = self._modules.get(compiled.cubin)
        if module is None:
            module = self._cupy.cuda.function.Module()
            module.load(compiled.cubin)
            self._modules[compiled.cubin] = module
        return module.get_function(entry)

    def bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        """Load a kernel; the result binds it to buffers (see `Backend`)."""
        binds = [self._bind(experiment, k, compiled, shape, target) for k in kernel.launches]
        if len(binds) == 1:
            return binds[0]

        def bind_to(arrays: Arrays) -> Launch:
            launches = [bind(arrays) for bind in binds]

            def launch_all() -> None:
                for launch in launches:
                    launch()

            return launch_all

        return bind_to

    def _bind(
        self,
        experiment: Experiment,
        kernel: Kernel,
        compiled: Compiled,
        shape: Shape,
        target: Target,
    ) -> Callable[[Arrays], Launch]:
        """As `bind`, of one launch."""
        grid, block, shared = launch_of(kernel, shape, target)
        function = self._function(compiled, kernel.entry)
        static = compiled.resources[kernel.entry].shared_bytes
        if shared and static + shared > SHARED_WITHOUT_ASKING:
            driver = self._cupy.cuda.driver
            attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(function.ptr, attribute, shared)
        buffers = {b.name for b in experiment.buffers}
        scalars = {a: _scalar(kernel, a, shape) for a in kernel.args if a not in buffers}

        def bind_to(arrays: Arrays) -> Launch:
            args = tuple(arrays[a] if a in buffers else scalars[a] for a in kernel.args)
            return lambda: function(grid, block, args, shared)

        return bind_to

    def routine(
        self, library: Library, experiment: Experiment, shape: Shape, arrays: Arrays
    ) -> Routine:
        """A library baseline on these buffers (see `Backend`)."""
        return routine(
            Context(
                self._cupy, self._stream, library, experiment, shape, arrays, self.arch, self.notes
            )
        )

    def empty(self) -> Launch:
        return self._flush.empty

    def batch(self, launches: Sequence[Launch]) -> Launch:
        """A CUDA graph of the launches, in order."""
        self._stream.begin_capture()
        try:
            for launch in launches:
                launch()
        finally:
            graph = self._stream.end_capture()
        graph.upload(self._stream)
        return lambda: graph.launch(self._stream)

    # ---- time ------------------------------------------------------------------------------

    def sample(
        self,
        launch: Launch,
        *,
        cold: bool,
        before: Launch | None = None,
        observe: Callable[[], None] | None = None,
    ) -> float:
        """Time of one launch in µs, between two events (see `Backend`).

        The device is kept spinning while the host queues everything, and nothing is waited for
        between the flush and the kernel. Warm: the same launch runs once before, untimed.
        """
        self._flush.spin()
        if before is not None:
            before()
        if cold:
            self._flush.flush()
        else:
            launch()
            if before is not None:
                before()
        self._start.record(self._stream)
        launch()
        self._end.record(self._stream)
        if observe is not None:
            observe()
        self._end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(self._start, self._end)) * 1e3

    def copies(
        self, direction: Literal["h2d", "d2h"], pinned: bool, arrays: Sequence[Any]
    ) -> Copies:
        """Copies between device arrays and memory of the host (see `Backend`)."""
        cupy, runtime, stream = self._cupy, self._cupy.cuda.runtime, self._stream
        if direction == "h2d":  # into buffers of their own: the problem's inputs stay what they are
            device = [cupy.empty_like(a) for a in arrays]
        else:
            device = [a.copy() for a in arrays]
        host = [self._host_like(a, pinned) for a in arrays]
        for here, there in zip(host, arrays, strict=True):
            # Touches every page, so that no page fault is timed.
            here[...] = cupy.asnumpy(there) if direction == "h2d" else 0
        to_device = direction == "h2d"
        kind = runtime.memcpyHostToDevice if to_device else runtime.memcpyDeviceToHost

        def run() -> None:
            for here, there in zip(host, device, strict=True):
                ends = (there.data.ptr, here.ctypes.data)
                runtime.memcpyAsync(*(ends if to_device else ends[::-1]), there.nbytes, kind,
                                    stream.ptr)  # fmt: skip
            stream.synchronize()

        def check() -> str:
            pairs = zip(host, device, strict=True)
            same = all(np.array_equal(_bits(h), _bits(cupy.asnumpy(d))) for h, d in pairs)
            return "" if same else "what arrived differs from what was sent"

        return Copies(run, check)

    def _host_like(self, array: Any, pinned: bool) -> Any:
        if not pinned:
            return np.empty(array.shape, array.dtype)
        memory = self._cupy.cuda.alloc_pinned_memory(array.nbytes)
        return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)

    # ---- the card --------------------------------------------------------------------------

    def synchronize(self) -> None:
        self._stream.synchronize()

    def read_clocks(self) -> ClockReading | None:
        return self._clocks.read() if self._clocks else None

    def to_host(self, array: Any) -> Any:
        return self._cupy.asnumpy(array)

    def free_bytes(self) -> int:
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free) + int(self._cupy.get_default_memory_pool().free_bytes())

    def release(self) -> None:
        self._stream.synchronize()
        self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()

    def forget(self) -> None:
        """Drop what an experiment that is done has left: its kernels, its memory, its notes."""
        self._modules.clear()
        gc.collect()
        self.release()
        self.notes = dict(self._own_notes)

    def fault_of(self, error: BaseException) -> Fault | None:
        """What an exception says of the card; fatal where the context is lost (see `Backend`)."""
        cupy = self._cupy
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            return Fault(f"out of GPU memory: {error}", fatal=False)
        cuda_errors = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
        is_library = type(error).__name__ in ("CUBLASError", "CURANDError", "CompileException")
        if not isinstance(error, cuda_errors) and not is_library:
            return None
        try:
            self._stream.synchronize()
            cupy.zeros(1, dtype=cupy.uint8)  # a lost context fails this, too
            self._stream.synchronize()
        except cuda_errors:
            return Fault(str(error), fatal=True)
        return Fault(str(error), fatal=False)


def arch_for(cc: tuple[int, int]) -> str:
    """The architecture to compile for: the newest of the card's own generation NVRTC knows.

    Machine code runs on later cards of the same major number. Raises DeviceError where the
    installed NVRTC is older than the card's generation.
    """
    from cupy_backends.cuda.libs import nvrtc

    own = cc[0] * 10 + cc[1]
    usable = [a for a in nvrtc.getSupportedArchs() if a // 10 == cc[0] and a <= own]
    if not usable:
        version = ".".join(str(part) for part in nvrtc.getVersion())
        raise DeviceError(
            f"NVRTC {version} knows no architecture of compute capability {cc[0]}.{cc[1]}",
            hint="install the CuPy wheel of a newer CUDA",
        )
    return f"sm_{max(usable)}"


def _scalar(kernel: Kernel, name: str, shape: Shape) -> Any:
    kind = kernel.scalars.get(name, "int32")
    try:
        return SCALARS[kind](shape[name])
    except OverflowError:
        raise ExperimentError(
            f"{kernel.name} takes {name} as {kind}, which {shape[name]} does not fit into"
        ) from None


def _bits(array: Any) -> Any:
    """An array's bytes: NaN compares equal to itself there."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
