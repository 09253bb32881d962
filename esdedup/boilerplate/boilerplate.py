"""`Boilerplate`: the boilerplate learned from the pages of a forest."""

import contextlib
import itertools
from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

from esdedup._core import Learner, PassageFilter
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.text.parsed import SiteFilters

# Larger blocks take less time per page, but delay learning.
_BLOCK_PAGES = 32
# The maximum number of passages that are learned from the beginning of a page, and from its end, where menus
# and footers are. Real pages have at most about 200 passages. A malicious page may have 66,000, which would
# displace the boilerplate learned from a thousand other pages.
_END_PASSAGES = 500
# A passage's set of articles must have this many of its 32 bits. About 8 articles set 7 bits, one each.
_LEAST_ARTICLE_BITS = 7
# A period holds the records of about 80,000 pages. Two periods use at most about 200 MB.
_PERIOD_RECORDS = 2_500_000

Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]


class Boilerplate(Learner):
    """Records which passages are boilerplate, and where other passages were seen.

    Passages that were seen in neither the current nor the previous period are forgotten, which limits memory
    and follows redesigned sites. Each call takes effect completely or not at all, even if a signal arrives.
    """

    def __new__(
        cls,
        *,
        block_pages: int = _BLOCK_PAGES,
        end_passages: int = _END_PASSAGES,
        least_article_bits: int = _LEAST_ARTICLE_BITS,
        period_records: int = _PERIOD_RECORDS,
    ) -> Self:
        """Create an object that has learned nothing; only tests set the parameters."""
        return super().__new__(
            cls,
            block_pages=block_pages,
            end_passages=end_passages,
            least_article_bits=least_article_bits,
            period_records=period_records,
        )

    @property
    def former_from(self) -> int:
        """The number of the first page in the previous period."""
        return self.periods[3]

    @property
    def has_begun(self) -> bool:
        """Whether a step (the changes of a batch) is open, that is, neither kept nor undone."""
        return self.depth > 0

    def are_learned(self, hashes: Hashes, site: str | None) -> Bools:
        """Return which passages are boilerplate of a site, by their hashes: bool ``(n,)``."""
        return np.frombuffer(self.learned_flags(hashes.tobytes(), site), np.bool_)

    def learned(self) -> Hashes:
        """Return the local hashes of all boilerplate, ascending; local hashes differ between sites."""
        return np.frombuffer(self.learned_hashes(), np.uint64)

    def filter(
        self,
        *,
        overrides: Overrides = NO_OVERRIDES,
        sites: Iterable[str | None] = itertools.repeat(None),
        articles: Iterable[str | None] = itertools.repeat(None),
        titles: Iterable[str | None] = itertools.repeat(None),
    ) -> PassageFilter:
        """Return a filter that omits boilerplate from pages, in order, and learns from new pages.

        Args:
            overrides: Take precedence over learned boilerplate.
            sites: The sites of the pages.
            articles: The ids of the articles on their sites. An article may have several pages, its versions.
            titles: The titles of the pages. Pages with equal titles are versions of an article.
        """
        return PassageFilter(self, overrides.core, (sites, articles, titles))


def untaught_filters(overrides: Overrides = NO_OVERRIDES) -> SiteFilters:
    """Return filters without learned boilerplate: they omit menus, other lists, and declared boilerplate."""
    return lambda site: contextlib.nullcontext(
        Boilerplate().filter(overrides=overrides, sites=itertools.repeat(site))
    )
