"""How sentences of running text end, other than headlines, menu items, teasers and rows of tables."""

import dataclasses
import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import ALNUM, ASSIGNED, NUMBER, SPACE, TOKEN_SHIFT, classes

# What ends a sentence in prose: full stops and the like of many scripts, and the colon before a quotation.
_FINAL = ".:;!?。\u0589\u061f\u06d4\u0964\u0965\u0f0d\u104b\u1362\u17d4"
# What may stand after it: quotation marks and brackets of all scripts (`“` ends a quotation in German, `«` in
# Danish), symbols such as emoji, and signs of markup.
_TRAILING_CATEGORIES = frozenset({"Pi", "Pf", "Pe", "So", "Sk"})
_TRAILING = "\"'`*_"
_MOST_TRAILING = 8

_IS_FINAL, _IS_TRAILING, _IS_DIGIT = (np.uint8(1 << bit) for bit in range(3))

Points = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Endings:
    """How some pieces of text end, without what may follow the end of a sentence."""

    # uint32 (n,): the last characters.
    signs: Points
    # bool (n,) each: which end as sentences of prose do, and which with an ellipsis, as teasers do.
    are_prose: Bools
    break_off: Bools

    @classmethod
    def of(cls, points: Points, starts: Ints, ends: Ints) -> "Endings":
        """Look at pieces of text.

        Args:
            points: The texts.
            starts: The first position of each piece, ``(n,)``.
            ends: The last one: of a full stop, a line break or a separator, mostly.
        """
        last = _last(points, starts, ends)
        signs = points.take(last)
        break_off = (signs == ord(".")) & (points.take(last - 1, mode="wrap") == ord("."))
        are_final = (_roles().take(signs) & _IS_FINAL) != 0
        return cls(signs=signs, are_prose=are_final & ~break_off, break_off=break_off)


def _last(points: Points, starts: Ints, ends: Ints) -> Ints:
    """Return where the pieces end without what may follow the end of a sentence."""
    last, roles = ends.copy(), _roles()
    # The pieces that go on, and which of them are in the number of a note, as in `[12]`.
    left, in_note = np.arange(len(ends)), np.zeros(len(ends), bool)
    for _ in range(_MOST_TRAILING):
        signs = points.take(last.take(left))
        own = roles.take(signs)
        in_note = (signs == ord("]")) | (in_note & ((own & _IS_DIGIT) != 0))
        passed = (((own & _IS_TRAILING) != 0) | in_note | (signs == ord("["))).nonzero()[0]
        if not len(passed):
            break
        left, in_note = left[passed], in_note[passed]
        last[left] = np.maximum(last[left] - 1, starts[left])
    return last


@functools.cache
def _roles() -> npt.NDArray[np.uint8]:
    """Return what each code point can be at the end of a sentence: uint8 ``(0x110000,)``."""
    roles = np.where(classes() & SPACE, _IS_TRAILING, np.uint8(0))
    categories = map(unicodedata.category, map(chr, range(ASSIGNED)))
    trailing = np.fromiter((each in _TRAILING_CATEGORIES for each in categories), bool, ASSIGNED)
    roles[:ASSIGNED][trailing & (classes()[:ASSIGNED] & ALNUM == 0)] = _IS_TRAILING
    roles[[ord(character) for character in _TRAILING]] = _IS_TRAILING
    roles[[ord(character) for character in _FINAL]] = _IS_FINAL
    roles[classes() >> TOKEN_SHIFT == NUMBER] = _IS_DIGIT
    return roles
