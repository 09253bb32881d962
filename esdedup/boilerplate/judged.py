"""What follows from knowing which passages of some pages are boilerplate, for all of them at once."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.marks import MARKS, Marks, marks_of
from esdedup.text.groups import are_first
from esdedup.text.passages import Passages

# Lists are left out if so many letters of other text remain, and single passages that are not prose if so
# many letters of prose remain. Chosen on the labelled articles: benchmarks/tried.md.
_ENOUGH_LETTERS = 100
_AMPLE_LETTERS = 200
# They must be so large a part of what is not boilerplate: a list is not published for its introduction.
_LEAST_SHARE = 0.4
# A table has so many rows with figures at least, which are so large a part of the page.
_LEAST_ROWS, _TABLE_SHARE = 2, 0.5
# A batch has fewer passages, and a passage fewer letters.
_PLACE_BITS = 31
_RANK_BITS = 62

Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """The pages of a batch, as far as they can be judged without what else is known of their passages."""

    # bool (n,): which passages to leave out.
    are_omitted: Bools
    # bool (n,): which are in lists of pages with little other text.
    are_doubtful: Bools
    # uint32 (text_count, MARKS): the marks of each page, 0 for none: its longest passages that are not
    # boilerplate, those outside lists first.
    marks: Marks

    @classmethod
    def of(cls, passages: Passages, are_learned: Bools) -> "Judged":
        """Judge some pages.

        Args:
            passages: Of the pages.
            are_learned: Which of the passages are boilerplate, ``(n,)``.
        """
        texts, count = passages.texts, passages.text_count
        letters = np.where(are_learned, 0, passages.letters)
        are_lists = _are_lists(passages)
        prose, others, rest, whole, figures = (
            np.bincount(texts, some, count)
            for some in (
                letters * passages.are_prose,
                letters * ~are_lists,
                letters,
                passages.letters,
                passages.letters * passages.have_figures,
            )
        )
        has_ample = (prose >= _AMPLE_LETTERS) & (prose >= _LEAST_SHARE * rest)
        has_enough = (others >= _ENOUGH_LETTERS) & (others >= _LEAST_SHARE * rest)
        # What a table says is in its figures, however many others have the same ones.
        rows = np.bincount(texts[passages.have_figures], minlength=count)
        are_tables = (rows >= _LEAST_ROWS) & (figures >= _TABLE_SHARE * whole) & ~has_ample & ~has_enough
        are_kept = passages.have_figures & are_tables[texts]
        are_learned = are_learned & ~are_kept
        are_unwanted = np.where(has_ample[texts], ~passages.are_prose, are_lists & has_enough[texts])
        return cls(
            are_omitted=are_learned | are_unwanted,
            are_doubtful=are_lists & ~are_learned & ~are_kept & ~(has_ample | has_enough)[texts],
            marks=_marks(passages, are_lists, kept=np.flatnonzero(~are_learned)),
        )


def _are_lists(passages: Passages) -> Bools:
    """Return which passages are not prose, and next to another of their text that is not: bool ``(n,)``."""
    are_other, texts = ~passages.are_prose, passages.texts
    follows = are_other[1:] & are_other[:-1] & (texts[1:] == texts[:-1])
    are_lists = np.zeros(len(texts), bool)
    are_lists[1:] |= follows
    are_lists[:-1] |= follows
    return are_lists


def _marks(passages: Passages, are_lists: Bools, *, kept: npt.NDArray[np.int64]) -> Marks:
    texts, marks = passages.texts[kept], marks_of(passages.hashes[kept])
    found = np.zeros((passages.text_count, MARKS), np.uint32)
    if len(kept):
        first = are_first(texts).nonzero()[0]
        # The highest rank: outside lists, then the longest, then the first.
        ranks = (~are_lists[kept]).astype(np.int64) << _RANK_BITS
        ranks |= passages.letters[kept] << _PLACE_BITS
        ranks |= np.arange(len(kept) - 1, -1, -1)
        for place in range(MARKS):
            highest = np.maximum.reduceat(ranks, first)
            chosen = len(kept) - 1 - (highest & ((1 << _PLACE_BITS) - 1))
            found[texts[first], place] = np.where(highest >= 0, marks.take(chosen, mode="clip"), 0)
            # The same passage again is no other mark.
            ranks[marks == found[texts, place]] = -1
    return found
