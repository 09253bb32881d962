"""The sentences of a batch of normalised texts, as arrays, and the longest of them."""

import dataclasses

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import (
    ALNUM,
    FIRST_WIDE,
    FULL_STOP,
    HARD_END,
    LATIN,
    SEPARATOR,
    SPACE,
)
from esdedup.text.groups import are_first
from esdedup.text.wrapping import are_wrapped

_PARTS = 2
_PLACE_BITS = 32
_PLACE = (1 << _PLACE_BITS) - 1
_MOST_LETTERS = (1 << 31) - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sentences:
    """All sentences of a batch that have a letter or digit, in their order."""

    # uint32 (p,): the code points of the texts, each text followed by a `SEPARATOR`.
    points: npt.NDArray[np.uint32]
    # int64 (n,) each: the positions in `points` where sentences start and end (exclusive).
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    # int64 (n,): the number of letters and digits, which is the length of a sentence.
    letters: npt.NDArray[np.int64]
    # int64 (n,): the position in the batch of each sentence's text, non-decreasing.
    texts: npt.NDArray[np.int64]
    # The number of texts, including those without a sentence.
    text_count: int

    @classmethod
    def of(cls, points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]) -> "Sentences":
        """Find the sentences of a batch.

        Args:
            points: From `normal_points`, uint32 ``(p,)``.
            kinds: The `classes` of the points, uint8 ``(p,)``.
        """
        ends = _sentence_ends(points, kinds)
        starts = np.concatenate((ends[:0], [0], ends[:-1] + 1))[: len(ends)]
        letters = np.add.reduceat(kinds & ALNUM, starts, dtype=np.int64) if len(ends) else ends
        ends_text = points[ends] == ord(SEPARATOR)
        texts = ends_text.cumsum() - ends_text
        kept = letters.nonzero()[0]
        return cls(
            points=points,
            starts=starts[kept],
            ends=ends[kept],
            letters=letters[kept],
            texts=texts[kept],
            text_count=int(np.count_nonzero(ends_text)),
        )

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Sentences":
        """Return only the chosen sentences, bool ``(n,)``, as if the texts had no others."""
        return dataclasses.replace(
            self,
            starts=self.starts[chosen],
            ends=self.ends[chosen],
            letters=self.letters[chosen],
            texts=self.texts[chosen],
        )

    def with_rows_joined(self) -> "Sentences":
        """Return the sentences with the rows of tables and menus joined, each one alone being too short.

        That is: lines that end neither with a full stop nor with an East Asian character, without a blank
        one between them.
        """
        if not len(self.texts):
            return self
        ends, last = self.ends[:-1], self.points[self.ends[:-1] - 1]
        go_on = (self.points[ends] == ord("\n")) & (last < FIRST_WIDE)
        go_on &= (self.starts[1:] == ends + 1) & (self.texts[1:] == self.texts[:-1])
        firsts = np.concatenate(([0], np.flatnonzero(~go_on) + 1))
        return dataclasses.replace(
            self,
            starts=self.starts[firsts],
            ends=self.ends[np.append(firsts[1:], len(self.ends)) - 1],
            letters=np.add.reduceat(self.letters, firsts),
            texts=self.texts[firsts],
        )

    @property
    def letters_of_texts(self) -> npt.NDArray[np.int64]:
        """The number of letters and digits of each text: int64 ``(text_count,)``."""
        # Sums below 2^53 are exact.
        return np.bincount(self.texts, self.letters, self.text_count).astype(np.int64)

    def longest(self) -> npt.NDArray[np.int64]:
        """Return the longest sentence of each text that has one, the first of equals: int64 ``(m,)``."""
        return self._longest_of(self.texts)

    def longest_of_halves(self) -> npt.NDArray[np.int64]:
        """Return the longest sentence of each half of each text's sentences, the first of equals.

        A new lead, a cut tail or a long footer replaces only one of the two.

        Returns:
            Sentences in their order, int64 ``(m,)``: one or two for each text that has a sentence.
        """
        counts = np.bincount(self.texts, minlength=self.text_count)
        first = counts.cumsum() - counts
        # The first half of n sentences are those before n / 2 (exclusive).
        places = np.arange(1, len(self.texts) + 1) - first[self.texts]
        halves = (places * _PARTS - 1) // counts[self.texts]
        return self._longest_of(self.texts * _PARTS + halves)

    def string(self, sentence: int, *, max_length: int | None = None) -> str:
        """Return the text of a sentence, cut after `max_length` code points."""
        start, end = int(self.starts[sentence]), int(self.ends[sentence])
        stop = end if max_length is None else min(end, start + max_length)
        return self.points[start:stop].astype("<u4").tobytes().decode("utf-32-le")

    def _longest_of(self, groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the longest sentence of each group, the first of equals; `groups` is non-decreasing."""
        if not len(groups):
            return groups
        # The least key belongs to the longest sentence, or to the first of several as long.
        keys = (_MOST_LETTERS - self.letters) << _PLACE_BITS
        keys += np.arange(len(groups))
        return np.minimum.reduceat(keys, are_first(groups).nonzero()[0]) & _PLACE


def _sentence_ends(points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the positions of the characters that end sentences: int64 ``(n,)``, ascending."""
    # The places of true values are found faster than those of other numbers.
    may_end: npt.NDArray[np.bool_] = (kinds & (HARD_END | FULL_STOP)) != 0
    ends = may_end.nonzero()[0]
    ended_by = points[ends]
    ending = np.ones(len(ends), bool)
    # A full stop ends a sentence if white space follows it and no single letter precedes it: not in `3.14`,
    # `e.g.` or `J. Smith`.
    is_stop = ended_by == ord(".")
    if is_stop.any():
        stops = ends[is_stop]
        before, before_that = kinds[np.maximum(stops - 1, 0)], kinds[np.maximum(stops - 2, 0)]
        initial = ((before & LATIN) != 0) & (((before_that & ALNUM) == 0) | (stops == 1))
        ending[is_stop] = ((kinds[stops + 1] & (SPACE | HARD_END)) != 0) & ~initial
    # A line break does, unless the line was only full.
    is_break = ended_by == ord("\n")
    if is_break.any():
        ends_line = is_break | (ended_by == ord(SEPARATOR))
        wrapped = are_wrapped(points, kinds, ends[ends_line], ends[ending & ~ends_line])
        ending[is_break] = ~wrapped[is_break[ends_line]]
    return ends.compress(ending)
