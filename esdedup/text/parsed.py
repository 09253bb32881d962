"""A batch of raw texts, cut into sentences and tokens: all that fingerprints are made from."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import classes
from esdedup.text.normalise import NormalTexts
from esdedup.text.page_ids import page_ids
from esdedup.text.passages import Omit, Passages
from esdedup.text.sentences import Sentences
from esdedup.text.tokens import Tokens, roles_in_tokens


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParsedTexts:
    """The sentences and tokens of a batch."""

    sentences: Sentences
    tokens: Tokens
    # uint64 (n,): the ids of the whole texts as pages.
    pages: npt.NDArray[np.uint64]
    # bool (n,): which texts were longer than the limit, so that the rest is missing.
    are_cut: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Sequence[str], *, max_length: int) -> "ParsedTexts":
        """Parse raw texts.

        Args:
            texts: With or without markup.
            max_length: How many characters to keep of each visible text.
        """
        return cls._of_normal(NormalTexts.of(texts, max_length=max_length))

    @classmethod
    def of_visible(cls, texts: Sequence[str], *, max_length: int) -> "ParsedTexts":
        """Parse texts without markup, or the beginnings of them that are longer than `max_length`."""
        return cls._of_normal(NormalTexts.of_visible(texts, max_length=max_length))

    @classmethod
    def _of_normal(cls, normal: NormalTexts) -> "ParsedTexts":
        kinds = classes().take(normal.points)
        roles = roles_in_tokens(kinds)
        tokens = Tokens.of(normal.points, roles)
        return cls(
            sentences=Sentences.of(normal.points, kinds),
            tokens=tokens,
            pages=page_ids(normal.points, roles, tokens),
            are_cut=normal.are_cut,
        )

    @property
    def passages(self) -> Passages:
        """A passage for each sentence."""
        return Passages.of(self.sentences, self.tokens)

    def omitted(self, omit: Omit | None) -> npt.NDArray[np.bool_]:
        """Return which passages `omit` leaves out; none if it is None: bool ``(passages,)``."""
        if omit is None:
            return np.zeros(len(self.sentences.starts), bool)
        return omit(self.passages, self.pages)

    def without(self, omitted: npt.NDArray[np.bool_]) -> "ParsedTexts":
        """Return the texts without some of their sentences."""
        if not omitted.any():
            return self
        sentences, tokens = self.sentences, self.tokens
        return dataclasses.replace(
            self,
            sentences=sentences.where(~omitted),
            tokens=tokens.without(*tokens.of_spans(sentences.starts[omitted], sentences.ends[omitted])),
        )
