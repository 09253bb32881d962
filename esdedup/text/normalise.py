"""Turns raw text into visible text, which has no markup, and into normal text.

Markup is removed as a browser would, and so is hidden text (`core/src/markup.rs`): whatever readers see must
be fingerprinted, or an advertisement could pass for the article around it. Normalising then applies Unicode
NFKC (which also unifies full and half width), folds case, simplifies traditional Chinese characters, and
unifies spellings: `core/src/normal_form.rs`.
"""

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core


def visible_text(raw: str) -> str:
    """Return the visible text of a raw text, which is exactly what its fingerprint covers.

    Not idempotent: in the result, `&lt;p&gt;` has become the text `<p>`.
    """
    return visible_beginning(raw, max_length=sys.maxsize)


def visible_beginning(raw: str, *, max_length: int) -> str:
    """Return the visible text, or a beginning of it longer than `max_length`, without reading the rest."""
    return _core.visible_text(raw, max_length=max_length)


def normal_form(text: str) -> str:
    """Return `text` in NFKC, case folded, with traditional Chinese characters simplified, in one spelling.

    Digits of all scripts become ASCII's. Accents of Latin, Greek and Cyrillic letters go, and vowel signs of
    Arabic and Hebrew; interchangeable Arabic letters become one. Invisible characters are removed, and other
    control characters become spaces, except for line breaks and tabs. The result can be encoded as UTF-8.
    """
    return _core.normal_form(text)


def normalise(texts: Sequence[str]) -> list[str]:
    """Return raw texts without markup, in their `normal_form`, however long they are."""
    return normal_beginnings(texts, max_length=sys.maxsize)[0]


def normal_beginnings(texts: Sequence[str], *, max_length: int) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Return raw texts without markup, in their normal form, and which of them were longer: bool ``(n,)``.

    `max_length` characters are kept of each visible text, each counted with its normal form.
    """
    found, are_cut = _core.normalise(texts, max_length=max_length)
    return found, np.frombuffer(are_cut, bool)
