"""`Boilerplate`: what was learned from the pages of a forest so far."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import Self

import numpy as np
import numpy.typing as npt

from esdedup._core import Learner
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.text.parsed import Passages, SiteFilters

# Larger blocks take less time for each page, but their pages teach later.
_BLOCK_PAGES = 32
# At the beginning and at the end of a page, where menus and footers are. Real pages have some 200 passages at
# most. A page that is made to flood may have 66,000, and would push out what a thousand others have taught.
_END_PASSAGES = 500
# Each article sets one of 32 bits: some 8 articles set 7.
_LEAST_ARTICLE_BITS = 7
# The records of some 80,000 pages. Both periods together take some 200 MB at most.
_PERIOD_RECORDS = 2_500_000

Bools = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True)
class Window:
    """Two periods of pages. A period ends with the block that brings its records to the capacity."""

    capacity: int
    # The records of the present period.
    count: int
    # The numbers of the first page of the present period, and of the one before it.
    present_from: int
    former_from: int


class Boilerplate(Learner):
    """Knows which passages are boilerplate, and where others were seen.

    It forgets passages that were seen neither in the present period nor in the one before. So its memory is
    limited, and a redesigned site is learned anew. Each call happens wholly or not at all, despite signals.
    """

    def __new__(
        cls,
        *,
        block_pages: int = _BLOCK_PAGES,
        end_passages: int = _END_PASSAGES,
        least_article_bits: int = _LEAST_ARTICLE_BITS,
        period_records: int = _PERIOD_RECORDS,
    ) -> Self:
        """Know nothing so far; other numbers than these are for tests."""
        return super().__new__(
            cls,
            block_pages=block_pages,
            end_passages=end_passages,
            least_article_bits=least_article_bits,
            period_records=period_records,
        )

    @property
    def window(self) -> Window:
        """The two periods."""
        return Window(*self.periods)

    @property
    def has_begun(self) -> bool:
        """Whether a step is neither kept nor undone."""
        return self.depth > 0

    def are_learned(self, hashes: Hashes, site: str | None) -> Bools:
        """Return which passages are boilerplate of a site, by their hashes: bool ``(n,)``."""
        return np.frombuffer(self.learned_flags(hashes.tobytes(), site), np.bool_)

    def learned(self) -> Hashes:
        """Return a hash for each passage of each site that is boilerplate there, ascending."""
        return np.frombuffer(self.learned_hashes(), np.uint64)

    def filter(
        self,
        passages: Passages,
        pages: Hashes,
        *,
        overrides: Overrides = NO_OVERRIDES,
        sites: Iterable[str | None] = itertools.repeat(None),
        articles: Iterable[str | None] = itertools.repeat(None),
        titles: Iterable[str | None] = itertools.repeat(None),
    ) -> Bools:
        """Return which passages of pages to leave out, bool ``(n,)``, and learn from these pages.

        A page that was seen before teaches nothing.

        Args:
            passages: Of the pages.
            pages: The ids of the pages, uint64 ``(text_count,)``.
            overrides: Decide instead about the passages that they name.
            sites: Of the pages. If pages are given a few at a time, an iterator that goes on.
            articles: Their names on their sites: the page of an article may change and come again.
            titles: Likewise: under one title they are versions of an article.
        """
        left_out = self.filter_columns(
            passages.columns,
            pages.tobytes(),
            (
                list(itertools.islice(sites, len(pages))),
                list(itertools.islice(articles, len(pages))),
                list(itertools.islice(titles, len(pages))),
            ),
            overrides.core,
        )
        return np.frombuffer(left_out, np.bool_)


def untaught_filters(overrides: Overrides = NO_OVERRIDES) -> SiteFilters:
    """Return filters that have learned nothing: they leave out lists, and passages declared boilerplate."""
    return lambda site: functools.partial(
        Boilerplate().filter, overrides=overrides, sites=itertools.repeat(site)
    )
