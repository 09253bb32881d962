"""`SitePages`: on which pages of one site passages were seen, however alike those pages are.

The longest passages of a site's own boilerplate may be longer than those of its articles. Then all of its
pages share their marks, and no page is another context. But what a site puts on a fair share of its pages,
around articles that are different, is the site's own. A story that a platform brings many times is not: those
pages have little else that is new. If they have not, it takes many more pages: a notice in the place of
articles is on most pages of its site, a story on few.

Articles are counted by 32 bits, of which each sets one: some 8 articles set 7, and some 34 set 21.
"""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import Origins
from esdedup.text.groups import are_first

COLUMNS = 5
LEAST_BITS = 7
"""Articles, in bits, that have a passage of their site's amid text of their own."""

# So many times as many articles, if they have little else.
_MANY_TIMES = 3
# Of the pages of its site, from the first one with the passage on.
_FAIR_SHARE, _MOST = 10, 2
# After so many pages of other sites, another one is observed: the first page may have been a copy.
_MOST_FOREIGN = 64
_ARTICLE_BITS = 32

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class SitePages:
    """The pages of some passages' sites, to which others are added.

    Each passage is observed at one site at a time.

    Attributes:
        rows: Of each passage the first page with it that is observed, the articles that have it amid text of
            their own and all articles, both in bits, how many pages of the site have it, and how many of
            other sites since the last block with one; int64 ``(n, COLUMNS)``; 0 if it was not seen.
    """

    def __init__(self, rows: Ints, origins: Origins) -> None:
        """Begin with what is known.

        Args:
            rows: As the attribute.
            origins: Of the first page of each passage, ``(n, ORIGIN)``, 0 for none.
        """
        self.rows = rows
        self._before = rows.copy()
        self._origins = origins.copy()

    @property
    def have_grown(self) -> Bools:
        """Which passages were seen on further pages: bool ``(n,)``."""
        have_changed: Bools = (self.rows != self._before).any(axis=1)
        return have_changed & ((self._before[:, 3] > 0) | (self.rows[:, 3] + self.rows[:, 4] > 1))

    @property
    def sites(self) -> npt.NDArray[np.uint32]:
        """The sites at which the passages are observed, as in `Origins`: ``(n,)``."""
        return self._origins[:, 0]

    def add(self, passages: Ints, pages: Ints, origins: Origins, are_own: Bools) -> None:
        """Add the pages of a block to passages.

        Args:
            passages: Their places, ascending: of each as many as it has pages, ``(m,)``.
            pages: Ascending for each passage, ``(m,)``.
            origins: Of the pages, ``(m, ORIGIN)``.
            are_own: Which pages have new text of their own, ``(m,)``.
        """
        is_new = are_first(passages) & (self.rows[passages, 3] == 0)
        self._observe(passages[is_new], pages[is_new], origins[is_new])
        is_of_site = origins[:, 0] == self.sites[passages]
        bits = articles_in_bits(origins)
        self._count(passages, np.where(is_of_site & are_own, bits, 0), column=1)
        self._count(passages, np.where(is_of_site, bits, 0), column=2)
        self.rows[:, 3] += np.bincount(passages[is_of_site & ~is_new], minlength=len(self.rows))
        foreign = np.flatnonzero(~is_of_site & (origins[:, 0] > 0))
        self.rows[:, 4] += np.bincount(passages[foreign], minlength=len(self.rows))
        self.rows[passages[is_of_site & (origins[:, 0] > 0)], 4] = 0
        is_foreign = self.rows[:, 4] > np.where(self.sites > 0, _MOST_FOREIGN, 0)
        # The last page of another site, if there are several.
        moved = foreign[is_foreign[passages[foreign]]]
        moved = moved[are_first(passages[moved][::-1])[::-1]]
        self._observe(passages[moved], pages[moved], origins[moved])

    def are_boilerplate(self, pages_of_sites: Ints, *, least_bits: int) -> Bools:
        """Return which passages are boilerplate of their sites: bool ``(n,)``.

        Args:
            pages_of_sites: The number of pages of each of `sites`, ``(n,)``.
            least_bits: As `LEAST_BITS`.
        """
        amid_own, articles = np.bitwise_count(self.rows[:, 1:3]).T
        seen, span = self.rows[:, 3], pages_of_sites - self._origins[:, 2] + 1
        are_boilerplate: Bools = (amid_own >= least_bits) & (seen * _FAIR_SHARE >= span)
        are_boilerplate |= (articles >= _MANY_TIMES * least_bits) & (seen * _MOST >= span)
        return are_boilerplate & (self.sites > 0)

    def _observe(self, passages: Ints, pages: Ints, origins: Origins) -> None:
        """Begin to observe passages, each once, at the sites of these pages."""
        self.rows[passages] = first_rows(pages, origins)
        self._origins[passages] = origins

    def _count(self, passages: Ints, bits: Ints, *, column: int) -> None:
        if len(passages):
            first = are_first(passages).nonzero()[0]
            self.rows[passages[first], column] |= np.bitwise_or.reduceat(bits, first)


def first_rows(pages: Ints, origins: Origins) -> Ints:
    """Return the rows of passages that were seen on these pages alone: int64 ``(n, COLUMNS)``.

    Args:
        pages: One of each passage, ``(n,)``.
        origins: Of the pages, ``(n, ORIGIN)``.
    """
    bits = articles_in_bits(origins)
    none = np.zeros_like(bits)
    return np.stack((pages, bits, bits, none + 1, none), axis=1)


def articles_in_bits(origins: Origins) -> Ints:
    """Return the bit of each page's article: int64 ``(m,)``."""
    return np.int64(1) << (origins[:, 1].astype(np.int64) % _ARTICLE_BITS)
