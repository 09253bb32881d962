"""Band keys: what two fingerprints within a few bits of each other are sure to share.

A layout is a list of tables; a table is a choice of bit ranges, and a fingerprint's key in it is
those bits, one range after the other. Cut 64 bits into *m* blocks: at most 3 different bits leave
at least *m - 3* blocks untouched, so a layout that has a table for every choice of *m - 3* blocks
misses nothing within 3 bits (pigeonhole; Manku, Jain, Das Sarma, WWW 2007).
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError

BitRange = tuple[int, int]
"""Bits `start` (inclusive) to `stop` (exclusive), counted from the highest bit of a fingerprint."""

WIDTH_BITS = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """The tables of band keys that a profile uses."""

    name: str
    # One entry a table: the bit ranges whose bits make its key.
    tables: tuple[tuple[BitRange, ...], ...]

    @property
    def table_count(self) -> int:
        """How many keys a fingerprint has."""
        return len(self.tables)

    def keys(self, fingerprints: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the keys of `fingerprints`, uint64 ``(n, tables)``, each right-aligned."""
        shifts, masks, widths = self._columns
        keys = np.zeros((len(fingerprints), self.table_count), np.uint64)
        for shift, mask, width in zip(shifts, masks, widths, strict=True):
            keys <<= width
            keys |= fingerprints[:, None] >> shift & mask
        return keys

    def terms(self, fingerprints: npt.NDArray[np.uint64]) -> list[list[str]]:
        """Write the keys as terms for an inverted index: the table, then its bits, both in hex.

        Every term of a layout has the same length.
        """
        words = self._words(self.keys(fingerprints), np.arange(self.table_count, dtype=np.uint64))
        return [words[at : at + self.table_count] for at in range(0, len(words), self.table_count)]

    def terms_of_rows(
        self, fingerprints: npt.NDArray[np.uint64], chosen: npt.NDArray[np.bool_]
    ) -> list[list[str]]:
        """Write the keys of the `chosen` ones in each row of ``(n, s)``, one list a row."""
        terms = iter(self.terms(fingerprints[chosen]))
        return [
            list(itertools.chain.from_iterable(itertools.islice(terms, count)))
            for count in chosen.sum(axis=1).tolist()
        ]

    def table_of(self, term: str) -> int:
        """Return the table that a term is of."""
        return int(term[: self._table_digits], 16)

    def terms_around(self, fingerprint: int, table: int) -> list[str]:
        """Return terms of other tables, one of which every fingerprint within 3 bits with this key has.

        Where very many share the key, these tell their nodes apart. For layouts that pair five blocks:
        the 3 bits lie in the other three blocks. Either two of those differ in one bit at most, or each
        of the three in exactly one.

        Raises:
            SettingError: The layout is of another kind.
        """
        own = _bits(self.tables[table])
        others = [at for at, ranges in enumerate(self.tables) if not own & _bits(ranges)]
        if len(others) != 3 or any(len(self.tables[other]) != 2 for other in others):
            raise SettingError(f"the layout {self.name} does not pair five blocks")
        words = []
        for other in others:
            one, two = (
                [np.uint64(1 << WIDTH_BITS - 1 - bit) for bit in _bits([part])] for part in self.tables[other]
            )
            flips = [np.uint64(0), *one, *two]
            if other == others[0]:
                flips += [first | second for first in one for second in two]
            keys = self.keys(np.uint64(fingerprint) ^ np.array(flips))[:, [other]]
            words += self._words(keys, np.array([other], np.uint64))
        return words

    @functools.cached_property
    def _columns(self) -> npt.NDArray[np.uint64]:
        """Shifts, masks and widths of the tables' ranges: uint64 ``(3, ranges, tables)``.

        Tables with fewer ranges than others have empty ones first.
        """
        most = max(map(len, self.tables))
        columns = np.zeros((3, most, self.table_count), np.uint64)
        for table, ranges in enumerate(self.tables):
            for place, (start, stop) in enumerate(ranges, most - len(ranges)):
                columns[:, place, table] = (WIDTH_BITS - stop, (1 << stop - start) - 1, stop - start)
        return columns

    @property
    def _table_digits(self) -> int:
        return (len(self.tables) - 1).bit_length() + 3 >> 2 or 1

    def _words(self, keys: npt.NDArray[np.uint64], tables: npt.NDArray[np.uint64]) -> list[str]:
        key_digits = max(sum(stop - start for start, stop in ranges) for ranges in self.tables) + 3 >> 2
        length = self._table_digits + key_digits
        size = length + 1 >> 1
        numbers = (keys | tables << np.uint64(4 * key_digits)).astype(">u8").reshape(-1, 1)
        # Written at once and parted by spaces: far fewer steps than a slice of a string for each.
        words = numbers.view(np.uint8)[:, -size:].tobytes().hex(" ", size).split()
        return [word[1:] for word in words] if length % 2 else words


def choose(widths: Sequence[int], count: int) -> Layout:
    """Cut the fingerprint into blocks of `widths` bits; a table for every choice of `count` of them.

    Finds every pair that differs in at most ``len(widths) - count`` bits.

    Raises:
        SettingError: The widths do not add up to 64.
    """
    blocks = _cut(widths, [(0, WIDTH_BITS)])
    name = "x".join((str(len(widths)), str(widths[0]))) if count == 1 else f"{len(widths)}choose{count}"
    return Layout(
        name=name,
        tables=tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.combinations(blocks, count)),
    )


def two_level(width: int, then: int) -> Layout:
    """Follow each block of `width` bits by each piece of `then` bits of the others.

    Finds every pair within 3 bits for 16 and 12: at least one block of four is equal, and then the
    three or fewer bits lie in the other 48, of whose four pieces at least one is equal.

    Raises:
        SettingError: The widths do not divide 64, or what a block leaves of it.
    """
    whole = [(0, WIDTH_BITS)]
    tables = []
    for block in _cut([width] * (WIDTH_BITS // width), whole):
        rest = [(0, block[0][0]), (block[0][1], WIDTH_BITS)]
        pieces = _cut([then] * ((WIDTH_BITS - width) // then), [part for part in rest if part[0] < part[1]])
        tables += [block + piece for piece in pieces]
    return Layout(name=f"{WIDTH_BITS // width}x({width}+{then})", tables=tuple(tables))


def _bits(ranges: Sequence[BitRange]) -> frozenset[int]:
    return frozenset(bit for start, stop in ranges for bit in range(start, stop))


def _cut(widths: Sequence[int], ranges: Sequence[BitRange]) -> list[tuple[BitRange, ...]]:
    """Cut the bits of `ranges`, end to end, into pieces of `widths`; a piece may span two ranges."""
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
LAYOUTS = {layout.name: layout for layout in (FOUR_BLOCKS, FIVE_CHOOSE_TWO, TWO_LEVEL)}
