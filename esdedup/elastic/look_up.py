"""What the forest would say of a text, without changing anything: the laws, on what its index holds."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from esdedup.bands import LAYOUTS
from esdedup.elastic.forest_index import AGING_ID, DEFAULT_AGING, STATE_ID, state_aggregations, state_of
from esdedup.elastic.forest_meta import meta_of, refuse_others
from esdedup.elastic.neighbours import Neighbours
from esdedup.elastic.node_cache import NodeCache
from esdedup.elastic.nodes import FIELDS, MAX_HITS, MAX_TERMS, chunks, live_filter, live_leaves, nodes_of
from esdedup.errors import ForestError, SettingError
from esdedup.fields import refuse_surrogates
from esdedup.fingerprint import Fingerprinter
from esdedup.forest import Aging, Arrivals, Assignment, Forest, Kind, relation_of
from esdedup.forest.laws import LeafCounts
from esdedup.forest.model import NO_TIME, Near, Plan, State
from esdedup.forest.relation import Relation
from esdedup.profile import Profile
from esdedup.reading import member_bodies
from esdedup.reading.alike import Alike
from esdedup.reading.members import page_of
from esdedup.reading.scope import Scope
from esdedup.reading.steps import ReadClock, ReadMappings, Refresh, Steps, search
from esdedup.reading.wanted import check_paging
from esdedup.results import SimilarPage

# Leaves that live, whenever they were seen: one arrival comes at one time.
_LIVING = 2**62


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """A store for one arrival, whose node is never written."""

    relation: Relation
    aging: Aging
    before: State
    near: Near
    leaves: dict[str, int]

    def state(self) -> State:
        return self.before

    def find_near(self, arrivals: Arrivals, state: State) -> Near:  # noqa: ARG002
        return self.near

    def count_leaves(self, near: Near, roots: Sequence[int], state: State, *, end_ms: int) -> LeafCounts:  # noqa: ARG002
        return {root: {_LIVING: self.leaves.get(near.nodes.ids[root], 0)} for root in roots}

    def commit(self, plan: Plan) -> None:
        pass


def similar_to_text(
    scope: Scope,
    index: str,
    text: str,
    *,
    page: int = 1,
    size: int = 20,
    after: str | None = None,
) -> Steps[SimilarPage]:
    """Return the articles of the cluster that a text would join, newest first.

    The forest decides as for an article that is fed now, without `backfill`, and changes nothing.

    Args:
        scope: Whose articles, of which forest.
        index: An index, alias or pattern.
        text: Need not be indexed.
        page: From 1; `page` times `size` is at most 10,000.
        size: Articles on a page, at most 1,000.
        after: The cursor `next` of the page before, in place of `page`.

    Returns:
        A page without a root where the text would begin a cluster of its own, or tells nothing.

    Raises:
        SettingError: A value makes no sense, or the page lies too deep.
        ArticleRejected: The text has half a character.
        ForestError: There is no forest, or of another profile.
        IndexNotReady: The index is missing, or lacks the fields.
        ServerError: Elasticsearch does not answer, or refuses.
    """
    check_paging(page, size, after=after)
    if not isinstance(text, str):
        raise SettingError(f"the text is a {type(text).__name__}, not a string")
    refuse_surrogates(text, name="the text")
    yield from scope.ready(index)
    assignment = yield from look_up(text, forest=scope.forest, profile=scope.profile)
    if assignment.root is None or assignment.kind is Kind.NEW_ROOT:
        return SimilarPage(root=None, total=0, articles=[], page=page, size=size)
    query = member_bodies.others(assignment.root, fields=scope.fields)
    alike = Alike(scope.profile, assignment.signature)
    of = [index, assignment.root]
    return (yield from page_of(scope, index, assignment.root, query, alike, of, page, size, after))


def look_up(text: str, *, forest: str, profile: Profile) -> Steps[Assignment]:
    """Decide about a text as about an arrival, by what a forest holds."""
    mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=forest)
    if not mappings:
        raise ForestError(f"there is no forest {forest!r}; the first article that is indexed makes it")
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
    met = Neighbours.of(arrivals, (candidates,), live_since_ms=live_since_ms)
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


def _state(forest: str) -> Steps[tuple[State, Aging, int]]:
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


def _all_nodes(forest: str, query: dict[str, Any]) -> Steps[list[dict[str, Any]]]:
    """Return the hits of all nodes that match, in the order of their making."""
    found: list[dict[str, Any]] = []
    place: dict[str, Any] = {}
    while True:
        (answer,) = yield from search(
            forest,
            {
                "query": query,
                "size": MAX_HITS,
                "sort": [{"seq": "asc"}],
                "_source": False,
                "docvalue_fields": FIELDS,
                "track_total_hits": False,
                **place,
            },
        )
        hits = answer["hits"]["hits"]
        found += hits
        if len(hits) < MAX_HITS:
            return found
        place = {"search_after": hits[-1]["sort"]}


def _count_leaves(forest: str, roots: set[str], live_since_ms: int) -> Steps[dict[str, int]]:
    """Count the live leaves of each root; of one alone nobody asks."""
    counts: dict[str, int] = {}
    if len(roots) < 2:
        return counts
    for chunk in chunks(sorted(roots), MAX_TERMS - 1):
        body = {
            "query": live_leaves(chunk, live_since_ms),
            "size": 0,
            "aggs": {"roots": {"terms": {"field": "root", "size": len(chunk)}}},
        }
        (answer,) = yield from search(forest, body)
        buckets = answer["aggregations"]["roots"]["buckets"]
        counts |= {bucket["key"]: bucket["doc_count"] for bucket in buckets}
    return counts
