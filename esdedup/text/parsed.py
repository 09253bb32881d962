"""Parses a batch of raw texts into passages and tokens, from which fingerprints are computed.

Markup and hidden text are removed as in a browser (`core/src/markup.rs`): all text that readers see must be
fingerprinted, otherwise an advertisement with a hidden article could be taken for that article.

Passages are sentences, headlines and menu items. They are compared only by their words and figures, so that
boilerplate is recognised on every page. Except in long sentences, all dates and times are treated as
equal, since they change from page to page: see `core/src/passages.rs`.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup._core import PassageFilter
from esdedup.text.left_out import LeftOut, Span

# The hash of characters (see `_core.parse`); benchmarks try other hashes.
CHARACTER_HASH: tuple[int, int] | None = None

# A headline has at least five words or ten East Asian characters; a shorter title may name a regular column.
_HEADLINE_UNITS = 10
_LONGEST_HEADLINE = 500

Bools = npt.NDArray[np.bool_]


def _column(at: int, dtype: type[np.generic]) -> functools.cached_property[npt.NDArray[Any]]:
    return functools.cached_property(lambda passages: np.frombuffer(passages.columns[at], dtype))


@dataclasses.dataclass(frozen=True)
class Passages:
    """All passages of a batch of texts, in order."""

    # The five columns below, as bytes.
    columns: tuple[bytes, ...]

    # uint64 (n,): equal for passages with the same words and figures.
    hashes = _column(0, np.uint64)
    # int64 (n,): the number of letters and digits.
    alphanumerics = _column(1, np.int64)
    # bool (n,): whether each passage ends like a sentence of running text, and not like a headline, menu item
    # or teaser; or is one of several rows with a label and a value.
    are_prose = _column(2, np.bool_)
    # bool (n,): whether each has a number outside dates and times; False for long sentences of prose.
    have_figures = _column(3, np.bool_)
    # int64 (n,): the position in the batch of each passage's text, non-decreasing.
    texts = _column(4, np.int64)


SiteFilters = Callable[[str | None], AbstractContextManager[PassageFilter]]
"""Gives the passage filter for pages of a site, or of unknown sites for None."""


@dataclasses.dataclass(frozen=True)
class ParsedTexts:
    """The passages and tokens of a batch of texts, which the crate stores."""

    core: _core.Parsed

    @classmethod
    def of(
        cls, texts: Sequence[str], *, max_length: int, keep_text: bool = False, threads: int = 1
    ) -> "ParsedTexts":
        """Parse raw texts; see `_core.parse`.

        With `keep_text`, the normalised texts are kept, so words can be extracted and passages shown.
        """
        return cls(
            _core.parse(
                texts,
                max_length=max_length,
                keep_points=keep_text,
                character_hash=CHARACTER_HASH,
                threads=threads,
            )
        )

    def __len__(self) -> int:
        return len(self.core)

    @property
    def passages(self) -> Passages:
        """The passages of all texts; each access creates the object again."""
        return Passages(self.core.passages)

    @property
    def content_hashes(self) -> npt.NDArray[np.uint64]:
        """The content hashes of the texts: uint64 ``(n,)``; 0 for a text without letters and digits.

        Texts with the same tokens in the same order have the same content hash.
        """
        return np.frombuffer(self.core.content_hashes, np.uint64)

    @property
    def are_cut(self) -> Bools:
        """Which texts were longer than the limit and were truncated: bool ``(n,)``."""
        return np.frombuffer(self.core.are_cut, bool)

    @property
    def alphanumerics(self) -> npt.NDArray[np.int64]:
        """The number of letters and digits of each text: int64 ``(n,)``."""
        passages = self.passages
        return np.bincount(passages.texts, passages.alphanumerics, len(self)).astype(np.int64)

    def left_out(self, passage_filter: PassageFilter | None) -> Bools:
        """Return which passages a filter omits: bool ``(passages,)``, or ``(0,)`` if there is no filter."""
        return np.frombuffer(self.core.left_out(passage_filter), bool)

    def letters_left_out(self, left_out: Bools) -> npt.NDArray[np.int64]:
        """Return the number of omitted letters and digits of each text: int64 ``(n,)``; see `left_out`."""
        if not np.count_nonzero(left_out):
            return np.zeros(len(self), np.int64)
        passages = self.passages
        return np.bincount(passages.texts, passages.alphanumerics * left_out, len(self)).astype(np.int64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocatedPassages:
    """The passages of one text, and their positions in its visible text."""

    # The text without markup, or its beginning if the text is longer than the fingerprinted part.
    visible: str
    parsed: ParsedTexts
    # int64 (n,) each: the starts and ends (exclusive) of passages in `visible`, without surrounding spaces.
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, text: str, *, max_length: int) -> "LocatedPassages":
        """Find the passages in the first `max_length` characters of a raw text, as fingerprinting does."""
        visible, core, starts, ends = _core.locate(text, max_length=max_length)
        return cls(
            visible=visible,
            parsed=ParsedTexts(core),
            starts=np.frombuffer(starts, np.int64),
            ends=np.frombuffer(ends, np.int64),
        )

    @property
    def passages(self) -> Passages:
        """The passages; each access creates the object again."""
        return self.parsed.passages

    def text(self, passage: int) -> str:
        """Return the visible text of a passage as one line, since several lines would be several passages."""
        return " ".join(self.visible[self.starts[passage] : self.ends[passage]].split())

    def left_out(self, are_left_out: Bools) -> LeftOut:
        """Describe the omitted passages, given as bool ``(n,)``; adjacent passages form one span."""
        is_edge = np.diff(are_left_out.astype(np.int8), prepend=0, append=0)
        first, after = (is_edge == 1).nonzero()[0], (is_edge == -1).nonzero()[0]
        spans = []
        for start, end in zip(self.starts[first].tolist(), self.ends[after - 1].tolist(), strict=True):
            part = self.visible[start:end]
            lead = len(part) - len(part.lstrip())
            spans.append(Span(start=start + lead, end=start + len(part.rstrip()), text=part.strip()))
        alphanumerics = self.passages.alphanumerics
        return LeftOut(
            passages=int(np.count_nonzero(are_left_out)),
            letters=int(alphanumerics[are_left_out].sum()),
            of_passages=len(alphanumerics),
            of_letters=int(alphanumerics.sum()),
            spans=tuple(spans),
        )


def visible_text(raw: str) -> str:
    """Return the visible text of a raw text, which is the text that is fingerprinted.

    This is not idempotent: it turns `&lt;p&gt;` into the text `<p>`, which a second call would remove.
    """
    return _core.visible_text(raw, max_length=sys.maxsize)


def are_headlines(titles: Sequence[str]) -> Bools:
    """Return which titles are long enough to distinguish stories: bool ``(n,)``."""
    parsed = ParsedTexts.of(titles, max_length=_LONGEST_HEADLINE)
    return np.frombuffer(parsed.core.units, np.int64) >= _HEADLINE_UNITS


def left_out(text: str, passage_filter: PassageFilter | None, *, max_length: int) -> LeftOut:
    """Return the passages that a filter omits from a raw text's first `max_length` visible characters."""
    found = LocatedPassages.of(text, max_length=max_length)
    if passage_filter is None:
        return found.left_out(np.zeros(len(found.passages.hashes), bool))
    return found.left_out(found.parsed.left_out(passage_filter))
