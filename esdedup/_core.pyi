"""The crate in `core/`: texts, what was learned, nodes in memory. Columns are bytes, to be read with numpy.

A fault is a mistake in the crate at a text: ``FILE:LINE``, empty if there was none. Functions that return no
faults raise `esdedup.errors.TextFailed`.
"""

from collections.abc import Sequence
from typing import Self, final

from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.bands import Layout

_Node = tuple[str, str, bytes, int, int, int, str, int, str, str]
_Page = tuple[str, str | None, int]
_Answer = tuple[int, str | None, str | None, int, bytes, str | None, str | None]

@final
class Parsed:
    """A batch of texts, cut into passages; they stay here while it is decided which are left out.

    `left_out` is a byte for each passage, 1 to leave it out, or empty to leave out none.
    """

    def __len__(self) -> int:
        """Return the number of texts."""

    @property
    def content_hashes(self) -> bytes:
        """The ids of the whole texts as pages: uint64; 0 for a text without letters and digits."""

    @property
    def are_cut(self) -> bytes:
        """Which texts were longer than the limit, so that the rest is missing: bool."""

    @property
    def units(self) -> bytes:
        """The length of each text, int64: a word or a number is 2, an East Asian character 1."""

    @property
    def faults(self) -> list[str]:
        """The fault at which each text became an empty one, if any."""

    @property
    def passages(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Hashes, uint64; letters, int64; which are prose, bool; which have figures, bool; texts, int64."""

    def signatures(
        self, left_out: bytes, min_letters: int, max_sentence_length: int
    ) -> tuple[bytes, bytes, bytes, list[str]]:
        """Return signatures of `verified`, `SIGNATURE`, zeros for none; which exist, bool; letters, int64.

        Last come faults, here and below: those of now, and `faults`.
        """

    def longest_sentences(self, left_out: bytes, max_length: int) -> tuple[list[str], bytes, list[str]]:
        """Return the longest sentence of each text, with rows of tables joined; letters, int64; faults."""

    def whole_texts(self, left_out: bytes) -> tuple[list[str], bytes, list[str]]:
        """Return the normal form of each text; letters, int64; faults."""

    def longest_of_halves(self, left_out: bytes, max_sentence_length: int) -> list[list[str]]:
        """Return the longest sentence of each half of each text, up to where hashing stops."""

    def overlap(
        self, left_out: bytes, other: Parsed, left_out_of_other: bytes
    ) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Count distinct runs of tokens for each pair of texts, and figures: the fields of `Overlap`."""

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
        keep_points: Whether the normal texts are kept, which all methods need that return strings.
        character_hash: A factor, which is odd, and an offset, for hashes that no profile has.
        threads: How many share the work on the texts, now and when fingerprints are made of them.
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

@final
class OverrideTable:
    """Passages that a person has declared boilerplate, or text, on one site or on all."""

    def __new__(cls, declared: Sequence[tuple[int, str | None, bool]]) -> OverrideTable:
        """Take hashes of passages, the site or None for all, and whether they are boilerplate."""

class Learner:
    """The learner of boilerplate: what pages have taught; see `Boilerplate`. Threads may share it.

    Changes are made in steps, such as batches: `begin`, then `filter` or `apply`, then `keep` or `undo`. A
    step may contain others. A panic is raised as an `EsdedupError`, and so is every call after it.
    """

    def __new__(
        cls, *, block_pages: int, end_passages: int, least_article_bits: int, period_records: int
    ) -> Self: ...
    def filter_columns(
        self,
        passages: Sequence[bytes],
        ids: bytes,
        names: tuple[Sequence[str | None], Sequence[str | None], Sequence[str | None]],
        overrides: OverrideTable,
    ) -> bytes:
        """Return which passages of pages are left out, bool, and learn from them; see `Boilerplate.filter`.

        Args:
            passages: Of the pages, as `Parsed.passages`.
            ids: Of the pages: uint64.
            names: Of the pages: their sites, articles and titles.
            overrides: What counts instead of what is known.
        """

    def learn_rest(self) -> None:
        """Learn from the pages of a block that is not full, as if no others would come."""

    def begin(self) -> None:
        """Begin a step."""

    def keep(self) -> None:
        """End the last step, and keep its changes."""

    def undo(self) -> None:
        """End the last step, and undo its changes."""

    def changes(self) -> Changes:
        """Return the changes of the last step; raises `ValueError` if none has begun."""

    def everything(self) -> Changes:
        """Return all that is known, as if one step had taught it: for comparisons."""

    def apply(self, changes: Changes) -> None:
        """Make the changes of a step that began after what is known; raises `ValueError` if it did not.

        The first changes may come after others that are outdated by now.
        """

    def learned_flags(self, hashes: bytes, site: str | None) -> bytes:
        """Return which passages are boilerplate, bool, by their hashes, uint64."""

    def learned_hashes(self) -> bytes:
        """Return the hashes of all passages that are boilerplate: uint64, ascending."""

    @property
    def depth(self) -> int:
        """How many steps have begun that were neither kept nor undone."""

    @property
    def last_page(self) -> int:
        """The number of the last page, learned from or not."""

    @property
    def periods(self) -> tuple[int, int, int, int]:
        """The fields of `Window`."""

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""

    @property
    def is_torn(self) -> bool:
        """Whether a panic has stopped a change halfway: begin anew."""

@final
class Changes:
    """What a step has taught."""

    @staticmethod
    def of_columns(columns: Sequence[bytes]) -> Changes:
        """Read what `columns` has returned; raises `ValueError` if no step has such changes."""

    def columns(self) -> list[bytes]:
        """Return the columns that `COLUMNS` names (boilerplate/changes.py)."""

    def then(self, later: Changes) -> Changes:
        """Return both changes as one."""

    @property
    def page_count(self) -> int:
        """The number of new pages."""

    @property
    def first_page(self) -> int:
        """The number of the first new page; the one after the last if there is none."""

    @property
    def last_page(self) -> int:
        """The number of the last page after the step."""

    @property
    def are_empty(self) -> bool:
        """Whether there was no new page, and no block has ended."""

@final
class Relation:
    """Which signatures are near each other; see `neighbours.relation.Relation`."""

    def __new__(cls, max_distance_bits: int, agreement: Agreement | None) -> Relation: ...
    def ids(self, signatures: bytes) -> list[str]:
        """Return the node id of each signature."""

    def terms(self, signatures: bytes, layout: Layout, is_indexed: bool) -> list[list[str]]:
        """Return the keys of each signature; see `neighbours.relation.Relation.terms`."""

    def pack(self, stored: _Node | _Page) -> bytes:
        """Return a `StoredNode` or `StoredPage` in packed form; raises `ValueError` for odd values."""

    def unpack(self, packed: bytes) -> _Node | _Page | None:
        """Return the fields of what was packed; None if it is of another length than nodes and pages have."""

    def log(self, packed: Sequence[bytes]) -> tuple[bytes, int]:
        """Return nodes and pages as a log has them, and the latest `seen_ms`; `ValueError` as `documents`."""

    def entries(self, log: bytes) -> tuple[list[bytes | tuple[str, int, int]], bool]:
        """Return the entries of a log up to the first unreadable one, and whether there is none.

        Nodes and pages are packed; of an earlier node with new times there are its id, `seen_ms` and
        `page_seen_ms`.
        """

    def documents(self, packed: Sequence[bytes], layout: Layout) -> list[tuple[str, str]]:
        """Return ids and JSON of nodes and pages; raises `ValueError` if one is neither."""

    def are_equal(self, one: bytes, other: bytes) -> bool:
        """Return whether all that is compared of two signatures is equal."""

    def have_common_key(self, one: bytes, other: bytes) -> bool:
        """Return whether two signatures have a representative or an address in common."""

    def compare(self, one: bytes, other: bytes) -> bytes:
        """Compare signatures of `verified`, row by row: in each the fields of `Comparison`, packed."""

class NeighbourIndex:
    """Signatures by row; see `neighbours.relation.NeighbourIndex`."""

    def __new__(cls, relation: Relation) -> Self: ...
    def add(self, signatures: bytes) -> None:
        """Add signatures, one after the other: each is found by the representatives it is indexed under."""

    def pair_columns(self, signatures: bytes) -> tuple[bytes, bytes]:
        """Return pairs of a position and a row near it: int64 each."""

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""

class Nodes:
    """The nodes and pages of a forest in memory; see `forest.nodes.Nodes`.

    A panic is raised as an `EsdedupError`, and so is every call after it.
    """

    def __new__(cls, relation: Relation, *, retention_ms: int, granularity_ms: int) -> Self: ...
    def __len__(self) -> int: ...
    def assign_columns(
        self,
        signatures: bytes,
        exist: bytes,
        pages: bytes,
        times_ms: bytes,
        *,
        state: tuple[int, int, int],
        now_ms: int,
    ) -> tuple[list[_Answer], list[bytes], bytes, tuple[int, int, int]]:
        """Begin a step, and assign arrivals.

        Args:
            signatures: In the relation's dtype.
            exist: bool.
            pages: uint64.
            times_ms: int64.
            state: The fields of `State`, and so are those returned.
            now_ms: The clock.

        Returns:
            Of each arrival its kind by its number, and what an `Assignment` has besides, without `seq`; what
            is to be written, and the same as a log has it; the state.
        """

    def contested(self) -> list[str]:
        """Return the ids of the roots that the last step compared by their numbers of leaves."""

    def keep(self) -> None:
        """Keep the first step."""

    def undo(self) -> None:
        """Undo the last step."""

    def load(self, packed: Sequence[bytes], *, live_since_ms: int) -> None:
        """Add nodes and pages as `Plan.written` has them, in any order, if they live.

        Values of another length are left out. Of two with the same id, the later one counts. Until `settle`,
        every node is a root.
        """

    def missing(self) -> tuple[list[str], list[str]]:
        """Return the ids of roots and of nodes of pages that were not loaded."""

    def load_logs(self, logs: Sequence[bytes]) -> None:
        """Add the entries of logs (`Plan.log`) up to the first unreadable one of each; then `settle`."""

    def settle(self, *, live_since_ms: int = ...) -> None:
        """Give each node that was loaded its root, remember the pages, and forget what does not live.

        In a damaged forest, roots that are missing are made again from one of their leaves, and pages whose
        node is missing are left out. By default, everything lives.
        """

    def living(self, log: bytes, *, live_since_ms: int) -> list[bytes]:
        """Return the nodes and pages that a log has whole as they are now, leaving out what does not live.

        Pages are left out that their nodes remember.
        """

    @property
    def lone_page_count(self) -> int:
        """The number of remembered pages that made no node."""

    @property
    def size_bytes(self) -> int:
        """The memory that all take."""

    @property
    def depth(self) -> int:
        """How many steps have begun that were neither kept nor undone."""

    @property
    def is_torn(self) -> bool:
        """Whether a panic has stopped a change halfway."""
