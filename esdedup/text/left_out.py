"""The passages omitted from a fingerprint, as positions in the visible text."""

import pydantic


class Span(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True, defer_build=True):
    """One or more adjacent passages in the visible text."""

    start: int
    """The start, in characters (code points) from 0."""
    end: int
    """The end (exclusive), in characters."""
    text: str


class LeftOut(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True, defer_build=True):
    """The boilerplate omitted from a text's fingerprint."""

    passages: int
    """The number of omitted passages: sentences, headlines and menu items."""
    letters: int
    """The number of letters and digits in the omitted passages."""
    of_passages: int
    """The number of passages in the fingerprinted part of the text."""
    of_letters: int
    """The number of letters and digits in the fingerprinted part of the text."""
    spans: tuple[Span, ...]
    """The positions of the omitted passages, in order; adjacent passages form one span."""
