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
from esdedup.plan.costs import CostsFile

MOST_BUSY = 0.7
"""The maximum share of time that the owner and Elasticsearch are busy at the peak, so they can catch up."""

BATCH = 1_000
"""The number of arrivals in a full batch."""

# The largest shard that Elastic recommends; this is not a hard limit.
_SHARD_GB = 50
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
    # The part of the plan that begins with this figure.
    part: str = ""

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

    def __init__(self, workload: Workload, profile: Profile, costs_file: CostsFile) -> None:
        """Calculate all figures from the file's costs of the profile."""
        self.workload = workload
        self.profile = profile
        self.costs_file = costs_file
        self.costs = costs = costs_file.of(profile)
        self._learns = not profile.keep_boilerplate
        # All figures by name; later figures are calculated from earlier ones.
        self.figures: dict[str, Figure] = {}
        self._add(self._stream())
        # The most memory of an owner: without nodes, and for each node with its share of content hashes.
        learned_bytes = self._learns * costs_file.learned.memory_bytes
        self._fixed_bytes = costs.process_bytes + costs.opening_bytes + learned_bytes
        self._held_a_node = costs.node_bytes + _EXTRA_HASH_BYTES * self["pages"] / max(1, self["nodes"])
        self._bytes_a_node = self._held_a_node + costs.opening_bytes_a_node
        free_bytes = workload.owner_memory_gb * _GB - self._fixed_bytes
        if free_bytes < 0:
            least = short(self._fixed_bytes / _GB)
            raise SettingError(f"the owner needs {least} GB without any node; allow it more memory")
        self._most_in_memory = min(relation_of(profile).most_nodes, free_bytes / self._bytes_a_node)
        # The costs of searching for nodes; None if all nodes are in memory.
        self.searching = costs.server.searching if self["nodes"] > self._most_in_memory else None
        self._add(self._elasticsearch())
        self._add(self._owner())

    def __getitem__(self, name: str) -> float:
        """Return the value of a figure."""
        return self.figures[name].value

    def _add(self, figures: Iterator[Figure]) -> None:
        self.figures.update((each.name, each) for each in figures)

    def _stream(self) -> Iterator[Figure]:
        workload = self.workload
        mean, days = workload.articles_a_day / _DAY_S, workload.retention_days + _LATE_DAYS
        copies = workload.articles_a_day * workload.reprints * (1 - workload.edited)
        basis = "articles a day"
        yield Figure("articles_a_second", "articles, on average", mean, "/s", basis, part="articles")
        basis = f"{workload.peak:g} times the average"
        yield Figure("peak_articles_a_second", "articles, at the peak", mean * workload.peak, "/s", basis)
        nodes = math.ceil((workload.articles_a_day - copies) * days)
        yield Figure("nodes", "nodes", nodes, "", "articles within the retention except unchanged reprints")
        hashes = self._learns * math.ceil(copies * days)
        yield Figure("pages", "content hashes", hashes, "", "unchanged reprints, which create no node")
        if nodes + hashes > MAX_SHARDS * _MOST_DOCUMENTS:
            raise SettingError(f"{short(nodes)} nodes are too many for an index: this workload is too large")

    def _elasticsearch(self) -> Iterator[Figure]:
        workload, server, work = self.workload, self.costs.server, self.costs.server.work
        nodes, peak, searching = self["nodes"], self["peak_articles_a_second"], self.searching
        forest = searching or server
        learned_bytes = self._learns * self.costs_file.learned.disk_bytes
        merged_bytes = nodes * forest.node_bytes + self["pages"] * server.page_bytes + learned_bytes
        forest_gb = merged_bytes / (1 - _MOST_DELETED) / _GB
        if searching is None:
            shards, shards_basis = 1, "which is only read when the forest is opened"
            is_far = nodes > work.measured_nodes
            written_us, searches_us, cached_gb = work.us_an_arrival, 0.0, 0.0
        else:
            shards = min(MAX_SHARDS, math.ceil(forest_gb / _SHARD_GB))
            shards_basis = f"{short(forest_gb / shards)} GB each; Elastic recommends up to {_SHARD_GB}"
            is_far = nodes > searching.shard.measured_nodes or shards > searching.measured_shards
            written_us, searches_us = searching.server_us, searching.shard.us(nodes / shards) * shards
            cached_gb = nodes * (searching.cached_bytes or searching.node_bytes) / _GB
        basis = f"{forest.node_bytes:,.0f} bytes per node; a fifth of the index are deleted documents"
        yield Figure("forest_gb", "forest", forest_gb, " GB", basis, is_far, part="Elasticsearch")
        is_estimate = is_far and searching is not None
        yield Figure("forest_shards", "shards of the forest", shards, "", shards_basis, is_estimate)
        articles = workload.articles_a_day * workload.retention_days
        articles_gb = articles * (server.article_bytes + workload.article_bytes) / _GB
        are_many = articles > work.measured_articles
        basis = f"{server.article_bytes:,.0f} bytes for dedup, and {workload.article_bytes:,.0f} for the rest"
        yield Figure("articles_gb", "articles", articles_gb, " GB", basis, are_many)
        copies = 1 + workload.replicas
        disk_gb, is_far = (forest_gb + articles_gb) * copies, is_far or are_many
        yield Figure("disk_gb", "disk", disk_gb, " GB", "all copies of forest and articles", is_far)
        written_us += work.us_an_article
        cores = peak * (searches_us + written_us * copies) / 1e6
        basis = f"{written_us:,.0f} µs to write an article and its node, {searches_us:,.0f} to search"
        yield Figure("server_cores_peak", "cores for dedup, at the peak", cores, "", basis, is_far)
        by_disk = disk_gb / (_MOST_FULL * workload.data_node_disk_gb)
        by_cores = cores / (MOST_BUSY * workload.data_node_cores)
        by_caches = cached_gb * copies / (workload.data_node_memory_gb / 2)
        # With replicas, a majority must remain if a node fails.
        least = max(3, copies) if workload.replicas else 1
        data_nodes = max(least, *map(math.ceil, (by_disk, by_cores, by_caches)))
        memory = f"{workload.data_node_memory_gb:,g} GB of memory and {workload.data_node_cores} cores"
        basis = f"each with {workload.data_node_disk_gb:,g} GB of disk, {memory}"
        yield Figure("data_nodes", "data nodes", data_nodes, "", basis, is_far and data_nodes > least)
        requests = 1 + forest.requests_a_batch
        basis = f"{requests:.1f} per batch of {BATCH:,}"
        yield Figure("requests_a_second", "requests, at the peak", peak / BATCH * requests, "/s", basis)
        roots = articles * (1 - workload.reprints)
        seconds, are_many = roots * work.refresh_us_a_root / 1e6, roots > work.measured_roots
        basis = "if all roots are in one shard; with daily indices far less"
        yield Figure("refresh_s", "time added to a refresh", seconds, " s", basis, are_many)
        heap_mb, basis = roots * work.heap_bytes_a_root / 1e6, "global ordinals of all roots"
        yield Figure("heap_mb", "heap for roots", heap_mb, " MB", basis, are_many)

    def _owner(self) -> Iterator[Figure]:
        workload, costs, searching = self.workload, self.costs, self.searching
        length = min(workload.mean_length, self.profile.max_text_length)
        if self._learns:
            us = costs.without_boilerplate.us(length) + costs.omitting.us(length)
        else:
            us = costs.whole.us(length)
        held = self["nodes"] if searching is None else 0
        memory_gb = (self._fixed_bytes + held * self._bytes_a_node) / _GB
        is_far = held > costs.deciding.measured_nodes
        basis = "at most, while it opens the forest"
        yield Figure("owner_memory_gb", "memory", memory_gb, " GB", basis, is_far, part="owner")
        if searching is None:
            basis = "at least; with less, articles are refused"
            held_mb = held * self._held_a_node / _GB * 1_000
            yield Figure("memory_bytes_mb", "setting memory_bytes", held_mb, " MB", basis, is_far)
            us = us + costs.deciding.us(held) + costs.server.us_a_commit
            basis = f"{MOST_BUSY:.0%} busy, on one core"
        else:
            shards, cores = self["forest_shards"], self["data_nodes"] * workload.data_node_cores
            # As many shards are searched at once as there are cores.
            searches_us = searching.shard.us(self["nodes"] / shards) * shards / min(shards, cores)
            owner_us = searching.owner_us + searching.owner_us_a_million * self["nodes"] / 1e6
            us = us + owner_us + searching.server_us + searches_us
            is_far = self.figures["forest_shards"].is_extrapolated
            basis = f"{MOST_BUSY:.0%} busy; file caches hold what is searched"
        rate = MOST_BUSY * 1e6 / us
        yield Figure("owner_articles_a_second", "articles it can process", rate, "/s", basis, is_far)

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
        answer = f"Its owner processes {short(owner)} articles a second,"
        if self.bears_peak:
            yield f"{answer} more than the peak of {short(peak)}."
        elif mean <= owner:
            yield (
                f"{answer} more than the average of {short(mean)}, but less than the peak of {short(peak)}: "
                "at the peak, articles have to wait in a queue."
            )
        else:
            too_slow = "one owner is not enough" if self.searching is None else "searches are too slow"
            yield f"{answer} less than the average of {short(mean)}: {too_slow}."
        if self.searching is not None:
            yield self._in_memory()
        if not self.bears_peak:
            yield (
                f"{self._forests():,} forests, each with its owner, bear the peak, but reprints in different "
                "forests are not found: divide articles only by tenant or language."
            )

    def _changed(self, **changes: float) -> "CapacityPlan":
        """Return the plan of a changed workload."""
        return CapacityPlan(self.workload.model_copy(update=changes), self.profile, self.costs_file)

    def _in_memory(self) -> str:
        """Return what it takes to have all nodes in memory."""
        life_days = self.workload.retention_days + _LATE_DAYS
        days = self._most_in_memory / self["nodes"] * life_days - _LATE_DAYS
        fitting = f"; with a retention of {days:.3g} days, {self.workload.owner_memory_gb:g} GB are enough"
        fitting = f"{fitting if days >= 1 else ''}."
        unlimited = self._changed(owner_memory_gb=math.inf)
        if unlimited.searching is not None:
            return f"Memory can hold at most {short(unlimited._most_in_memory)} nodes{fitting}"
        return (
            f"To have them in memory, the owner needs {short(unlimited['owner_memory_gb'])} GB, and then "
            f"processes {short(unlimited['owner_articles_a_second'])} articles a second{fitting}"
        )

    def _forests(self) -> int:
        """Return the least number of forests, with equal shares, whose owners bear the peak."""

        def is_enough(forests: int) -> bool:
            return self._changed(articles_a_day=self.workload.articles_a_day / forests).bears_peak

        # Smaller forests have faster owners.
        most = math.ceil(self["peak_articles_a_second"] / self["owner_articles_a_second"])
        return bisect.bisect_left(range(most + 1), True, lo=1, key=is_enough)
