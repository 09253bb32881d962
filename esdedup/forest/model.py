"""The values that the forest speaks in: arrivals, nodes, assignments."""

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from esdedup.errors import SettingError

NO_TIME = -(2**63)
"""Stands for a time that is not known, where a number is needed; less than every time."""

_MS = timedelta(milliseconds=1)
_Other = TypeVar("_Other")


class Kind(enum.Enum):
    """What became of an arrival."""

    NEW_ROOT = "new_root"
    JOINED = "joined"
    # Its node was there already.
    KNOWN = "known"
    # It has no fingerprint, hence no node.
    WITHOUT_FINGERPRINT = "without_fingerprint"


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """What the forest keeps of one distinct text."""

    id: str
    # The id of its root; its own for a root.
    root: str
    # The arrival that made it.
    seq: int
    # Until when it was last needed, milliseconds since 1970, rounded up; NO_TIME where no time was known.
    seen_ms: int

    @property
    def is_root(self) -> bool:
        """Whether the node is the root of its tree."""
        return self.id == self.root


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrivals:
    """A batch of articles on their way into the forest."""

    # One an arrival; None for an article without a fingerprint: it takes a seq, but no node.
    ids: Sequence[str | None]
    # uint64 (n,).
    fingerprints: npt.NDArray[np.uint64]
    # int64 (n,), milliseconds since 1970, NO_TIME where none is known.
    times_ms: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def with_node(self) -> npt.NDArray[np.int64]:
        """The positions of the arrivals that have a fingerprint, int64 ``(m,)``."""
        return np.flatnonzero([node_id is not None for node_id in self.ids])


@dataclasses.dataclass(frozen=True, slots=True)
class Assignment:
    """What the forest answers for one arrival."""

    kind: Kind
    # None without a fingerprint.
    root: str | None
    seq: int
    # The forest's time at the assignment, not rounded; NO_TIME where none is known.
    time_ms: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """Where a forest stands between two batches."""

    # The last arrival's number.
    seq: int = 0
    # The forest's time; NO_TIME until the first arrival that has one.
    time_ms: int = NO_TIME
    # The first time that the forest knew: nodes made before it count as seen then.
    origin_ms: int = NO_TIME


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aging:
    """How long nodes live.

    Raises:
        SettingError: A duration is not positive.
    """

    retention_ms: int
    # `seen` is rounded up to a multiple of this, so that a hot cluster does not cost a write an article.
    granularity_ms: int

    def __post_init__(self) -> None:
        if self.retention_ms < 1 or self.granularity_ms < 1:
            raise SettingError("retention and granularity must be at least a millisecond")

    @classmethod
    def of(cls, *, retention: timedelta, granularity: timedelta = timedelta(hours=1)) -> "Aging":
        """Make it from durations, in whole milliseconds."""
        return cls(retention_ms=retention // _MS, granularity_ms=granularity // _MS)

    def round_up(self, time_ms: int) -> int:
        """Round a time up to the granularity; NO_TIME stays."""
        if time_ms == NO_TIME:
            return NO_TIME
        return -(-time_ms // self.granularity_ms) * self.granularity_ms

    def is_live(self, seen_ms: int, *, at_ms: int, origin_ms: int) -> bool:
        """Tell whether a node seen until `seen_ms` lives at the forest's time `at_ms`."""
        if at_ms == NO_TIME:
            return True
        if seen_ms == NO_TIME:
            seen_ms = self.round_up(origin_ms)
        return at_ms < seen_ms + self.retention_ms


@dataclasses.dataclass(frozen=True, kw_only=True)
class Near:
    """The live nodes near a batch's arrivals, as a store found them."""

    # Which arrival, int64 (pairs,), and the id of a node near it.
    arrivals: npt.NDArray[np.int64]
    node_ids: Sequence[str]
    # Those nodes, and their roots.
    nodes: dict[str, Node]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What a batch comes to: the answers, and what the store has to write before they are given."""

    assignments: Sequence[Assignment]
    # New and refreshed ones; roots are written before leaves, so that no leaf outlives its root.
    roots: Sequence[Node]
    leaves: Sequence[Node]
    state: State


def pairs_of(arrivals: npt.NDArray[np.int64], others: Iterable[_Other]) -> dict[int, list[_Other]]:
    """Group pairs by their arrival."""
    grouped: dict[int, list[_Other]] = {}
    for arrival, other in zip(arrivals.tolist(), others, strict=True):
        grouped.setdefault(arrival, []).append(other)
    return grouped
