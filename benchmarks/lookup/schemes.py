"""Defines the keys that each scheme stores and asks for, and calculates costs from the number of keys."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.bands import ARTICLES, PAIRS, TRIPLES, WIDTH_BITS, BitRange, Layout

Fingerprints = npt.NDArray[np.uint64]

VALUE_BYTES, START_BYTES = 8, 4
"""The size of a fingerprint in a hash table, and of the position at which a bucket begins."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scheme:
    """A way to store fingerprints under keys, and to find near fingerprints by asking for keys.

    If two fingerprints differ in at most 3 bits, a stored key of one must equal an asked key of the other.
    """

    name: str
    # The tables, and the bits that their keys have; None for exhaustive search.
    layout: Layout | None
    # Keys within this many bits of a fingerprint's own keys are stored. The layout decides the asked keys.
    stored_distance_bits: int = 0

    @property
    def stored_keys(self) -> int:
        """The number of keys stored per fingerprint."""
        return sum(stored for _, stored, _ in self._counts())

    @property
    def search_keys(self) -> int:
        """The number of keys that an arrival asks for."""
        return sum(asked for _, _, asked in self._counts())

    def candidates(self, count: float) -> float:
        """Return how many of `count` uniform fingerprints are read for an arrival that none of them is near.

        A stored and an asked key of w bits are equal by chance in one of 2**w cases.
        """
        if self.layout is None:
            return count
        return count * sum(stored * asked / 2.0**width for width, stored, asked in self._counts())

    def memory_bytes(self, count: float) -> float:
        """Return the maximum number of bytes per fingerprint in hash tables of `count` fingerprints.

        A table contains the fingerprints in the order of their buckets, and the position at which each bucket
        begins. A table has at most as many buckets as entries. From 2**32 entries on, a position has 8 bytes.
        """
        if self.layout is None:
            return VALUE_BYTES
        return sum(
            stored * VALUE_BYTES
            + START_BYTES * (1 if stored * count < 2**32 else 2) * min(stored, 2.0**width / count)
            for width, stored, _ in self._counts()
        )

    def stored(self, fingerprints: Fingerprints, table: int) -> npt.NDArray[np.uint64]:
        """Return the keys under which fingerprints, ``(n,)``, are stored in a table: ``(n, keys)``."""
        return self._around(fingerprints, table, self.stored_distance_bits)

    def asked(self, fingerprints: Fingerprints, table: int) -> npt.NDArray[np.uint64]:
        """Return the keys to look up in a table for fingerprints, ``(n,)``: ``(n, keys)``."""
        assert self.layout is not None
        return self._around(fingerprints, table, self.layout.asked_distance_bits)

    def own(self, fingerprints: Fingerprints, table: int) -> npt.NDArray[np.uint64]:
        """Return the key of each fingerprint, ``(n,)``, in a table, ``(n,)``."""
        assert self.layout is not None
        keys = np.zeros(len(fingerprints), np.uint64)
        for start, stop in self.layout.tables[table]:
            bits = fingerprints >> np.uint64(WIDTH_BITS - stop) & np.uint64((1 << stop - start) - 1)
            keys = keys << np.uint64(stop - start) | bits
        return keys

    def width(self, table: int) -> int:
        """Return the number of bits of a table's keys."""
        assert self.layout is not None
        return sum(stop - start for start, stop in self.layout.tables[table])

    def _around(self, fingerprints: Fingerprints, table: int, distance_bits: int) -> npt.NDArray[np.uint64]:
        found: npt.NDArray[np.uint64] = self.own(fingerprints, table)[:, None] ^ differences_within(
            self.width(table), distance_bits
        )
        return found

    def _counts(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each table the bits of its keys, and how many keys are stored and asked for."""
        if self.layout is None:
            return
        for table in range(len(self.layout.tables)):
            width = self.width(table)
            yield (
                width,
                len(differences_within(width, self.stored_distance_bits)),
                len(differences_within(width, self.layout.asked_distance_bits)),
            )


@functools.cache
def differences_within(width: int, distance_bits: int) -> npt.NDArray[np.uint64]:
    """Return all values of `width` bits with at most `distance_bits` bits set, fewer bits first: uint64.

    XOR with a value gives all values within this distance of the value. The array is read-only.
    """
    values = [
        sum(1 << bit for bit in bits)
        for count in range(distance_bits + 1)
        for bits in itertools.combinations(range(width), count)
    ]
    found = np.array(values, np.uint64)
    found.flags.writeable = False
    return found


def _two_levels(block_width: int, piece_width: int) -> Layout:
    """Return a layout with a table for each block and each piece of the bits outside that block.

    With widths 16 and 12, fingerprints within 3 bits share a key: at least one block of four is equal, the
    differing bits are in the other 48 bits, and at least one of the four pieces of those bits is also equal.
    """
    tables = []
    for start in range(0, WIDTH_BITS, block_width):
        stop = start + block_width
        rest = [bit for bit in range(WIDTH_BITS) if not start <= bit < stop]
        tables += [
            ((start, stop), *_ranges(rest[at : at + piece_width])) for at in range(0, len(rest), piece_width)
        ]
    return Layout(name="4x(16+12)", tables=tuple(tables))


def _ranges(bits: Sequence[int]) -> list[BitRange]:
    """Return ascending bits as ranges; the bits of a piece may be on both sides of its block."""
    jumps = [0, *(at for at in range(1, len(bits)) if bits[at] != bits[at - 1] + 1), len(bits)]
    return [(bits[one], bits[other - 1] + 1) for one, other in itertools.pairwise(jumps)]


_WHOLE = Layout(name="1x64", tables=(((0, WIDTH_BITS),),))
_FOUR_BLOCKS = Layout(name="4x16", tables=tuple(((at, at + 16),) for at in range(0, WIDTH_BITS, 16)))

EXHAUSTIVE = Scheme(name="exhaustive search", layout=None)
EXPANSION = Scheme(name="expansion when asked", layout=dataclasses.replace(_WHOLE, asked_distance_bits=3))
ALL_VARIANTS = Scheme(name="all variants stored", layout=_WHOLE, stored_distance_bits=3)
BLOCKS = Scheme(name="4x16: four blocks", layout=_FOUR_BLOCKS)
TWO_OF_FIVE = Scheme(name="5choose2: two of five blocks", layout=PAIRS)
THREE_OF_SIX = Scheme(name="6choose3: three of six blocks", layout=TRIPLES)
LEVELS = Scheme(name="4x(16+12): two levels", layout=_two_levels(16, 12))
TWO_HALVES = Scheme(name="2x32~1: halves within one bit", layout=ARTICLES)

TABLES = (BLOCKS, TWO_OF_FIVE, THREE_OF_SIX, LEVELS, TWO_HALVES)
SCHEMES = (EXHAUSTIVE, EXPANSION, ALL_VARIANTS, *TABLES)
