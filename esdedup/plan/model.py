"""Calculates the forest, the cluster and the owner for a stream of articles from unit costs. Pure."""

import bisect
import math
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from esdedup.elastic.limits import MAX_SHARDS
from esdedup.errors import SettingError
from esdedup.fingerprint.profile import Profile
from esdedup.ingest.settings import Naming, SettingGroup
from esdedup.neighbours.relation import relation_of
from esdedup.plan.costs import LearnedCosts, UnitCosts

MOST_BUSY = 0.7
"""The maximum share of time that the owner and Elasticsearch are busy at the peak, so they can catch up."""

SHARD_GB = 50
"""The largest shard that Elastic recommends; this is not a hard limit."""

BATCH = 1_000
"""The number of arrivals in a full batch."""

_DAY_S = 86_400
_GB = 1e9
# `seen` is rounded up to the hour, and expired nodes are deleted once an hour.
_LATE_DAYS = 2 / 24
# The memory of a content hash that created no node: 20 bytes, and its share of a hash table.
_EXTRA_HASH_BYTES = 29
# By default, Lucene merges a segment once this share of it is deleted.
_MOST_DELETED = 0.2
# By default, Elasticsearch moves no more shards to a disk that is fuller than this.
_MOST_FULL = 0.85
# Lucene's limit on the documents of a shard.
_MOST_DOCUMENTS = 2**31


class Workload(SettingGroup):
    """A stream of articles, and the machines for it."""

    articles_a_day: Annotated[float, Naming(heading="Articles")] = Field(default=1e6, ge=1, le=1e12)
    """Number of articles that arrive per day."""
    reprints: float = Field(default=0.3, ge=0, le=1)
    """Share of articles that reprint an earlier one within the retention."""
    # The other reprints create a content hash if boilerplate is learned, since it differs between sites.
    edited: float = Field(default=0.7, ge=0, le=1)
    """Share of reprints that change the text; each such reprint creates a node."""
    retention_days: float = Field(default=30, ge=0.01, le=1e5)
    """For how many days after its last article a cluster accepts more articles."""
    mean_length: float = Field(default=3_000, ge=1, le=1e7)
    """Average length of an article in characters."""
    article_bytes: float = Field(default=0, ge=0, le=1e9)
    """Average size of an article in its index, without dedup and replicas; 0 plans only what dedup adds."""
    peak: float = Field(default=3, ge=1, le=1e6)
    """Ratio of the peak rate of articles to the average rate."""
    owner_memory_gb: Annotated[float, Naming(heading="Machines")] = Field(default=64, ge=0.001, le=1e6)
    """Memory that the owner of the forest may use."""
    replicas: int = Field(default=1, ge=0, le=10)
    """Number of further copies of every shard."""
    data_node_disk_gb: float = Field(default=1_920, ge=1, le=1e6)
    """Disk of a data node of Elasticsearch."""
    data_node_memory_gb: float = Field(default=64, ge=1, le=1e6)
    """Memory of a data node, half of which caches files."""
    data_node_cores: int = Field(default=8, ge=1, le=1_024)
    """Cores of a data node."""


class Figure(NamedTuple):
    """A calculated number, and the basis of its calculation."""

    # A name for JSON, and a title for people.
    name: str
    title: str
    value: float
    unit: str
    basis: str
    # Whether its costs were measured with fewer nodes, articles, roots, shards or cores.
    is_extrapolated: bool = False

    @property
    def number(self) -> str:
        """The value with three significant digits, marked if it is extrapolated."""
        return f"{'≈ ' if self.is_extrapolated else ''}{short(self.value)}"


def short(value: float) -> str:
    """Format a number with at most three significant digits."""
    for limit, name in ((1e9, " billion"), (1e6, " million")):
        if value >= limit:
            return f"{float(f'{value / limit:.3g}'):,g}{name}"
    return f"{value:.2g}" if value < 10 else f"{round(value, 3 - len(str(int(value)))):,.0f}"


class CapacityPlan:
    """The figures of a workload; raises `SettingError` if it is too large, or the owner's memory too small.

    One forest has all nodes: in the memory of its owner if they fit, otherwise they are searched for.
    """

    def __init__(self, workload: Workload, profile: Profile, costs: UnitCosts, learned: LearnedCosts) -> None:
        """Calculate all figures; `learned` is the most that learned boilerplate takes."""
        self.workload = workload
        self.profile = profile
        self.costs = costs
        # All figures by name, and the names of those of each part of the plan.
        self.figures: dict[str, Figure] = {}
        self.parts: dict[str, list[str]] = {}
        self._most = learned
        self._learned = (0.0, 0.0) if profile.keep_boilerplate else (learned.memory_bytes, learned.disk_bytes)
        self._add("articles", self._stream())
        # The most memory of an owner: without nodes, and for each node with its share of content hashes.
        self._fixed_bytes = costs.process_bytes + costs.opening_bytes + self._learned[0]
        self._held_a_node = costs.node_bytes + _EXTRA_HASH_BYTES * self["pages"] / max(1, self["nodes"])
        self._bytes_a_node = self._held_a_node + costs.opening_bytes_a_node
        free_bytes = workload.owner_memory_gb * _GB - self._fixed_bytes
        if free_bytes < 0:
            least = short(self._fixed_bytes / _GB)
            raise SettingError(f"the owner needs {least} GB without any node; allow it more memory")
        self._most_nodes = relation_of(profile).most_nodes
        self._most_in_memory = min(self._most_nodes, free_bytes / self._bytes_a_node)
        # The costs of searching for nodes; None if all nodes are in memory.
        self.searching = costs.server.searching if self["nodes"] > self._most_in_memory else None
        self._add("Elasticsearch", self._disk())
        self._add("Elasticsearch", self._load())
        self._add("owner", self._owner())

    def __getitem__(self, name: str) -> float:
        """Return the value of a figure."""
        return self.figures[name].value

    def _add(self, part: str, figures: Iterator[Figure]) -> None:
        # Later figures are calculated from earlier ones.
        for each in figures:
            self.figures[each.name] = each
            self.parts.setdefault(part, []).append(each.name)

    def _stream(self) -> Iterator[Figure]:
        workload = self.workload
        mean, days = workload.articles_a_day / _DAY_S, workload.retention_days + _LATE_DAYS
        copies = workload.articles_a_day * workload.reprints * (1 - workload.edited)
        yield Figure("articles_a_second", "articles, on average", mean, "/s", "articles a day")
        basis = f"{workload.peak:g} times the average"
        yield Figure("peak_articles_a_second", "articles, at the peak", mean * workload.peak, "/s", basis)
        nodes = math.ceil((workload.articles_a_day - copies) * days)
        yield Figure("nodes", "nodes", nodes, "", "articles within the retention except unchanged reprints")
        hashes = 0 if self.profile.keep_boilerplate else math.ceil(copies * days)
        yield Figure("pages", "content hashes", hashes, "", "unchanged reprints, which create no node")
        if nodes + hashes > MAX_SHARDS * _MOST_DOCUMENTS:
            raise SettingError(f"{short(nodes)} nodes are too many for an index: this workload is too large")

    def _disk(self) -> Iterator[Figure]:
        workload, server, searching = self.workload, self.costs.server, self.searching
        node_bytes = server.node_bytes if searching is None else searching.node_bytes
        merged_bytes = self["nodes"] * node_bytes + self["pages"] * server.page_bytes + self._learned[1]
        forest_gb, shards = merged_bytes / (1 - _MOST_DELETED) / _GB, 1
        is_far = self["nodes"] > server.work.measured_nodes
        if searching is not None:
            shards = min(MAX_SHARDS, math.ceil(forest_gb / SHARD_GB))
            is_far = self["nodes"] > searching.shard.measured_nodes or shards > searching.measured_shards
        basis = f"{node_bytes:,.0f} bytes per node; a fifth of the index are deleted documents"
        yield Figure("forest_gb", "forest", forest_gb, " GB", basis, is_far)
        basis = "which is only read when the forest is opened"
        if searching is not None:
            basis = f"{short(forest_gb / shards)} GB each; Elastic recommends up to {SHARD_GB}"
        yield Figure("forest_shards", "shards of the forest", shards, "", basis, bool(searching and is_far))
        articles = workload.articles_a_day * workload.retention_days
        articles_gb = articles * (server.article_bytes + workload.article_bytes) / _GB
        are_many = articles > server.work.measured_articles
        basis = f"{server.article_bytes:,.0f} bytes for dedup, and {workload.article_bytes:,.0f} for the rest"
        yield Figure("articles_gb", "articles", articles_gb, " GB", basis, are_many)
        disk_gb = (forest_gb + articles_gb) * (1 + workload.replicas)
        basis = "all copies of forest and articles"
        yield Figure("disk_gb", "disk", disk_gb, " GB", basis, is_far or are_many)

    def _load(self) -> Iterator[Figure]:
        workload, work, searching = self.workload, self.costs.server.work, self.searching
        peak, written_us, searches_us = self["peak_articles_a_second"], work.us_an_arrival, 0.0
        requests, cached_gb = 1 + self.costs.server.requests_a_batch, 0.0
        if searching is not None:
            written_us, requests = searching.server_us, 1 + searching.requests_a_batch
            searches_us = searching.searches_us(self["nodes"], shards=int(self["forest_shards"]))
            cached_gb = self["nodes"] * (searching.cached_bytes or searching.node_bytes) / _GB
        written_us += work.us_an_article
        cores = peak * (searches_us + written_us * (1 + workload.replicas)) / 1e6
        is_far = self.figures["disk_gb"].is_extrapolated
        basis = f"{written_us:,.0f} µs to write an article and its node, {searches_us:,.0f} to search"
        yield Figure("server_cores_peak", "cores for dedup, at the peak", cores, "", basis, is_far)
        by_disk = self["disk_gb"] / (_MOST_FULL * workload.data_node_disk_gb)
        by_cores = cores / (MOST_BUSY * workload.data_node_cores)
        # With replicas, a majority must remain if a node fails.
        least = max(3, 1 + workload.replicas) if workload.replicas else 1
        by_caches = cached_gb * (1 + workload.replicas) / (workload.data_node_memory_gb / 2)
        data_nodes = max(least, math.ceil(by_disk), math.ceil(by_cores), math.ceil(by_caches))
        memory = f"{workload.data_node_memory_gb:,g} GB of memory and {workload.data_node_cores} cores"
        basis = f"each with {workload.data_node_disk_gb:,g} GB of disk, {memory}"
        yield Figure("data_nodes", "data nodes", data_nodes, "", basis, is_far and data_nodes > least)
        basis = f"{requests:.1f} per batch of {BATCH:,}"
        yield Figure("requests_a_second", "requests, at the peak", peak / BATCH * requests, "/s", basis)
        roots = workload.articles_a_day * workload.retention_days * (1 - workload.reprints)
        seconds, are_many = roots * work.refresh_us_a_root / 1e6, roots > work.measured_roots
        basis = "if all roots are in one shard; with daily indices far less"
        yield Figure("refresh_s", "time added to a refresh", seconds, " s", basis, are_many)
        heap_mb, basis = roots * work.heap_bytes_a_root / 1e6, "global ordinals of all roots"
        yield Figure("heap_mb", "heap for roots", heap_mb, " MB", basis, are_many)

    def _owner(self) -> Iterator[Figure]:
        workload, searching = self.workload, self.searching
        nodes = 0.0 if searching else self["nodes"]
        held_gb, is_far = nodes * self._held_a_node / _GB, nodes > self.costs.deciding.measured_nodes
        memory_gb = (self._fixed_bytes + nodes * self._bytes_a_node) / _GB
        basis = "at most, while it opens the forest"
        yield Figure("owner_memory_gb", "memory", memory_gb, " GB", basis, is_far)
        if searching is None:
            basis = "at least; with less, articles are refused"
            yield Figure("memory_bytes_mb", "setting memory_bytes", held_gb * 1_000, " MB", basis, is_far)
            rate, basis = self._rate_in_memory(), f"{MOST_BUSY:.0%} busy, on one core"
        else:
            shards, data_nodes = int(self["forest_shards"]), int(self["data_nodes"])
            cores = data_nodes * workload.data_node_cores
            searches_us = searching.searches_us(self["nodes"], shards=shards, cores=cores)
            owner_us = searching.owner_us + searching.owner_us_a_million * self["nodes"] / 1e6
            rate = MOST_BUSY * 1e6 / (self._fingerprint_us() + owner_us + searching.server_us + searches_us)
            is_far = self.figures["forest_shards"].is_extrapolated
            basis = f"{MOST_BUSY:.0%} busy; file caches hold what is searched"
        yield Figure("owner_articles_a_second", "articles it can process", rate, "/s", basis, is_far)

    def _rate_in_memory(self) -> float:
        costs = self.costs
        us = self._fingerprint_us() + costs.deciding.us(self["nodes"]) + costs.server.us_a_commit
        return MOST_BUSY * 1e6 / us

    def _fingerprint_us(self) -> float:
        """Return the processor time of a fingerprint, and of finding and learning boilerplate."""
        costs, length = self.costs, min(self.workload.mean_length, self.profile.max_text_length)
        if self.profile.keep_boilerplate:
            return costs.whole.us(length)
        return costs.without_boilerplate.us(length) + costs.omitting.us(length)

    @property
    def bears_peak(self) -> bool:
        """Whether the owner can process the articles of the peak."""
        return self["peak_articles_a_second"] <= self["owner_articles_a_second"]

    def sentences(self) -> Iterator[str]:
        """Yield the answer: where the nodes are, whether the owner bears the peak, what else is possible."""
        mean, peak, owner = (self[f"{each}articles_a_second"] for each in ("", "peak_", "owner_"))
        shards = "1 shard" if self["forest_shards"] == 1 else f"{self['forest_shards']:,.0f} shards"
        where = "in the memory of its owner" if self.searching is None else f"searched for in {shards}"
        yield f"One forest of {short(self['nodes'])} nodes, {where}, on {self['data_nodes']:,.0f} data nodes."
        answer = f"Its owner processes {short(owner)} articles a second"
        if self.bears_peak:
            yield f"{answer}, more than the peak of {short(peak)}."
        elif mean <= owner:
            answer = (
                f"{answer}, more than the average of {short(mean)}, but less than the peak of {short(peak)}"
            )
            yield f"{answer}: at the peak, articles have to wait in a queue."
        else:
            too_slow = "one owner is not enough" if self.searching is None else "searches are too slow"
            yield f"{answer}, less than the average of {short(mean)}: {too_slow}."
        if self.searching is not None:
            yield self._in_memory()
        if not self.bears_peak:
            yield (
                f"{self._forests():,} forests, each with its owner, bear the peak, but reprints in different "
                "forests are not found: divide articles only by tenant or language."
            )

    def _forests(self) -> int:
        """Return the least number of forests, with equal shares, whose owners bear the peak."""

        def is_enough(forests: int) -> bool:
            share = {"articles_a_day": self.workload.articles_a_day / forests}
            workload = self.workload.model_copy(update=share)
            return CapacityPlan(workload, self.profile, self.costs, self._most).bears_peak

        # Smaller forests have faster owners.
        most = math.ceil(self["peak_articles_a_second"] / self["owner_articles_a_second"])
        return 1 + bisect.bisect_left(range(1, most + 1), True, key=is_enough)

    def _in_memory(self) -> str:
        """Return what it takes to have all nodes in memory."""
        life_days = self.workload.retention_days + _LATE_DAYS
        days = max(0.0, self._most_in_memory / self["nodes"] * life_days - _LATE_DAYS)
        fitting = f"; with a retention of {days:.3g} days, {self.workload.owner_memory_gb:g} GB are enough"
        fitting = f"{fitting if days >= 1 else ''}."
        if self["nodes"] > self._most_nodes:
            return f"Memory can hold at most {short(self._most_nodes)} nodes{fitting}"
        needed_gb = (self._fixed_bytes + self["nodes"] * self._bytes_a_node) / _GB
        return (
            f"To have them in memory, the owner needs {short(needed_gb)} GB, and then processes "
            f"{short(self._rate_in_memory())} articles a second{fitting}"
        )
