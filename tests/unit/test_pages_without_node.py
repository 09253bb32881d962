"""What a page without a fingerprint costs, and how it is counted: the laws over a store in memory."""

import dataclasses
from concurrent.futures import Future

from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Arrivals, Forest, Kind, Plan
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import NO_NODE
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import AGING, NOW_MS, Arrival, as_batch

BARE = Arrival(None, 0, page=1)
NODE_ID = "0" * 15 + "7"


class Watched(MemoryStore):
    """Keeps the last plan."""

    plan: Plan

    def commit(self, plan: Plan) -> Future[None]:
        self.plan = plan
        return super().commit(plan)


def store() -> Watched:
    return Watched(aging=AGING, relation=relation_of(CLASSIC))


def written(watched: Watched, arrivals: Arrivals) -> list[tuple[int, int]]:
    """Return the pages that a batch writes, and the rows of their nodes."""
    Forest(watched).assign(arrivals, now_ms=NOW_MS)
    assert not len(watched.plan.made)
    return list(zip(watched.plan.pages.ids.tolist(), watched.plan.pages.rows.tolist(), strict=True))


def test_a_flood_of_one_page_is_written_once_a_granularity() -> None:
    watched = store()
    assert written(watched, as_batch([BARE] * 50)) == [(1, NO_NODE)]
    assert written(watched, as_batch([BARE] * 50)) == []
    later = dataclasses.replace(BARE, time=1)
    assert written(watched, as_batch([later] * 50)) == [(1, NO_NODE)]
    assert written(watched, as_batch([dataclasses.replace(later, time=AGING.granularity_ms)])) == []


def test_texts_without_letters_and_digits_are_not_remembered() -> None:
    """They never have a fingerprint, whatever was learned."""
    assert written(store(), as_batch([dataclasses.replace(BARE, page=0)] * 50)) == []


def test_a_page_that_stays_without_a_node_is_counted_as_without_a_fingerprint() -> None:
    """Its signature of today makes nothing: the same text on another page becomes a root."""
    forest = Forest(store())
    (bare,) = forest.assign(as_batch([BARE]), now_ms=NOW_MS)
    again, other = forest.assign(
        as_batch([Arrival(NODE_ID, 0, page=1), Arrival(NODE_ID, 0, page=2)]), now_ms=NOW_MS
    )
    assert [each.kind for each in (bare, again, other)] == [
        *[Kind.WITHOUT_FINGERPRINT] * 2,
        Kind.NEW_ROOT,
    ]
    assert [(each.node, each.root) for each in (bare, again, other)] == [*[(None, None)] * 2, (NODE_ID,) * 2]
