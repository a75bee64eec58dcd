"""Reads of what nobody wrote; accesses outside an array or off their alignment."""

from __future__ import annotations

import numpy as np
import pytest

from kernelbook.errors import PtxError

from .conftest import Launch, kernel


def test_reading_shared_memory_nobody_wrote_names_element_and_thread(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[64];\nif (t != 5) s[t] = t;\n__syncthreads();\nout[t] = s[t];"
    )
    (found,) = launch(source, 3, 64, [np.zeros(64, np.int32)]).findings[:1]
    assert (found.kind, found.what, found.count) == ("uninitialised", "s[5]", 3)
    assert found.first is not None
    assert (found.first.thread, found.first.line) == ((5, 0, 0), 5)


def test_words_written_in_one_block_are_not_written_in_another(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[32]; if (blockIdx.x < 3) s[t] = t; __syncthreads();"
        "out[blockIdx.x * 32 + t] = s[t];"
    )
    found = launch(source, 5, 32, [np.zeros(160, np.int32)]).findings
    assert [(f.kind, f.count) for f in found] == [("uninitialised", 64)]
    assert found[0].first is not None
    assert found[0].first.block == (3, 0, 0)


def test_a_half_written_word_is_half_uninitialised(launch: Launch) -> None:
    source = kernel(
        "__shared__ unsigned short s[64]; if (t % 2) s[t] = t; __syncthreads(); out[t] = s[t];"
    )
    (found,) = launch(source, 1, 64, [np.zeros(64, np.int32)]).findings
    assert (found.what, found.count) == ("s[0]", 32)


def test_wide_accesses_are_checked_word_by_word(launch: Launch) -> None:
    source = kernel(
        "__shared__ __align__(16) int s[128]; if (t != 9) s[t] = t; __syncthreads();"
        "if (t < 32) out[t] = ((int4*)s)[t].w;"
    )
    found = launch(source, 1, 128, [np.zeros(32, np.int32)]).findings
    assert all(f.kind == "uninitialised" for f in found)


def test_an_atomic_on_what_nobody_wrote_is_a_read(launch: Launch) -> None:
    source = kernel(
        "__shared__ int s[4]; atomicAdd(&s[t & 3], 1); __syncthreads(); out[t] = s[t & 3];"
    )
    found = launch(source, 1, 32, [np.zeros(32, np.int32)]).findings
    assert [(f.kind, f.count) for f in found] == [("uninitialised", 32)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("out[t + 1] = t;", "[64]"),
        ("out[t] = out[t - 1];", "[-1]"),
        ("*(int*)((char*)out + t * 2 + 2) = 1;", "misaligned"),
        ("__shared__ int s[64]; s[t] = t; __syncthreads(); out[t] = s[t * 2];", "s"),
    ],
)
def test_an_access_outside_its_array_stops_with_one_sentence(
    launch: Launch, body: str, words: str
) -> None:
    with pytest.raises(PtxError) as caught:
        launch(kernel(body), 1, 64, [np.zeros(64, np.int32)])
    assert words in str(caught.value)
    assert "thread (" in str(caught.value)
