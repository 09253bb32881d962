"""Band keys: the terms under which a fingerprint is stored, and those that find what is near it.

A layout is a list of tables. A table is a choice of bit ranges, and a fingerprint's key in it is the bits
in those ranges, one range after the other. There are two, and both miss nothing within 3 bits:

- `NODES`: 64 bits are cut into five blocks, and 3 differing bits leave at least two of them equal; there is a
  table for every choice of two blocks (pigeonhole; Manku, Jain, Das Sarma, WWW 2007).
- `ARTICLES`: of two halves, one has at most one of 3 differing bits. So two keys are stored, and those within
  one bit are asked for as well: the fewest keys to store, and more to ask for.

docs/lookup.md compares them with others.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

BitRange = tuple[int, int]
"""Bits `start` (inclusive) to `stop` (exclusive), counted from the highest bit of a fingerprint."""

WIDTH_BITS = 64
# The least bits of an exact key: few minhashes of a forest share 40 by chance. They take more digits than a
# band key, so that the two kinds never collide.
_EXACT_BITS = 40
# The first sixteen are those of hex.
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
_CHARACTERS = np.frombuffer(_DIGITS.encode("utf-32-le"), "<u4")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A list of tables of band keys."""

    # Stored with the data: names the tables.
    name: str
    # For each table the bit ranges that make its key.
    tables: tuple[tuple[BitRange, ...], ...]
    # Keys within this many bits of a fingerprint's own are asked for; 0: its own.
    asked_distance_bits: int = 0
    # Of each digit of a term: 4 is hex; 6 makes terms shorter.
    digit_bits: int = 4

    def keys(self, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the keys of fingerprints, uint64 ``(n,)``: uint64 ``(n, tables)``, each right-aligned."""
        keys = np.zeros((len(fingerprints), len(self.tables)), np.uint64)
        for table, ranges in enumerate(self.tables):
            for start, stop in ranges:
                bits = fingerprints >> np.uint64(WIDTH_BITS - stop) & np.uint64((1 << stop - start) - 1)
                keys[:, table] = keys[:, table] << np.uint64(stop - start) | bits
        return keys

    def terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the keys of fingerprints, uint64 ``(n,)``, as terms of one length for an inverted index.

        Each is the number of the table, then the key's bits; they are in the order of the tables.
        """
        return self._to_terms(self.keys(fingerprints), np.arange(len(self.tables), dtype=np.uint64))

    def asked_terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the terms to search for: whatever is within 3 bits of a fingerprint has one of them.

        They are those of `terms`, unless the layout also asks for keys within some bits: then table by table,
        each beginning with the fingerprint's own key. All fingerprints, uint64 ``(n,)``, get the same number.
        """
        flips = [
            differences_within(sum(stop - start for start, stop in ranges), self.asked_distance_bits)
            for ranges in self.tables
        ]
        counts = [len(each) for each in flips]
        keys = np.repeat(self.keys(fingerprints), counts, axis=1) ^ np.concatenate(flips)
        return self._to_terms(keys, np.repeat(np.arange(len(self.tables), dtype=np.uint64), counts))

    def exact_terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[str]:
        """Return a term for each fingerprint, ``(n,)``, that (nearly always) only equal ones share."""
        digits = -(-_EXACT_BITS // self.digit_bits)
        terms: list[str] = self._to_digits(
            fingerprints >> np.uint64(WIDTH_BITS - digits * self.digit_bits), digits
        )
        return terms

    @functools.cached_property
    def key_bits(self) -> int:
        """Bits of a term below its table's number."""
        key_bits = max(sum(stop - start for start, stop in ranges) for ranges in self.tables)
        return key_bits + -key_bits % 4

    @functools.cached_property
    def digits(self) -> int:
        """Digits of a term."""
        table_bits = max(1, (len(self.tables) - 1).bit_length())
        return -(-(table_bits + self.key_bits) // self.digit_bits)

    def _to_terms(self, keys: npt.NDArray[np.uint64], tables: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the terms of each row of `keys`, ``(n, k)``, whose columns are of `tables`, ``(k,)``."""
        terms: list[list[str]] = self._to_digits(keys | tables << np.uint64(self.key_bits), self.digits)
        return terms

    def _to_digits(self, numbers: npt.NDArray[np.uint64], digits: int) -> list[Any]:
        """Return numbers as strings of so many digits, in lists as the array has them."""
        shifts = np.array([place * self.digit_bits for place in reversed(range(digits))], np.uint64)
        found = _CHARACTERS[numbers[..., None] >> shifts & np.uint64((1 << self.digit_bits) - 1)]
        # All digits at once, since one string after the other takes much longer.
        strings: list[Any] = found.view(f"<U{digits}")[..., 0].tolist()
        return strings


NODES = Layout(
    name="5choose2",
    tables=tuple(itertools.combinations(((0, 13), (13, 26), (26, 39), (39, 52), (52, 64)), 2)),
)
"""The layout of nodes that are searched for: few keys to ask for."""
ARTICLES = Layout(name="articles", tables=(((0, 32),), ((32, 64),)), asked_distance_bits=1, digit_bits=6)
"""The layout of `bands` in articles: the fewest keys, in the shortest terms."""


def terms_around(fingerprint: int, term: str) -> list[str]:
    """Return finer terms to search with one of the fingerprint's in `NODES` that very many nodes share.

    Every fingerprint within 3 bits that has `term` has one of these terms. The term is two equal blocks, so
    the 3 bits are in the other three: either two of those three have at most one differing bit together, or
    each of the three has exactly one.
    """
    own = set(NODES.tables[int(term, 16) >> NODES.key_bits])
    others = [table for table, blocks in enumerate(NODES.tables) if not own & set(blocks)]
    terms: list[str] = []
    for other in others:
        one, two = (
            [np.uint64(1 << WIDTH_BITS - 1 - bit) for bit in range(*block)] for block in NODES.tables[other]
        )
        flips = [np.uint64(0), *one, *two]
        if other == others[0]:
            flips += [first | second for first in one for second in two]
        terms += [each[other] for each in NODES.terms(np.uint64(fingerprint) ^ np.array(flips))]
    return terms


@functools.cache
def around_counts() -> list[int]:
    """Return how many terms `terms_around` returns for each of a fingerprint's in `NODES`, in their order."""
    (own,) = NODES.terms(np.zeros(1, np.uint64))
    return [len(terms_around(0, term)) for term in own]


@functools.cache
def differences_within(width: int, distance_bits: int) -> npt.NDArray[np.uint64]:
    """Return all values of `width` bits with at most `distance_bits` bits set, fewer bits first: uint64.

    A value XOR these is all values within that distance. Not to be written to.
    """
    values = [
        sum(1 << bit for bit in bits)
        for count in range(distance_bits + 1)
        for bits in itertools.combinations(range(width), count)
    ]
    found = np.array(values, np.uint64)
    found.flags.writeable = False
    return found
