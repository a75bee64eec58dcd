"""Series of samples with the noise of a GPU, made up from a seed: what the rules are tried on.

What is in them: timer steps, a skewed tail (interrupts, refresh), a slow drift of the clock, a
second mode (another way through the memory's channels), and a shift of the whole series that each
run has for itself (where its buffers lie).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Noise:
    """Shares of the true time, except ``step_us``, the timer's step."""

    jitter: float = 0.002
    tail: float = 0.02  # an exponential tail of this mean ...
    tail_share: float = 0.05  # ... on this share of the samples
    drift: float = 0.0  # how much slower the clock gets over the series
    mode: float = 0.0  # how much slower the second mode is ...
    mode_share: float = 0.0  # ... on this share of the samples
    placement: float = 0.002  # standard deviation of a whole run's shift, at most twice that
    step_us: float = 0.032


KINDS: Mapping[str, Noise] = {
    "quiet": Noise(),
    "drifting": Noise(drift=0.01),
    "bimodal": Noise(mode=0.01, mode_share=0.4),
}


def series(rng: random.Random, time_us: float, noise: Noise, count: int = 60) -> list[float]:
    """``count`` samples of a kernel whose least time is about ``time_us``."""
    placed = time_us * (1 + max(-2.0, min(2.0, rng.gauss(0, 1))) * noise.placement)
    samples = []
    for i in range(count):
        factor = 1 + abs(rng.gauss(0, noise.jitter)) + noise.drift * i / count
        if rng.random() < noise.tail_share:
            factor += rng.expovariate(1 / noise.tail)
        if rng.random() < noise.mode_share:
            factor += noise.mode
        samples.append(round(placed * factor / noise.step_us) * noise.step_us)
    return samples
