"""The crate in `core/`: all that reads every character of a text. Columns are bytes, to be read with numpy.

A text that a function cannot read, which is a mistake in the crate, raises `esdedup.errors.TextFailed`.
"""

from collections.abc import Sequence
from typing import final

@final
class Parsed:
    """A batch of texts, cut into passages; they stay here while it is decided which are left out.

    `omitted` is a byte for each passage, 1 to leave it out, or empty to leave out none.
    """

    def __len__(self) -> int:
        """Return the number of texts."""

    @property
    def passage_count(self) -> int:
        """The number of passages of all texts."""

    @property
    def content_hashes(self) -> bytes:
        """The ids of the whole texts as pages: uint64; 0 for a text without letters and digits."""

    @property
    def are_cut(self) -> bytes:
        """Which texts were longer than the limit, so that the rest is missing: bool."""

    @property
    def letters(self) -> bytes:
        """The letters and digits of each text: int64."""

    @property
    def passages(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Hashes, uint64; letters, int64; which are prose, bool; which have figures, bool; texts, int64."""

    def signatures(
        self, omitted: bytes, min_letters: int, max_sentence_length: int, number_weight: int
    ) -> tuple[bytes, bytes, bytes]:
        """Return signatures of `verified`, `SIGNATURE`, zeros for none; which exist, bool; letters, int64."""

    def longest_sentences(self, omitted: bytes, max_length: int) -> tuple[list[str], bytes]:
        """Return the longest sentence of each text, with rows of tables joined, and the letters: int64."""

    def whole_texts(self, omitted: bytes) -> tuple[list[str], bytes]:
        """Return the normal form of each text, and the letters: int64."""

    def longest_of_halves(self, omitted: bytes, max_sentence_length: int) -> list[list[str]]:
        """Return the longest sentence of each half of each text, up to where hashing stops."""

    def overlap(
        self, omitted: bytes, other: Parsed, omitted_of_other: bytes
    ) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Count distinct runs of tokens for each pair of texts: without a number, and with one.

        Each count is of runs that both have, the one text, and the other.
        """

def parse(
    texts: Sequence[str],
    *,
    max_length: int,
    keep_points: bool = False,
    character_hash: tuple[int, int] | None = None,
) -> Parsed:
    """Parse raw texts.

    Args:
        texts: With or without markup.
        max_length: How many characters to keep of each visible text.
        keep_points: Whether the normal texts are kept, which all methods need that return strings.
        character_hash: A factor, which is odd, and an offset, for hashes that no profile has.
    """

def locate(text: str, *, max_length: int) -> tuple[str, Parsed, bytes, bytes]:
    """Return a visible text or its beginning, parsed, and where its passages start and end in it: int64."""

def visible_text(text: str, *, max_length: int) -> str:
    """Return what is visible of a raw text; more than `max_length` characters of one that is longer."""

def normalise(texts: Sequence[str], *, max_length: int) -> tuple[list[str], bytes]:
    """Return raw texts without markup, in their normal form, and which are only beginnings: bool."""

def normal_form(text: str) -> str:
    """Return the normal form of a text without markup."""

def words(text: str) -> list[str]:
    """Return the runs of letters, digits and the marks that belong to them of a normal text."""

def letters(text: str) -> str:
    """Return the letters, digits and marks of a normal text."""

def weighted_simhashes(hashes: bytes, weights: bytes, starts: bytes) -> bytes:
    """Return the simhash of each group of weighted hashes: uint64.

    Args:
        hashes: uint64, one group after the other.
        weights: int64 each.
        starts: The place where each group begins: int64, ascending from 0.
    """
