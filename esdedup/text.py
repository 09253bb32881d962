"""From an article's raw text to normalised text and its sentences, a batch at a time.

The text is made comparable first: markup removed, Unicode NFKC (which also folds full and half
width), case folded. Then sentences are found on arrays of code points.
"""

import html
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.characters import (
    ALNUM,
    CONTEXTUAL,
    DROPPED,
    FIRST_WIDE,
    FULL_STOP,
    HARD_END,
    LATIN,
    SEPARATOR,
    SPACE,
    classes,
    code_points,
    normal_form,
    normal_forms,
)

# What opens a part that no reader sees, and what closes it.
_HIDDEN = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<script\b", re.IGNORECASE), re.compile(r"</script[^<>]{0,99}>", re.IGNORECASE)),
    (re.compile(r"<style\b", re.IGNORECASE), re.compile(r"</style[^<>]{0,99}>", re.IGNORECASE)),
)
# Longer numbers are no characters, and Python refuses to read very long ones.
_LONG_REFERENCE = re.compile(r"&#\d{9,};?")
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|br|li|ul|ol|h[1-6]|tr|table|blockquote|section|article|hr|dd|dt)\b[^<>]*>", re.IGNORECASE
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![a-zA-Z][^<>]*>")


def normalise(texts: Sequence[str]) -> list[str]:
    """Return the raw `texts` without markup, in NFKC, case folded, without invisible characters.

    Null bytes, lone surrogates and other control characters become spaces. Line breaks stay.
    """
    if not texts:
        return []
    plain = [_strip_markup(text) for text in texts]
    joined = SEPARATOR.join(plain) + SEPARATOR
    forms = normal_forms()[code_points(joined)]
    ends = np.cumsum([len(text) + 1 for text in plain]) - 1
    contextual = np.searchsorted(ends, np.flatnonzero(forms == CONTEXTUAL))
    slow = set(np.unique(contextual).tolist())
    forms[forms == CONTEXTUAL] = DROPPED
    kept = forms != DROPPED
    # The separator itself is a control character, and so becomes a space: it is cut off here.
    kept[ends] = False
    kept_before = np.concatenate(([0], np.cumsum(kept)))
    normal = forms[kept].astype("<u4").tobytes().decode("utf-32-le")
    stops = kept_before[ends].tolist()
    starts = [0, *stops[:-1]]
    return [
        normal_form(plain[at]) if at in slow else normal[start:stop]
        for at, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]


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
    """Put a space for every part from `opening` to `closing`; one that is never closed stays.

    One pass over the text, however often something is opened.
    """
    kept: list[str] = []
    at = 0
    while (start := opening.search(text, at)) and (end := closing.search(text, start.end())):
        kept += (text[at : start.start()], " ")
        at = end.end()
    return "".join((*kept, text[at:]))


def count_letters(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Count the letters and digits of each text, the measure of how much it tells: int64 ``(n,)``."""
    table = classes()
    return np.array([np.count_nonzero(table[code_points(text)] & ALNUM) for text in texts], np.int64)


def longest_sentences(texts: Sequence[str], *, max_length: int) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Find the sentence with the most letters and digits in each of the normalised `texts`.

    Among equals the first one wins. A sentence is cut after `max_length` code points, so that one
    endless line costs no more than a page.

    Returns:
        The sentences, and the number of letters and digits in each *whole text*, int64 ``(n,)``.
    """
    if not texts:
        return [], np.zeros(0, np.int64)
    joined = SEPARATOR.join(texts) + SEPARATOR
    points = code_points(joined)
    kinds = classes()[points]
    ends = np.flatnonzero(_sentence_ends(points, kinds))
    starts = np.concatenate(([0], ends[:-1] + 1))
    letters = np.concatenate(([0], np.cumsum((kinds & ALNUM) != 0)))
    letters_in_sentence = letters[ends] - letters[starts]

    text_ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    last_sentence = np.searchsorted(ends, text_ends)
    first_sentence = np.concatenate(([0], last_sentence[:-1] + 1))
    most = np.maximum.reduceat(letters_in_sentence, first_sentence)
    text_of_sentence = np.repeat(np.arange(len(texts)), last_sentence - first_sentence + 1)
    is_longest = np.flatnonzero(letters_in_sentence == most[text_of_sentence])
    _, first_longest = np.unique(text_of_sentence[is_longest], return_index=True)
    chosen = is_longest[first_longest]
    sentences = [
        joined[start : min(end, start + max_length)]
        for start, end in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True)
    ]
    return sentences, np.add.reduceat(letters_in_sentence, first_sentence)


def _sentence_ends(points: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    ends: npt.NDArray[np.bool_] = (kinds & HARD_END) != 0
    # A full stop ends a sentence before white space, unless one letter alone stands before it: not
    # in `3.14`, `e.g.` or `J. Smith`.
    stops = np.flatnonzero((kinds & FULL_STOP) != 0)
    if len(stops):
        before, before_that = kinds[np.maximum(stops - 1, 0)], kinds[np.maximum(stops - 2, 0)]
        initial = ((before & LATIN) != 0) & (((before_that & ALNUM) == 0) | (stops == 1))
        ends[stops[((kinds[stops + 1] & (SPACE | HARD_END)) != 0) & ~initial]] = True
    # A line break ends a sentence of Chinese, which is never wrapped; elsewhere only a blank line does.
    breaks = np.flatnonzero(points == ord("\n"))
    after_wide = points[np.maximum(breaks - 1, 0)] >= FIRST_WIDE
    ends[breaks[~after_wide & (points[breaks + 1] != ord("\n"))]] = False
    return ends
