"""The state and the retention of a forest, as documents of its index."""

import dataclasses
from typing import Any

from esdedup.elastic.forest.stored import Document
from esdedup.elastic.requests import Query, ReadDocument, Requests, aggregate
from esdedup.forest.model import DEFAULT_RETENTION, NO_TIME, Aging, State

DEFAULT_AGING = Aging.of(retention=DEFAULT_RETENTION)
"""The default retention of a new forest."""

STATE_ID = "~state"
AGING_ID = "~aging"
REBUILT_ID = "~rebuilt"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ForestStatus:
    """The forest's state, and how long its nodes live."""

    state: State
    # The aging set by the last owner; None if no owner has set any.
    stored_aging: Aging | None
    # Nodes with an earlier `seen` had expired when the retention was extended; NO_TIME if it never was.
    dead_before_ms: int

    @property
    def aging(self) -> Aging:
        """How long nodes live: the stored aging, or the default."""
        return self.stored_aging or DEFAULT_AGING

    def live_since_ms(self, aging: Aging) -> int:
        """Return the minimum `seen` of a live node; NO_TIME if all nodes are live."""
        return max(self.dead_before_ms, self.state.live_since_ms(aging))


def read_status(forest: str, *, latest_ms: int | None = None) -> Requests[ForestStatus]:
    """Read a forest's status; see `ForestIndex.status`."""
    stored = State(**(yield from _read(forest, STATE_ID)))
    aging = yield from _read(forest, AGING_ID)
    aggregations = state_aggregations(seq="seq", time="made", latest_ms=latest_ms)
    answer = yield from aggregate(forest, {"match_all": {}}, aggregations)
    # After a crash, nodes may be newer than the stored state, or the state may be missing.
    state = stored.until(latest_ms).after(state_of(answer))
    dead_before_ms = aging.pop("dead_before_ms", NO_TIME)
    if latest_ms is not None and dead_before_ms > state.time_ms:
        # Ignore a time that was set while the forest's time was in the future.
        dead_before_ms = NO_TIME
    return ForestStatus(
        state=state, stored_aging=Aging(**aging) if aging else None, dead_before_ms=dead_before_ms
    )


def read_server_time(forest: str) -> Requests[int]:
    """Read the server's clock, milliseconds since 1970. Needs only the privilege to read the forest."""
    ranges = {"field": "seen", "ranges": [{"from": "now"}]}
    answer = yield from aggregate(forest, {"match_none": {}}, {"now": {"date_range": ranges}})
    return int(answer["now"]["buckets"][0]["from"])


def read_ordered_since(forest: str) -> Requests[int]:
    """Read the seq up to which the order of nodes is unreliable after a rebuild or repair, or 0."""
    stored = yield from _read(forest, REBUILT_ID)
    return stored.get("seq", 0)


def state_document(state: State) -> Document:
    """Return the document that stores the state."""
    return STATE_ID, {"state": state._asdict()}


def aging_document(aging: Aging, *, dead_before_ms: int) -> Document:
    """Return the document with the retention. Nodes seen before `dead_before_ms` stay expired."""
    return AGING_ID, {"state": dataclasses.asdict(aging) | {"dead_before_ms": dead_before_ms}}


def ordered_since_document(seq: int) -> Document:
    """Return the document that marks the order of nodes up to `seq` as unreliable."""
    return REBUILT_ID, {"state": {"seq": seq}}


def state_aggregations(*, seq: str, time: str, latest_ms: int | None = None) -> Query:
    """Return the aggregations that `state_of` reads; `seq` and `time` are names of fields.

    Times later than `latest_ms` are ignored.
    """
    known: Query = {"filter": {"exists": {"field": time}}}
    if latest_ms is not None:
        # Exclude whole documents, since a document of a log has two times.
        known["must_not"] = {"range": {time: {"gt": latest_ms, "format": "epoch_millis"}}}
    return {
        "seq": {"max": {"field": seq}},
        "times": {
            "filter": {"bool": known},
            "aggs": {"last": {"max": {"field": time}}, "first": {"min": {"field": time}}},
        },
    }


def state_of(aggregations: dict[str, Any]) -> State:
    """Read a state from the results of `state_aggregations`."""
    last, first = (aggregations["times"][name]["value"] for name in ("last", "first"))
    return State(
        seq=int(aggregations["seq"]["value"] or 0),
        time_ms=NO_TIME if last is None else int(last),
        origin_ms=NO_TIME if first is None else int(first),
    )


def _read(forest: str, document_id: str) -> Requests[dict[str, int]]:
    source = yield ReadDocument(index=forest, id=document_id)
    return {} if source is None else dict(source["state"])
