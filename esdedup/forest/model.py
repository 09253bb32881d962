"""The values that a forest and its store exchange: arrivals, nodes, assignments, plans. Pure."""

import dataclasses
import enum
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.changes import Changes
from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Fingerprints
from esdedup.neighbours.relation import Relation

NO_TIME = -(2**63)
"""Stands for an unknown time where a number is needed; less than every time."""

NO_PAGE = 0
"""The id of a text without letters and digits: it never has a fingerprint, and is not remembered.

Any other text has this id by a chance of 1 in 2^64."""

NO_NODE = -1
"""Stands for no node where a row is needed."""

DEFAULT_RETENTION = timedelta(days=30)
"""How long nodes live by default."""

_MS = timedelta(milliseconds=1)


class Kind(enum.Enum):
    """What became of an arrival."""

    NEW_ROOT = "new_root"
    JOINED = "joined"
    # Its page is remembered with a node, or its node existed already.
    KNOWN = "known"
    # Its page is remembered without a node; or it has no fingerprint, and its page is not remembered.
    WITHOUT_FINGERPRINT = "without_fingerprint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Nodes:
    """Columns of nodes, one row per node: what the forest keeps of distinct texts."""

    # Computed from signatures: equal ids mean that all that is compared is equal. If a store keeps expired
    # nodes, one id may have several rows; only the last of them can live.
    ids: Sequence[str]
    # (n,): in the profile's dtype.
    signatures: npt.NDArray[Any]
    # int64 (n,): the row of its root; its own for a root.
    roots: npt.NDArray[np.int64]
    # int64 (n,): the `seq` of the arrival that made it.
    seqs: npt.NDArray[np.int64]
    # int64 (n,): the forest's time when it was made, milliseconds since 1970; NO_TIME if none was
    # known.
    made_ms: npt.NDArray[np.int64]
    # int64 (n,): the forest's time when it was last needed, rounded up to the granularity; NO_TIME if none
    # was known.
    seen_ms: npt.NDArray[np.int64]
    # uint64 (n,): the page of the arrival that made it, for a store that keeps it with the node; NO_PAGE if
    # it does not.
    pages: npt.NDArray[np.uint64]
    # int64 (n,): when that page was last seen as a page of this node, rounded up as `seen_ms` is.
    pages_seen_ms: npt.NDArray[np.int64]
    # int64 (n,): any numbers by which a store finds the nodes again that it found before.
    places: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pages:
    """Columns of remembered pages, one row per page."""

    # uint64 (n,): each once.
    ids: npt.NDArray[np.uint64]
    # int64 (n,): the row in some `Nodes` of the node that the page got; NO_NODE if it got none.
    rows: npt.NDArray[np.int64]
    # int64 (n,): the forest's time when the page was last seen, rounded up to the granularity; NO_TIME if
    # none was known. At most the `seen_ms` of its node, if it has one.
    seen_ms: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrivals:
    """A batch of articles on their way into the forest."""

    # One per arrival; None for an article without a fingerprint: it takes a seq but makes no node.
    ids: Sequence[str | None]
    # What the profile's relation compares, one row per arrival, in the profile's dtype.
    signatures: npt.NDArray[Any]
    # uint64 (n,): the ids of their whole texts, `Fingerprints.pages`.
    pages: npt.NDArray[np.uint64]
    # int64 (n,), milliseconds since 1970, NO_TIME where none is known.
    times_ms: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, fingerprints: Fingerprints, *, times_ms: Sequence[int | None], relation: Relation
    ) -> "Arrivals":
        """Make a batch.

        Args:
            fingerprints: In the order of arrival.
            times_ms: One per fingerprint, milliseconds since 1970; None if not known.
            relation: The profile's; it computes the ids.
        """
        ids = relation.ids(fingerprints.signatures)
        return cls(
            ids=[
                node_id if exists else None
                for node_id, exists in zip(ids, fingerprints.exists.tolist(), strict=True)
            ],
            signatures=fingerprints.signatures,
            pages=fingerprints.pages,
            times_ms=np.array([NO_TIME if each is None else each for each in times_ms], np.int64),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def with_node(self) -> npt.NDArray[np.int64]:
        """The positions of the arrivals that have a fingerprint, int64 ``(m,)``."""
        return np.flatnonzero([node_id is not None for node_id in self.ids])


class Assignment(NamedTuple):
    """The forest's answer for one arrival."""

    kind: Kind
    # The id of its node, which need not be that of its fingerprint if its page is remembered; None for
    # `WITHOUT_FINGERPRINT`.
    node: str | None
    # The id of that node's root.
    root: str | None
    seq: int
    # The forest's time at the assignment, not rounded; NO_TIME where none is known.
    time_ms: int
    # Its node's signature, as the forest keeps it. Meaningless without a node.
    signature: bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """The state of a forest between two batches."""

    # The `seq` of the last arrival.
    seq: int = 0
    # The forest's time; NO_TIME until the first arrival that has one.
    time_ms: int = NO_TIME
    # The first time that the forest knew: nodes made before it count as seen then.
    origin_ms: int = NO_TIME

    def after(self, other: "State") -> "State":
        """Return the state of a forest that has passed through both states, in either order."""
        origins = {self.origin_ms, other.origin_ms} - {NO_TIME}
        return State(
            seq=max(self.seq, other.seq),
            time_ms=max(self.time_ms, other.time_ms),
            origin_ms=min(origins, default=NO_TIME),
        )

    def until(self, latest_ms: int | None) -> "State":
        """Return the state without times after `latest_ms`; None leaves it as it is."""
        if latest_ms is None:
            return self
        return State(
            seq=self.seq,
            time_ms=NO_TIME if self.time_ms > latest_ms else self.time_ms,
            origin_ms=NO_TIME if self.origin_ms > latest_ms else self.origin_ms,
        )

    def live_since_ms(self, aging: "Aging") -> int:
        """Return the least `seen` (inclusive) of a live node now; NO_TIME if every node lives."""
        return int(aging.live_since_ms(np.array(self.time_ms), origin_ms=self.origin_ms))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aging:
    """How long nodes live.

    Raises:
        SettingError: A duration is not positive.
    """

    retention_ms: int
    # `seen` is rounded up to a multiple of this, so that not every article rewrites nodes of its cluster.
    granularity_ms: int

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                name = field.name.removesuffix("_ms")
                raise SettingError(f"the {name} must be at least a millisecond")

    @classmethod
    def of(cls, *, retention: timedelta, granularity: timedelta = timedelta(hours=1)) -> "Aging":
        """Convert durations to whole milliseconds."""
        return cls(retention_ms=retention // _MS, granularity_ms=granularity // _MS)

    def round_up(self, times_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Round times up to the granularity; NO_TIME stays NO_TIME."""
        known = np.where(times_ms == NO_TIME, 0, times_ms)
        return np.where(times_ms == NO_TIME, NO_TIME, -(-known // self.granularity_ms) * self.granularity_ms)

    def live_since_ms(self, at_ms: npt.NDArray[np.int64], *, origin_ms: int) -> npt.NDArray[np.int64]:
        """Return, for each time of the forest, the least `seen` (inclusive) of a live node.

        NO_TIME means that every node lives: before the first known time, and until the nodes made before it
        expire.
        """
        known = np.where(at_ms == NO_TIME, 0, at_ms)
        since = known - self.retention_ms + 1
        all_live = (at_ms == NO_TIME) | (self.round_up(np.array(origin_ms)) >= since)
        return np.where(all_live, NO_TIME, since)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ages:
    """The forest's time at each arrival of a batch, and the ages that follow from it."""

    # The time itself; NO_TIME where none is known.
    times_ms: list[int]
    # The `seen` that it gives to its node.
    seen_ms: list[int]
    # The least `seen` (inclusive) of a node that lives then.
    live_since_ms: list[int]

    @classmethod
    def of(cls, times_ms: npt.NDArray[np.int64], *, aging: Aging, origin_ms: int) -> "Ages":
        """Compute them from the forest's time at each arrival, int64 ``(n,)``."""
        return cls(
            times_ms=times_ms.tolist(),
            seen_ms=aging.round_up(times_ms).tolist(),
            live_since_ms=aging.live_since_ms(times_ms, origin_ms=origin_ms).tolist(),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The nodes that a store found near a batch's arrivals: all that deciding and committing need."""

    # Pairs of a position in the batch and the row in `nodes` of a node near that arrival: both int64
    # (pairs,), ordered by position.
    arrivals: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    # Those nodes and all their roots, each node once.
    nodes: Nodes
    # For each live node and each representative of the batch under which the node is indexed: the
    # representative, uint64 (p,), and the `seen` that the node got when it was made, int64 (p,). Nodes
    # made before the retention may be left out.
    posting_keys: npt.NDArray[np.uint64]
    postings_seen_ms: npt.NDArray[np.int64]
    # The pages of the batch that are remembered, by rows of `nodes`.
    pages: Pages


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The outcome of a batch: its assignments, and what the store writes before they are returned."""

    # One per arrival, in order.
    assignments: Sequence[Assignment]
    arrivals: Arrivals
    # First the rows of `Neighbours.nodes`, in their order, as they are after the batch; then a row for each
    # arrival, whether it became a node or not.
    nodes: Nodes
    # The positions of the arrivals that became nodes, int64, ascending.
    made: npt.NDArray[np.int64]
    # The rows of `nodes` that existed before the batch and got a later `seen_ms` or `pages_seen_ms`, int64,
    # ascending.
    refreshed: npt.NDArray[np.int64]
    # The pages that are new, or got a later `seen_ms`, another node, or none, by rows of `nodes`; ordered as
    # their last arrivals are.
    pages: Pages
    # The positions of those arrivals, int64, ascending.
    paged: npt.NDArray[np.int64]
    # The forest's state after the batch.
    state: State
    # What its pages have taught; None if nothing was to be learned.
    learned: Changes | None = None

    @property
    def made_rows(self) -> npt.NDArray[np.int64]:
        """The rows of `nodes` that are new, int64, ascending."""
        return self.made + (len(self.nodes) - len(self.arrivals))


def pairs_of(arrivals: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> dict[int, list[int]]:
    """Group pairs by their arrival; `arrivals` must be sorted."""
    starts = np.flatnonzero(np.diff(arrivals, prepend=-1))
    ends = np.append(starts, len(arrivals))[1:].tolist()
    all_others = others.tolist()
    return {
        arrival: all_others[start:end]
        for arrival, start, end in zip(arrivals[starts].tolist(), starts.tolist(), ends, strict=True)
    }
