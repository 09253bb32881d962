"""The marks of pages, by which contexts are told apart: a page's longest passages."""

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.neighbours.key_table import Keys
from esdedup.text.hashing import murmur64

MARKS = 3
"""The marks of a page. Beside any passage of it, two are left."""
ORIGIN = 3
"""The columns of `Origins`."""

_SHIFT_BITS = np.uint64(32)
_LOW_BITS, _LEAST = np.uint64((1 << 32) - 1), np.uint64(1)

Marks = npt.NDArray[np.uint32]
Origins = npt.NDArray[np.uint32]
"""Where pages come from, ``(n, ORIGIN)``: hashes of their sites, 0 if not known, and of their articles; and
their numbers among the pages of their sites, from 1, once they have been learned from."""


def marks_of(hashes: Keys) -> Marks:
    """Return the mark that each passage is, by its hash: never 0, which stands for none."""
    marks: Marks = np.maximum(hashes >> _SHIFT_BITS, _LEAST).astype(np.uint32)
    return marks


def origins_of(sites: Sequence[str | None], articles: Sequence[str | None], pages: Keys) -> Origins:
    """Return where pages come from, not numbered yet.

    Args:
        sites: Their names; None if not known.
        articles: Likewise. A page whose article is not known is an article by itself.
        pages: The ids of the pages, ``(n,)``.
    """
    names = dict.fromkeys(sites) | dict.fromkeys(articles)
    hashes = {name: _hash(name) for name in names}
    origins = np.zeros((len(pages), ORIGIN), np.uint32)
    origins[:, 0], origins[:, 1] = ([hashes[name] for name in column] for column in (sites, articles))
    origins[:, 1] = np.where(origins[:, 1] > 0, origins[:, 1], np.maximum(pages & _LOW_BITS, _LEAST))
    return origins


def _hash(name: str | None) -> int:
    return 0 if name is None else max(1, murmur64(name.encode(errors="surrogatepass")) >> 32)


def beside(marks: Marks, hashes: Keys) -> Marks:
    """Return the first marks of pages that are not a certain passage of theirs.

    Args:
        marks: Of the pages, ``(*shape, MARKS)``.
        hashes: The passages, of a shape that can be broadcast to `shape`.

    Returns:
        ``(*shape, MARKS - 1)``, 0 for none.
    """
    is_moved = (marks == marks_of(hashes)[..., None])[..., :-1]
    # If the first mark is the passage, all others move up.
    is_moved[..., 1] |= is_moved[..., 0]
    others: Marks = np.where(is_moved, marks[..., 1:], marks[..., :-1])
    return others


def share(one: Marks, other: Marks) -> npt.NDArray[np.bool_]:
    """Return which pages have a mark in common, of two arrays with marks in their last axis."""
    found = np.zeros(np.broadcast_shapes(one.shape[:-1], other.shape[:-1]), bool)
    for each, another in itertools.product(range(one.shape[-1]), range(other.shape[-1])):
        found |= (one[..., each] == other[..., another]) & (one[..., each] > 0)
    return found
