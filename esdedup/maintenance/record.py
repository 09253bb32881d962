"""What esdedup wrote into one article. Pure."""

import dataclasses

from esdedup.forest.model import NO_TIME

LONE = "~"
"""How the root of an article without a fingerprint begins."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """The dedup object of one article."""

    id: str
    index: str
    routing: str | None
    # The document's version, to detect later writes.
    version: dict[str, int]
    root: str
    # None for a text without a fingerprint.
    fingerprint: str | None
    # What is compared with others, as bytes; empty for a text without a fingerprint.
    signature: bytes
    # The id of its page; None for a text without letters and digits.
    page: str | None
    profile: str | None
    seq: int
    # The forest's time at the assignment; NO_TIME where none was known.
    seen_ms: int
    # When it counts as published; NO_TIME where that is not known.
    published_ms: int = NO_TIME
    # Fields that have several values, of which the first is given here: esdedup writes one.
    several: tuple[str, ...] = ()
