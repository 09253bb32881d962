"""What readers see of a raw text: the text without its markup."""

import html
import re

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
# They reverse the order in which characters are shown, but not the order in which they are compared.
_OVERRIDES = ("\u202d", "\u202e")


def visible_text(raw: str) -> str:
    """Return a raw text as readers are to see it: all that its fingerprint sees, and nothing else.

    Apply it once: in the result, `&lt;p&gt;` has become `<p>`, which is text.
    """
    text = raw
    if "<" in text:
        for opening, closing in _HIDDEN:
            text = _without(text, opening, closing)
        text = _BLOCK_TAG.sub("\n", text)
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(_LONG_REFERENCE.sub(" ", text))
    for override in _OVERRIDES:
        text = text.replace(override, "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


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
