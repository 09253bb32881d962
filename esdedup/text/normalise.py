"""From raw text to normalised text, a batch at a time.

Normalising removes markup, applies Unicode NFKC (which also unifies full and half width), folds case, and
simplifies traditional Chinese characters.
"""

import dataclasses
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import (
    CONTEXTUAL,
    DROPPED,
    SEPARATOR,
    beginning,
    code_points,
    normal_form,
    normal_forms,
)
from esdedup.text.markup import visible_beginning

ELLIPSIS, PLAIN_ELLIPSIS = "\u2026", "..."
"""The one common character whose normal form is longer than itself, and that form."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NormalTexts:
    """A batch of normalised texts."""

    # uint32 (p,): the code points of the texts, each text followed by a `SEPARATOR`.
    points: npt.NDArray[np.uint32]
    # bool (n,): which texts were longer than the limit, so that the rest is missing.
    are_cut: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, raw_texts: Sequence[str], *, max_length: int) -> "NormalTexts":
        """Normalise raw texts.

        Args:
            raw_texts: With or without markup.
            max_length: How many characters to keep of each visible text, see `beginning`.
        """
        visible = [visible_beginning(text, max_length=max_length) for text in raw_texts]
        return cls.of_visible(visible, max_length=max_length)

    @classmethod
    def of_visible(cls, texts: Sequence[str], *, max_length: int) -> "NormalTexts":
        """Normalise texts without markup, or the beginnings of them that are longer than `max_length`."""
        unfolded = [text.replace(ELLIPSIS, PLAIN_ELLIPSIS) for text in texts]
        plain = [beginning(text, max_length=max_length) for text in unfolded]
        are_cut = np.array([len(a) < len(b) for a, b in zip(plain, unfolded, strict=True)], bool)
        raw = "".join([text + SEPARATOR for text in plain])
        forms = normal_forms().take(code_points(raw))
        ends = np.cumsum([len(text) + 1 for text in plain], dtype=np.int64) - 1
        # The table turned the separator, a control character, into a space.
        forms[ends] = ord(SEPARATOR)
        if not (forms >= CONTEXTUAL).any():
            return cls(points=forms, are_cut=are_cut)
        contextual = np.flatnonzero(forms == CONTEXTUAL)
        # What the normal form of a character depends on is in its line.
        bounds = np.flatnonzero((forms == ord("\n")) | (forms == ord(SEPARATOR)))
        pieces: list[npt.NDArray[np.uint32]] = []
        done = 0
        for at in np.unique(np.searchsorted(bounds, contextual)).tolist():
            start = int(bounds[at - 1]) + 1 if at else 0
            pieces += (forms[done:start], code_points(normal_form(raw[start : bounds[at]])))
            done = int(bounds[at])
        joined = np.concatenate((*pieces, forms[done:]))
        return cls(points=joined[joined != DROPPED], are_cut=are_cut)


def normalise(texts: Sequence[str]) -> list[str]:
    """Return raw texts without markup, in their `normal_form`, however long they are."""
    return strings(NormalTexts.of(texts, max_length=sys.maxsize).points)


def strings(points: npt.NDArray[np.uint32]) -> list[str]:
    """Convert the code points of `NormalTexts` into strings, one per text."""
    return points.astype("<u4").tobytes().decode("utf-32-le").split(SEPARATOR)[:-1]
