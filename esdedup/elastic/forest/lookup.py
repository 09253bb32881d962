"""Looks up the cluster that a text would get, without changing the forest."""

import dataclasses
from collections.abc import Mapping, Sequence

from esdedup.elastic.forest.matching import find_neighbours
from esdedup.elastic.forest.meta import Meta, read_meta, refuse_others
from esdedup.elastic.forest.node_cache import NodeCache
from esdedup.elastic.forest.search import NodeSearch
from esdedup.elastic.forest.status import ForestStatus, read_status
from esdedup.elastic.limits import DEFAULT_LIMITS, Limits
from esdedup.elastic.requests import ReadClock, Refresh, Requests
from esdedup.errors import ForestMissing
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Arrivals, Assignment, Forest
from esdedup.forest.model import NO_TIME, LeafCounts, Neighbours, Plan, State
from esdedup.neighbours.relation import Relation


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """A read-only store with what one arrival needs."""

    relation: Relation
    aging: Aging
    before: State
    neighbours: Neighbours
    # By the id of a root, then by `seen`.
    leaves: Mapping[str, Mapping[int, int]]

    def state(self) -> State:
        return self.before

    def find_neighbours(self, arrivals: Arrivals, state: State) -> Neighbours:  # noqa: ARG002
        return self.neighbours

    def count_leaves(
        self,
        neighbours: Neighbours,
        roots: Sequence[int],
        state: State,  # noqa: ARG002
        *,
        end_ms: int,  # noqa: ARG002
    ) -> LeafCounts:
        return {root: self.leaves.get(neighbours.nodes.ids[root], {}) for root in roots}

    def commit(self, plan: Plan) -> None:
        pass


def look_up(
    text: str, *, forest: str, profile: Profile, limits: Limits = DEFAULT_LIMITS
) -> Requests[Assignment]:
    """Return what the forest would assign to a text that arrived now, as far as its index shows.

    Raises:
        ForestMissing: There is no such forest.
        ForestIncomplete: A rebuild of it has not ended.
        ForestMismatch: It was made with another profile, or in an unknown format.
    """
    meta = yield from _meta(forest, profile)
    # The owner refreshes only for its own needs.
    yield Refresh(index=forest)
    search = NodeSearch(forest=forest, relation=meta.relation, layout=meta.layout_of_keys, limits=limits)
    now_ms: int = yield ReadClock()
    fingerprints = Fingerprinter(profile).fingerprint([text])
    arrivals = Arrivals.of(fingerprints, times_ms=[now_ms], relation=meta.relation)
    status = yield from read_status(forest)
    neighbours = yield from find_neighbours(
        search,
        arrivals,
        recent=NodeCache(meta.relation),
        live_since_ms=status.live_since_ms(status.aging),
        aging=status.aging,
    )
    snapshot = _Snapshot(
        relation=meta.relation,
        aging=status.aging,
        before=status.state,
        neighbours=neighbours,
        leaves=(yield from _count_leaves(search, neighbours, status, now_ms)),
    )
    (assignment,) = Forest(snapshot).assign(arrivals, now_ms=now_ms)
    return assignment


def _meta(forest: str, profile: Profile) -> Requests[Meta]:
    meta = yield from read_meta(forest)
    if meta is None:
        raise ForestMissing(
            f"there is no forest {forest!r}; indexing the first article creates it", forest=forest
        )
    refuse_others(forest, meta, profile)
    return meta


def _count_leaves(
    search: NodeSearch, neighbours: Neighbours, status: ForestStatus, now_ms: int
) -> Requests[dict[str, dict[int, int]]]:
    """Count the leaves, live when the text arrives, of the roots that it may join, if several."""
    roots = {neighbours.nodes.ids[row] for row in neighbours.nodes.roots.tolist()}
    if len(roots) < 2:
        return {}
    state = status.state
    origin_ms = now_ms if state.origin_ms == NO_TIME else state.origin_ms
    arrived = State(time_ms=max(state.time_ms, now_ms), origin_ms=origin_ms)
    since_ms = status.live_since_ms(status.aging, at=arrived)
    return (yield from search.count_leaves(roots, live_since_ms=since_ms, end_since_ms=since_ms, steps=1))
