"""What the fingerprint of a text leaves out, as places in the text that readers see."""

import dataclasses

import numpy as np
import numpy.typing as npt
import pydantic

from esdedup import _core
from esdedup.text.parsed import ParsedTexts, PassageFilter, Passages

Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Span(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True):
    """A passage, or several next to each other, in the text as readers see it: without its markup."""

    start: int
    """Where it begins, in characters (code points) from 0."""
    end: int
    """Where it ends, exclusive."""
    text: str


class LeftOut(pydantic.BaseModel, frozen=True, use_attribute_docstrings=True):
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocatedPassages:
    """The passages of one text, and where they are in what readers see of it."""

    # The text without its markup; of a longer one than is fingerprinted, the beginning.
    visible: str
    passages: Passages
    # Of the text as a page, uint64 (1,).
    page: npt.NDArray[np.uint64]
    # int64 (n,) each: where passages start and end (exclusive) in `visible`, without spaces around them.
    starts: Places
    ends: Places

    @classmethod
    def of(cls, text: str, *, max_length: int) -> "LocatedPassages":
        """Find the passages of a raw text, as its fingerprint does of so many characters."""
        visible, core, starts, ends = _core.locate(text, max_length=max_length)
        parsed = ParsedTexts(core)
        return cls(
            visible=visible,
            passages=parsed.passages,
            page=parsed.pages,
            starts=np.frombuffer(starts, np.int64),
            ends=np.frombuffer(ends, np.int64),
        )

    def text(self, passage: int) -> str:
        """Return a passage as readers see it, but on one line: elsewhere, its lines might be passages."""
        return " ".join(self.visible[self.starts[passage] : self.ends[passage]].split())

    def left_out(self, are_left_out: Bools) -> LeftOut:
        """Describe the passages that are left out, bool ``(n,)``."""
        alphanumerics = self.passages.alphanumerics
        return LeftOut(
            passages=int(np.count_nonzero(are_left_out)),
            letters=int(alphanumerics[are_left_out].sum()),
            of_passages=len(alphanumerics),
            of_letters=int(alphanumerics.sum()),
            spans=tuple(self._spans(are_left_out)),
        )

    def _spans(self, are_left_out: Bools) -> list[Span]:
        """Return where the passages are that are left out; those next to each other are one span."""
        is_edge = np.diff(are_left_out.astype(np.int8), prepend=0, append=0)
        first, after = (is_edge == 1).nonzero()[0], (is_edge == -1).nonzero()[0]
        spans = []
        for start, end in zip(self.starts[first].tolist(), self.ends[after - 1].tolist(), strict=True):
            part = self.visible[start:end]
            lead = len(part) - len(part.lstrip())
            spans.append(Span(start=start + lead, end=start + len(part.rstrip()), text=part.strip()))
        return spans


def left_out(text: str, passage_filter: PassageFilter, *, max_length: int) -> LeftOut:
    """Return what a filter leaves out of the fingerprint of a raw text; `max_length` is the profile's."""
    found = LocatedPassages.of(text, max_length=max_length)
    return found.left_out(passage_filter(found.passages, found.page))
