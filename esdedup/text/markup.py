"""What readers see of a raw text: the text without its markup.

What a browser would show must not be lost here: an advertisement that only readers see would pass for the
article around it. So tokens of HTML are cut out where a browser cuts them, and what remains in doubt is kept.
"""

import functools
import html
import re
from collections.abc import Set

_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL
# Numbers this long are not code points, and Python refuses to parse very long ones.
_LONG_REFERENCE = re.compile(r"&#\d{9,};?")
# At the end of a part of a text: what follows decides what it stands for.
_UNFINISHED = re.compile(r"(?:&[^\s;<&]*|\r)\Z")
# They reverse the order in which characters are shown, but not the order in which they are compared.
_OVERRIDES = ("\u202d", "\u202e")

# Where the tokens of HTML start (html.spec.whatwg.org, "Tokenization"): a comment, a tag, or what browsers
# treat as a comment that ends at the first `>`; and where they end, from the end of their start on.
_START = re.compile(
    r"<(?:(?P<comment>!--)|[!?]|/(?![a-z])|(?P<slash>/?)(?P<name>[a-z][^\t\n\f\r />]*))", _FLAGS
)
_COMMENT_END = re.compile(r"(?<=<!--)-?>|--!?>")
_OTHER_END = re.compile(r">")
_ATTRIBUTE_OR_END = re.compile(
    r"""[\t\n\f\r /]*(?:(>)|=?[^\t\n\f\r />=]*"""
    r"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"[^"]*"|'[^']*'|[^\t\n\f\r >"'][^\t\n\f\r >]*|(?=>)))?)"""
)
# The content of these is no markup; it is shown, or it is not.
_SHOWN = frozenset({"textarea", "title", "xmp"})
_HIDDEN = frozenset({"script", "style", "iframe", "noembed", "noframes"})
# In these, and perhaps after them, the elements above have markup, are shown, or end at `/>`.
_DOUBTFUL = frozenset({"svg", "math", "select", "frameset"})

# A tag's name is followed by nothing, by one word, or by attributes, where the first or second has a value or
# a hyphen. Everything else is text: a comparison (`a<b and c>d`), a name, an address (`<me@example.com>`).
_TAG, _SIMPLE_TAG = (
    re.compile(
        rf"</?([a-z][\w:.-]*)(?:\s+\w+)?(?:\s+[\w:.@]+(?:-|\s*=){values}|\s*(?:/\s*)?)>|<(?:\?|![a-z]){values}>",
        _FLAGS,
    )
    for values in (".*", "[^<>]*")
)
_BLOCKS = frozenset(
    {"p", "div", "br", "hr", "li", "ul", "ol", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"tr", "table", "blockquote", "section", "article"}
)


def visible_text(raw: str) -> str:
    """Return a raw text as readers are to see it: all that its fingerprint sees, and nothing else.

    Apply it once: in the result, `&lt;p&gt;` has become `<p>`, which is text.
    """
    return visible_beginning(raw, max_length=len(raw))


def visible_beginning(raw: str, *, max_length: int) -> str:
    """Return the visible text, or its beginning: if it is longer than `max_length`, so is the result.

    So nobody has to wait for the rest of a text of which only the beginning is wanted.
    """
    most = max_length + 1
    while True:
        text, is_whole = _without_markup(raw, most)
        shown = _unescaped(text if is_whole else _UNFINISHED.sub("", text))
        if is_whole or len(shown) > max_length:
            return shown
        # Much of it was character references.
        most *= 2


def _unescaped(text: str) -> str:
    if "&" in text:
        text = html.unescape(_LONG_REFERENCE.sub(" ", text))
    for override in _OVERRIDES:
        text = text.replace(override, "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_markup(text: str, most: int) -> tuple[str, bool]:
    """Return a text without tags, comments, and elements that are not shown, and whether it is the whole one.

    If not, it is its beginning, of at least `most` characters. Where it depends on the browser, or on the
    elements around, what is markup, the rest of the text stays as it is. Takes time in proportion to the
    length of the text.
    """
    kept: list[str] = []
    at = length = 0
    # Which of `_DOUBTFUL` have been opened.
    doubtful: set[str] = set()
    # Where the last <noscript> ends for browsers with scripts; for others, its content is markup.
    noscript_end = 0
    while length < most and (start := _START.search(text, at)):
        read = _read(text, start, doubtful=doubtful)
        if read is None or start.start() < noscript_end < read[1]:
            break
        shown, end = read
        kept += (text[at : start.start()], shown)
        length += start.start() - at + len(shown)
        at = end
        name = _opened(start)
        doubtful |= {name} & _DOUBTFUL
        if name == "noscript" and end > noscript_end:
            closing = _closing(name).search(text, end)
            noscript_end = closing.start() if closing else len(text)
    stop = at + max(0, most - length)
    return "".join((*kept, text[at:stop])), stop >= len(text)


def _read(text: str, start: re.Match[str], *, doubtful: Set[str]) -> tuple[str, int] | None:
    """Return what is shown of the token or element that begins at `start`, and its end; None if in doubt.

    Browsers show nothing from a token on that never ends. Such a text may not be meant as HTML, so only the
    simple tags in it are removed.
    """
    end = _end(text, start)
    if end is None:
        return _without_simple_tags(text[start.start() :]), len(text)
    if start["comment"]:
        return "", end
    name = _opened(start)
    if name == "plaintext" or (doubtful and text.startswith("<![", start.start())):
        return None
    if name not in _SHOWN | _HIDDEN:
        return _shown_of_tag(text[start.start() : end]), end
    closing = _closing(name).search(text, end)
    after = _end_of_tag(text, closing.end()) if closing else None
    if closing is None or after is None:
        return None if name in _SHOWN else (_without_simple_tags(text[start.start() :]), len(text))
    content = text[end : closing.start()]
    may_be_markup = doubtful and (
        text.endswith("/>", 0, end) or _START.search(content) or (name in _HIDDEN and doubtful != {"svg"})
    )
    # In a comment of a script, `</script>` may end another script, which is inside it.
    if may_be_markup or (name == "script" and -1 < content.find("<!--") < content.lower().rfind("<script")):
        return None
    return content if name in _SHOWN else "", after


def _opened(start: re.Match[str]) -> str:
    """Return the name of the element that a tag opens; empty for everything else."""
    return "" if start["slash"] else (start["name"] or "").lower()


def _end(text: str, start: re.Match[str]) -> int | None:
    """Return where the token ends that begins at `start`, if it does."""
    if start["name"]:
        return _end_of_tag(text, start.end())
    end = (_COMMENT_END if start["comment"] else _OTHER_END).search(text, start.end())
    return end.end() if end else None


def _end_of_tag(text: str, at: int) -> int | None:
    """Return where a tag ends: at the first `>` outside quoted values. `at` is the end of its name."""
    while (part := _ATTRIBUTE_OR_END.match(text, at)) and part.end() > at:
        at = part.end()
        if part[1]:
            return at
    return None


@functools.cache
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\t\n\f\r />])", _FLAGS)


def _shown_of_tag(token: str) -> str:
    """Return what stands for a tag: nothing, a line break, or the token itself if it reads as text."""
    tag = _TAG.fullmatch(token)
    return _replacement(tag) if tag else _without_simple_tags(token)


def _without_simple_tags(text: str) -> str:
    return _SIMPLE_TAG.sub(_replacement, text)


def _replacement(tag: re.Match[str]) -> str:
    return "\n" if (tag[1] or "").lower() in _BLOCKS else ""
