"""The key under which a row was taken, and whether the tree still has that key.

The key covers what can change what the hardware does: the tokens of the source and its project
includes (comments and white space left out), macros, options with the record's own architecture,
shape, dtype, seed, grid, block and dynamic shared memory. Toolkit headers are left out: their
version is recorded, and a reader's toolkit must not make our numbers stale. The compiler's version
is recorded and not hashed for the same reason.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from .compiler import compile_options
from .experiment import Cpu, Dim, Experiment, Kernel, Library, Target, Transfer, Variant
from .sources import includes_of, tokens

# What stands for a source in a key: `source_digest`, or what remembers its answers.
Digest = Callable[[Path], str]


def source_digest(source: Path) -> str:
    """Hash of the tokens of a source and of its project includes."""
    digest = hashlib.sha256()
    for path in (source, *includes_of(source)):
        digest.update(_token_bytes(path.read_text(encoding="utf-8")))
        digest.update(b"\1")
    return digest.hexdigest()


def kernel_key(
    experiment: Experiment,
    kernel: Kernel,
    arch: str,
    shape: Mapping[str, int],
    target: Target,
    digest: Digest = source_digest,
) -> str:
    """Key of a kernel's row on one architecture at one shape."""
    source = experiment.folder / kernel.source
    parts: list[object] = [
        digest(source),
        kernel.entry,
        compile_options(arch, kernel.macros, kernel.options),
        sorted(shape.items()),
        experiment.dtype,
        experiment.seed,
        launch_of(kernel, shape, target),
        *((each.entry, launch_of(each, shape, target)) for each in kernel.then),
    ]
    return _digest(parts)


def variant_key(
    experiment: Experiment,
    variant: Variant,
    arch: str,
    shape: Mapping[str, int],
    target: Target,
    digest: Digest = source_digest,
) -> str:
    """Key of any row: a kernel's as above, a baseline's by what it runs and on what."""
    if isinstance(variant, Kernel):
        return kernel_key(experiment, variant, arch, shape, target, digest)
    common: list[object] = [variant.kind, sorted(shape.items()), experiment.dtype, experiment.seed]
    if isinstance(variant, Library):
        host_code = [digest(experiment.folder / variant.source)] if variant.source else []
        return _digest([*common, variant.routine, *host_code])
    if isinstance(variant, Transfer):
        return _digest([*common, variant.direction, variant.pinned])
    return _digest([*common, _function_tokens(variant)])


def launch_of(kernel: Kernel, shape: Mapping[str, int], target: Target) -> tuple[Dim, Dim, int]:
    """(grid, block, dynamic shared bytes) of a kernel at a shape on a target."""
    return kernel.grid(shape, target), kernel.block(shape, target), kernel.dynamic_shared(shape)


@lru_cache(maxsize=256)
def _token_bytes(text: str) -> bytes:
    # Every row of every record asks for the key of one of a few dozen files.
    return b"".join(token.encode() + b"\0" for token in tokens(text))


def _function_tokens(variant: Cpu) -> str:
    # A '#' comment changes the text but not the code object's constants and names.
    code = variant.run.__code__
    try:
        lines = inspect.getsource(variant.run).splitlines()
    except OSError:
        return code.co_name
    return "\n".join(line.split("#")[0].strip() for line in lines if line.split("#")[0].strip())


def _digest(parts: list[object]) -> str:
    text = json.dumps(parts, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
