"""The passages that a fingerprint leaves out, as positions in the visible text."""

import pydantic


class Span(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True, defer_build=True):
    """One passage or several adjacent ones, in the visible text."""

    start: int
    """Where it begins, in characters (code points) from 0."""
    end: int
    """Where it ends, exclusive."""
    text: str


class LeftOut(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True, defer_build=True):
    """What is left out of a text's fingerprint as boilerplate."""

    passages: int
    """How many passages are left out: sentences, headlines, menu items."""
    letters: int
    """How many letters and digits those have."""
    of_passages: int
    """How many passages the text has, as far as it is fingerprinted."""
    of_letters: int
    """How many letters and digits the text has."""
    spans: tuple[Span, ...]
    """Where they are, in their order; passages next to each other are one span."""
