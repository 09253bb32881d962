"""Band keys: the terms under which a fingerprint is stored, and those that find what is near it.

A layout is a list of tables. A table is a choice of bit ranges, and a fingerprint's key in it is the bits
in those ranges, one range after the other. Cut 64 bits into *m* blocks: 3 differing bits leave at least
*m - 3* blocks equal. So a layout with a table for every choice of *m - 3* blocks misses nothing within
3 bits (pigeonhole; Manku, Jain, Das Sarma, WWW 2007).

Most layouts are symmetric: a fingerprint is stored under its keys, and its neighbours are found by the same
keys. One is not: of two halves of 32 bits, one has at most one of 3 differing bits. So two keys are stored,
and those within one bit are asked for as well. Articles have that one (`ARTICLES`), since it stores the
fewest keys; nodes that are searched for have another one, which asks for fewer.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError

BitRange = tuple[int, int]
"""Bits `start` (inclusive) to `stop` (exclusive), counted from the highest bit of a fingerprint."""

WIDTH_BITS = 64
MAX_DISTANCE_BITS = 3
"""Every layout that a profile may use finds all pairs within this distance."""
# Of an exact key, at least: few of the minhashes of any forest share 40 bits by chance. They take more digits
# than a band key has, so that no key of one kind is one of the other.
_EXACT_BITS = 40
# The first sixteen are those of hex.
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
_CHARACTERS = np.frombuffer(_DIGITS.encode("utf-32-le"), "<u4")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """A list of tables of band keys."""

    # Stored with the data: names the tables, see `LAYOUTS`.
    name: str
    # For each table the bit ranges that make its key.
    tables: tuple[tuple[BitRange, ...], ...]
    # Keys within this many bits of a fingerprint's own are asked for; 0: its own.
    asked_distance_bits: int = 0
    # Of each digit of a term: 4 is hex; 6 makes terms shorter.
    digit_bits: int = 4

    @property
    def table_count(self) -> int:
        """The number of keys under which a fingerprint is stored."""
        return len(self.tables)

    @functools.cached_property
    def has_terms_around(self) -> bool:
        """Whether `terms_around` is available: for the pairs of five blocks, and for two halves."""
        return self._pairs_five_blocks or self._is_halves

    def keys(self, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the keys of fingerprints, uint64 ``(n,)``: uint64 ``(n, tables)``, each right-aligned."""
        shifts, masks, widths = self._columns
        keys = np.zeros((len(fingerprints), self.table_count), np.uint64)
        for shift, mask, width in zip(shifts, masks, widths, strict=True):
            keys <<= width
            keys |= fingerprints[:, None] >> shift & mask
        return keys

    def terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the keys as terms for an inverted index: the number of the table, then its bits.

        All terms of a layout have the same length.

        Args:
            fingerprints: uint64 ``(n,)``.

        Returns:
            For each fingerprint one term per table, in the order of the tables.
        """
        return self._to_terms(self.keys(fingerprints), np.arange(self.table_count, dtype=np.uint64))

    def asked_terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the terms to search for: whatever is within 3 bits of a fingerprint has one of them.

        They are those of `terms`, unless the layout asks for keys within some bits as well.

        Args:
            fingerprints: uint64 ``(n,)``.

        Returns:
            For each fingerprint the terms of one table after the other, beginning with its own. All
            fingerprints have the same number of terms.
        """
        flips = [differences_within(_width(ranges), self.asked_distance_bits) for ranges in self.tables]
        counts = [len(each) for each in flips]
        keys = np.repeat(self.keys(fingerprints), counts, axis=1) ^ np.concatenate(flips)
        return self._to_terms(keys, np.repeat(np.arange(self.table_count, dtype=np.uint64), counts))

    def terms_around(self, fingerprint: int, term: str) -> list[str]:
        """Return terms of other tables, to search beside an asked term that very many fingerprints share.

        Every fingerprint within 3 bits that has `term` has one of these terms.

        Of the pairs of five blocks, the term is two blocks, so the 3 bits are in the other three: either two
        of those three have at most one differing bit together, or each of the three has exactly one. Of two
        halves, the term is one, and the other half has whatever of the 3 bits is left.

        Raises:
            SettingError: The layout has no such terms; see `has_terms_around`.
        """
        table, key = divmod(self._number_of(term), 1 << self.written[1])
        if self._pairs_five_blocks:
            return self._terms_of_other_blocks(fingerprint, table)
        if self._is_halves:
            own = self.keys(np.array([fingerprint], np.uint64))[0]
            left_bits = MAX_DISTANCE_BITS - (int(own[table]) ^ key).bit_count()
            other = 1 - table
            keys = own[other] ^ differences_within(_width(self.tables[other]), left_bits)
            return self._to_terms(keys[None], np.full(len(keys), other, np.uint64))[0]
        raise SettingError(f"the layout {self.name} has no terms around a term")

    @functools.cached_property
    def around_counts(self) -> list[int]:
        """The number of `terms_around` each of a fingerprint's `asked_terms`, in their order."""
        (asked,) = self.asked_terms(np.zeros(1, np.uint64))
        return [len(self.terms_around(0, term)) for term in asked]

    @functools.cached_property
    def _pairs_five_blocks(self) -> bool:
        blocks = {part for ranges in self.tables for part in ranges}
        pairs = {frozenset(pair) for pair in itertools.combinations(blocks, 2)}
        return len(blocks) == 5 and {frozenset(ranges) for ranges in self.tables} == pairs

    @property
    def _is_halves(self) -> bool:
        return len(self.tables) == 2 and self.asked_distance_bits == 1

    def _terms_of_other_blocks(self, fingerprint: int, table: int) -> list[str]:
        own = _bits(self.tables[table])
        others = [at for at, ranges in enumerate(self.tables) if not own & _bits(ranges)]
        terms = []
        for other in others:
            one, two = (
                [np.uint64(1 << WIDTH_BITS - 1 - bit) for bit in _bits([part])] for part in self.tables[other]
            )
            flips = [np.uint64(0), *one, *two]
            if other == others[0]:
                flips += [first | second for first in one for second in two]
            keys = self.keys(np.uint64(fingerprint) ^ np.array(flips))[:, other]
            terms += self._to_terms(keys[None], np.full(len(keys), other, np.uint64))[0]
        return terms

    @functools.cached_property
    def _columns(self) -> npt.NDArray[np.uint64]:
        """Shifts, masks and widths of the tables' ranges: uint64 ``(3, ranges, tables)``.

        Tables with fewer ranges than others are padded with empty ones in front.
        """
        most = max(map(len, self.tables))
        columns = np.zeros((3, most, self.table_count), np.uint64)
        for table, ranges in enumerate(self.tables):
            for place, (start, stop) in enumerate(ranges, most - len(ranges)):
                columns[:, place, table] = (WIDTH_BITS - stop, (1 << stop - start) - 1, stop - start)
        return columns

    def exact_terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[str]:
        """Return a term for each fingerprint, ``(n,)``, that only equal ones share, but for very few."""
        digits = -(-_EXACT_BITS // self.digit_bits)
        terms: list[str] = self._to_digits(
            fingerprints >> np.uint64(WIDTH_BITS - digits * self.digit_bits), digits
        )
        return terms

    @functools.cached_property
    def written(self) -> tuple[int, int, int]:
        """How terms are written: the bits of a digit, those below a table's number, and the digits."""
        key_bits = -(-max(map(_width, self.tables)) // 4) * 4
        table_bits = max(1, (self.table_count - 1).bit_length())
        return self.digit_bits, key_bits, -(-(table_bits + key_bits) // self.digit_bits)

    def _to_terms(self, keys: npt.NDArray[np.uint64], tables: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Return the terms of each row of `keys`, ``(n, k)``, whose columns are of `tables`, ``(k,)``."""
        _, key_bits, digits = self.written
        terms: list[list[str]] = self._to_digits(keys | tables << np.uint64(key_bits), digits)
        return terms

    def _to_digits(self, numbers: npt.NDArray[np.uint64], digits: int) -> list[Any]:
        """Return numbers as strings of so many digits, in lists as the array has them."""
        shifts = np.array([place * self.digit_bits for place in reversed(range(digits))], np.uint64)
        found = _CHARACTERS[numbers[..., None] >> shifts & np.uint64((1 << self.digit_bits) - 1)]
        # All digits at once, since one string after the other takes much longer.
        strings: list[Any] = found.view(f"<U{digits}")[..., 0].tolist()
        return strings

    def _number_of(self, term: str) -> int:
        """Return the number that has these digits."""
        return functools.reduce(
            lambda number, digit: number << self.digit_bits | _DIGITS.index(digit), term, 0
        )


def choose(widths: Sequence[int], count: int) -> Layout:
    """Return a layout with a table for every choice of `count` blocks out of blocks of `widths` bits.

    Two fingerprints that differ in at most ``len(widths) - count`` bits share a key.

    Raises:
        SettingError: The widths do not add up to 64.
    """
    blocks = _cut(widths, [(0, WIDTH_BITS)])
    name = "x".join((str(len(widths)), str(widths[0]))) if count == 1 else f"{len(widths)}choose{count}"
    return Layout(
        name=name,
        tables=tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.combinations(blocks, count)),
    )


def two_level(block_width: int, piece_width: int) -> Layout:
    """Return a layout with a table for each block and each piece of the bits outside that block.

    Blocks have `block_width` bits, and pieces `piece_width`.

    With 16 and 12, two fingerprints within 3 bits share a key: at least one block of four is equal, the
    differing bits are in the other 48, and at least one of the four pieces of those is equal too.

    Raises:
        SettingError: The blocks do not add up to 64 bits, or the pieces to the bits outside a block.
    """
    whole = [(0, WIDTH_BITS)]
    tables = []
    for block in _cut([block_width] * (WIDTH_BITS // block_width), whole):
        rest = [(0, block[0][0]), (block[0][1], WIDTH_BITS)]
        rest = [part for part in rest if part[0] < part[1]]
        pieces = _cut([piece_width] * ((WIDTH_BITS - block_width) // piece_width), rest)
        tables += [block + piece for piece in pieces]
    return Layout(name=f"{WIDTH_BITS // block_width}x({block_width}+{piece_width})", tables=tuple(tables))


def get_layout(name: str) -> Layout:
    """Return the layout of that name.

    Raises:
        SettingError: There is no such layout.
    """
    try:
        return LAYOUTS[name]
    except KeyError:
        raise SettingError(f"no layout {name!r}; there are {', '.join(LAYOUTS)}") from None


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


def _width(ranges: Sequence[BitRange]) -> int:
    return sum(stop - start for start, stop in ranges)


def _bits(ranges: Sequence[BitRange]) -> frozenset[int]:
    return frozenset(bit for start, stop in ranges for bit in range(start, stop))


def _cut(widths: Sequence[int], ranges: Sequence[BitRange]) -> list[tuple[BitRange, ...]]:
    """Cut the bits of `ranges`, one range after the other, into pieces; a piece may span two ranges."""
    bits = [bit for start, stop in ranges for bit in range(start, stop)]
    if sum(widths) != len(bits) or min(widths) < 1:
        raise SettingError(f"band widths {list(widths)} must be positive and add up to {len(bits)}")
    pieces = []
    for end, width in zip(itertools.accumulate(widths), widths, strict=True):
        piece = bits[end - width : end]
        jumps = [0, *(at for at in range(1, width) if piece[at] != piece[at - 1] + 1), width]
        pieces.append(tuple((piece[a], piece[b - 1] + 1) for a, b in itertools.pairwise(jumps)))
    return pieces


FOUR_BLOCKS = choose((16, 16, 16, 16), 1)
FIVE_CHOOSE_TWO = choose((13, 13, 13, 13, 12), 2)
TWO_LEVEL = two_level(16, 12)
# Of two halves of 32 bits, one has at most one of 3 differing bits: 2 keys stored, 66 asked for.
HALVES = Layout(name="2x32~1", tables=(((0, 32),), ((32, 64),)), asked_distance_bits=1)
LAYOUTS = {layout.name: layout for layout in (FOUR_BLOCKS, FIVE_CHOOSE_TWO, TWO_LEVEL, HALVES)}
"""The layouts that a profile may use, by name. Each finds all pairs within 3 bits."""
ARTICLES = dataclasses.replace(HALVES, name="articles", digit_bits=6)
"""The layout of `bands` in articles, whatever the forest has: the fewest terms, and the shortest."""
