"""What a batch of pages has taught, as values and as bytes."""

import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.block import Block
from esdedup.boilerplate.contexts import MOST_CONTEXTS
from esdedup.boilerplate.marks import MARKS, ORIGIN, Marks, Origins
from esdedup.boilerplate.site_pages import COLUMNS as SITE_COLUMNS
from esdedup.boilerplate.window import Window
from esdedup.neighbours.key_table import Keys, Values

LEARNED = np.uint32(1 << 31)
"""In the values of "passages": added to the page if the passage is boilerplate."""

TABLES = {
    # By the ids of pages: the page.
    "pages": 1,
    # By the hashes of sites: the last page of the last block with pages of theirs, and the number of these.
    "sites": 2,
    # By the hashes of passages: the last page that was a new context; of boilerplate a page of the period
    # in which it was last seen.
    "passages": 1,
    # By the hashes of passages that were seen again: a row of `SitePages`, then the pages of their contexts,
    # 0 for none.
    "contexts": SITE_COLUMNS + MOST_CONTEXTS,
}
"""What is known by 64-bit keys, and the number of values to a key. The first of them is a page, after which
it is outdated some day. Pages are numbered from 1, so it is never 0."""

Puts = tuple[Keys, Values]

_ARRAYS = ("marks", "origins", "site_numbers", "hashes", "letters", "counts")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changes:
    """What is known anew after a batch of pages."""

    # For each of `TABLES`: keys and their values; of a key that comes several times, the last counts.
    puts: Mapping[str, Puts]
    # uint32 (p, MARKS) and (p, ORIGIN): of the new pages of the batch.
    marks: Marks
    origins: Origins
    # uint32 (m,): of the pages that were learned from, the numbers among those of their sites.
    site_numbers: npt.NDArray[np.uint32]
    # Of the new pages that were not learned from yet, as `Block` has them: passages, uint64 (n,), their
    # letters, uint32 (n,), and how many each page has, uint32 (q,).
    hashes: Keys
    letters: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint32]
    # After the batch: the last page that was learned from, and the last of all.
    last_learned_page: int
    last_page: int
    window: Window

    @property
    def page_count(self) -> int:
        """The number of new pages that the batch had."""
        return len(self.marks)

    @property
    def first_page(self) -> int:
        """The number of the first new page of the batch; the one after the last if there is none."""
        return self.last_page - self.page_count + 1

    @property
    def block(self) -> Block:
        """The new pages, with nothing known of their passages."""
        places = np.arange(self.page_count - len(self.counts), self.page_count)
        return Block(
            marks=self.marks,
            origins=self.origins,
            hashes=self.hashes,
            places=np.repeat(places, self.counts),
            values=np.zeros(len(self.hashes), np.uint32),
            letters=self.letters,
        )

    def to_bytes(self) -> bytes:
        """Return the changes as bytes: an archive of arrays."""
        numbers = [self.last_learned_page, self.last_page, *dataclasses.astuple(self.window)]
        arrays: dict[str, npt.NDArray[np.generic]] = {name: getattr(self, name) for name in _ARRAYS}
        for name, (keys, values) in self.puts.items():
            arrays |= {f"{name}_keys": keys, f"{name}_values": values}
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, numbers=np.array(numbers), **arrays)
        return archive.getvalue()

    @classmethod
    def of_bytes(cls, content: bytes) -> "Changes":
        """Read what `to_bytes` has returned.

        Raises:
            ValueError: The bytes are something else, or no batch has such changes.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                last_learned_page, last_page, *window = arrays["numbers"].tolist()
                changes = cls(
                    puts={name: (arrays[f"{name}_keys"], arrays[f"{name}_values"]) for name in TABLES},
                    last_learned_page=last_learned_page,
                    last_page=last_page,
                    window=Window(*window),
                    **{name: arrays[name] for name in _ARRAYS},
                )
        except Exception as error:  # damaged archives fail in many ways
            raise ValueError("it cannot be read") from error
        if not all(changes._are_arrays_right()):
            raise ValueError("its arrays have other types or shapes")
        if not all(changes._are_numbers_possible()):
            raise ValueError("its numbers contradict each other")
        return changes

    def _are_arrays_right(self) -> Iterator[bool]:
        """Yield whether each array has its type and shape, and whether the numbers are integers."""
        for name, columns in TABLES.items():
            keys, values = self.puts[name]
            yield _is_array(keys, np.uint64)
            yield _is_array(values, np.uint32, columns) and len(keys) == len(values)
        yield _is_array(self.marks, np.uint32, MARKS) and _is_array(self.origins, np.uint32, ORIGIN)
        yield len(self.marks) == len(self.origins) == len(self.puts["pages"][0])
        yield _is_array(self.site_numbers, np.uint32)
        yield _is_array(self.hashes, np.uint64) and _is_array(self.letters, np.uint32)
        yield len(self.hashes) == len(self.letters)
        yield _is_array(self.counts, np.uint32)
        numbers = (self.last_learned_page, self.last_page, *dataclasses.astuple(self.window))
        yield all(type(each) is int for each in numbers)

    def _are_numbers_possible(self) -> Iterator[bool]:
        """Yield whether what depends on each other agrees."""
        window = self.window
        yield 0 <= window.count < window.capacity
        yield 1 <= window.former_from <= window.present_from <= self.last_learned_page + 1
        yield 0 <= self.last_learned_page <= self.last_page < int(LEARNED)
        yield self.first_page >= 1
        yield len(self.counts) == min(self.page_count, self.last_page - self.last_learned_page)
        yield int(self.counts.sum(dtype=np.uint64)) == len(self.hashes)
        numbered = np.arange(self.first_page, self.last_page + 1)
        yield np.array_equal(self.puts["pages"][1][:, 0], numbered)
        contexts = np.delete(self.puts["contexts"][1], range(1, SITE_COLUMNS), axis=1)
        for values in (self.puts["sites"][1][:, 0], self.puts["passages"][1], contexts):
            yield not np.any(values & ~LEARNED > self.last_learned_page)

    def then(self, later: "Changes") -> "Changes":
        """Return both changes as one."""
        # A block that ended later took all pages before it.
        waiting = [later] if later.last_learned_page > self.last_learned_page else [self, later]
        return dataclasses.replace(
            later,
            puts={
                name: joined((self.puts[name], later.puts[name]), columns=columns)
                for name, columns in TABLES.items()
            },
            marks=np.concatenate((self.marks, later.marks)),
            origins=np.concatenate((self.origins, later.origins)),
            site_numbers=np.concatenate((self.site_numbers, later.site_numbers)),
            hashes=np.concatenate([each.hashes for each in waiting]),
            letters=np.concatenate([each.letters for each in waiting]),
            counts=np.concatenate([each.counts for each in waiting]),
        )


def _is_array(values: npt.NDArray[Any], dtype: type[np.generic], columns: int | None = None) -> bool:
    """Return whether an array has that type, and one dimension, or a second one with so many columns."""
    if not values.ndim:
        return False
    shape = (len(values),) if columns is None else (len(values), columns)
    return values.dtype == dtype and values.shape == shape


def joined(puts: Sequence[Puts], *, columns: int) -> Puts:
    """Return several puts, with so many values to a key, one after the other."""
    keys = np.concatenate((np.zeros(0, np.uint64), *(each for each, _ in puts)))
    return keys, np.concatenate((np.zeros((0, columns), np.uint32), *(each for _, each in puts)))


def last_of_each(puts: Puts) -> Puts:
    """Return puts with each key once, and the last of its values."""
    keys, values = puts
    _, last = np.unique(keys[::-1], return_index=True)
    return keys[::-1][last], values[::-1][last]
