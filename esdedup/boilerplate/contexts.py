"""`Contexts`: the pages on which passages were seen, as far as those differ in the rest."""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import Marks, Origins, beside, share
from esdedup.boilerplate.site_pages import SitePages
from esdedup.neighbours.key_table import Keys

MOST_CONTEXTS = 4
"""A passage that was seen in one more context is boilerplate, unless sites are known and most of the five are
of different ones: then it may be a statement that many papers quote. The oldest makes room."""

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Contexts:
    """The contexts of some passages, to which others are added.

    Attributes:
        hashes: Of the passages, uint64 ``(n,)``, each once.
        pages: Of their contexts, int64 ``(n, MOST_CONTEXTS)``, 0 for none.
        are_learned: Which are boilerplate, bool ``(n,)``.
        are_unseen: Which were not seen before, bool ``(n,)``.
        last_added: The last page that was added to each, int64 ``(n,)``, 0 for none.
        site_pages: The pages of their sites.
    """

    def __init__(
        self,
        hashes: Keys,
        pages: Ints,
        marks: Marks,
        origins: Origins,
        site_pages: SitePages,
        *,
        are_learned: Bools,
        are_unseen: Bools,
    ) -> None:
        """Begin with what is known.

        Args:
            hashes: Of the passages, ``(n,)``.
            pages: Of their contexts, ``(n, MOST_CONTEXTS)``.
            marks: Of those pages, ``(n, MOST_CONTEXTS, MARKS)``.
            origins: Of those pages, ``(n, MOST_CONTEXTS, ORIGIN)``.
            site_pages: The pages of their sites.
            are_learned: Which passages are boilerplate, ``(n,)``.
            are_unseen: Which were not seen before, ``(n,)``.
        """
        self.hashes = hashes
        self.are_learned = are_learned
        self.are_unseen = are_unseen
        self.last_added = np.zeros(len(hashes), np.int64)
        self.site_pages = site_pages
        # Of the contexts beside the passages.
        self._marks = beside(marks, hashes[:, None])
        self._origins = origins
        # A page of one passage is no context for it.
        self.pages = np.where(self._marks[..., 0] > 0, pages, 0)

    def are_new(self, passages: Ints, marks: Marks, origins: Origins) -> Bools:
        """Return which pages would be new contexts of passages that are no boilerplate: bool ``(m,)``.

        A new version of an article is no other context than the ones before it.

        Args:
            passages: Their places in `hashes`, ``(m,)``.
            marks: Of the pages, ``(m, MARKS)``.
            origins: Of the pages, ``(m, ORIGIN)``.
        """
        own = beside(marks, self.hashes[passages])
        are_new: Bools = (own[:, 0] > 0) & ~self.are_learned[passages]
        again = np.flatnonzero(are_new & (self.pages[passages].max(axis=1) > 0))
        are_shared = share(own[again, None], self._marks[passages[again]])
        are_shared |= (origins[again, None, :2] == self._origins[passages[again], :, :2]).all(axis=-1)
        are_new[again] = ~np.any(are_shared & (self.pages[passages[again]] > 0), axis=1)
        return are_new

    def have_other(self, marks: Marks) -> Bools:
        """Return which passages have a context other than a page: bool ``(n,)``.

        Args:
            marks: Of the page of each passage, ``(n, MARKS)``.
        """
        own = beside(marks, self.hashes)[:, None]
        are_other = (self.pages > 0) & (own[..., 0] > 0) & ~share(own, self._marks)
        have: Bools = np.logical_or.reduce(are_other, axis=1)
        return have

    def add(self, passages: Ints, pages: Ints, marks: Marks, origins: Origins) -> None:
        """Add a context to passages; those that have enough become boilerplate.

        Args:
            passages: Their places in `hashes`, each once, ``(m,)``.
            pages: The new context of each, ``(m,)``.
            marks: Of these pages, ``(m, MARKS)``.
            origins: Of these pages, ``(m, ORIGIN)``.
        """
        self.last_added[passages] = pages
        is_full = (self.pages[passages] > 0).all(axis=1)
        self.are_learned[passages] = is_full & self._are_of_one_site(passages, origins)
        left = np.flatnonzero(~self.are_learned[passages])
        passages = passages[left]
        # A free one, or the oldest.
        slots = self.pages[passages].argmin(axis=1)
        self.pages[passages, slots] = pages[left]
        self._marks[passages, slots] = beside(marks[left], self.hashes[passages])
        self._origins[passages, slots] = origins[left]

    def _are_of_one_site(self, passages: Ints, origins: Origins) -> Bools:
        """Return which passages have most of their contexts, and this one, on one site: bool ``(m,)``."""
        sites = np.concatenate((self._origins[passages, :, 0], origins[:, :1]), axis=1)
        are_alike = (sites[:, :, None] == sites[:, None]) | (sites[:, :, None] == 0) | (sites[:, None] == 0)
        are_of_one: Bools = are_alike.sum(axis=2).max(axis=1) > sites.shape[1] // 2
        return are_of_one
