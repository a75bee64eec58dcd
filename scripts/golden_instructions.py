"""Record on a GPU what every instruction form of the emulator computes.

    python scripts/golden_instructions.py

writes ``tests/golden/instructions.npz`` (``--output`` names another file). Needs an NVIDIA GPU of
compute capability 9.0 or newer, NumPy and CuPy; takes well under a minute. ``pytest
tests/ptx/test_golden.py`` then replays the file on the emulator.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "ptx"))

import numpy as np  # noqa: E402
from golden_forms import LANES, Bits, Form, inputs_of, module_text  # noqa: E402
from golden_list import all_forms  # noqa: E402
from golden_store import Golden, load, save  # noqa: E402

_BLOCK = 256
_FORMS_A_MODULE = 100  # one bad form makes the assembler refuse a module; small ones cost little


def _load_module(cupy: Any, forms: list[Form]) -> Any:
    module = cupy.cuda.function.Module()
    module.load(module_text(forms).encode() + b"\0")
    return module


def _execute(cupy: Any, module: Any, position: int, form: Form) -> Bits:
    function = module.get_function(f"form_{position}")
    inputs = cupy.asarray(inputs_of(form))
    outputs = cupy.zeros((len(form.outputs), LANES), np.uint64)
    function((LANES // _BLOCK, 1, 1), (_BLOCK, 1, 1), (outputs, inputs))
    result: Bits = cupy.asnumpy(outputs)
    return result


def record(cupy: Any, forms: list[Form]) -> Golden:
    """Execute all forms; those that the driver's assembler refuses are listed with its reason."""
    outputs: dict[str, Bits] = {}
    refused: dict[str, str] = {}
    for first in range(0, len(forms), _FORMS_A_MODULE):
        chunk = forms[first : first + _FORMS_A_MODULE]
        try:
            module = _load_module(cupy, chunk)
        except cupy.cuda.driver.CUDADriverError:
            for form in chunk:
                try:
                    single = _load_module(cupy, [form])
                except cupy.cuda.driver.CUDADriverError as error:
                    refused[form.name] = str(error)
                    continue
                outputs[form.name] = _execute(cupy, single, 0, form)
            continue
        for position, form in enumerate(chunk):
            outputs[form.name] = _execute(cupy, module, position, form)
    return Golden(outputs, {}, refused, _device(cupy))


def _device(cupy: Any) -> dict[str, str]:
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    name = properties["name"]
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "driver": str(cupy.cuda.runtime.driverGetVersion()),
        "cupy": cupy.__version__,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = ROOT / "tests" / "golden" / "instructions.npz"
    parser.add_argument("--output", type=Path, default=default)
    arguments = parser.parse_args()
    try:
        import cupy

        cupy.cuda.Device(0).use()
    except Exception as error:  # no CuPy, no driver or no device: all the same to the user
        print(f"golden_instructions: needs CuPy and an NVIDIA GPU: {error}", file=sys.stderr)
        return 1
    started = time.perf_counter()
    forms = all_forms()
    golden = record(cupy, forms)
    save(arguments.output, forms, golden)
    seconds = time.perf_counter() - started
    size = arguments.output.stat().st_size
    print(f"{len(load(arguments.output).outputs)} of {len(forms)} forms in {seconds:.1f} s")
    print(f"{arguments.output}: {size:,} bytes; device {golden.device}")
    for name, reason in golden.refused.items():
        print(f"refused: {name}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
