"""From raw text to normal text.

Normalising removes markup, applies Unicode NFKC (which also unifies full and half width), folds case, and
simplifies traditional Chinese characters: `core/src/normal_form.rs`.
"""

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core


def normal_form(text: str) -> str:
    """Return `text` in NFKC, case folded, with traditional Chinese characters simplified.

    Invisible characters are removed, and other control characters become spaces, except for line breaks and
    tabs. The result can always be encoded as UTF-8.
    """
    return _core.normal_form(text)


def normalise(texts: Sequence[str]) -> list[str]:
    """Return raw texts without markup, in their `normal_form`, however long they are."""
    return normal_beginnings(texts, max_length=sys.maxsize)[0]


def normal_beginnings(texts: Sequence[str], *, max_length: int) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Return raw texts without markup, in their normal form, and which of them were longer: bool ``(n,)``.

    Args:
        texts: With or without markup.
        max_length: How many characters to keep of each visible text, each counted with its normal form.
    """
    found, are_cut = _core.normalise(texts, max_length=max_length)
    return found, np.frombuffer(are_cut, bool)
