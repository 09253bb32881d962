"""A batch of raw texts, cut into passages and tokens: all that fingerprints are made from.

Passages are sentences, headlines and menu items. Sites put the same ones around every article. To be found
again, a passage is compared by its words alone. Dates and times count as equal, since they change from page
to page, except in long sentences: `core/src/passages.rs`.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core

# How characters are hashed, see `_core.parse`: benchmarks try other hashes.
_CHARACTER_HASH: tuple[int, int] | None = None

Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passages:
    """All passages of a batch of texts, in their order."""

    # uint64 (n,): equal for passages with the same words and figures.
    hashes: npt.NDArray[np.uint64]
    # int64 (n,): the number of letters and digits.
    alphanumerics: npt.NDArray[np.int64]
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
            alphanumerics=self.alphanumerics[first:last],
            are_prose=self.are_prose[first:last],
            have_figures=self.have_figures[first:last],
            texts=self.texts[first:last] - start,
            text_count=stop - start,
        )


PassageFilter = Callable[[Passages, npt.NDArray[np.uint64]], npt.NDArray[np.bool_]]
"""Returns which passages of some pages to leave out, bool ``(n,)``, by these and the pages' ids."""

SiteFilters = Callable[[str | None], PassageFilter]
"""Returns what leaves out passages of pages of a site; None if the site is not known."""


@dataclasses.dataclass(frozen=True)
class ParsedTexts:
    """The passages and tokens of a batch; the texts themselves stay in the core."""

    core: _core.Parsed

    @classmethod
    def of(
        cls, texts: Sequence[str], *, max_length: int, keep_text: bool = False, threads: int = 1
    ) -> "ParsedTexts":
        """Parse raw texts; see `_core.parse`.

        `keep_text` keeps the normal texts, to cut them into words or to show passages.
        """
        return cls(
            _core.parse(
                texts,
                max_length=max_length,
                keep_points=keep_text,
                character_hash=_CHARACTER_HASH,
                threads=threads,
            )
        )

    def __len__(self) -> int:
        return len(self.core)

    @property
    def passages(self) -> Passages:
        """The passages of all texts."""
        hashes, alphanumerics, are_prose, have_figures, texts = self.core.passages
        return Passages(
            hashes=np.frombuffer(hashes, np.uint64),
            alphanumerics=np.frombuffer(alphanumerics, np.int64),
            are_prose=np.frombuffer(are_prose, bool),
            have_figures=np.frombuffer(have_figures, bool),
            texts=np.frombuffer(texts, np.int64),
            text_count=len(self),
        )

    @property
    def pages(self) -> npt.NDArray[np.uint64]:
        """The ids of the whole texts as pages: uint64 ``(n,)``, 0 for a text without letters and digits.

        Texts with the same tokens in the same order have the same id.
        """
        return np.frombuffer(self.core.content_hashes, np.uint64)

    @property
    def are_cut(self) -> Bools:
        """Which texts were longer than the limit, so that the rest is missing: bool ``(n,)``."""
        return np.frombuffer(self.core.are_cut, bool)

    @property
    def alphanumerics(self) -> npt.NDArray[np.int64]:
        """The number of letters and digits of each text: int64 ``(n,)``."""
        return np.frombuffer(self.core.letters, np.int64)

    def left_out(self, passage_filter: PassageFilter | None) -> Bools:
        """Return which passages a filter leaves out: bool ``(passages,)``, or ``(0,)`` without one: none."""
        if passage_filter is None:
            return np.zeros(0, bool)
        return passage_filter(self.passages, self.pages)
