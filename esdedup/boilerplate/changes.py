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
    # By the hashes of sites: the number of their pages.
    "sites": 1,
    # By the hashes of passages: the last page that was a new context; of boilerplate a page of the period
    # in which it was last seen.
    "passages": 1,
    # By the hashes of passages that were seen again: a row of `SitePages`, then the pages of their contexts,
    # 0 for none.
    "contexts": SITE_COLUMNS + MOST_CONTEXTS,
}
"""What is known by 64-bit keys, and the number of values to a key. Pages are numbered from 1."""

Puts = tuple[Keys, Values]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changes:
    """What is known anew after a batch of pages."""

    # For each of `TABLES`: keys and their values; of a key that comes several times, the last counts.
    puts: Mapping[str, Puts]
    # uint32 (p, MARKS): of the pages that the batch has learned from.
    marks: Marks
    # uint32 (p, ORIGIN): of the same pages.
    origins: Origins
    # After the batch: the last page that was learned from, and the pages since.
    last_learned_page: int
    window: Window
    block: Block

    @property
    def page_count(self) -> int:
        """The number of new pages that the batch had."""
        return len(self.puts["pages"][0])

    @property
    def first_page(self) -> int:
        """The number of the first new page of the batch; the one after the last if there is none."""
        return self.last_page - self.page_count + 1

    @property
    def last_page(self) -> int:
        """The number of the last page, learned from or not."""
        return self.last_learned_page + len(self.block)

    def to_bytes(self) -> bytes:
        """Return the changes as bytes: an archive of arrays."""
        numbers = [self.last_learned_page, *dataclasses.astuple(self.window)]
        arrays: dict[str, npt.NDArray[np.generic]] = {
            "numbers": np.array(numbers),
            "marks": self.marks,
            "origins": self.origins,
        }
        for name, (keys, values) in self.puts.items():
            arrays |= {f"{name}_keys": keys, f"{name}_values": values}
        for field in dataclasses.fields(Block):
            arrays[f"block_{field.name}"] = getattr(self.block, field.name)
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, **arrays)
        return archive.getvalue()

    @classmethod
    def of_bytes(cls, content: bytes) -> "Changes":
        """Read what `to_bytes` has returned.

        Raises:
            ValueError: The bytes are something else, or no batch has such changes.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                last_learned_page, *window = arrays["numbers"].tolist()
                changes = cls(
                    puts={name: (arrays[f"{name}_keys"], arrays[f"{name}_values"]) for name in TABLES},
                    marks=arrays["marks"],
                    origins=arrays["origins"],
                    last_learned_page=last_learned_page,
                    window=Window(*window),
                    block=Block(
                        **{each.name: arrays[f"block_{each.name}"] for each in dataclasses.fields(Block)}
                    ),
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
        block = self.block
        for pages in (self, block):
            yield _is_array(pages.marks, np.uint32, MARKS) and _is_array(pages.origins, np.uint32, ORIGIN)
            yield len(pages.marks) == len(pages.origins)
        yield _is_array(block.hashes, np.uint64) and _is_array(block.places, np.int64)
        yield _is_array(block.values, np.uint32)
        yield _is_array(block.letters, np.uint32)
        yield len(block.hashes) == len(block.places) == len(block.values) == len(block.letters)
        yield all(type(each) is int for each in (self.last_learned_page, *dataclasses.astuple(self.window)))

    def _are_numbers_possible(self) -> Iterator[bool]:
        """Yield whether what depends on each other agrees."""
        window = self.window
        yield 0 <= window.count < window.capacity
        yield 1 <= window.former_from <= window.present_from <= self.last_learned_page + 1
        yield len(self.marks) <= self.last_learned_page <= self.last_page < int(LEARNED)
        numbered = np.arange(self.first_page, self.last_page + 1)
        yield self.first_page >= 1 and np.array_equal(self.puts["pages"][1][:, 0], numbered)
        contexts = np.delete(self.puts["contexts"][1], range(1, SITE_COLUMNS), axis=1)
        for values in (self.puts["passages"][1], contexts, self.block.values):
            yield not np.any(values & ~LEARNED > self.last_learned_page)
        yield not np.any((self.block.places < 0) | (self.block.places >= len(self.block)))

    def then(self, later: "Changes") -> "Changes":
        """Return both changes as one."""
        return dataclasses.replace(
            later,
            puts={
                name: joined((self.puts[name], later.puts[name]), columns=columns)
                for name, columns in TABLES.items()
            },
            marks=np.concatenate((self.marks, later.marks)),
            origins=np.concatenate((self.origins, later.origins)),
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
