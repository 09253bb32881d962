"""What readers see of a raw text: the text without its markup.

What a browser would show must not be lost here: an advertisement that only readers see would pass for the
article around it. So tokens of HTML are cut out where a browser cuts them, and what remains in doubt is kept:
`core/src/markup.rs`.
"""

import sys

from esdedup import _core


def visible_text(raw: str) -> str:
    """Return a raw text as readers are to see it: all that its fingerprint sees, and nothing else.

    Apply it once: in the result, `&lt;p&gt;` has become `<p>`, which is text.
    """
    return visible_beginning(raw, max_length=sys.maxsize)


def visible_beginning(raw: str, *, max_length: int) -> str:
    """Return the visible text, or its beginning: if it is longer than `max_length`, so is the result.

    So nobody has to wait for the rest of a text of which only the beginning is wanted.
    """
    return _core.visible_text(raw, max_length=max_length)
