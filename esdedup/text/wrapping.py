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

_MAY_BREAK, _IS_WIDE, _IS_NARROWED = (np.uint8(1 << bit) for bit in range(3))

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
    roles = _roles().take(points)
    lines = _Lines.of(points, kinds, roles, ends)
    widths = lines.extra_columns(roles)
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

    # int64 (n,) each: where lines begin; how many characters they have up to the last visible one, 0 if they
    # are blank; and how many the first word has.
    starts: Ints
    lengths: Ints
    first_words: Ints
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
    def of(
        cls,
        points: npt.NDArray[np.uint32],
        kinds: npt.NDArray[np.uint8],
        roles: npt.NDArray[np.uint8],
        ends: Ints,
    ) -> "_Lines":
        """Find them; see `are_wrapped`. `roles` are those of the points."""
        starts = np.concatenate((ends[:0], [0], ends[:-1] + 1))
        # With one after all lines, in case that all are blank.
        visible = np.append(((kinds & SPACE) == 0).nonzero()[0], len(points))
        first, stop = visible.searchsorted((starts, ends))
        are_blank = first == stop
        words = np.where(are_blank, starts, visible.take(first, mode="clip"))
        # A text ends with a separator, at which a break is possible.
        breaks = (roles & _MAY_BREAK).nonzero()[0]
        end_texts = points[ends] == ord(SEPARATOR)
        cuts = are_blank | end_texts
        paragraphs = cuts.cumsum() - cuts
        firsts = are_first(paragraphs).nonzero()[0]
        go_on = ~cuts & ~np.append(are_blank[1:], True)
        endings = Endings.of(points, starts, ends)
        return cls(
            starts=starts,
            lengths=np.where(are_blank, 0, visible.take(stop - 1, mode="clip") + 1 - starts),
            first_words=np.maximum(breaks[breaks.searchsorted(words)] - words, 1),
            go_on=go_on,
            are_prose=~are_blank & endings.are_prose,
            break_off=endings.break_off,
            paragraphs=paragraphs,
            firsts=firsts,
            texts=(end_texts.cumsum() - end_texts)[firsts],
        )

    def extra_columns(self, roles: npt.NDArray[np.uint8]) -> Ints:
        """Return how many columns more than characters each line has, where a wide character has two."""
        are_wide = (roles & _IS_WIDE) != 0
        are_wide[1:] |= are_wide[:-1] & ((roles[1:] & _IS_NARROWED) != 0)
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
        full &= sizes + 1 + np.append(self.first_words[1:], 0) > longest - longest // _SLACK
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


@functools.cache
def _roles() -> npt.NDArray[np.uint8]:
    """Return what each code point is for the width of lines: uint8 ``(0x110000,)``."""
    kinds = classes()
    roles = np.where((kinds & SPACE != 0) | (kinds >> TOKEN_SHIFT == WIDE), _MAY_BREAK, np.uint8(0))
    roles[_HANGUL.start : _HANGUL.stop] = 0
    roles[FIRST_WIDE:] |= _IS_WIDE
    roles[[ord(character) for character in _NARROWED]] |= _IS_NARROWED
    return roles
