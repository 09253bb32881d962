"""The values that a forest and its store exchange: arrivals, nodes, assignments, plans. Pure."""

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError
from esdedup.fingerprint.signature import Fingerprints

NO_TIME = -(2**63)
"""An unknown time, where a number is needed; it is less than any known time."""

NO_HASH = 0
"""The content hash of texts without letters and digits, which have no fingerprint and are not remembered.

Any other text has this content hash with a probability of 1 in 2^64."""

DEFAULT_RETENTION = timedelta(days=30)
"""The default retention."""

_MS = timedelta(milliseconds=1)


class Kind(enum.Enum):
    """The outcome for an arrival."""

    NEW_ROOT = "new_root"
    JOINED = "joined"
    # The content hash is remembered with a node, or a live node has the same signature.
    KNOWN = "known"
    # The content hash is remembered without a node; or it is not remembered, and there is no fingerprint.
    WITHOUT_FINGERPRINT = "without_fingerprint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrivals:
    """A batch of articles to be assigned."""

    # The signatures, one row per arrival, in the profile's dtype.
    signatures: npt.NDArray[Any]
    # bool (n,): False for an article without a fingerprint, which gets a seq but no node.
    exist: npt.NDArray[np.bool_]
    # uint64 (n,): the content hashes, from `Fingerprints.content_hashes`.
    content_hashes: npt.NDArray[np.uint64]
    # int64 (n,), milliseconds since 1970; NO_TIME for an unknown time.
    times_ms: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, fingerprints: Fingerprints, *, times_ms: Sequence[int | None], origins: Iterable[int] = ()
    ) -> "Arrivals":
        """Create a batch from fingerprints in the order of arrival, each with its time, None if unknown.

        `origins` are the articles' origins, which are used only if the profile compares them.
        """
        signatures = fingerprints.signatures
        if signatures.dtype.names and (known := list(origins)):
            signatures = signatures.copy()
            signatures["origin"] = known
        return cls(
            signatures=signatures,
            exist=fingerprints.exists,
            content_hashes=fingerprints.content_hashes,
            times_ms=np.array([NO_TIME if each is None else each for each in times_ms], np.int64),
        )

    def __len__(self) -> int:
        return len(self.exist)


class Assignment(NamedTuple):
    """The result for one arrival."""

    kind: Kind
    # The node's id, which may differ from the fingerprint if the content hash is remembered; None for
    # `WITHOUT_FINGERPRINT`.
    node: str | None
    # The id of the node's root.
    root: str | None
    seq: int
    # The forest's time at the assignment, not rounded; NO_TIME if unknown.
    time_ms: int
    # The node's signature, as stored in the forest; meaningless without a node.
    signature: bytes
    # The id of an earlier root whose text contains the root's text; None if there is none.
    part_of: str | None = None
    # The id of an earlier root whose text is a part of the root's text; None if there is none.
    has_part: str | None = None


class State(NamedTuple):
    """The state of a forest between two batches."""

    # The `seq` of the last arrival.
    seq: int = 0
    # The forest's time; NO_TIME until the first arrival with a time.
    time_ms: int = NO_TIME
    # The first known time; nodes created before any time was known are treated as seen at this time.
    origin_ms: int = NO_TIME

    def after(self, other: "State") -> "State":
        """Combine two states of a forest, given in either order."""
        origins = {self.origin_ms, other.origin_ms} - {NO_TIME}
        return State(
            seq=max(self.seq, other.seq),
            time_ms=max(self.time_ms, other.time_ms),
            origin_ms=min(origins, default=NO_TIME),
        )

    def until(self, latest_ms: int | None) -> "State":
        """Return the state without times after `latest_ms`; None leaves the state unchanged."""
        if latest_ms is None:
            return self
        return State(
            seq=self.seq,
            time_ms=NO_TIME if self.time_ms > latest_ms else self.time_ms,
            origin_ms=NO_TIME if self.origin_ms > latest_ms else self.origin_ms,
        )

    def live_since_ms(self, aging: "Aging") -> int:
        """Return the minimum `seen` (inclusive) of a live node; NO_TIME if all nodes are live."""
        since_ms = self.time_ms - aging.retention_ms + 1
        # All nodes are live until the nodes created before the first known time expire.
        all_live = self.time_ms == NO_TIME or aging.round_up(self.origin_ms) >= since_ms
        return NO_TIME if all_live else since_ms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aging:
    """How long nodes live. The durations must be positive."""

    retention_ms: int
    # `seen` is rounded up to a multiple of this, so most articles need not rewrite a node.
    granularity_ms: int

    def __post_init__(self) -> None:
        for name, duration_ms in dataclasses.asdict(self).items():
            if duration_ms < 1:
                raise SettingError(f"the {name.removesuffix('_ms')} must be at least a millisecond")

    @classmethod
    def of(cls, *, retention: timedelta, granularity: timedelta = timedelta(hours=1)) -> "Aging":
        """Create an `Aging` from durations, in whole milliseconds."""
        return cls(retention_ms=retention // _MS, granularity_ms=granularity // _MS)

    def round_up(self, time_ms: int) -> int:
        """Round a time up to the granularity; NO_TIME stays NO_TIME."""
        return time_ms if time_ms == NO_TIME else -(-time_ms // self.granularity_ms) * self.granularity_ms


class Plan(NamedTuple):
    """The outcome of a batch: assignments, and records that must be written before the caller uses them."""

    # One per arrival, in order.
    assignments: list[Assignment]
    # The records to write, as packed by `elastic.forest.stored`: refreshed nodes in the order of their
    # creation, then new nodes and content hashes in the order of arrival. Each id occurs once.
    written: Sequence[bytes]
    # The forest's state after the batch.
    state: State
    # The same records in the format of the log, which has only the times of refreshed nodes.
    log: bytes = b""
