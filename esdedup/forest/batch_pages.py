"""The pages of one batch: which of them are remembered, with which nodes if any, and until when. Pure."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.forest.model import NO_PAGE, Ages, Arrivals, Pages


class BatchPages:
    """Remembers the pages of a batch while its arrivals are decided in order."""

    def __init__(self, found: Pages, arrivals: Arrivals, ages: Ages) -> None:
        """Start from the pages that are remembered before the batch.

        Args:
            found: Those among the batch's.
            arrivals: The batch.
            ages: The batch's.
        """
        self._ages = ages
        self._pages: list[int] = arrivals.pages.tolist()
        # Of each remembered page: the row of its node, NO_NODE if it got none, and when it was last seen.
        self._before = _by_id(found)
        self._now = dict(self._before)

    @property
    def open(self) -> set[int]:
        """The positions of arrivals whose page is remembered before the batch, or came earlier in it."""
        came: set[int] = set(self._before)
        found = set()
        for at, page in enumerate(self._pages):
            if page in came:
                found.add(at)
            elif page != NO_PAGE:
                came.add(page)
        return found

    def of(self, at: int) -> int:
        """Return the page of an arrival."""
        return self._pages[at]

    def node_row(self, at: int) -> int | None:
        """Return the row of the node that an arrival's page got; NO_NODE if it got none.

        None if the page is not remembered.
        """
        row, seen_ms = self._now.get(self._pages[at], (None, 0))
        return row if seen_ms >= self._ages.live_since_ms[at] else None

    def remember(self, at: int, row: int) -> None:
        """Remember an arrival's page, with the node that it got, or with NO_NODE."""
        if self._pages[at] != NO_PAGE:
            self._now[self._pages[at]] = row, self._ages.seen_ms[at]

    def after(self, rows: Sequence[int]) -> tuple[Pages, npt.NDArray[np.int64]]:
        """Return what has changed when all is decided, as `Plan.pages` and `Plan.paged` have it.

        Args:
            rows: The row of each arrival's node; NO_NODE for those that got none.
        """
        last = {page: at for at, page in enumerate(self._pages) if page != NO_PAGE}
        paged = sorted(
            at for page, at in last.items() if self._before.get(page) != (rows[at], self._ages.seen_ms[at])
        )
        pages = Pages(
            ids=np.array([self._pages[at] for at in paged], np.uint64),
            rows=np.array([rows[at] for at in paged], np.int64),
            seen_ms=np.array([self._ages.seen_ms[at] for at in paged], np.int64),
        )
        return pages, np.array(paged, np.int64)


def _by_id(pages: Pages) -> dict[int, tuple[int, int]]:
    each = pages.rows.tolist(), pages.seen_ms.tolist()
    return dict(zip(pages.ids.tolist(), zip(*each, strict=True), strict=True))
