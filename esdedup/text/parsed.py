"""A batch of raw texts, cut into passages and tokens: all that fingerprints are made from."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from esdedup import _core
from esdedup.text.passages import Omit, Passages

# How characters are hashed, see `_core.parse`: benchmarks try other hashes.
_CHARACTER_HASH: tuple[int, int] | None = None

Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class ParsedTexts:
    """The passages and tokens of a batch; the texts themselves stay in the core."""

    core: _core.Parsed

    @classmethod
    def of(
        cls, texts: Sequence[str], *, max_length: int, keep_text: bool = False, threads: int = 1
    ) -> "ParsedTexts":
        """Parse raw texts.

        Args:
            texts: With or without markup.
            max_length: How many characters to keep of each visible text.
            keep_text: Whether to keep the normal texts, to cut them into words or to show passages.
            threads: How many share the work on the texts.
        """
        return cls(
            _core.parse(
                texts,
                max_length=max_length,
                keep_points=keep_text,
                character_hash=_CHARACTER_HASH,
                threads=threads,
            )
        )

    def __len__(self) -> int:
        return len(self.core)

    @property
    def passage_count(self) -> int:
        """The number of passages of all texts."""
        return self.core.passage_count

    @property
    def passages(self) -> Passages:
        """The passages of all texts."""
        hashes, letters, are_prose, have_figures, texts = self.core.passages
        return Passages(
            hashes=np.frombuffer(hashes, np.uint64),
            letters=np.frombuffer(letters, np.int64),
            are_prose=np.frombuffer(are_prose, bool),
            have_figures=np.frombuffer(have_figures, bool),
            texts=np.frombuffer(texts, np.int64),
            text_count=len(self),
        )

    @property
    def pages(self) -> npt.NDArray[np.uint64]:
        """The ids of the whole texts as pages: uint64 ``(n,)``, 0 for a text without letters and digits.

        Texts with the same tokens in the same order have the same id.
        """
        return np.frombuffer(self.core.content_hashes, np.uint64)

    @property
    def are_cut(self) -> Bools:
        """Which texts were longer than the limit, so that the rest is missing: bool ``(n,)``."""
        return np.frombuffer(self.core.are_cut, bool)

    @property
    def letters(self) -> npt.NDArray[np.int64]:
        """The number of letters and digits of each text: int64 ``(n,)``."""
        return np.frombuffer(self.core.letters, np.int64)

    def omitted(self, omit: Omit | None) -> Bools:
        """Return which passages `omit` leaves out: bool ``(passages,)``, or ``(0,)`` if it is None: none."""
        if omit is None:
            return np.zeros(0, bool)
        return omit(self.passages, self.pages)
