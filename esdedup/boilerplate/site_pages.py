"""`SitePages`: on how many pages of one site passages were seen, however alike those pages are.

The longest passages of a site's own boilerplate may be longer than those of its articles. Then all of its
pages share their marks, and no page is another context. But no site brings one passage in many articles,
unless the passage is the site's.
"""

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import Origins
from esdedup.text.groups import are_first

COLUMNS = 3

Ints = npt.NDArray[np.int64]


class SitePages:
    """The pages of some passages' sites, to which others are added.

    The site of a passage is that of the first page with it, and a page counts if its article is neither that
    of the first page nor that of the last one that came before: the page of an article changes and comes
    again.

    Attributes:
        rows: Of each passage the first page, the last page of its site, and how many pages count,
            int64 ``(n, COLUMNS)``; 0 if it was not seen.
    """

    def __init__(self, rows: Ints, origins: Origins) -> None:
        """Begin with what is known.

        Args:
            rows: As the attribute.
            origins: Of the first and the last page of each passage, ``(n, 2, 2)``, 0 for none.
        """
        self.rows = rows
        self._before = rows.copy()
        self._first, self._last = origins[:, 0].copy(), origins[:, 1].copy()

    @property
    def have_grown(self) -> npt.NDArray[np.bool_]:
        """Which passages were seen on further pages of their site: bool ``(n,)``."""
        have_grown: npt.NDArray[np.bool_] = (self.rows != self._before).any(axis=1)
        return have_grown & (self.rows[:, 2] > 1)

    def add(self, passages: Ints, pages: Ints, origins: Origins) -> None:
        """Add pages to passages.

        Args:
            passages: Their places, ascending: of each as many as it has pages, ``(m,)``.
            pages: Ascending for each passage, ``(m,)``.
            origins: Of the pages, ``(m, 2)``.
        """
        is_next = are_first(passages)
        is_first = is_next & (self.rows[passages, 2] == 0)
        self.rows[passages[is_first]] = np.stack((pages[is_first],) * 2 + (is_first[is_first],), axis=1)
        self._first[passages[is_first]] = self._last[passages[is_first]] = origins[is_first]
        site, article = self._first[passages].T
        is_known = (origins > 0).all(axis=1)
        counts = np.flatnonzero(is_known & (origins[:, 0] == site) & (origins[:, 1] != article))
        passages, pages, origins = passages[counts], pages[counts], origins[counts]
        is_next = are_first(passages)
        previous = self._last[passages, 1]
        previous[1:] = np.where(is_next[1:], previous[1:], origins[:-1, 1])
        is_other = origins[:, 1] != previous
        self.rows[:, 2] += np.bincount(passages[is_other], minlength=len(self.rows))
        # Of several pages the last one is written last.
        self.rows[passages, 1], self._last[passages] = pages, origins
