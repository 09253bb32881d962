"""Band keys: the terms under which a simhash is stored, and the terms that find near simhashes.

A layout is a list of tables. A table is a choice of bit ranges, and the key of a simhash in the table is the
concatenation of the bits in these ranges. All layouts find all simhashes within 3 bits:

- `PAIRS` and `TRIPLES`: 64 bits are divided into five or six blocks, and 3 differing bits leave at least two
  or three blocks equal. There is a table for every choice of two or three blocks (pigeonhole; Manku, Jain,
  Das Sarma, WWW 2007).
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


PAIRS = Layout(
    name="5choose2",
    tables=tuple(itertools.combinations(((0, 13), (13, 26), (26, 39), (39, 52), (52, 64)), 2)),
)
"""The layout of nodes in searched forests of earlier versions. A forest with a log names it, too."""
TRIPLES = Layout(
    name="6choose3",
    tables=tuple(itertools.combinations(((0, 11), (11, 22), (22, 33), (33, 44), (44, 54), (54, 64)), 3)),
    digit_bits=6,
)
"""The layout of the nodes of a searched forest: its keys are so long that few nodes share one by chance."""
LAYOUTS = {layout.name: layout for layout in (PAIRS, TRIPLES)}
"""The layouts of nodes."""
ARTICLES = Layout(name="articles", tables=(((0, 32),), ((32, 64),)), asked_distance_bits=1, digit_bits=6)
"""The layout of `bands` in articles: it needs the fewest keys, in the shortest terms."""


def terms_around(layout: Layout, simhash: int, term: str) -> list[str]:
    """Return finer terms for a search, given a term of a simhash that very many nodes share.

    Every simhash within 3 bits has one of these terms, with or without `term`: a node with two sentences
    may have `term` by one, and be near by the other. `term` fixes its table's blocks; there are three others.
    Either two others together have at most one differing bit, or each of the three has exactly one, and then
    the fixed blocks are equal. A table of `TRIPLES` with two others also has a fixed block. One of the fixed
    blocks is equal, unless all three differing bits are in them: then the term of the three others is equal.

    `layout` must be one of `LAYOUTS`.
    """
    (own,) = layout.terms([simhash])
    fixed = layout.tables[own.index(term)]
    others = [[block for block in blocks if block not in fixed] for blocks in layout.tables]
    terms: list[str] = []
    with_two = [table for table, blocks in enumerate(others) if len(blocks) == 2]
    for table in with_two:
        one, two = map(_bits, others[table])
        flips = [0, *one, *two]
        if table == with_two[0]:
            flips += [first | second for first in one for second in two]
        terms += layout.terms_of_table(table, (simhash ^ flip for flip in flips))
    return terms + [own[table] for table, blocks in enumerate(others) if len(blocks) > 2]


@functools.cache
def around_counts(layout: Layout) -> list[int]:
    """Return the number of terms that `terms_around` returns for each term of a simhash, in order."""
    (own,) = layout.terms([0])
    return [len(terms_around(layout, 0, term)) for term in own]
