"""Compares the share of bits in which simhashes differ with the angle between their word weights.

Each bit of a simhash says on which side of a random plane the vector of weights lies, so the simhashes of two
vectors differ in a bit with probability angle / π (Charikar, STOC 2002).
"""

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.figure import Figure

from benchmarks.server import Run
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import KEYWORDS
from esdedup.fingerprint.simhash import weighted_simhashes
from esdedup.text.hashing import MURMUR3
from esdedup.text.weights import WEIGHT_SCALE
from tests import sample

TABLE = "angle"
DEGREES = (1, 3, 5, 10, 15, 20, 30, 40, 50, 60, 75, 90, 105, 120, 135, 150, 165, 179)
WIDTH = 64
_WORDS, _PAIRS = 300, 400
# The number of articles from the sample corpus, and the width of the ranges by which pairs are grouped.
_ARTICLES, _JOINED_DEGREES = 400, 5
_RANDOM, _SAMPLE = "random weights", "articles of the sample corpus"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Angle:
    """The simhashes of pairs of weight vectors at some angle."""

    kind: str
    # The mean angle of the pairs.
    degrees: float
    # The share of all the pairs' bits that differ.
    share: float
    pairs: int
    table: str = TABLE

    @property
    def expected(self) -> float:
        return self.degrees / 180

    def cells(self) -> dict[str, str]:
        return {
            "of": self.kind,
            "pairs": f"{self.pairs:,}",
            "degrees": f"{self.degrees:.1f}",
            "bits that differ": f"{self.share:.4f}",
            "angle / π": f"{self.expected:.4f}",
        }


def angle(run: Run) -> list[Angle]:
    """Compare pairs of random vectors at given angles, and all pairs of articles of the sample corpus."""
    pairs = run.size(_PAIRS)
    random = np.random.default_rng(1)
    rows = [
        Angle(
            kind=_RANDOM,
            degrees=degrees,
            share=share_of_random_pairs(np.radians(degrees), words=_WORDS, pairs=pairs, random=random),
            pairs=pairs,
        )
        for degrees in DEGREES
    ]
    return [*rows, *_articles(run.size(_ARTICLES))]


def share_of_random_pairs(radians: float, *, words: int, pairs: int, random: np.random.Generator) -> float:
    """Return the share of bits that differ between the simhashes of vectors at the given angle.

    Each pair has its own words, hashed as in fingerprints. Unlike the weights of texts, these weights have
    both signs, because angles of more than 90 degrees require both.

    Args:
        radians: The angle, 0 to π.
        words: The number of words that have a weight.
        pairs: The number of pairs of vectors.
        random: The generator that draws the vectors.
    """
    differing = 0
    for pair in range(pairs):
        hashes = MURMUR3.of([f"{pair} {word}" for word in range(words)])
        one, other = vectors_at(radians, words, random)
        simhashes = [
            weighted_simhashes(hashes, np.rint(each * WEIGHT_SCALE).astype(np.int64), np.zeros(1, np.int64))
            for each in (one, other)
        ]
        differing += int(np.bitwise_count(simhashes[0] ^ simhashes[1])[0])
    return differing / (WIDTH * pairs)


def vectors_at(
    radians: float, size: int, random: np.random.Generator
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return two random vectors of equal length at the given angle: float64 ``(size,)`` each."""
    one, across = random.normal(size=(2, size))
    across -= one * (one @ across) / (one @ one)
    across *= np.linalg.norm(one) / np.linalg.norm(across)
    return one, np.cos(radians) * one + np.sin(radians) * across


def _articles(count: int) -> Iterator[Angle]:
    fingerprinter = Fingerprinter(KEYWORDS)
    texts = [article["text"] for article in sample.articles(count)]
    simhashes = fingerprinter.fingerprint(texts).signatures
    weights = [{each.word: each.weight for each in fingerprinter.features(text)} for text in texts]
    lengths = [float(np.linalg.norm(list(each.values()))) for each in weights]
    pairs: dict[int, list[tuple[float, int]]] = {}
    for one, other in combinations(range(len(texts)), 2):
        product = sum(weight * weights[other].get(word, 0.0) for word, weight in weights[one].items())
        degrees = float(np.degrees(np.arccos(min(1.0, product / (lengths[one] * lengths[other])))))
        distance = int(np.bitwise_count(simhashes[one] ^ simhashes[other]))
        pairs.setdefault(int(degrees // _JOINED_DEGREES), []).append((degrees, distance))
    for _, joined in sorted(pairs.items()):
        degrees, distance = np.mean(joined, axis=0).tolist()
        yield Angle(kind=_SAMPLE, degrees=degrees, share=distance / WIDTH, pairs=len(joined))


def draw(rows: list[Angle], path: Path) -> None:
    """Write a picture; the suffix of `path` determines its format."""
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    panel = figure.subplots()
    degrees = np.linspace(0, 180, 181)
    expected = degrees / 180
    deviation = 2 * np.sqrt(expected * (1 - expected) / WIDTH)
    panel.plot(degrees, expected, color="black", linewidth=1, label="angle / π")
    panel.fill_between(
        degrees, expected - deviation, expected + deviation, color="gray", alpha=0.2, linewidth=0,
        label=f"{WIDTH} bits of one pair: two standard deviations",
    )  # fmt: skip
    for kind, marker, colour in ((_RANDOM, "o", "tab:orange"), (_SAMPLE, "x", "tab:blue")):
        points = [(row.degrees, row.share) for row in rows if row.kind == kind]
        panel.plot(
            *zip(*points, strict=True), marker, color=colour, markersize=5, label=f"pairs of {kind}, mean"
        )
    panel.set_xlabel("angle between the weights of two texts, in degrees")
    panel.set_ylabel("share of bits that differ")
    panel.set_xlim(0, 180)
    panel.set_ylim(0, 1)
    panel.set_xticks(range(0, 181, 30))
    panel.grid(alpha=0.3)
    panel.legend(loc="upper left", fontsize="small")
    # Write the same bytes in every run.
    with rc_context({"svg.hashsalt": TABLE}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
