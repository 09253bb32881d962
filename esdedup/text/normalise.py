"""Converts raw text to visible text, which has no markup, and to normalised text.

Markup and hidden text are removed as in a browser (`core/src/markup.rs`): all text that readers see must be
fingerprinted, otherwise an advertisement with a hidden article could be taken for that article. The normal
form is Unicode NFKC, with case folded, traditional Chinese characters simplified, and spellings unified
(`core/src/normal_form.rs`).
"""

import sys

from esdedup import _core


def visible_text(raw: str) -> str:
    """Return the visible text of a raw text, which is the text that is fingerprinted.

    This is not idempotent: it turns `&lt;p&gt;` into the text `<p>`, which a second call would remove.
    """
    return _core.visible_text(raw, max_length=sys.maxsize)


def normal_form(text: str) -> str:
    """Return `text` in NFKC, case folded, with traditional Chinese simplified and spellings unified.

    Digits of all scripts become ASCII digits. Accents of Latin, Greek and Cyrillic letters, and vowel signs
    of Arabic and Hebrew, are removed; interchangeable Arabic letters are unified. Invisible characters are
    removed, and other control characters, except line breaks and tabs, become spaces. The result can be
    encoded as UTF-8.
    """
    return _core.normal_form(text)
