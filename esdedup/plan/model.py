"""Computes the resources for a stream of articles from its workload and from unit costs. Pure."""

import bisect
import dataclasses
import math
from typing import Literal

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import REPRESENTATIVES
from esdedup.plan.costs import LearnedCosts, UnitCosts

MOST_BUSY = 0.7
"""The maximum share of time that an owner is busy at the peak, so that it can catch up after a restart."""

SHARD_BYTES = 50 * 10**9
"""The largest shard that Elastic recommends; this is not a hard limit."""

BATCH = 1_000
"""The number of arrivals in a full batch."""

_DAY_S = 86_400
# `seen` is rounded up to the hour, and expired nodes are deleted once an hour.
_LATE_DAYS = 2 / 24
# The memory of a content hash that created no node: 20 bytes, and its share of a hash table.
_EXTRA_HASH_BYTES = 29
# The maximum number of representatives that the index in memory can address, and half of it is that of rows.
_MOST_KEYS = 2**32 - 1
# By default, Lucene merges a segment once this share of it is deleted.
_MOST_DELETED = 0.2
# A plan with more forests than this is a mistake, and would take a long time to compute.
_MOST_FORESTS = 100_000

Why = Literal["one owner is enough", "assignments per second", "memory of an owner", "rows in memory"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """A stream of articles; raises `SettingError` if a number is out of range."""

    articles_a_day: float = 1e6
    # The share of the articles that reprint an earlier article within the retention.
    reprints: float = 0.3
    # The share of the reprints whose text was edited; they create a node. The other reprints create a
    # content hash if boilerplate is learned, since boilerplate differs between sites, and nothing otherwise.
    edited: float = 0.7
    retention_days: float = 30.0
    # In characters of visible text.
    mean_length: float = 3_000.0
    # The ratio of the peak rate to the mean rate.
    peak: float = 3.0
    # The memory that an owner may use.
    owner_bytes: float = 64e9

    def __post_init__(self) -> None:
        for name in ("articles_a_day", "retention_days", "mean_length", "owner_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be greater than 0")
        for name in ("reprints", "edited"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(f"{name} is {getattr(self, name)}; it must be from 0 to 1")
        if not 1 <= self.peak < math.inf:
            raise SettingError(f"peak is {self.peak}; it must be at least 1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestLoad:
    """The load of one forest, or of all forests together, at the end of the first retention period."""

    articles_a_second: float
    nodes: int
    # Content hashes that created no node.
    hashes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnerMemory:
    """The memory of the owner of one forest, in bytes."""

    process: float
    learned: float
    nodes: float
    # Content hashes that created no node.
    hashes: float
    # Temporary memory while the owner opens the forest.
    passing: float

    @property
    def held(self) -> float:
        """Permanent memory; the setting `memory_bytes` limits nodes and content hashes only."""
        return self.process + self.learned + self.nodes + self.hashes

    @property
    def peak(self) -> float:
        """Peak memory."""
        return self.held + self.passing


@dataclasses.dataclass(frozen=True, kw_only=True)
class CapacityPlan:
    """The resources for a workload that is divided equally between `forests`."""

    workload: Workload
    profile: Profile
    costs: UnitCosts
    # The memory and disk space that learned boilerplate uses at most.
    learned: LearnedCosts
    forests: int = 1
    # Why more than one forest is needed.
    why: Why = "one owner is enough"

    @property
    def load(self) -> ForestLoad:
        """The load of all forests together."""
        return self._load_of(1)

    @property
    def load_each(self) -> ForestLoad:
        """The load of each forest."""
        return self._load_of(self.forests)

    @property
    def memory_each(self) -> OwnerMemory:
        """The memory of each owner."""
        load, costs = self.load_each, self.costs
        return OwnerMemory(
            process=costs.process_bytes,
            learned=0.0 if self.profile.keep_boilerplate else self.learned.memory_bytes,
            nodes=load.nodes * costs.node_bytes,
            hashes=load.hashes * _EXTRA_HASH_BYTES,
            passing=costs.opening_bytes + load.nodes * costs.opening_bytes_a_node,
        )

    @property
    def limit(self) -> Why | None:
        """The first limit that each owner exceeds; None if there is none."""
        load, workload = self.load_each, self.workload
        if load.articles_a_second * workload.peak * self.owner_us > MOST_BUSY * 1e6:
            return "assignments per second"
        if self.memory_each.peak > workload.owner_bytes:
            return "memory of an owner"
        if load.nodes > _MOST_KEYS // (2 if self.profile.agreement is None else REPRESENTATIVES + 1):
            return "rows in memory"
        return None

    @property
    def peak_a_second(self) -> float:
        """The number of articles per second at the peak."""
        return self.load.articles_a_second * self.workload.peak

    @property
    def fingerprint_us(self) -> float:
        """Processor time to fingerprint an article, in microseconds."""
        costs = self.costs
        by_length = costs.whole if self.profile.keep_boilerplate else costs.without_boilerplate
        return by_length.us(self._length)

    @property
    def owner_us(self) -> float:
        """An owner's processor time per article, including the fingerprint, in microseconds."""
        costs = self.costs
        omitting_us = 0.0 if self.profile.keep_boilerplate else costs.omitting.us(self._length)
        deciding_us = costs.deciding.us(self.load_each.nodes)
        return self.fingerprint_us + omitting_us + deciding_us + costs.server.us_a_commit

    @property
    def owner_a_second(self) -> float:
        """The number of articles per second that an owner can process at the peak."""
        return MOST_BUSY * 1e6 / self.owner_us

    @property
    def forest_bytes(self) -> float:
        """The size of the indices of all forests, merged and without replicas."""
        load, server = self.load, self.costs.server
        learned = 0.0 if self.profile.keep_boilerplate else self.learned.disk_bytes
        return load.nodes * server.node_bytes + load.hashes * server.page_bytes + self.forests * learned

    @property
    def forest_bytes_unmerged(self) -> float:
        """The size of the forests' indices with the deleted documents that merges leave behind."""
        return self.forest_bytes / (1 - _MOST_DELETED)

    @property
    def _length(self) -> float:
        return min(self.workload.mean_length, self.profile.max_text_length)

    def _load_of(self, forests: int) -> ForestLoad:
        articles = self.workload.articles_a_day / forests
        copies = articles * self.workload.reprints * (1 - self.workload.edited)
        life_days = self.workload.retention_days + _LATE_DAYS
        hashes_a_day = 0.0 if self.profile.keep_boilerplate else copies
        return ForestLoad(
            articles_a_second=articles / _DAY_S,
            nodes=math.ceil((articles - copies) * life_days),
            hashes=math.ceil(hashes_a_day * life_days),
        )


def plan(workload: Workload, profile: Profile, costs: UnitCosts, learned: LearnedCosts) -> CapacityPlan:
    """Return the plan for a workload; raises `SettingError` for too little memory or too many forests."""
    one = CapacityPlan(workload=workload, profile=profile, costs=costs, learned=learned)
    memory = one.memory_each
    empty_bytes = memory.process + memory.learned + costs.opening_bytes
    if workload.owner_bytes < empty_bytes:
        raise SettingError(
            f"an owner may use {workload.owner_bytes / 1e9:,.1f} GB, but needs {empty_bytes / 1e9:,.1f} GB "
            "without any node; allow the owner more"
        )

    def limit(forests: int) -> Why | None:
        return dataclasses.replace(one, forests=forests).limit

    numbers = range(1, _MOST_FORESTS + 1)
    forests = 1 + bisect.bisect_left(numbers, True, key=lambda number: limit(number) is None)
    why = None if forests == 1 else limit(forests - 1)
    if forests > _MOST_FORESTS:
        raise SettingError(
            f"{forests:,} forests would be needed because of {why}: this workload is too large"
        )
    return one if why is None else dataclasses.replace(one, forests=forests, why=why)
