"""From raw text to normalised text, a batch at a time.

Normalising removes markup, applies Unicode NFKC (which also unifies full and half width), folds case, and
simplifies traditional Chinese characters.
"""

import html
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import CONTEXTUAL, DROPPED, SEPARATOR, code_points, normal_form, normal_forms

# The start and the end of parts that are not displayed.
_HIDDEN = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<script\b", re.IGNORECASE), re.compile(r"</script[^<>]{0,99}>", re.IGNORECASE)),
    (re.compile(r"<style\b", re.IGNORECASE), re.compile(r"</style[^<>]{0,99}>", re.IGNORECASE)),
)
# Numbers this long are not code points, and Python refuses to parse very long ones.
_LONG_REFERENCE = re.compile(r"&#\d{9,};?")
# A tag's name is followed by nothing, by one word, or by attributes, where the first or second has a value or
# a hyphen. Everything else is text: a comparison (`a<b and c>d`), a name, an address (`<me@example.com>`).
_REST = r"(?:\s+\w+)?(?:\s+[\w:.@]+(?:-|\s*=)[^<>]*|\s*(?:/\s*)?)>"
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|br|li|ul|ol|h[1-6]|tr|table|blockquote|section|article|hr|dd|dt)" + _REST,
    re.IGNORECASE | re.ASCII,
)
_TAG = re.compile(rf"</?[a-z][\w:.-]*{_REST}|<![a-z][^<>]*>", re.IGNORECASE | re.ASCII)


def normalise(texts: Sequence[str]) -> list[str]:
    """Return raw texts without markup, in their `normal_form`."""
    return strings(normal_points(texts))


def strings(points: npt.NDArray[np.uint32]) -> list[str]:
    """Convert the code points that `normal_points` returned into strings, one per text."""
    return points.astype("<u4").tobytes().decode("utf-32-le").split(SEPARATOR)[:-1]


def normal_points(texts: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Normalise raw texts; return their code points, each text followed by a `SEPARATOR`: uint32 ``(n,)``."""
    plain = [_strip_markup(text) for text in texts]
    forms = normal_forms()[code_points("".join([text + SEPARATOR for text in plain]))]
    ends = np.cumsum([len(text) + 1 for text in plain], dtype=np.int64) - 1
    # The table turned the separator, a control character, into a space.
    forms[ends] = ord(SEPARATOR)
    if not (forms >= CONTEXTUAL).any():
        return forms
    contextual = np.flatnonzero(forms == CONTEXTUAL)
    pieces: list[npt.NDArray[np.uint32]] = []
    done = 0
    for at in np.unique(np.searchsorted(ends, contextual)).tolist():
        start = int(ends[at - 1]) + 1 if at else 0
        pieces += (forms[done:start], code_points(normal_form(plain[at])))
        done = int(ends[at])
    joined = np.concatenate((*pieces, forms[done:]))
    kept: npt.NDArray[np.uint32] = joined[joined != DROPPED]
    return kept


def _strip_markup(text: str) -> str:
    if "<" in text:
        for opening, closing in _HIDDEN:
            text = _without(text, opening, closing)
        text = _BLOCK_TAG.sub("\n", text)
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(_LONG_REFERENCE.sub(" ", text))
    # The ellipsis is the one common character whose normal form is longer than itself.
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2026", "...")


def _without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Replace every part from `opening` to `closing` by a space; a part that is never closed stays.

    Takes one pass over the text, however many parts it has.
    """
    kept: list[str] = []
    at = 0
    while (start := opening.search(text, at)) and (end := closing.search(text, start.end())):
        kept += (text[at : start.start()], " ")
        at = end.end()
    return "".join((*kept, text[at:]))
