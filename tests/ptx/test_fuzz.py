"""Damaged PTX never gives a traceback: it parses, runs, or is refused with one sentence."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from cuda_source import compile_text
from golden_forms import HEADER, kernel_text
from golden_list import all_forms

from kernelbook.errors import PtxError
from kernelbook.ptx import parse, run

SOURCE = """#include <cuda_fp16.h>
#include <cuda_pipeline.h>
__constant__ float weights[4] = {1, 2, 3, 4};
extern "C" __global__ void k(float* x, half2* h, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    float local[4];
    for (int i = 0; i < 4; i++) local[i] = x[t] * i;
    s[t] = expf(local[t & n]) + weights[t & 3];
    __syncthreads();
    float v = __shfl_xor_sync(~0u, s[t ^ 1], 16);
    if (t < n) atomicAdd(&x[0], v);
    switch (t % 5) { case 0: v += 1; break; case 1: v *= 2; break; case 2: v = sqrtf(v); }
    h[t] = __hfma2(h[t], h[t], __float2half2_rn(v));
    __pipeline_memcpy_async(&s[t], &x[t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    x[t] = s[t] / 3 + __ballot_sync(~0u, v > 1);
}
"""


def attempt(text: str) -> str | None:
    """Parse and run; the sentence of the refusal, if any. Anything but PtxError comes out."""
    try:
        module = parse(text)
        for kernel in module.kernels:
            arguments = [np.zeros(64, np.float32), np.zeros(128, np.float16), 3]
            run(module, kernel.name, 1, 64, arguments, observers=(), budget=2_000_000)
    except PtxError as error:
        return str(error)
    return None


def _tokens(text: str) -> list[str]:
    return [word for line in text.splitlines() for word in (*line.split(), "\n")]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30))
def test_mutated_ptx(seed: int) -> None:
    """Words of real PTX deleted, doubled, swapped or replaced by other words of it."""
    chance = random.Random(seed)
    words = _tokens(compile_text(SOURCE))
    pool = [
        *words,
        "9999999999999999999999",
        "{",
        "}",
        "[",
        "]",
        ";",
        "-1",
        "%r99999",
        "0f",
        ".b128",
    ]
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(words))
        action = chance.randrange(4)
        if action == 0:
            del words[at]
        elif action == 1:
            words.insert(at, words[at])
        elif action == 2:
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        else:
            words[at] = chance.choice(pool)
    assert attempt(" ".join(words)) != ""


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30))
def test_mutated_characters(seed: int) -> None:
    chance = random.Random(seed)
    text = list(compile_text(SOURCE))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text))
        text[at] = chance.choice("{}[]();,.:@!%$_-+0x9zf\n\"'\x00é")
    assert attempt("".join(text)) != ""


@pytest.mark.parametrize("part", range(8))
def test_forms_with_a_modifier_or_operand_changed(part: int) -> None:
    """Every form with one word of its instruction dropped or exchanged with another form's."""
    forms = all_forms()[part::8]
    chance = random.Random(part)
    for form in forms[::3]:
        other = chance.choice(forms)
        words = form.text.replace(".", " .").replace(",", " ,").split()
        donor = other.text.replace(".", " .").replace(",", " ,").split()
        words[chance.randrange(len(words))] = chance.choice(["", *donor])
        text = HEADER + kernel_text(form, "k").replace(
            form.text, " ".join(words).replace(" .", ".")
        )
        try:
            out = np.zeros((2, 1024), np.uint64)
            run(text, "k", 1, 64, [out, np.zeros((4, 1024), np.uint64)], observers=())
        except PtxError:
            continue


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200))
def test_arbitrary_text(text: str) -> None:
    assert attempt(text) != ""
    assert attempt(".version 8.0\n.target sm_90\n.address_size 64\n" + text) != ""
