"""The buckets of a hash table, each as large as it needs to be.

A main bucket has a few slots. Rows that do not fit go to overflow buckets, linked into a chain; the one
at the front is the only one with free slots.
"""

from collections.abc import Iterator

import numpy as np

from esdedup.neighbours.numbers import Numbers
from esdedup.neighbours.slots import SLOTS, Bits, Ints, Rows, Slots, Tags, runs_of


class Buckets:
    """Numbered buckets without a limit to their size."""

    def __init__(self, *, tag_bits: int, long_chain: int) -> None:
        """Make an empty table without buckets; `grow` adds them.

        Args:
            tag_bits: The size of a tag, 8 or 16.
            long_chain: `add` reports chains of at least this many overflow buckets; from 1.
        """
        self._long_chain = long_chain
        self._main = Slots(tag_bits)
        self._overflow = Slots(tag_bits)
        # Overflow buckets that are in a chain.
        self._linked = Numbers()
        # Overflow bucket 0 means "none". It counts as full, so that no row is ever put there.
        self._overflow.grow(1)
        self._overflow.fill(int(self._linked.take(1)[0]))

    @property
    def size_bytes(self) -> int:
        """The memory of all columns."""
        return self._main.size_bytes + self._overflow.size_bytes + self._linked.size_bytes

    def grow(self, count: int) -> None:
        """Make room for buckets 0 to `count` - 1."""
        self._main.grow(count)

    def search(self, buckets: Ints, tags: Tags, most_bits: Bits) -> Iterator[tuple[Ints, Rows]]:
        """Find the rows in buckets whose tags are near those of queries.

        Args:
            buckets: The buckets to search for each query, int64 ``(n, probes)``.
            tags: Of the queries, ``(n,)``.
            most_bits: The greatest distance between two tags, inclusive, for each probe: ``(probes,)``, the
                greatest first. More rows may be found.

        Yields:
            Positions in the flattened `buckets`, int64 ``(m,)``, and the rows found there, uint32 ``(m,)``.
        """
        yield from self._main.compare(buckets, tags, most_bits)
        # All chains are followed at once, a link at a time.
        positions, links = self._chains(buckets.reshape(-1))
        while len(links):
            probe_tags = tags[positions // buckets.shape[1]]
            for found, rows in self._overflow.compare(links[:, None], probe_tags, most_bits[:1]):
                yield positions[found], rows
            positions, links = self._follow(positions, links)

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
        left = np.flatnonzero(~self._main.add(buckets, tags, rows))
        buckets, tags, rows = buckets[left], tags[left], rows[left]
        if not len(buckets):
            return buckets
        fronts = self._main.next_of(buckets).astype(np.int64)
        left = np.flatnonzero(~self._overflow.add(fronts, tags, rows))
        return self._lengthen_chains(buckets[left], tags[left], rows[left])

    def empty(self, buckets: Ints) -> Rows:
        """Empty buckets, given without repeats; return the rows that were in them, uint32 ``(m,)``."""
        removed = [self._main.empty(buckets)]
        positions, links = self._chains(buckets)
        self._main.set_next(buckets, 0)
        while len(links):
            removed.append(self._overflow.empty(links))
            self._linked.give_back(links)
            positions, links = self._follow(positions, links)
        return np.concatenate(removed)

    def remove(self, buckets: Ints, rows: Rows) -> None:
        """Remove rows, each from the bucket that it is in, ``(n,)`` each."""
        while len(buckets):
            # One of each bucket.
            touched, first = np.unique(buckets, return_index=True)
            self._replace(touched, rows[first], *self._pop(touched))
            buckets, rows = np.delete(buckets, first), np.delete(rows, first)

    def _pop(self, buckets: Ints) -> tuple[Tags, Rows]:
        """Remove and return the last tag and row of buckets, given without repeats; none may be empty."""
        fronts = self._main.next_of(buckets).astype(np.int64)
        lone, chained = np.flatnonzero(fronts == 0), np.flatnonzero(fronts != 0)
        tags, rows = np.empty(len(buckets), np.uint16), np.empty(len(buckets), np.uint32)
        tags[lone], rows[lone] = self._main.pop(buckets[lone])
        tags[chained], rows[chained] = self._overflow.pop(fronts[chained])
        emptied = chained[self._overflow.taken(fronts[chained]) == 0]
        self._main.set_next(buckets[emptied], self._overflow.next_of(fronts[emptied]))
        self._linked.give_back(fronts[emptied])
        return tags, rows

    def _replace(self, buckets: Ints, rows: Rows, new_tags: Tags, new_rows: Rows) -> None:
        """Put others in the place of rows, each in its bucket or its chain, if it is still there."""
        left = np.flatnonzero(~self._main.replace(buckets, rows, new_tags, new_rows))
        chained, links = self._chains(buckets[left])
        left = left[chained]
        while len(links):
            missed = ~self._overflow.replace(links, rows[left], new_tags[left], new_rows[left])
            left, links = self._follow(left[missed], links[missed])

    def _chains(self, buckets: Ints) -> tuple[Ints, Ints]:
        """Return the positions of those buckets that have chains, and the fronts of these."""
        fronts = self._main.next_of(buckets)
        # Numbers are slower than bools to search for zeros.
        positions = np.flatnonzero(fronts != 0)
        return positions, fronts[positions].astype(np.int64)

    def _follow(self, positions: Ints, links: Ints) -> tuple[Ints, Ints]:
        """Return the positions of those that link to another overflow bucket, and these buckets."""
        following = self._overflow.next_of(links)
        continues = np.flatnonzero(following != 0)
        return positions[continues], following[continues].astype(np.int64)

    def _lengthen_chains(self, buckets: Ints, tags: Tags, rows: Rows) -> Ints:
        """Put rows into unused overflow buckets, and link these in front of the chains.

        Returns:
            What `add` returns.
        """
        if not len(buckets):
            return buckets
        starts, sizes = runs_of(buckets)
        counts = (sizes + SLOTS - 1) // SLOTS
        fresh = self._linked.take(int(counts.sum()))
        self._overflow.grow(self._linked.end)
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
        fronts = self._main.next_of(buckets).astype(np.int64)
        following = np.concatenate(([0], fresh[:-1]))
        following[lasts - counts + 1] = fronts
        self._overflow.set_next(fresh, following)
        self._main.set_next(buckets, fresh[lasts])
        before = self._lengths(fronts)
        after = before + counts
        # XOR exceeds the length before only if a higher bit has been set.
        return buckets[(after >= self._long_chain) & (after ^ before > before)]

    def _lengths(self, fronts: Ints) -> Ints:
        """Return the length of the chain behind each front, 0 for none: int64 ``(n,)``."""
        lengths = np.zeros(len(fronts), np.int64)
        positions = np.flatnonzero(fronts)
        links = fronts[positions]
        while len(links):
            lengths[positions] += 1
            positions, links = self._follow(positions, links)
        return lengths
