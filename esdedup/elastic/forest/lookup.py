"""What the forest would say of a text, without changing anything: the laws, on what its index holds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.elastic import limits
from esdedup.elastic.forest.documents import FIELDS, chunks, live_filter, live_leaves, nodes_of
from esdedup.elastic.forest.index import AGING_ID, DEFAULT_AGING, STATE_ID, state_aggregations, state_of
from esdedup.elastic.forest.matching import MatchedNodes
from esdedup.elastic.forest.meta import meta_of, refuse_others
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.requests import ReadClock, ReadMappings, Refresh, Requests, search
from esdedup.errors import ForestMissing
from esdedup.fingerprint.bands import LAYOUTS
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Arrivals, Assignment, Forest
from esdedup.forest.model import NO_TIME, LeafCounts, Neighbours, Plan, State
from esdedup.neighbours.relation import Relation, relation_of

# Leaves that live, whenever they were seen: one arrival comes at one time.
_LIVING = 2**62


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """A store for one arrival, whose node is never written."""

    relation: Relation
    aging: Aging
    before: State
    near: Neighbours
    leaves: dict[str, int]

    def state(self) -> State:
        return self.before

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:  # noqa: ARG002
        return self.near

    def count_leaves(
        self,
        near: Neighbours,
        roots: Sequence[int],
        state: State,  # noqa: ARG002
        *,
        end_ms: int,  # noqa: ARG002
    ) -> LeafCounts:
        return {root: {_LIVING: self.leaves.get(near.nodes.ids[root], 0)} for root in roots}

    def commit(self, plan: Plan) -> None:
        pass


def look_up(text: str, *, forest: str, profile: Profile) -> Requests[Assignment]:
    """Decide about a text as about an arrival, by what a forest holds."""
    mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=forest)
    if not mappings:
        raise ForestMissing(
            f"there is no forest {forest!r}; the first article that is indexed makes it", forest=forest
        )
    meta = meta_of(mappings, name=forest)
    refuse_others(forest, meta, profile)
    # Its owner lets others see what it writes when it needs to see it itself.
    yield Refresh(index=forest)
    relation = relation_of(meta)
    now_ms: int = yield ReadClock()
    arrivals = Arrivals.of(Fingerprinter(profile).fingerprint([text]), times_ms=[now_ms], relation=relation)
    state, aging, dead_before_ms = yield from _state(forest)
    # As they stand before it arrives; the laws look at what lives when it has.
    live_since_ms = max(dead_before_ms, state.live_since_ms(aging))
    layout = LAYOUTS[meta.layout]
    signatures = arrivals.signatures[arrivals.with_node]
    keys = sorted({key for terms in layout.terms(relation.simhashes(signatures).ravel()) for key in terms})
    ids = [node_id for node_id in arrivals.ids if node_id is not None]
    query = {"bool": {"should": [{"terms": {"keys": keys}}, {"ids": {"values": ids}}]}}
    candidates = NodeCache(relation)
    found = yield from _all_nodes(forest, {"bool": {"filter": [query, *live_filter(live_since_ms)]}})
    candidates.put(nodes_of(found, relation))
    met = MatchedNodes.of(arrivals, (candidates,), live_since_ms=live_since_ms)
    missing = sorted(met.missing_roots)
    roots = (yield from _all_nodes(forest, {"ids": {"values": missing}})) if missing else []
    nodes = met.with_roots({node.id: node for node in nodes_of(roots, relation)}, relation)
    snapshot = _Snapshot(
        relation=relation,
        aging=aging,
        before=state,
        near=met.near(nodes, relation=relation, aging=aging),
        leaves=(yield from _count_leaves(forest, {node.root for node in nodes.values()}, live_since_ms)),
    )
    (assignment,) = Forest(snapshot).assign(arrivals, now_ms=now_ms)
    return assignment


def _state(forest: str) -> Requests[tuple[State, Aging, int]]:
    """Read where the forest stands, how long nodes live, and before when they have expired whatever comes."""
    stored, answer = yield from search(
        forest,
        {"query": {"ids": {"values": [STATE_ID, AGING_ID]}}, "_source": ["state"]},
        {"size": 0, "aggs": state_aggregations(seq="seq", time="made")},
    )
    own = {hit["_id"]: hit["_source"]["state"] for hit in stored["hits"]["hits"]}
    state = State(**own.get(STATE_ID, {})).after(state_of(answer["aggregations"]))
    aging = own.get(AGING_ID)
    if aging is None:
        return state, DEFAULT_AGING, NO_TIME
    kept = Aging(retention_ms=aging["retention_ms"], granularity_ms=aging["granularity_ms"])
    return state, kept, aging.get("dead_before_ms", NO_TIME)


def _all_nodes(forest: str, query: dict[str, Any]) -> Requests[list[dict[str, Any]]]:
    """Return the hits of all nodes that match, in the order of their making."""
    found: list[dict[str, Any]] = []
    place: dict[str, Any] = {}
    while True:
        (answer,) = yield from search(
            forest,
            {
                "query": query,
                "size": limits.MAX_HITS,
                "sort": [{"seq": "asc"}],
                "_source": False,
                "docvalue_fields": FIELDS,
                "track_total_hits": False,
                **place,
            },
        )
        hits = answer["hits"]["hits"]
        found += hits
        if len(hits) < limits.MAX_HITS:
            return found
        place = {"search_after": hits[-1]["sort"]}


def _count_leaves(forest: str, roots: set[str], live_since_ms: int) -> Requests[dict[str, int]]:
    """Count the live leaves of each root; of one alone nobody asks."""
    counts: dict[str, int] = {}
    if len(roots) < 2:
        return counts
    for chunk in chunks(sorted(roots), limits.MAX_TERMS - 1):
        body = {
            "query": live_leaves(chunk, live_since_ms),
            "size": 0,
            "aggs": {"roots": {"terms": {"field": "root", "size": len(chunk)}}},
        }
        (answer,) = yield from search(forest, body)
        buckets = answer["aggregations"]["roots"]["buckets"]
        counts |= {bucket["key"]: bucket["doc_count"] for bucket in buckets}
    return counts
