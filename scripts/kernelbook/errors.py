"""What can go wrong because of something a user gave us, each with one clear sentence.

    KernelbookError
    ├── UsageError          a command's arguments: unknown experiment, conflicting options
    ├── ExperimentError     an experiments.py that does not hold together
    ├── CompileError        a .cu that NVRTC refuses
    ├── DeviceError         no GPU, a GPU too small, a driver too old, out of memory, a fault
    │   └── NotBuilt        a baseline that this machine has no compiler for
    ├── RecordError         a broken or foreign record in results/data
    ├── VerifyError         a kernel whose output is wrong
    ├── PtxError            PTX that cannot be parsed or executed
    │   └── UnsupportedPtx  an instruction the emulator refuses by name
    └── PageError           an article: missing key, region, false claim, stale number

A bug in kernelbook itself is none of these and stays a traceback.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

# Control characters, marks that turn writing around, halves of characters, line and page ends.
_UNSHOWN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str, keep: str = "") -> str:
    """Text from anywhere, fit for a terminal: what would steer it is spelled out instead.

    Characters of ``keep`` stay what they are; without it the result is one line.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c in keep or unicodedata.category(c) not in _UNSHOWN else repr(c)[1:-1] for c in text
    )


class KernelbookError(Exception):
    """One sentence: what happened, where (file and line, if known), what to do.

    Parameters
    ----------
    what : the sentence, without the place.
    file, line : the place; rendered in front as ``file:line:``.
    hint : what to do, rendered after the sentence.

    All three may quote what strangers wrote: see `printable`.
    """

    _KEPT = "\n"  # several of one kind may be said at once, a line each

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        hint: str = "",
    ) -> None:
        self.what = printable(what, keep=self._KEPT)
        self.file = None if file is None else printable(str(file))
        self.line = line
        self.hint = printable(hint)
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        return f"{place}{self.what}" + (f" ({self.hint})" if self.hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (one process per experiment).
        return (_rebuild, (type(self), self.what, self.file, self.line, self.hint))


def _rebuild(
    cls: type[KernelbookError], what: str, file: str | None, line: int | None, hint: str
) -> KernelbookError:
    return cls(what, file=file, line=line, hint=hint)


class UsageError(KernelbookError):
    """The command line asks for something that does not exist or cannot be."""


class ExperimentError(KernelbookError):
    """An experiments.py that does not hold together."""


class CompileError(KernelbookError):
    """A .cu that the compiler refuses; the sentence is the compiler's own first error."""


class DeviceError(KernelbookError):
    """No GPU, a GPU too small or too old, out of memory, or a kernel that faulted."""


class NotBuilt(DeviceError):
    """A baseline that this machine has no compiler for: left out, which is no failure."""


class RecordError(KernelbookError):
    """A broken or foreign file under results/data or results/local."""

    _KEPT = ""


class VerifyError(KernelbookError):
    """A kernel whose output is wrong, or which touched what it must not."""


class PtxError(KernelbookError):
    """PTX that cannot be parsed or executed, or arguments that do not fit the kernel."""


class UnsupportedPtx(PtxError):
    """An instruction or feature the emulator does not execute; refused by name, never guessed."""


class PageError(KernelbookError):
    """An article that names what does not exist, says what is false, or quotes what is stale."""
