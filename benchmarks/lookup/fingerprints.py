"""Fingerprints to look up: uniform, or distributed like the fingerprints of real sentences."""

import re
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks import articles
from benchmarks.lookup.schemes import Fingerprints
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import CLASSIC

Draw = Callable[[int, np.random.Generator], Fingerprints]

_SENTENCE = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")
_LEAST_LETTERS = 15
# One bit in 2**3 is taken from another sentence.
_MIXED_HALVINGS = 3
_MOST_FLIPPED_BITS = 3


def kinds() -> Mapping[str, Draw]:
    """Return the functions that draw fingerprints, by kind."""
    held = sentences()

    def resampled(count: int, random: np.random.Generator) -> Fingerprints:
        """Draw sentences with replacement, and replace one bit in eight by the same bit of another sentence.

        Each bit is therefore 1 as often as in real sentences, bits depend on each other nearly as much, and
        similar sentences form families. Fingerprints of one family are about 7 bits apart.
        """
        mixed = np.full(count, 2**64 - 1, np.uint64)
        for _ in range(_MIXED_HALVINGS):
            mixed &= random.integers(0, 2**64, count, np.uint64)
        return random.choice(held, count) & ~mixed | random.choice(held, count) & mixed

    return {"uniform": uniform, "real": resampled}


def uniform(count: int, random: np.random.Generator) -> Fingerprints:
    return random.integers(0, 2**64, count, np.uint64)


def sentences() -> Fingerprints:
    """Return the distinct simhashes, as `classic` computes them, of the labelled sets' longer sentences."""
    found = []
    for name in articles.SETS:
        each = {part.strip() for text in articles.texts_of(name) for part in _SENTENCE.split(text)}
        long_enough = sorted(part for part in each if len(part) >= _LEAST_LETTERS)
        fingerprints = Fingerprinter(CLASSIC).fingerprint(long_enough)
        found.append(fingerprints.signatures[fingerprints.exists])
    return np.unique(np.concatenate(found))


def arriving(held: Fingerprints, draw: Draw, count: int, random: np.random.Generator) -> Fingerprints:
    """Return arrivals, every second one within three bits of a stored fingerprint; the rest are new."""
    batch = draw(count, random)
    near = random.choice(held, -(-count // 2))
    for _ in range(_MOST_FLIPPED_BITS):
        near ^= np.uint64(1) << random.integers(0, 64, len(near), np.uint64)
    batch[::2] = near
    return batch
