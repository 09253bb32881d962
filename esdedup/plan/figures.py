"""The figures of a plan, each with what it was calculated from. Pure."""

import dataclasses
import math
from collections.abc import Iterator

from esdedup.plan.model import BATCH, MAX_DOCUMENTS, MOST_BUSY, SHARD_BYTES, Plan

_GB = 1e9
_MB = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """A number that was calculated."""

    # For programs.
    name: str
    # For people.
    title: str
    value: float
    unit: str
    # What it was calculated from.
    basis: str


def figures(plan: Plan) -> Iterator[Figure]:
    """Yield what a workload needs."""
    yield from _arrivals(plan)
    yield from _owners(plan)
    yield from _disk(plan)


def _arrivals(plan: Plan) -> Iterator[Figure]:
    load, us = plan.load, plan.fingerprint_us
    mean, peak = load.articles_a_second, plan.peak_a_second
    yield Figure(
        name="articles_a_second", title="articles, on average", value=mean, unit="/s", basis="articles a day"
    )
    yield Figure(
        name="peak_articles_a_second", title="articles, at the peak", value=peak, unit="/s", basis="× peak"
    )
    yield Figure(
        name="nodes",
        title="nodes at the end of the first retention",
        value=load.nodes,
        unit="",
        basis="articles but unchanged reprints, for the retention and two hours until they are deleted",
    )
    yield Figure(
        name="pages",
        title="pages remembered besides",
        value=load.pages,
        unit="",
        basis="unchanged reprints, each with the boilerplate of its site",
    )
    for name, title, rate in (("mean", "on average", mean), ("peak", "at the peak", peak)):
        yield Figure(
            name=f"fingerprint_cores_{name}",
            title=f"cores that fingerprint, {title}",
            value=rate * us / 1e6,
            unit="cores",
            basis=f"{us:,.0f} µs an article of this length",
        )


def _owners(plan: Plan) -> Iterator[Figure]:
    each, us = plan.memory_each, plan.owner_us
    yield Figure(
        name="forests",
        title="forests, each with an owner",
        value=plan.forests,
        unit="",
        basis=plan.why if plan.forests == 1 else f"one owner is not enough: {plan.why}",
    )
    yield Figure(
        name="owner_articles_a_second",
        title="articles that one owner can take",
        value=plan.owner_a_second,
        unit="/s",
        basis=f"{us:,.0f} µs of one core an article, {MOST_BUSY:.0%} busy",
    )
    yield Figure(
        name="owner_cores_peak",
        title="cores of all owners, at the peak",
        value=plan.peak_a_second * us / 1e6,
        unit="cores",
        basis=f"{us:,.0f} µs an article",
    )
    yield Figure(
        name="nodes_a_forest",
        title="nodes of each forest",
        value=plan.load_each.nodes,
        unit="",
        basis="equal shares",
    )
    parts = (
        f"nodes {each.nodes / _GB:,.2f}, pages {each.pages / _GB:,.2f}, boilerplate {each.learned / _GB:,.2f}"
    )
    yield Figure(
        name="owner_memory_gb",
        title="memory of each owner",
        value=each.held / _GB,
        unit="GB",
        basis=f"{parts} GB",
    )
    yield Figure(
        name="owner_memory_peak_gb",
        title="memory of each owner, at most",
        value=each.peak / _GB,
        unit="GB",
        basis="while it opens the forest, or removes pages",
    )
    yield Figure(
        name="memory_bytes_mb",
        title="its setting memory_bytes, at least",
        value=(each.nodes + each.pages) / _MB,
        unit="MB",
        basis="nodes and pages; with less, nodes are searched for, which is slower",
    )


def _disk(plan: Plan) -> Iterator[Figure]:
    server, forests = plan.server, plan.forests
    shard_bytes = plan.forest_bytes_unmerged / forests
    advice = f"Elastic advises up to {SHARD_BYTES / _GB:,.0f}"
    if shard_bytes > SHARD_BYTES:
        advice += f", as {math.ceil(plan.forest_bytes_unmerged / SHARD_BYTES):,} forests would have"
    yield Figure(
        name="forest_gb",
        title="disk of forests, merged",
        value=plan.forest_bytes / _GB,
        unit="GB",
        basis=f"{server.node_bytes:,.0f} bytes a node, {server.page_bytes:,.0f} a page, without replicas",
    )
    yield Figure(
        name="forest_deleted_gb",
        title="the same with deleted documents",
        value=plan.forest_bytes_unmerged / _GB,
        unit="GB",
        basis="a fifth of an index, which merges leave",
    )
    yield Figure(
        name="forest_shards",
        title="shards of forests",
        value=forests,
        unit="",
        basis=f"one each, of {shard_bytes / _GB:,.1f} GB with deleted documents ({advice}) and "
        f"{plan.load_each.documents:,} documents (at most {MAX_DOCUMENTS:,})",
    )
    yield Figure(
        name="articles_gb",
        title="disk that dedup adds to articles",
        value=plan.articles_bytes / _GB,
        unit="GB",
        basis=f"{server.article_bytes:,.0f} bytes an article, {plan.articles:,.0f} articles of a retention",
    )
    yield Figure(
        name="article_shards",
        title="shards that this adds to the articles",
        value=plan.article_shards,
        unit="",
        basis=f"{SHARD_BYTES / _GB:,.0f} GB each; what the articles themselves take comes on top",
    )
    yield Figure(
        name="requests_a_second",
        title="requests to Elasticsearch, at the peak",
        value=plan.requests_a_second,
        unit="/s",
        basis=f"batches of {BATCH:,}: {server.requests_a_batch:.1f} of a forest, 1 of articles; deletions",
    )
    yield Figure(
        name="documents_a_second",
        title="documents of forests written, at the peak",
        value=plan.documents_a_second,
        unit="/s",
        basis=f"at most; one owner wrote {server.arrivals_a_second:,.0f} arrivals/s, waiting for each batch",
    )
