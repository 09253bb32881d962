"""What a stream of articles needs, computed from its workload and from unit costs. Pure."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Literal

from esdedup.errors import SettingError
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import REPRESENTATIVES
from esdedup.plan.costs import LearnedCosts, UnitCosts

MOST_BUSY = 0.7
"""The share of its time that an owner may be busy at the peak: it must catch up after a restart."""

MAX_DOCUMENTS = 2**31 - 129
"""Documents in one shard, deleted ones included, until a merge removes them (a limit of Lucene)."""

SHARD_BYTES = 50 * 10**9
"""What Elastic advises as the most for a shard; not a limit."""

BATCH = 1_000
"""Arrivals that are assigned together if that many come."""

_DAY_S = 86_400
# `seen` is rounded up to the hour, and what has expired is deleted once an hour.
_LATE_DAYS = 2 / 24
# In memory, of a page that is remembered besides those that made a node: 20 bytes, and its part of a table.
_LONE_PAGE_BYTES = 29
# Of representatives in memory.
_MOST_ROWS = 2**31 - 1
# Lucene merges a segment once this share of it is deleted, by default.
_MOST_DELETED = 0.2
_DELETED_AT_ONCE = 2_000
# A cluster's leaf and its root are refreshed by a reprint.
_REFRESHED = 2
# More would be a mistake, and take long to find.
_MOST_FORESTS = 100_000

Why = Literal[
    "one owner is enough",
    "decisions a second",
    "memory of an owner",
    "rows in memory",
    "documents in a shard",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What arrives.

    Raises:
        SettingError: A number is out of its range.
    """

    articles_a_day: float = 1e6
    # The share of the articles that reprint an earlier one within the retention.
    reprints: float = 0.3
    # The share of the reprints whose text is changed: each makes a node. The others bring a page if
    # boilerplate is learned, since each site has its own; and nothing otherwise.
    edited: float = 0.7
    retention_days: float = 30.0
    # In characters, as they are fingerprinted, without markup.
    mean_length: float = 3_000.0
    # Articles a second at the peak over those on average.
    peak: float = 3.0
    # The memory that one owner may take.
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
class Load:
    """What one forest gets, or all of them."""

    articles_a_second: float
    nodes_a_day: float
    pages_a_day: float
    nodes: int
    # Remembered besides those that made a node.
    pages: int

    @property
    def documents(self) -> int:
        """Documents in the forest's index."""
        return self.nodes + self.pages

    @classmethod
    def of(cls, workload: Workload, profile: Profile, *, forests: int = 1) -> "Load":
        """Return what each of so many forests gets at the end of the first retention, if all get the same."""
        articles = workload.articles_a_day / forests
        copies = articles * workload.reprints * (1 - workload.edited)
        life_days = workload.retention_days + _LATE_DAYS
        pages_a_day = 0.0 if profile.keep_boilerplate else copies
        return cls(
            articles_a_second=articles / _DAY_S,
            nodes_a_day=articles - copies,
            pages_a_day=pages_a_day,
            nodes=math.ceil((articles - copies) * life_days),
            pages=math.ceil(pages_a_day * life_days),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnerMemory:
    """The memory of the owner of one forest, in bytes."""

    process: float
    learned: float
    nodes: float
    # Those that are remembered besides the ones that made a node.
    pages: float
    # While it opens the forest.
    passing: float

    @property
    def held(self) -> float:
        """What it takes all the time; `memory_bytes` of its settings concerns nodes and pages."""
        return self.process + self.learned + self.nodes + self.pages

    @property
    def peak(self) -> float:
        """What it takes at most."""
        return self.held + self.passing


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What a workload needs, with unit costs; all of it is calculated from these."""

    workload: Workload
    profile: Profile
    costs: UnitCosts
    learned: LearnedCosts
    # How many forests, and what asks for more than one.
    forests: int
    why: Why
    # Of all forests, and of each of them.
    load: Load
    load_each: Load
    memory_each: OwnerMemory

    @property
    def peak_a_second(self) -> float:
        """Articles at the peak."""
        return self.load.articles_a_second * self.workload.peak

    @property
    def fingerprint_us(self) -> float:
        """Processor time to fingerprint an article."""
        return _fingerprint_us(self.workload, self.profile, self.costs)

    @property
    def owner_us(self) -> float:
        """Processor time of the owner of one of the forests for an article, its fingerprint included."""
        return _owner_us(self.workload, self.profile, self.costs, self.load_each.nodes)

    @property
    def owner_a_second(self) -> float:
        """Articles that an owner can take at the peak."""
        return MOST_BUSY * 1e6 / self.owner_us

    @property
    def forest_bytes(self) -> float:
        """The indices of all forests, merged, without replicas."""
        server, learned = self.costs.server, 0.0 if self.profile.keep_boilerplate else self.learned.disk_bytes
        return (
            self.load.nodes * server.node_bytes + self.load.pages * server.page_bytes + self.forests * learned
        )

    @property
    def forest_bytes_unmerged(self) -> float:
        """The same with as many deleted documents as merges leave."""
        return self.forest_bytes / (1 - _MOST_DELETED)

    @property
    def articles(self) -> float:
        """Articles that come within a retention."""
        return self.workload.articles_a_day * self.workload.retention_days

    @property
    def articles_bytes(self) -> float:
        """What dedup adds to these articles on disk, without replicas."""
        return self.articles * self.costs.server.article_bytes

    @property
    def article_shards(self) -> int:
        """Shards that what dedup adds to the articles asks for, as large as Elastic advises."""
        return max(1, math.ceil(self.articles_bytes / SHARD_BYTES))

    @property
    def requests_a_second(self) -> float:
        """Requests to Elasticsearch at the peak: of full batches, those of their articles, and deletions."""
        of_batches = self.peak_a_second / BATCH * (self.costs.server.requests_a_batch + 1)
        expired = (self.load.nodes_a_day + self.load.pages_a_day) / _DAY_S
        return of_batches + 2 * expired / _DELETED_AT_ONCE

    @property
    def documents_a_second(self) -> float:
        """Documents of forests that are written or deleted at the peak, at most."""
        new = (self.load.nodes_a_day + self.load.pages_a_day) / _DAY_S
        refreshed = _REFRESHED * self.workload.reprints * self.load.articles_a_second
        return (new + refreshed) * self.workload.peak + new


def plan(workload: Workload, profile: Profile, costs: UnitCosts, learned: LearnedCosts) -> Plan:
    """Plan for a workload, with the costs of its profile, and what learned boilerplate takes at most.

    Raises:
        SettingError: An owner may have less memory than it takes without a node; or there would be more
            forests than anybody can run.
    """
    nothing = Load(articles_a_second=0, nodes_a_day=0, pages_a_day=0, nodes=0, pages=0)
    empty = _memory(nothing, profile, costs, learned)
    if workload.owner_bytes < empty.peak:
        raise SettingError(
            f"an owner may take {workload.owner_bytes / 1e9:,.1f} GB, and takes {empty.peak / 1e9:,.1f} GB "
            "without a node; allow it more"
        )
    needed = dict(_forests_needed(workload, profile, costs, learned))
    why, forests = max(needed.items(), key=lambda each: each[1])
    if forests > _MOST_FORESTS:
        raise SettingError(
            f"{forests:,} forests would be needed, because of {why}: this workload is too large"
        )
    load_each = Load.of(workload, profile, forests=forests)
    return Plan(
        workload=workload,
        profile=profile,
        costs=costs,
        learned=learned,
        forests=forests,
        why=why if forests > 1 else "one owner is enough",
        load=Load.of(workload, profile),
        load_each=load_each,
        memory_each=_memory(load_each, profile, costs, learned),
    )


def _forests_needed(
    workload: Workload, profile: Profile, costs: UnitCosts, learned: LearnedCosts
) -> Iterator[tuple[Why, int]]:
    """Yield, for each thing that limits an owner, how many forests it asks for."""

    def least(fits: Callable[[Load], bool]) -> int:
        """Return the least number of equal forests that fit; one more than the most if none does."""
        numbers = range(1, _MOST_FORESTS + 1)
        return 1 + bisect.bisect_left(
            numbers, True, key=lambda forests: fits(Load.of(workload, profile, forests=forests))
        )

    def is_fast_enough(each: Load) -> bool:
        us = _owner_us(workload, profile, costs, each.nodes)
        return each.articles_a_second * workload.peak * us <= MOST_BUSY * 1e6

    def fits_in_memory(each: Load) -> bool:
        return _memory(each, profile, costs, learned).peak <= workload.owner_bytes

    most_rows = _MOST_ROWS // (1 if profile.agreement is None else REPRESENTATIVES)
    yield "decisions a second", least(is_fast_enough)
    yield "memory of an owner", least(fits_in_memory)
    yield "rows in memory", least(lambda each: each.nodes <= most_rows)
    yield "documents in a shard", least(lambda each: each.documents <= MAX_DOCUMENTS * (1 - _MOST_DELETED))


def _owner_us(workload: Workload, profile: Profile, costs: UnitCosts, nodes: int) -> float:
    looking_us = 0.0 if profile.keep_boilerplate else costs.omitting.us(_length(workload, profile))
    fingerprint_us = _fingerprint_us(workload, profile, costs)
    return fingerprint_us + looking_us + costs.deciding.us(nodes) + costs.server.us_a_commit


def _fingerprint_us(workload: Workload, profile: Profile, costs: UnitCosts) -> float:
    by_length = costs.whole if profile.keep_boilerplate else costs.without_boilerplate
    return by_length.us(_length(workload, profile))


def kept_bytes(costs: UnitCosts, *, nodes: int, lone_pages: int) -> float:
    """Return the memory of an owner's nodes, and of the pages that are remembered besides theirs."""
    return nodes * costs.node_bytes + lone_pages * _LONE_PAGE_BYTES


def _memory(load: Load, profile: Profile, costs: UnitCosts, learned: LearnedCosts) -> OwnerMemory:
    return OwnerMemory(
        process=costs.process_bytes,
        learned=0.0 if profile.keep_boilerplate else learned.memory_bytes,
        nodes=load.nodes * costs.node_bytes,
        pages=load.pages * _LONE_PAGE_BYTES,
        passing=costs.opening_bytes + load.nodes * costs.opening_bytes_a_node,
    )


def _length(workload: Workload, profile: Profile) -> float:
    return min(workload.mean_length, profile.max_text_length)
