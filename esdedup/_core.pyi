"""The crate in `core/`: texts, learned boilerplate and nodes in memory. Columns are bytes of numpy arrays.

A fault is a bug in the crate that a text triggered: ``FILE:LINE``, or "" if there was none. Functions that do
not return faults raise `esdedup.errors.TextFailed`.
"""

from collections.abc import Iterable, Sequence
from typing import Self, final

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import Layout

_Node = tuple[str, str, bytes, int, int, int, str, int, str, str]
_Hash = tuple[str, str | None, int]
_Answer = tuple[int, str | None, str | None, int, bytes, str | None, str | None]

@final
class Parsed:
    """A batch of texts, split into passages, which can be fingerprinted with or without some of the passages.

    `left_out` has a byte for each passage, 1 to leave it out; if it is empty, no passage is left out.
    """

    def __len__(self) -> int:
        """Return the number of texts."""

    @property
    def content_hashes(self) -> bytes:
        """The content hashes of the whole texts: uint64; 0 for a text without letters and digits."""

    @property
    def are_cut(self) -> bytes:
        """Which texts were truncated because they exceeded the limit: bool."""

    @property
    def units(self) -> bytes:
        """The length of each text in units, int64: a word or number counts 2, an East Asian character 1."""

    @property
    def faults(self) -> list[str]:
        """The fault of each text, which was replaced by an empty text if there was one."""

    @property
    def passages(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Columns: hash, uint64; letters, int64; is prose, bool; has figures, bool; index of text, int64."""

    @staticmethod
    def of_passages(texts: Sequence[tuple[int, Sequence[tuple[int, int, bool, bool]]]]) -> Parsed:
        """Create texts from content hashes and passages (as in `passages`), without tokens; for tests."""

    def left_out(self, passage_filter: PassageFilter | None) -> bytes:
        """Return which passages a filter omits, bool; empty if there is no filter."""

    def longest_sentences(self, left_out: bytes, max_length: int) -> tuple[list[str], bytes, list[str]]:
        """Return the longest sentence of each text, joining the rows of a table; letters, int64; faults.

        Here and below, the last item contains new faults and the earlier `faults`.
        """

    def whole_texts(self, left_out: bytes) -> tuple[list[str], bytes, list[str]]:
        """Return the normal form of each text; letters, int64; faults."""

    def longest_of_halves(self, left_out: bytes, max_sentence_length: int) -> list[list[str]]:
        """Return the longest sentence of each half of each text, truncated like hashed sentences."""

    def overlap(
        self, left_out: bytes, other: Parsed, left_out_of_other: bytes
    ) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Count distinct token runs and figures for each pair of texts: the fields of `Overlap`."""

def parse(
    texts: Sequence[str],
    *,
    max_length: int,
    keep_points: bool = False,
    character_hash: tuple[int, int] | None = None,
    threads: int = 1,
) -> Parsed:
    """Parse raw texts.

    Args:
        texts: With or without markup.
        max_length: How many characters to keep of each visible text.
        keep_points: Whether to keep the normalised texts, which methods that return strings need.
        character_hash: An odd factor and an offset of an experimental hash, which no profile uses.
        threads: How many threads parse the texts, and later fingerprint them.
    """

def fingerprint(
    texts: Sequence[str],
    rules: tuple[int, int, int],
    passage_filter: PassageFilter | None,
    character_hash: tuple[int, int] | None,
    threads: int,
) -> tuple[list[bytes], list[str]]:
    """Return the columns of `Fingerprints` for raw texts under `verified`, and faults.

    Args:
        texts: With or without markup.
        rules: The `max_text_length`, `min_letters` and `max_sentence_length` of the profile.
        passage_filter: Omits passages; None omits none.
        character_hash: See `parse`.
        threads: How many threads process the texts.
    """

def locate(text: str, *, max_length: int) -> tuple[str, Parsed, bytes, bytes]:
    """Return the visible text, maybe truncated; the parsed text; and its passages' starts and ends: int64."""

def visible_text(text: str, *, max_length: int) -> str:
    """Return at most the first `max_length + 1` characters of the visible text."""

def normalise(texts: Sequence[str], *, max_length: int) -> tuple[list[str], bytes]:
    """Return raw texts without markup, in their normal form, and which of them were truncated: bool."""

def normal_form(text: str) -> str:
    """Return a text without markup in NFKC, case folded, with traditional Chinese simplified.

    Digits of all scripts become ASCII digits. Accents of Latin, Greek and Cyrillic letters, and vowel signs
    of Arabic and Hebrew, are removed; interchangeable Arabic letters are unified. Invisible characters are
    removed, and other control characters, except line breaks and tabs, become spaces. The result can be
    encoded as UTF-8.
    """

def words(text: str) -> list[str]:
    """Return the runs of letters, digits and their marks in a normalised text."""

def letters(text: str) -> str:
    """Return the letters, digits and marks of a normalised text."""

def weighted_simhashes(hashes: bytes, weights: bytes, starts: bytes) -> bytes:
    """Return the simhash of each group of weighted hashes: uint64.

    Args:
        hashes: The hashes of all groups, one group after another: uint64.
        weights: The weight of each hash: int64.
        starts: The index at which each group begins: int64, ascending from 0.
    """

@final
class OverrideTable:
    """Passages that a person has declared boilerplate or text, on one site or on all sites."""

    def __new__(cls, declared: Sequence[tuple[int, str | None, bool]]) -> OverrideTable:
        """Create a table of passage hashes, sites (None for all sites), and whether they are boilerplate."""

class Learner:
    """Learns boilerplate from pages; see `Boilerplate`. Threads may share a learner.

    Changes are made in steps, such as batches: `begin`, then a `PassageFilter` or `apply`, then `keep` or
    `undo`. Steps may be nested. A panic raises an `EsdedupError`, and so does every later call.
    """

    def __new__(
        cls, *, block_pages: int, end_passages: int, least_article_bits: int, period_records: int
    ) -> Self: ...
    def learn_rest(self) -> None:
        """Learn from an incomplete block of pages, as if no further pages would arrive."""

    def begin(self) -> None:
        """Begin a step."""

    def keep(self) -> None:
        """End the current step, and keep its changes."""

    def undo(self) -> None:
        """End the current step, and undo its changes."""

    def changes(self) -> Changes:
        """Return the changes of the current step; raises `ValueError` if no step is open."""

    def everything(self) -> Changes:
        """Return everything learned, as the changes of a single step; for comparisons."""

    def apply(self, changes: Changes) -> None:
        """Apply the changes of a step; raises `ValueError` unless it follows the changes applied so far.

        Outdated changes before the first applied changes may be missing.
        """

    def learned_flags(self, hashes: bytes, site: str | None) -> bytes:
        """Return which passages are boilerplate, bool, by their hashes, uint64."""

    def learned_hashes(self) -> bytes:
        """Return the hashes of all passages that are boilerplate: uint64, ascending."""

    @property
    def depth(self) -> int:
        """The number of nested steps that are in progress."""

    @property
    def last_page(self) -> int:
        """The number of the last page, whether or not it was learned from."""

    @property
    def periods(self) -> tuple[int, int, int, int]:
        """The capacity of a period, the records in the current one, and the first pages of it and the former.

        A period ends with the block that fills the capacity.
        """

    @property
    def size_bytes(self) -> int:
        """The memory used, in bytes."""

    @property
    def is_broken(self) -> bool:
        """Whether a panic interrupted a change, so that this object must be replaced."""

@final
class PassageFilter:
    """Omits passages from pages, in order, and learns from the pages; see `Boilerplate.filter`."""

    def __new__(
        cls,
        learner: Learner,
        overrides: OverrideTable,
        names: tuple[Iterable[str | None], Iterable[str | None], Iterable[str | None]],
    ) -> Self:
        """Create a filter from the sites, articles and titles of the pages."""

@final
class Changes:
    """The changes that a step made to the learned boilerplate."""

    @staticmethod
    def of_columns(columns: Sequence[bytes]) -> Changes:
        """Create changes from the result of `columns`; raises `ValueError` if they are invalid."""

    def columns(self) -> list[bytes]:
        """Return the columns listed in `COLUMNS` (`boilerplate/changes.py`)."""

    def then(self, later: Changes) -> Changes:
        """Return these and later changes, combined."""

    @property
    def page_count(self) -> int:
        """The number of new pages."""

    @property
    def first_page(self) -> int:
        """The number of the first new page; without new pages, the number of the next page."""

    @property
    def last_page(self) -> int:
        """The number of the last page after the step."""

    @property
    def are_empty(self) -> bool:
        """Whether the step had no new page and completed no block."""

@final
class Relation:
    """Which signatures are near each other; see `neighbours.relation.Relation`."""

    def __new__(cls, max_distance_bits: int, agreement: Agreement | None) -> Relation: ...
    def ids(self, signatures: bytes) -> list[str]:
        """Return the node id of each signature."""

    def terms(self, signatures: bytes, layout: Layout, is_indexed: bool) -> list[list[str]]:
        """Return the keys of each signature; see `neighbours.relation.Relation.terms`."""

    def pack(self, stored: _Node | _Hash) -> bytes:
        """Return a `StoredNode` or `StoredHash` in packed form; raises `ValueError` for invalid values."""

    def unpack(self, packed: bytes) -> _Node | _Hash | None:
        """Return the fields of a packed node or content hash; None if it has the length of neither."""

    def log(self, packed: Sequence[bytes]) -> tuple[bytes, int]:
        """Return nodes and content hashes as a log, and the latest `seen_ms`. Raises like `documents`."""

    def entries(self, log: bytes) -> tuple[list[bytes | tuple[str, int, int]], bool]:
        """Return the entries of a log up to the first unreadable one, and whether all are readable.

        Nodes and content hashes are packed. If only the times of an earlier node changed, its entry consists
        of its id, `seen_ms` and `hash_seen_ms`.
        """

    def documents(self, packed: Sequence[bytes], layout: Layout) -> list[tuple[str, str]]:
        """Return ids and JSON of packed nodes and content hashes; raises `ValueError` for invalid ones."""

    def are_equal(self, one: bytes, other: bytes) -> bool:
        """Return whether the compared parts of two signatures are equal."""

    def have_common_key(self, one: bytes, other: bytes) -> bool:
        """Return whether two signatures have a representative or an address in common."""

    def compare(self, one: bytes, other: bytes) -> bytes:
        """Compare signatures of `verified` row by row; return the packed fields of `Comparison` for each."""

class NeighbourIndex:
    """An index of signatures by row; see `neighbours.relation.NeighbourIndex`."""

    def __new__(cls, relation: Relation) -> Self: ...
    def add(self, signatures: bytes) -> None:
        """Add signatures in new rows, indexed by their representatives."""

    def pair_columns(self, signatures: bytes) -> tuple[bytes, bytes]:
        """Return the pairs of a signature's position and a row that is near it: two int64 columns."""

    @property
    def size_bytes(self) -> int:
        """The memory used, in bytes."""

class Nodes:
    """The nodes and content hashes of a forest in memory; see `forest.nodes.Nodes`.

    A panic raises an `EsdedupError`, and so does every later call.
    """

    def __new__(cls, relation: Relation, *, retention_ms: int, granularity_ms: int) -> Self: ...
    def __len__(self) -> int: ...
    def assign_columns(
        self,
        signatures: bytes,
        exist: bytes,
        hashes: bytes,
        times_ms: bytes,
        *,
        state: tuple[int, int, int],
        now_ms: int,
    ) -> tuple[list[_Answer], list[bytes], bytes, tuple[int, int, int]]:
        """Begin a step, and assign arrivals.

        Args:
            signatures: The signatures, in the relation's dtype.
            exist: Whether each text has a signature: bool.
            hashes: The content hashes: uint64.
            times_ms: The articles' times, milliseconds since 1970: int64.
            state: The fields of the forest's `State`.
            now_ms: The current time.

        Returns:
            For each arrival, the number of its kind and the other fields of its `Assignment`, without `seq`;
            the packed nodes and content hashes to be written; the same records as a log; and the new state.
        """

    def contested(self) -> list[str]:
        """Return the ids of the roots that the last step compared by their numbers of leaves."""

    def keep(self) -> None:
        """Keep the changes of the oldest open step."""

    def undo(self) -> None:
        """Undo the changes of the latest open step."""

    def load(self, packed: Sequence[bytes], *, live_since_ms: int) -> None:
        """Add live nodes and content hashes, in the format of `Plan.written` and in any order.

        Values of an invalid length are skipped. Of several values with the same id, the last is used. Until
        `settle` is called, every node is a root.
        """

    def missing(self) -> tuple[list[str], list[str]]:
        """Return the ids of roots, and of content hashes' nodes, that were not loaded."""

    def load_logs(self, logs: Sequence[bytes]) -> None:
        """Add the entries of logs (`Plan.log`), each up to its first unreadable entry; call `settle` next."""

    def settle(self, *, live_since_ms: int = ...) -> None:
        """Link each loaded node to its root, remember the loaded content hashes, and forget expired ones.

        In a damaged forest, a missing root is recreated from one of its leaves, and content hashes whose node
        is missing are dropped. By default, nothing has expired.
        """

    def living(self, log: bytes, *, live_since_ms: int) -> list[bytes]:
        """Return the current versions of the live nodes and content hashes that a log contains in full.

        Content hashes that their nodes remember are left out.
        """

    @property
    def extra_hash_count(self) -> int:
        """The number of remembered content hashes that created no node."""

    @property
    def size_bytes(self) -> int:
        """The memory used, in bytes."""

    @property
    def depth(self) -> int:
        """The number of steps that were neither kept nor undone."""

    @property
    def is_broken(self) -> bool:
        """Whether a panic interrupted a change."""
