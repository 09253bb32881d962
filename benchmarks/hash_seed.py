"""Other hash functions for our profiles, to see how much of a score is their luck."""

import contextlib
from collections.abc import Iterator, Sequence
from unittest import mock

import mmh3
import numpy as np
import numpy.typing as npt

from esdedup.text import parsed
from esdedup.text.hashing import TokenHash

# Odd, and not the base that the tokens' own hashes start from.
_STEP = 0xD1342543DE82EF95


@contextlib.contextmanager
def hashed_by(seed: int) -> Iterator[None]:
    """Hash characters and words by other functions meanwhile; by the package's own ones if `seed` is 0."""
    if not seed:
        yield
        return

    def words_hashed(_: TokenHash, words: Sequence[str]) -> npt.NDArray[np.uint64]:
        return np.array([_word_hash(word.encode(), seed=seed) for word in words], np.uint64)

    with (
        mock.patch.object(parsed, "_CHARACTER_HASH", (1, seed * _STEP % 2**64)),
        mock.patch.object(TokenHash, "of", words_hashed),
    ):
        yield


def _word_hash(token: bytes, *, seed: int) -> int:
    return mmh3.hash64(token, seed=seed, x64arch=True, signed=False)[0]
