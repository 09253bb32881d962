"""The passages of a batch of texts: sentences, as they are compared with those of other texts.

Sites put the same passages around every article. To be found again, a passage is compared by its words
alone, and all numbers count as equal, except in long sentences: dates and counters change from page to page.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import SPACE, classes
from esdedup.text.sentences import Sentences
from esdedup.text.tokens import Tokens

# What ends a sentence in prose: full stops and the like of many scripts, and the colon before a quotation.
_FINAL = ".:;!?。\u0589\u061f\u06d4\u0964\u0965\u0f0d\u104b\u1362\u17d4"
# What may stand after it.
_TRAILING = "\"'`\u2019\u201d\u00bb\u203a\u300d\u300f\u3011\u300b)]}*_"
_MOST_TRAILING = 8
# Thai and Lao have no full stop: a line of theirs is prose from so many letters on.
_UNSTOPPED = range(0x0E00, 0x0F00)
_LONG_LINE_LETTERS = 40

# "Posted 2026-11-22 07:30." has fewer.
_LONG_SENTENCE_LETTERS = 30

_IS_FINAL, _IS_TRAILING, _IS_UNSTOPPED = (np.uint8(1 << bit) for bit in range(3))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passages:
    """All passages of a batch of texts, in their order."""

    # uint64 (n,): equal for passages with the same words; numbers count as equal except in long sentences.
    hashes: npt.NDArray[np.uint64]
    # int64 (n,): the number of letters and digits.
    letters: npt.NDArray[np.int64]
    # bool (n,): whether each ends as sentences of running text do, and not as a headline, a menu item, or a
    # teaser that breaks off.
    are_prose: npt.NDArray[np.bool_]
    # int64 (n,): the position in the batch of each passage's text, non-decreasing.
    texts: npt.NDArray[np.int64]
    # The number of texts, including those without a passage.
    text_count: int

    @classmethod
    def of(cls, sentences: Sentences, tokens: Tokens) -> "Passages":
        """Make a passage of each sentence of a batch.

        Args:
            sentences: Of the batch.
            tokens: Of the same batch.
        """
        spans, are_prose = _spans(sentences, tokens), _are_prose(sentences)
        # What such a sentence says is in its numbers, as in bulletins from one template.
        are_told_apart = are_prose & (sentences.letters >= _LONG_SENTENCE_LETTERS)
        return cls(
            hashes=np.where(are_told_apart, tokens.hashes(*spans), tokens.hashes(*spans, numbers_alike=True)),
            letters=sentences.letters,
            are_prose=are_prose,
            texts=sentences.texts,
            text_count=sentences.text_count,
        )

    def of_texts(self, start: int, stop: int) -> "Passages":
        """Return the passages of some texts, from `start` to `stop` (exclusive), as those of a batch."""
        first, last = np.searchsorted(self.texts, (start, stop))
        return Passages(
            hashes=self.hashes[first:last],
            letters=self.letters[first:last],
            are_prose=self.are_prose[first:last],
            texts=self.texts[first:last] - start,
            text_count=stop - start,
        )


Omit = Callable[[Passages, npt.NDArray[np.uint64]], npt.NDArray[np.bool_]]
"""Returns which passages of some pages to leave out, bool ``(n,)``, by these and the pages' ids."""

OmitOn = Callable[[str | None], Omit]
"""Returns what leaves out passages of pages of a site; None if the site is not known."""


def _spans(sentences: Sentences, tokens: Tokens) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first token of each sentence, and the one after its last: int64 ``(n,)`` each."""
    starts = tokens.starts.searchsorted(sentences.starts)
    # Between two sentences there are no tokens but the ends of texts.
    following = np.append(starts[1:], len(tokens.starts))
    return starts, following - np.diff(sentences.texts, append=sentences.text_count)


def _are_prose(sentences: Sentences) -> npt.NDArray[np.bool_]:
    points, roles = sentences.points, _roles()
    last = sentences.ends.copy()
    for _ in range(_MOST_TRAILING):
        passed = (roles[points[last]] & _IS_TRAILING).nonzero()[0]
        if not len(passed):
            break
        # A sentence has a letter, at which this stops.
        last[passed] -= 1
    role = roles[points[last]]
    breaks_off = (points[last] == ord(".")) & (points[last - 1] == ord("."))
    is_long_line = ((role & _IS_UNSTOPPED) != 0) & (sentences.letters >= _LONG_LINE_LETTERS)
    are_prose: npt.NDArray[np.bool_] = ((role & _IS_FINAL) != 0) & ~breaks_off | is_long_line
    return are_prose


@functools.cache
def _roles() -> npt.NDArray[np.uint8]:
    """Return what each code point can be at the end of a passage: uint8 ``(0x110000,)``."""
    roles = np.where(classes() & SPACE, _IS_TRAILING, np.uint8(0))
    roles[[ord(character) for character in _TRAILING]] = _IS_TRAILING
    roles[[ord(character) for character in _FINAL]] = _IS_FINAL
    roles[_UNSTOPPED.start : _UNSTOPPED.stop] = _IS_UNSTOPPED
    return roles
