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
from array import array
from collections.abc import Iterable

from esdedup import _core

BitRange = tuple[int, int]
"""Bits `start` (inclusive) to `stop` (exclusive), counted from the highest bit of a fingerprint."""

WIDTH_BITS = 64
# Takes simhashes for signatures.
_RELATION = _core.Relation(0, None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A list of tables of band keys."""

    # Stored with the data: names the tables.
    name: str
    # For each table the bit ranges that make its key.
    tables: tuple[tuple[BitRange, ...], ...]
    # Keys within this many bits of a fingerprint's own are asked for; 0: its own.
    asked_distance_bits: int = 0
    # The bits of each digit of a term: 4 is hex; 6 makes terms shorter.
    digit_bits: int = 4

    def terms(self, simhashes: Iterable[int]) -> list[list[str]]:
        """Return the keys of simhashes as terms of one length for an inverted index.

        Each is the number of the table, then the key's bits; they are in the order of the tables.
        """
        return _RELATION.terms(array("Q", simhashes).tobytes(), self, False)

    def asked_terms(self, simhash: int) -> list[str]:
        """Return the terms to search for: whatever is within 3 bits of a simhash has one of them.

        They are those of `terms`, unless the layout also asks for keys within some bits: then table by table,
        each beginning with the simhash's own key. There are as many for each simhash.
        """
        terms: list[str] = []
        for table, ranges in enumerate(self.tables):
            # The lowest bits of the key first.
            bits = [bit for start, stop in reversed(ranges) for bit in _bits((start, stop))]
            several = (itertools.combinations(bits, count) for count in range(self.asked_distance_bits + 1))
            flips = map(sum, itertools.chain.from_iterable(several))
            terms += self.terms_of_table(table, (simhash ^ flip for flip in flips))
        return terms

    def terms_of_table(self, table: int, simhashes: Iterable[int]) -> list[str]:
        """Return the terms of simhashes in one table."""
        return [terms[table] for terms in self.terms(simhashes)]

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


def _bits(block: BitRange) -> list[int]:
    """Return the bits of a range as numbers, the lowest first."""
    start, stop = block
    return [1 << WIDTH_BITS - 1 - bit for bit in reversed(range(start, stop))]


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
        one, two = map(_bits, NODES.tables[other])
        flips = [0, *one, *two]
        if other == others[0]:
            flips += [first | second for first in one for second in two]
        terms += NODES.terms_of_table(other, (fingerprint ^ flip for flip in flips))
    return terms


@functools.cache
def around_counts() -> list[int]:
    """Return how many terms `terms_around` returns for each of a fingerprint's in `NODES`, in their order."""
    (own,) = NODES.terms([0])
    return [len(terms_around(0, term)) for term in own]
