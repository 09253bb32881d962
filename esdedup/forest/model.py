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
"""Stands for an unknown time where a number is needed; less than every time."""

NO_PAGE = 0
"""The id of a text without letters and digits: it never has a fingerprint, and is not remembered.

Any other text has this id by a chance of 1 in 2^64."""

DEFAULT_RETENTION = timedelta(days=30)
"""The default retention."""

_MS = timedelta(milliseconds=1)


class Kind(enum.Enum):
    """The outcome for an arrival."""

    NEW_ROOT = "new_root"
    JOINED = "joined"
    # Its page is remembered with a node, or its node existed already.
    KNOWN = "known"
    # Its page is remembered without a node; or it has no fingerprint, and its page is not remembered.
    WITHOUT_FINGERPRINT = "without_fingerprint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrivals:
    """A batch of articles on their way into the forest."""

    # What the profile's relation compares, one row per arrival, in the profile's dtype.
    signatures: npt.NDArray[Any]
    # bool (n,): False for an article without a fingerprint: it takes a seq but makes no node.
    exist: npt.NDArray[np.bool_]
    # uint64 (n,): the ids of their whole texts, `Fingerprints.pages`.
    pages: npt.NDArray[np.uint64]
    # int64 (n,), milliseconds since 1970, NO_TIME where none is known.
    times_ms: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, fingerprints: Fingerprints, *, times_ms: Sequence[int | None], origins: Iterable[int] = ()
    ) -> "Arrivals":
        """Make a batch of fingerprints in the order of arrival, each with its time, None if not known.

        `origins` are those of the articles, for a profile that compares them.
        """
        signatures = fingerprints.signatures
        if signatures.dtype.names and (known := list(origins)):
            signatures = signatures.copy()
            signatures["origin"] = known
        return cls(
            signatures=signatures,
            exist=fingerprints.exists,
            pages=fingerprints.pages,
            times_ms=np.array([NO_TIME if each is None else each for each in times_ms], np.int64),
        )

    def __len__(self) -> int:
        return len(self.exist)


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
    # The id of the root that its root is a part of; None if it is not a part.
    part_of: str | None = None
    # The id of a root that came before, and is a part of its root; None if there is none.
    has_part: str | None = None


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
        since_ms = self.time_ms - aging.retention_ms + 1
        # Until the nodes made before the first known time expire.
        all_live = self.time_ms == NO_TIME or aging.round_up(self.origin_ms) >= since_ms
        return NO_TIME if all_live else since_ms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aging:
    """How long nodes live: durations, which must be positive."""

    retention_ms: int
    # `seen` is rounded up to a multiple of this, so that not every article rewrites nodes of its cluster.
    granularity_ms: int

    def __post_init__(self) -> None:
        for name, duration_ms in dataclasses.asdict(self).items():
            if duration_ms < 1:
                raise SettingError(f"the {name.removesuffix('_ms')} must be at least a millisecond")

    @classmethod
    def of(cls, *, retention: timedelta, granularity: timedelta = timedelta(hours=1)) -> "Aging":
        """Convert durations to whole milliseconds."""
        return cls(retention_ms=retention // _MS, granularity_ms=granularity // _MS)

    def round_up(self, time_ms: int) -> int:
        """Round a time up to the granularity; NO_TIME stays NO_TIME."""
        return time_ms if time_ms == NO_TIME else -(-time_ms // self.granularity_ms) * self.granularity_ms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The outcome of a batch: its assignments, and what the store writes before they are returned."""

    # One per arrival, in order.
    assignments: list[Assignment]
    # Nodes that were there before and are needed longer, in the order in which they were made, then new nodes
    # and pages in the order of arrival: each as `elastic.forest.stored` packs it. No id comes twice.
    written: Sequence[bytes]
    # The same, as a log has it: of nodes that were there before, only how long they are needed.
    log: bytes = b""
    # The forest's state after the batch.
    state: State
