"""The buckets of a hash table, each as large as it needs to be.

A main bucket has a few slots. Rows that do not fit go to overflow buckets, linked into a chain; the one
at the front is the only one with free slots.
"""

from collections.abc import Iterator

import numpy as np

from esdedup.neighbours.columns import grow
from esdedup.neighbours.slots import SLOTS, SPILLED, Ints, Rows, Slots, Tags, runs_of


class Buckets:
    """Numbered buckets without a limit to their size."""

    def __init__(self, *, long_chain: int) -> None:
        """Make an empty table without buckets; `grow` adds them.

        Args:
            long_chain: `add` reports chains of at least this many overflow buckets; from 1.
        """
        self._long_chain = long_chain
        self._main = Slots()
        self._overflow = Slots()
        # By overflow bucket: the length of its chain, if it is the front of one.
        self._lengths = np.zeros(0, np.uint32)
        # Overflow buckets that are empty and in no chain.
        self._unused: list[int] = []
        # Overflow bucket 0 means "none". It counts as full, so that no row is ever put there.
        self._grow_overflow(1)
        self._overflow.fill[0] = SLOTS

    @property
    def size_bytes(self) -> int:
        """The memory of all columns."""
        return self._main.size_bytes + self._overflow.size_bytes + self._lengths.nbytes

    def grow(self, count: int) -> None:
        """Make room for buckets 0 to `count` - 1."""
        self._main.grow(count)

    def search(self, buckets: Ints, tags: Tags, max_distance_bits: int) -> Iterator[tuple[Ints, Rows]]:
        """Find the rows in buckets whose tags are near those of queries.

        Args:
            buckets: The buckets to search for each query, int64 ``(n, probes)``.
            tags: Of the queries, ``(n,)``.
            max_distance_bits: Between two tags, inclusive.

        Yields:
            Positions in the flattened `buckets`, int64 ``(m,)``, and the rows found there, uint32 ``(m,)``.
        """
        yield from self._main.compare(buckets, tags, max_distance_bits)
        probes = buckets.reshape(-1)
        # All chains are followed at once, a link at a time.
        positions = np.flatnonzero(self._main.fill.take(probes) == SPILLED)
        links = self._main.next_of(probes[positions])
        while len(links):
            probe_tags = tags[positions // buckets.shape[1]]
            for found, rows in self._overflow.compare(links[:, None], probe_tags, max_distance_bits):
                yield positions[found], rows
            links = self._overflow.next_of(links)
            continues = links != 0
            positions, links = positions[continues], links[continues]

    def add(self, buckets: Ints, tags: Tags, rows: Rows) -> Ints:
        """Add rows with their tags, each to a bucket.

        Args:
            buckets: int64 ``(n,)``, sorted.
            tags: ``(n,)``.
            rows: ``(n,)``.

        Returns:
            The buckets whose chains are long and have just reached, or passed, a power of two of overflow
            buckets: int64 ``(m,)``, sorted, without repeats.
        """
        if not len(buckets):
            return buckets
        left = ~self._main.add(buckets, tags, rows)
        buckets, tags, rows = buckets[left], tags[left], rows[left]
        if not len(buckets):
            return buckets
        left = ~self._overflow.add(self._main.next_of(buckets), tags, rows)
        return self._lengthen_chains(buckets[left], tags[left], rows[left])

    def remove(self, buckets: slice | Ints) -> Rows:
        """Empty buckets, given without repeats; return the rows that were in them, uint32 ``(m,)``."""
        removed = [self._main.remove_rows(buckets)]
        links = self._main.next_of(buckets)
        self._main.set_next(buckets, 0)
        links = links[links != 0]
        while len(links):
            removed.append(self._overflow.remove_rows(links))
            self._unused += links.tolist()
            links = self._overflow.next_of(links)
            links = links[links != 0]
        return np.concatenate(removed)

    def _lengthen_chains(self, buckets: Ints, tags: Tags, rows: Rows) -> Ints:
        """Put rows into unused overflow buckets, and link these in front of the chains.

        Returns:
            What `add` returns.
        """
        if not len(buckets):
            return buckets
        starts, sizes = runs_of(buckets)
        counts = (sizes + SLOTS - 1) // SLOTS
        fresh = self._take_unused(int(counts.sum()))
        first_fresh = counts.cumsum() - counts
        places = np.arange(len(buckets)) - np.repeat(starts, sizes)
        self._overflow.add(fresh[np.repeat(first_fresh, sizes) + places // SLOTS], tags, rows)
        return self._link(buckets[starts], fresh, counts)

    def _link(self, buckets: Ints, fresh: Ints, counts: Ints) -> Ints:
        """Link overflow buckets in front of the chains: `counts` of `fresh` for each of `buckets`.

        The last one linked to a chain becomes its front, as only that one may have free slots.

        Returns:
            What `add` returns.
        """
        lasts = counts.cumsum() - 1
        fronts = self._main.next_of(buckets)
        following = np.concatenate(([0], fresh[:-1]))
        following[lasts - counts + 1] = fronts
        self._overflow.set_next(fresh, following)
        self._main.set_next(buckets, fresh[lasts])
        self._main.fill[buckets] = SPILLED
        before = self._lengths[fronts].astype(np.int64)
        after = before + counts
        self._lengths[fresh[lasts]] = after
        # XOR exceeds the length before only if a higher bit has been set.
        return buckets[(after >= self._long_chain) & (after ^ before > before)]

    def _take_unused(self, count: int) -> Ints:
        """Return the numbers of empty overflow buckets, int64 ``(count,)``; make more if they run out."""
        if len(self._unused) < count:
            before = len(self._overflow)
            self._grow_overflow(before + count)
            self._unused += range(before, len(self._overflow))
        taken = np.array(self._unused[len(self._unused) - count :], np.int64)
        del self._unused[len(self._unused) - count :]
        return taken

    def _grow_overflow(self, count: int) -> None:
        self._overflow.grow(count)
        grow(self._lengths, len(self._overflow))
