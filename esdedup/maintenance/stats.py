"""What a forest looks like in figures."""

import collections
import itertools
from collections.abc import Iterator
from typing import Any

import pydantic

from esdedup.elastic.forest.documents import StoredNode, keys_of, live_leaves, signatures_of
from esdedup.elastic.forest.index import ForestIndex
from esdedup.elastic.forest.search import EVERY_NODE
from esdedup.elastic.requests import Query
from esdedup.fingerprint.profile import profile_labelled
from esdedup.forest.growth import MOST_PLAUSIBLE_LEAVES
from esdedup.forest.model import NO_TIME, Aging
from esdedup.maintenance.shared_representatives import Shared, SharedFinder
from esdedup.maintenance.stored_texts import StoredTexts
from esdedup.neighbours.explainer import Explainer
from esdedup.times import DAY_MS, iso

_DAYS_SHOWN = 14
_LARGEST_SHOWN = 10
_KEYS_SHOWN = 5
# Nodes whose keys are looked at, and of those whose keys are all counted.
_RANDOM_NODES, _COUNTED = 10_000, 50
# Stories that share a representative by accident are fewer, even in a choice of one kind of text.
_MANY_TREES = 10
_TREES_AT_ONCE = 10_000


class Cluster(pydantic.BaseModel, frozen=True):
    """A tree, by its root."""

    root: str
    leaves: int


class ImplausibleCluster(Cluster, frozen=True):
    """A tree with more live leaves than one story can have."""

    # None if they have been deleted meanwhile.
    shared: Shared | None


class Day(pydantic.BaseModel, frozen=True):
    """Nodes of one day of the forest's time, UTC."""

    day: str
    # Made that day.
    made: int
    # Needed that day for the last time, so far.
    last_needed: int


class Key(pydantic.BaseModel, frozen=True):
    """A band key and how many nodes have it."""

    key: str
    nodes: int


class Stats(pydantic.BaseModel, frozen=True):
    """A forest in figures; times are ISO 8601, None where none is known."""

    profile: str
    nodes: int
    trees: int
    # Expired, and not deleted yet.
    expired: int
    # Arrivals so far.
    seq: int
    time: str | None
    retention_days: float
    size_bytes: int
    bytes_a_node: float
    # How many trees have so many leaves: 0, 1, 2-3, 4-7 and so on.
    trees_by_leaves: dict[str, int]
    largest: list[Cluster]
    # The largest of those with more live leaves than one story can have, and how many such there are.
    implausible: list[ImplausibleCluster]
    implausible_trees: int
    # The fullest keys of some random nodes, counted exactly; and the mean number of nodes of a key.
    fullest_keys: list[Key]
    nodes_a_key: float
    # Representatives that many trees of some random nodes share: boilerplate, which makes keys full.
    boilerplate: list[Shared]
    # The last ones of the forest's time.
    days: list[Day]
    # Nodes made in the last seven days of the forest's time, as a part of all those made before.
    growth_7_days: float | None


def stats(index: ForestIndex, aging: Aging, texts: StoredTexts | None = None) -> Stats:
    """Read the figures of a forest. Needs no lease; what no refresh has shown yet is not in them.

    Args:
        index: The forest's.
        aging: How long its nodes live.
        texts: Its articles, for the sentences that many of them share.
    """
    profile = profile_labelled(index.meta.profile)
    finder = SharedFinder(
        max_distance_bits=index.meta.max_distance_bits,
        texts=texts,
        explainer=None if profile is None else Explainer(profile),
    )
    state = index.status().state
    live_since_ms = index.status().live_since_ms(aging)
    week_ms = state.time_ms - 7 * DAY_MS
    answer = index.run(
        index.search.aggregate(
            EVERY_NODE,
            {
                "trees": {"filter": {"term": {"leaf": False}}},
                "live": {"filter": _since("seen", live_since_ms)},
                "new": {"filter": _since("made", week_ms if state.time_ms != NO_TIME else NO_TIME)},
                **{name: _by_day(name) for name in ("made", "seen")},
            },
        )
    )
    nodes, trees, live, new = (
        index.run(index.search.count_nodes()),
        *(answer[name]["doc_count"] for name in ("trees", "live", "new")),
    )
    sizes = collections.Counter(dict(_leaves_by_root(index)))
    by_day = {
        name: {bucket["key"]: bucket["doc_count"] for bucket in answer[name]["buckets"]}
        for name in ("made", "seen")
    }
    random_nodes = index.run(index.search.random_nodes(_RANDOM_NODES))
    fullest, nodes_a_key = _keys(index, random_nodes)
    implausible = _implausible(index, sizes, live_since_ms)
    size_bytes = index.size_bytes()
    return Stats(
        profile=index.meta.profile,
        nodes=nodes,
        trees=trees,
        expired=nodes - live,
        seq=state.seq,
        time=None if state.time_ms == NO_TIME else iso(state.time_ms),
        retention_days=round(aging.retention_ms / DAY_MS, 3),
        size_bytes=size_bytes,
        bytes_a_node=round(size_bytes / nodes, 1) if nodes else 0.0,
        trees_by_leaves=_by_leaves(sizes, trees),
        largest=[Cluster(root=root, leaves=leaves) for root, leaves in sizes.most_common(_LARGEST_SHOWN)],
        implausible=[
            ImplausibleCluster(root=root, leaves=leaves, shared=_held_by(index, finder, root, live_since_ms))
            for root, leaves in implausible[:_LARGEST_SHOWN]
        ],
        implausible_trees=len(implausible),
        fullest_keys=fullest,
        nodes_a_key=nodes_a_key,
        boilerplate=_boilerplate(index, finder, random_nodes),
        days=[
            Day(day=iso(day)[:10], made=by_day["made"].get(day, 0), last_needed=by_day["seen"].get(day, 0))
            for day in sorted(by_day["made"].keys() | by_day["seen"].keys())[-_DAYS_SHOWN:]
        ],
        growth_7_days=round(new / (nodes - new), 4) if nodes > new else None,
    )


def _leaves_by_root(index: ForestIndex) -> Iterator[tuple[str, int]]:
    """Yield each root that has leaves, and how many."""
    after: dict[str, Any] = {}
    while True:
        composite = {"size": _TREES_AT_ONCE, "sources": [{"root": {"terms": {"field": "root"}}}], **after}
        answer = index.run(
            index.search.aggregate({"term": {"leaf": True}}, {"roots": {"composite": composite}})
        )
        buckets = answer["roots"]["buckets"]
        yield from ((bucket["key"]["root"], bucket["doc_count"]) for bucket in buckets)
        if len(buckets) < _TREES_AT_ONCE:
            return
        after = {"after": answer["roots"]["after_key"]}


def _implausible(index: ForestIndex, sizes: dict[str, int], live_since_ms: int) -> list[tuple[str, int]]:
    """Return the roots with too many live leaves, and how many, the largest first; 10,000 at most."""
    roots = [root for root, leaves in sizes.items() if leaves > MOST_PLAUSIBLE_LEAVES][:_TREES_AT_ONCE]
    if not roots:
        return []
    by_root = {"field": "root", "size": len(roots), "min_doc_count": MOST_PLAUSIBLE_LEAVES + 1}
    answer = index.run(
        index.search.aggregate(live_leaves(roots, live_since_ms), {"roots": {"terms": by_root}})
    )
    return [(bucket["key"], bucket["doc_count"]) for bucket in answer["roots"]["buckets"]]


def _held_by(index: ForestIndex, finder: SharedFinder, root: str, live_since_ms: int) -> Shared | None:
    """Find what most leaves of a tree share, None if they are gone."""
    leaves = list(itertools.islice(index.scan(live_leaves([root], live_since_ms)), _RANDOM_NODES))
    simhashes = index.relation.simhashes(signatures_of(leaves, index.relation))
    return next(iter(finder.find(leaves, simhashes, most=1, by_tree=False)), None)


def _boilerplate(index: ForestIndex, finder: SharedFinder, random_nodes: list[StoredNode]) -> list[Shared]:
    """Find the representatives that most trees share."""
    simhashes = index.relation.simhashes(signatures_of(random_nodes, index.relation))
    found = finder.find(random_nodes, simhashes, most=_KEYS_SHOWN, by_tree=True)
    return [shared for shared in found if shared.trees >= _MANY_TREES]


def _by_leaves(sizes: dict[str, int], trees: int) -> dict[str, int]:
    powers = collections.Counter(leaves.bit_length() - 1 for leaves in sizes.values())
    # A leaf whose root is gone is no tree's.
    counts = {"0": max(0, trees - len(sizes))}
    for power in range(max(powers, default=-1) + 1):
        low, high = 1 << power, (2 << power) - 1
        counts[str(low) if low == high else f"{low}-{high}"] = powers[power]
    return counts


def _keys(index: ForestIndex, random_nodes: list[StoredNode]) -> tuple[list[Key], float]:
    """Return the fullest keys among those of some nodes, and how many nodes a key has on average."""
    terms = keys_of(random_nodes, index.relation, index.layout)
    shared = collections.Counter(term for own in terms for term in set(own))
    ordinary = {term for own in terms[:_COUNTED] for term in own}
    fullest = [term for term, _ in shared.most_common(_KEYS_SHOWN)]
    counts = index.run(index.search.count_by_key(ordinary.union(fullest)))
    keys = sorted((Key(key=term, nodes=counts[term]) for term in fullest), key=lambda key: -key.nodes)
    return keys, round(sum(counts[term] for term in ordinary) / len(ordinary), 2) if ordinary else 0.0


def _since(field: str, time_ms: int) -> Query:
    return {"match_all": {}} if time_ms == NO_TIME else {"range": {field: {"gte": time_ms}}}


def _by_day(field: str) -> Query:
    return {"date_histogram": {"field": field, "calendar_interval": "day", "min_doc_count": 1}}
