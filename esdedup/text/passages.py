"""The passages of a batch of texts: sentences, as they are compared with those of other texts.

Sites put the same passages around every article. To be found again, a passage is compared by its words
alone. Dates and times count as equal, since they change from page to page, except in long sentences:
`core/src/passages.rs`.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passages:
    """All passages of a batch of texts, in their order."""

    # uint64 (n,): equal for passages with the same words and figures.
    hashes: npt.NDArray[np.uint64]
    # int64 (n,): the number of letters and digits.
    letters: npt.NDArray[np.int64]
    # bool (n,): whether each ends as sentences of running text do, and not as a headline, a menu item, or a
    # teaser that breaks off.
    are_prose: npt.NDArray[np.bool_]
    # bool (n,): whether each has a number that is not of a date or time; not of long sentences of prose.
    have_figures: npt.NDArray[np.bool_]
    # int64 (n,): the position in the batch of each passage's text, non-decreasing.
    texts: npt.NDArray[np.int64]
    # The number of texts, including those without a passage.
    text_count: int

    def of_texts(self, start: int, stop: int) -> "Passages":
        """Return the passages of some texts, from `start` to `stop` (exclusive), as those of a batch."""
        first, last = np.searchsorted(self.texts, (start, stop))
        return Passages(
            hashes=self.hashes[first:last],
            letters=self.letters[first:last],
            are_prose=self.are_prose[first:last],
            have_figures=self.have_figures[first:last],
            texts=self.texts[first:last] - start,
            text_count=stop - start,
        )


Omit = Callable[[Passages, npt.NDArray[np.uint64]], npt.NDArray[np.bool_]]
"""Returns which passages of some pages to leave out, bool ``(n,)``, by these and the pages' ids."""

OmitOn = Callable[[str | None], Omit]
"""Returns what leaves out passages of pages of a site; None if the site is not known."""
