"""A series of samples as a record stores it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelbook.records import Timing
from kernelbook.sampling import statistics


def timing(samples: Sequence[float], **changes: Any) -> Timing:
    """Timed by events, cold, at 1980 MHz, unless ``changes`` says else."""
    found = statistics(samples)
    values: dict[str, Any] = {
        "cache": "cold",
        "method": "event",
        "flush": "write, then read",
        "launches_per_sample": 1,
        "samples_us": tuple(samples),
        "median_us": found.median,
        "q1_us": found.q1,
        "q3_us": found.q3,
        "min_us": found.minimum,
        "ci_low_us": found.ci_low,
        "ci_high_us": found.ci_high,
        "outliers": found.outliers,
        "stop": "interval",
        "sm_clock_mhz": 1980.0,
    }
    return Timing(**{**values, **changes})
