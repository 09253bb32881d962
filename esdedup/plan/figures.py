"""The figures of a plan, with the basis of each calculation."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from esdedup.plan.costs import ServerWork
from esdedup.plan.model import BATCH, MOST_BUSY, SHARD_BYTES, CapacityPlan

_GB = 1e9
_MB = 1e6


class Figure(NamedTuple):
    """A calculated number with a name for JSON, a title for people, and the basis of its calculation."""

    name: str
    title: str
    value: float
    unit: str
    basis: str


def figures(plan: CapacityPlan) -> Iterator[Figure]:
    """Yield the figures of a plan."""
    yield from _arrivals(plan)
    yield from _owners(plan)
    yield from _disk(plan)
    if plan.costs.server.work is not None:
        yield from _server(plan, plan.costs.server.work)


def _arrivals(plan: CapacityPlan) -> Iterator[Figure]:
    load, us = plan.load, plan.fingerprint_us
    mean, peak = load.articles_a_second, plan.peak_a_second
    yield Figure("articles_a_second", "articles, on average", mean, "/s", "articles a day")
    yield Figure("peak_articles_a_second", "articles, at the peak", peak, "/s", "× peak")
    basis = "articles except unchanged reprints, within the retention and up to two hours until deletion"
    yield Figure("nodes", "nodes after the first retention period", load.nodes, "", basis)
    basis = "unchanged reprints, each with the boilerplate of its site"
    yield Figure("pages", "content hashes that created no node", load.hashes, "", basis)
    basis = f"{us:,.0f} µs per article of this length"
    for name, title, rate in (("mean", "on average", mean), ("peak", "at the peak", peak)):
        yield Figure(
            f"fingerprint_cores_{name}", f"cores for fingerprints, {title}", rate * us / 1e6, "cores", basis
        )


def _owners(plan: CapacityPlan) -> Iterator[Figure]:
    memory, us = plan.memory_each, plan.owner_us
    basis = plan.why if plan.forests == 1 else f"one owner is not enough: {plan.why}"
    yield Figure("forests", "forests, each with an owner", plan.forests, "", basis)
    basis = f"{us:,.0f} µs of one core per article, {MOST_BUSY:.0%} busy"
    title = "articles that one owner can process"
    yield Figure("owner_articles_a_second", title, plan.owner_a_second, "/s", basis)
    cores, basis = plan.peak_a_second * us / 1e6, f"{us:,.0f} µs per article"
    yield Figure("owner_cores_peak", "cores of all owners, at the peak", cores, "cores", basis)
    yield Figure("nodes_a_forest", "nodes of each forest", plan.load_each.nodes, "", "equal shares")
    basis = (
        f"nodes {memory.nodes / _GB:,.2f}, content hashes {memory.hashes / _GB:,.2f}, "
        f"boilerplate {memory.learned / _GB:,.2f} GB"
    )
    yield Figure("owner_memory_gb", "memory of each owner", memory.held / _GB, "GB", basis)
    title, basis = "memory of each owner, at most", "while it opens the forest, or removes content hashes"
    yield Figure("owner_memory_peak_gb", title, memory.peak / _GB, "GB", basis)
    title, basis = (
        "setting memory_bytes of each owner, at least",
        "nodes and content hashes; with less memory, nodes are searched for, which is slower",
    )
    yield Figure("memory_bytes_mb", title, (memory.nodes + memory.hashes) / _MB, "MB", basis)


def _disk(plan: CapacityPlan) -> Iterator[Figure]:
    server, forests, articles = plan.costs.server, plan.forests, _articles(plan)
    shard_bytes = plan.forest_bytes_unmerged / forests
    advice = f"Elastic recommends up to {SHARD_BYTES / _GB:,.0f}"
    if shard_bytes > SHARD_BYTES:
        advice += f"; this needs {math.ceil(plan.forest_bytes_unmerged / SHARD_BYTES):,} forests"
    basis = f"{server.node_bytes:,.0f} bytes per node, {server.page_bytes:,.0f} per content hash, no replicas"
    yield Figure("forest_gb", "disk of forests, merged", plan.forest_bytes / _GB, "GB", basis)
    title, basis = "disk of forests, with deleted documents", "merges leave up to a fifth of an index"
    yield Figure("forest_deleted_gb", title, plan.forest_bytes_unmerged / _GB, "GB", basis)
    basis = f"one each, of {shard_bytes / _GB:,.1f} GB with deleted documents ({advice})"
    yield Figure("forest_shards", "shards of forests", forests, "", basis)
    basis = f"{server.article_bytes:,.0f} bytes per article, {articles:,.0f} articles within the retention"
    added_bytes = articles * server.article_bytes
    yield Figure("articles_gb", "disk that dedup adds to articles", added_bytes / _GB, "GB", basis)
    basis = f"{SHARD_BYTES / _GB:,.0f} GB each; the articles themselves need more shards"
    shards = max(1, math.ceil(added_bytes / SHARD_BYTES))
    yield Figure("article_shards", "shards that dedup adds to articles", shards, "", basis)
    basis = f"per batch of {BATCH:,}: {server.requests_a_batch:.1f} for the forest, 1 for the articles"
    title = "requests to Elasticsearch, at the peak"
    requests = plan.peak_a_second / BATCH * (server.requests_a_batch + 1)
    yield Figure("requests_a_second", title, requests, "/s", basis)


def _server(plan: CapacityPlan, work: ServerWork) -> Iterator[Figure]:
    us, roots = work.us_an_arrival + work.us_an_article, _articles(plan) * (1 - plan.workload.reprints)
    basis = f"{work.us_an_arrival:,.0f} µs for the forest and {work.us_an_article:,.0f} for the dedup object"
    title = "cores of Elasticsearch for dedup, at the peak"
    yield Figure("server_cores_peak", title, plan.peak_a_second * us / 1e6, "cores", basis)
    basis = f"{roots:,.0f} roots in one shard; with daily indices, only the roots of one day"
    title = "time that dedup adds to a refresh of articles"
    yield Figure("refresh_s", title, roots * work.refresh_us_a_root / 1e6, "s", basis)
    title, basis = "heap of Elasticsearch for roots", "global ordinals, as long as articles are searched"
    yield Figure("heap_mb", title, roots * work.heap_bytes_a_root / _MB, "MB", basis)


def _articles(plan: CapacityPlan) -> float:
    """Return the number of articles that arrive within the retention."""
    return plan.workload.articles_a_day * plan.workload.retention_days
