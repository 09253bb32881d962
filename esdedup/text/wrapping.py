"""Which line breaks are there only because a line was full: those of wrapped text.

Mail, electronic papers and recognised print break all lines at the same width. A full line is one to which
the first word of the next could not be added. Most lines of a wrapped paragraph are full, except for those
that end with a sentence; few of a menu or a list of headlines are.
"""

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import FIRST_WIDE, SEPARATOR, SPACE, TOKEN_SHIFT, WIDE, classes
from esdedup.text.endings import Endings
from esdedup.text.groups import are_first

# Print has no narrower columns, and hardly any wider ones.
_LEAST_COLUMNS, _MOST_COLUMNS = 30, 160
# A full line may be shorter by this part of the longest: print has as many letters in a line as fit, and some
# signs may not begin a line.
_SLACK = 8
# Headlines of equal length have fewer full stops.
_MOST_LINES_A_STOP = 8
# Korean is wrapped between words.
_HANGUL = range(0xAC00, 0xD7B0)
# Normalising makes them narrow; beside East Asian text they were wide.
_NARROWED = ",:;!?()"
# No longer word is looked at to its end.
_MOST_WORD = 32

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def are_wrapped(
    points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], ends: Ints, stops: Ints
) -> Bools:
    """Return which lines of a batch end only because they are full: bool ``(n,)``.

    Args:
        points: Of the batch, ``(p,)``.
        kinds: The `classes` of the points, ``(p,)``.
        ends: The positions of the line breaks, and of the separators that end texts, ``(n,)``, ascending.
        stops: The positions of the other characters that end sentences.
    """
    lines = _Lines.of(points, kinds, ends)
    widths = lines.extra_columns
    columns = lines.lengths + widths
    widest = np.maximum.reduceat(columns, lines.firsts)
    sizes = np.add.reduceat(lines.lengths > 0, lines.firsts, dtype=np.int64)
    stop_counts = np.bincount(lines.paragraphs[ends.searchsorted(stops)], minlength=len(widest))
    # A stop inside quotation marks does not end a sentence, but a paragraph.
    stop_counts += np.add.reduceat(lines.are_prose & ~lines.go_on, lines.firsts, dtype=np.int64)
    may_be_prose = (widest >= _LEAST_COLUMNS) & (widest <= _MOST_COLUMNS)
    may_be_prose &= stop_counts * _MOST_LINES_A_STOP >= sizes
    full, against = lines.full(lines.lengths)
    if widths.any():
        # Some programs count characters, others columns.
        by_columns, against_columns = lines.full(columns)
        full = np.where((against_columns < against)[lines.paragraphs], by_columns, full)
        against = np.minimum(against, against_columns)
    wrapped: Bools = full & (may_be_prose & (against <= 0))[lines.paragraphs]
    return wrapped


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lines:
    """The lines of a batch, and its paragraphs: lines without a blank one between them."""

    points: npt.NDArray[np.uint32]
    # int64 (n,) each: where lines begin, and their first visible character; and how many characters they have
    # up to the last visible one, 0 if they are blank.
    starts: Ints
    words: Ints
    lengths: Ints
    # bool (n,) each: which are followed by a line of the same paragraph, which end as sentences of prose do,
    # and which break off as teasers do.
    go_on: Bools
    are_prose: Bools
    break_off: Bools
    # int64 (n,): the paragraph of each line.
    paragraphs: Ints
    # int64 (m,) each: the first line of each paragraph, and its text.
    firsts: Ints
    texts: Ints

    @classmethod
    def of(cls, points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8], ends: Ints) -> "_Lines":
        """Find them; see `are_wrapped`."""
        starts = np.concatenate((ends[:0], [0], ends[:-1] + 1))
        # With one after all lines, in case that all are blank.
        visible = np.append(((kinds & SPACE) == 0).nonzero()[0], len(points))
        first, stop = visible.searchsorted((starts, ends))
        are_blank = first == stop
        end_texts = points[ends] == ord(SEPARATOR)
        cuts = are_blank | end_texts
        paragraphs = cuts.cumsum() - cuts
        firsts = are_first(paragraphs).nonzero()[0]
        go_on = ~cuts & ~np.append(are_blank[1:], True)
        endings = Endings.of(points, starts, ends)
        return cls(
            points=points,
            starts=starts,
            words=visible.take(first, mode="clip"),
            lengths=np.where(are_blank, 0, visible.take(stop - 1, mode="clip") + 1 - starts),
            go_on=go_on,
            are_prose=~are_blank & endings.are_prose,
            break_off=endings.break_off,
            paragraphs=paragraphs,
            firsts=firsts,
            texts=(end_texts.cumsum() - end_texts)[firsts],
        )

    @property
    def extra_columns(self) -> Ints:
        """How many columns more than characters each line has, where a wide character has two: ``(n,)``."""
        are_wide = self.points >= FIRST_WIDE
        after = (are_wide[:-1] & ~are_wide[1:]).nonzero()[0] + 1
        are_wide[after] = _are_narrowed().take(self.points[after])
        return np.add.reduceat(are_wide, self.starts, dtype=np.int64)

    def full(self, sizes: Ints) -> tuple[Bools, Ints]:
        """Return which lines are full, given their sizes, and how much in each paragraph is against it.

        The longest line of a paragraph is full however it was made. A paragraph in which no other line tells
        anything is judged by all of its text.

        Returns:
            bool ``(n,)``, and int64 ``(m,)``: by how much more telling lines are not full than are.
        """
        longest = np.maximum.reduceat(sizes, self.firsts)[self.paragraphs]
        full = self.go_on & ~self.break_off
        # The next line's first word has at least so many characters if it had no room.
        missing = longest - longest // _SLACK - sizes
        full &= missing <= _MOST_WORD
        doubtful = (full & (missing > 1)).nonzero()[0]
        full[doubtful] = self._first_words(doubtful + 1) >= missing[doubtful]
        lines = np.arange(len(sizes))
        first_longest = np.minimum.reduceat(np.where(sizes == longest, lines, len(lines)), self.firsts)
        # The end of a sentence may be that of a paragraph as well.
        are_telling = self.go_on & ~self.are_prose
        are_telling[first_longest] = False
        telling, against = (
            np.add.reduceat(each, self.firsts, dtype=np.int64)
            for each in (are_telling, np.where(full, -1, 1) * are_telling)
        )
        of_texts = np.bincount(self.texts, against).astype(np.int64)
        return full, np.where(telling > 0, against, of_texts[self.texts])

    def _first_words(self, lines: Ints) -> Ints:
        """Return how many characters the first words of lines have, `_MOST_WORD` if not fewer: ``(m,)``."""
        # A text ends with a separator, at which a break is possible.
        places = self.words[lines, None] + np.arange(_MOST_WORD)
        may_break = _may_break().take(self.points.take(places, mode="clip"))
        return np.where(may_break.any(axis=1), may_break.argmax(axis=1).clip(1), _MOST_WORD)


@functools.cache
def _may_break() -> Bools:
    """Return before or after which code points a line may end: bool ``(0x110000,)``."""
    kinds = classes()
    may_break: Bools = (kinds & SPACE != 0) | (kinds >> TOKEN_SHIFT == WIDE)
    may_break[_HANGUL.start : _HANGUL.stop] = False
    return may_break


@functools.cache
def _are_narrowed() -> Bools:
    """Return which code points are `_NARROWED`: bool ``(0x110000,)``."""
    are_narrowed = np.zeros(len(classes()), bool)
    are_narrowed[[ord(character) for character in _NARROWED]] = True
    return are_narrowed
