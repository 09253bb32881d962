"""Band keys: the terms under which a simhash is stored, and the terms that find near simhashes.

A layout is a list of tables. A table is a choice of bit ranges, and the key of a simhash in the table is the
concatenation of the bits in these ranges. Both layouts find all simhashes within 3 bits:

- `NODES`: 64 bits are divided into five blocks, and 3 differing bits leave at least two blocks equal. There
  is a table for every choice of two blocks (pigeonhole; Manku, Jain, Das Sarma, WWW 2007).
- `ARTICLES`: one of the two halves has at most one of 3 differing bits. So only two keys are stored, but a
  search also uses all keys within one bit.

docs/lookup.md compares these layouts with others.
"""

import dataclasses
import functools
import itertools
from array import array
from collections.abc import Iterable

from esdedup import _core

BitRange = tuple[int, int]
"""Bits `start` (inclusive) to `stop` (exclusive), counted from the highest bit of a simhash."""

WIDTH_BITS = 64
# A relation whose signatures are simhashes.
_RELATION = _core.Relation(0, None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A list of tables of band keys."""

    # The name that is stored with the data to identify the tables.
    name: str
    # For each table, the bit ranges of its key.
    tables: tuple[tuple[BitRange, ...], ...]
    # A search uses the keys within this many bits of a simhash's own keys.
    asked_distance_bits: int = 0
    # The number of bits per digit of a term: 4 for hexadecimal digits; with 6, terms are shorter.
    digit_bits: int = 4

    def terms(self, simhashes: Iterable[int]) -> list[list[str]]:
        """Return the keys of simhashes as terms of equal length for an inverted index.

        A term is the number of the table, then the bits of the key. Terms are in the order of the tables.
        """
        return _RELATION.terms(array("Q", simhashes).tobytes(), self, False)

    def search_terms(self, simhash: int) -> list[str]:
        """Return the terms to search for; every simhash within 3 bits has one of these terms.

        The terms include the keys within `asked_distance_bits`, in the order of the tables; in each table,
        the simhash's own key is the first. The number of terms is the same for all simhashes.
        """
        terms: list[str] = []
        for table, ranges in enumerate(self.tables):
            # Start with the lowest bit of the key.
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
        """The number of bits in a term after the table's number."""
        key_bits = max(sum(stop - start for start, stop in ranges) for ranges in self.tables)
        return key_bits + -key_bits % 4

    @functools.cached_property
    def digits(self) -> int:
        """The number of digits of a term."""
        table_bits = max(1, (len(self.tables) - 1).bit_length())
        return -(-(table_bits + self.key_bits) // self.digit_bits)


def _bits(block: BitRange) -> list[int]:
    """Return the bits of a range as numbers, lowest first."""
    start, stop = block
    return [1 << WIDTH_BITS - 1 - bit for bit in reversed(range(start, stop))]


NODES = Layout(
    name="5choose2",
    tables=tuple(itertools.combinations(((0, 13), (13, 26), (26, 39), (39, 52), (52, 64)), 2)),
)
"""The layout of the forest's nodes: a search needs few keys."""
ARTICLES = Layout(name="articles", tables=(((0, 32),), ((32, 64),)), asked_distance_bits=1, digit_bits=6)
"""The layout of `bands` in articles: it needs the fewest keys, in the shortest terms."""


def terms_around(fingerprint: int, term: str) -> list[str]:
    """Return finer terms for a search, given a term of the fingerprint in `NODES` that very many nodes share.

    Every fingerprint within 3 bits that has `term` also has one of these terms. `term` fixes two blocks, so
    the differing bits are in the other three blocks. Either two of these blocks together have at most one
    differing bit, or each of the three blocks has exactly one differing bit.
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
    """Return the number of terms that `terms_around` returns for each term in `NODES`, in order."""
    (own,) = NODES.terms([0])
    return [len(terms_around(0, term)) for term in own]
