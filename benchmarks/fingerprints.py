"""Fingerprints to measure with."""

from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.forest import Arrivals
from esdedup.simhash import to_hex

Fingerprints = npt.NDArray[np.uint64]

_NEAR_COPIES = 0.2


def random_ones(count: int, random: np.random.Generator) -> Fingerprints:
    return random.integers(0, 2**64, count, np.uint64)


def biased(count: int, random: np.random.Generator) -> Fingerprints:
    """Make fingerprints whose bits are 1 with probabilities of 0.3 to 0.7, each its own."""
    result = np.zeros(count, np.uint64)
    for bit, chance in enumerate(random.uniform(0.3, 0.7, 64)):
        result |= (random.random(count) < chance).astype(np.uint64) << np.uint64(bit)
    return result


def batch_of(count: int, held: Fingerprints, random: np.random.Generator) -> Fingerprints:
    """Make a batch; a fifth of it lies one to three bits from what is held."""
    copies = int(count * _NEAR_COPIES)
    batch = random_ones(count, random)
    flips = np.uint64(1) << random.integers(0, 64, (copies, 3), np.uint64)
    batch[:copies] = random.choice(held, copies) ^ np.bitwise_or.reduce(flips, axis=1)
    return batch


def arrivals_of(fingerprints: Fingerprints) -> Arrivals:
    return Arrivals(
        ids=to_hex(fingerprints), signatures=fingerprints, times_ms=np.zeros(len(fingerprints), np.int64)
    )


def as_bytes(fingerprints: Fingerprints) -> Any:
    """View fingerprints as faiss wants them."""
    return fingerprints.view(np.uint8).reshape(-1, 8)
