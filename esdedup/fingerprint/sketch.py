"""A sketch of a whole text in 64 bytes, from which the resemblance of two texts is estimated.

One-permutation MinHash (Li, Owen, Zhang, NIPS 2012): every run of tokens is hashed, the highest bits of
the hash choose one of 128 bins, and each bin keeps its least hash. A sketch stores 4 bits of each
(b-bit MinHash; Li, König, WWW 2010), or 0 for an empty bin. A bin that is empty in both texts is not
compared. So short texts, in which nearly every run has a bin of its own, are compared nearly exactly.

The resemblance of two texts is the share of their distinct runs that both have (Broder 1997). Runs with a
number count several times: texts made from one template differ in their numbers, and the larger the
share of numbers in a text, the more they should weigh.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from esdedup.text.hashing import mixed

if TYPE_CHECKING:
    from esdedup.text.tokens import Runs

BIN_BITS = 7
BINS = 1 << BIN_BITS
WORDS = BINS * 4 // 64
"""64-bit words of a sketch: sketches are uint64 ``(n, WORDS)``."""

MINHASHES = 8
"""Minhashes of a text: one more than represent it beside two sentences."""

# Each minhash takes so many groups of bins, and the run with the least hash of each. Two runs would
# find a little more, but many unrelated texts have two common runs of words the same.
_RUNS = 3
_BINS_OF_GROUP = BINS // (MINHASHES * _RUNS)
_CODES = np.uint64(15)
_NIBBLES = np.uint64(0x1111_1111_1111_1111)
_LOW = np.uint64(0xFFFF_FFFF)
_NONE = np.uint64(2**64 - 1)
# Odd. A run that counts several times is rehashed by multiplying its hash with powers of this.
_REPEAT = 0xD6E8FEB86659FD93

Sketches = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sketched:
    """The sketches and minhashes of a batch of texts."""

    # uint64 (n, WORDS).
    sketches: Sketches
    # int64 (n,): the total weight of each text's runs.
    runs: npt.NDArray[np.int64]
    # uint64 (n, MINHASHES): each made of two or three runs, chosen by their hashes; 0 for none.
    minhashes: npt.NDArray[np.uint64]


def sketch(runs: "Runs", *, number_weight: int) -> Sketched:
    """Sketch a batch of texts.

    Args:
        runs: One group of runs per text.
        number_weight: How many times a run with a number counts; the others count once.
    """
    texts = np.arange(len(runs.counts)).repeat(runs.counts)
    least = np.full((len(runs.counts), BINS), _NONE)
    _lower(least, texts, runs.hashes)
    texts_of_numbers, hashes_of_numbers = (each.compress(runs.have_number) for each in (texts, runs.hashes))
    for repeat in range(1, number_weight):
        factor = np.uint64(pow(_REPEAT, repeat, 2**64))
        _lower(least, texts_of_numbers, factor * hashes_of_numbers)
    repeats = (number_weight - 1) * np.bincount(texts_of_numbers, minlength=len(least))
    return Sketched(sketches=_packed(least), runs=runs.counts + repeats, minhashes=_minhashes(least))


def _packed(least: npt.NDArray[np.uint64]) -> Sketches:
    """Return 4 bits of each bin's least hash, 0 for an empty bin: uint64 ``(n, WORDS)``."""
    codes = ((least & _LOW) % _CODES + np.uint64(1)).astype(np.uint8)
    codes[least == _NONE] = 0
    nibbles = codes[:, 0::2] << np.uint8(4) | codes[:, 1::2]
    return nibbles.view(">u8").astype(np.uint64)


def _minhashes(least: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the minhashes of texts, uint64 ``(n, MINHASHES)``, from the least hashes of their bins."""
    # The least hash in a group of bins picks a run at random. Another text with that run picks the same
    # one, unless it has a run with a lower hash that this text lacks.
    grouped = least[:, : MINHASHES * _RUNS * _BINS_OF_GROUP].reshape(-1, MINHASHES, _RUNS, _BINS_OF_GROUP)
    runs = grouped.min(axis=3)
    one, two, three = np.moveaxis(runs, 2, 0)
    pairs = mixed(mixed(one) + two)
    # Short texts leave many groups empty; they would have hardly any minhashes without this.
    minhashes = np.where(three == _NONE, pairs, mixed(pairs + three))
    minhashes[(one == _NONE) | (two == _NONE)] = 0
    return minhashes


def _lower(
    least: npt.NDArray[np.uint64], texts: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64]
) -> None:
    """Lower the bins of `least`, in place, to the hashes that fall into them.

    Args:
        least: ``(texts, BINS)``, contiguous.
        texts: The text of each hash, ``(n,)``.
        hashes: ``(n,)``; their highest bits choose the bin.
    """
    bins = (hashes >> np.uint64(64 - BIN_BITS)).view(np.int64)
    bins += texts << BIN_BITS
    np.minimum.at(least.reshape(-1), bins, hashes)


def resemblance(one: Sketches, other: Sketches) -> npt.NDArray[np.float64]:
    """Estimate the resemblance of pairs of texts, row by row: float64 ``(n,)``, 0 to 1.

    The root mean square error is about 0.05; see `test_the_estimate_is_near_the_truth`.

    Args:
        one: ``(n, WORDS)``.
        other: ``(n, WORDS)``.
    """
    in_one, in_other = _filled(one), _filled(other)
    either = _count(in_one | in_other)
    same = either - _count(_filled(one ^ other))
    # Different runs have equal codes by chance once in 15 times.
    chance = _count(in_one & in_other) / float(_CODES)
    share = (same - chance) / (1 - 1 / float(_CODES)) / np.maximum(either, 1)
    return np.clip(share, 0.0, 1.0)


def _filled(sketches: Sketches) -> Sketches:
    """Return 1 for each nibble that is not 0, in its place."""
    pairs = sketches | sketches >> np.uint64(1)
    lowest: Sketches = (pairs | pairs >> np.uint64(2)) & _NIBBLES
    return lowest


def _count(words: Sketches) -> npt.NDArray[np.int64]:
    counts: npt.NDArray[np.int64] = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
    return counts
