"""Pages that were fingerprinted elsewhere: all that a forest needs of them in place of their texts. Pure."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints, no_faults
from esdedup.text.passages import Passages

# In characters, of which each takes a byte or more.
_PAGE_SIZE, _PASSAGE_SIZE = 200, 20

Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PassagesOfPages:
    """Pages, as far as it depends on them what is left out of them."""

    passages: Passages
    # uint64 (n,): the ids of the pages.
    pages: npt.NDArray[np.uint64]
    # The sites of the pages, and the ids of their articles; None for those that are not known.
    sites: Sequence[str | None]
    articles: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.pages)

    def where(self, are_chosen: Bools) -> "PassagesOfPages":
        """Return some of the pages, bool ``(n,)``."""
        chosen = np.flatnonzero(are_chosen).tolist()
        return PassagesOfPages(
            passages=self.passages.where(are_chosen),
            pages=self.pages[are_chosen],
            sites=[self.sites[at] for at in chosen],
            articles=[self.articles[at] for at in chosen],
        )


class FingerprintedArticle(NamedTuple):
    """One of some pages."""

    pages: "FingerprintedPages"
    at: int
    # As of a text, about as many characters as take the same memory.
    size: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class FingerprintedPages:
    """Pages with their fingerprints, and what was left out of these."""

    of: PassagesOfPages
    # bool (passages,).
    omitted: Bools
    # (n,), in the profile's dtype.
    signatures: npt.NDArray[Any]
    # bool (n,): False for a page without a fingerprint.
    exists: Bools

    def __len__(self) -> int:
        return len(self.of)

    @classmethod
    def none(cls, profile: Profile) -> "FingerprintedPages":
        """Return no pages."""
        nothing = np.zeros(0, bool)
        passages = Passages(
            hashes=np.zeros(0, np.uint64),
            letters=np.zeros(0, np.int64),
            are_prose=nothing,
            have_figures=nothing,
            texts=np.zeros(0, np.int64),
            text_count=0,
        )
        return cls(
            of=PassagesOfPages(passages=passages, pages=np.zeros(0, np.uint64), sites=[], articles=[]),
            omitted=nothing,
            signatures=np.zeros(0, profile.signature_dtype),
            exists=nothing,
        )

    def articles(self) -> "list[FingerprintedArticle]":
        """Return the pages one by one, to wait in a queue."""
        sizes = np.bincount(self.of.passages.texts, minlength=len(self)) * _PASSAGE_SIZE + _PAGE_SIZE
        return [FingerprintedArticle(self, at, size) for at, size in enumerate(sizes.tolist())]

    def part(self, start: int, stop: int) -> "FingerprintedPages":
        """Return the pages from `start` to `stop` (exclusive)."""
        first, last = self.of.passages.texts.searchsorted((start, stop))
        return FingerprintedPages(
            of=PassagesOfPages(
                passages=self.of.passages.of_texts(start, stop),
                pages=self.of.pages[start:stop],
                sites=self.of.sites[start:stop],
                articles=self.of.articles[start:stop],
            ),
            omitted=self.omitted[first:last],
            signatures=self.signatures[start:stop],
            exists=self.exists[start:stop],
        )

    @classmethod
    def joined(cls, parts: Sequence["FingerprintedPages"]) -> "FingerprintedPages":
        """Return the pages of several, of which there is at least one."""
        return cls(
            of=PassagesOfPages(
                passages=Passages.joined([each.of.passages for each in parts]),
                pages=np.concatenate([each.of.pages for each in parts]),
                sites=[site for each in parts for site in each.of.sites],
                articles=[article for each in parts for article in each.of.articles],
            ),
            omitted=np.concatenate([each.omitted for each in parts]),
            signatures=np.concatenate([each.signatures for each in parts]),
            exists=np.concatenate([each.exists for each in parts]),
        )

    def are_right(self, omitted: Bools) -> Bools:
        """Return for which pages was left out what is to be left out, bool ``(passages,)``: bool ``(n,)``."""
        texts = self.of.passages.texts[omitted != self.omitted]
        are_right: Bools = np.bincount(texts, minlength=len(self)) == 0
        return are_right

    def fingerprints(self, are_chosen: Bools) -> Fingerprints:
        """Return the fingerprints of some pages, bool ``(n,)``; nobody says how long their texts are."""
        count = int(np.count_nonzero(are_chosen))
        return Fingerprints(
            signatures=self.signatures[are_chosen],
            exists=self.exists[are_chosen],
            letters=np.zeros(count, np.int64),
            are_cut=np.zeros(count, bool),
            pages=self.of.pages[are_chosen],
            faults=no_faults(count),
        )


def gathered(articles: Sequence[FingerprintedArticle], *, profile: Profile) -> FingerprintedPages:
    """Return articles as pages of one batch; those of the same pages stand together, in their order."""
    parts = [FingerprintedPages.none(profile)]
    for _, group in itertools.groupby(articles, key=lambda each: id(each.pages)):
        own = list(group)
        parts.append(own[0].pages.part(own[0].at, own[-1].at + 1))
    return FingerprintedPages.joined(parts)
