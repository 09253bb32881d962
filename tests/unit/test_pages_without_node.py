"""What a page without a fingerprint costs, and how it is counted: the laws over a store in memory."""

import dataclasses
from concurrent.futures import Future

from esdedup.elastic.forest.stored import Packing, StoredPage
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import Arrivals, Forest, Kind, Plan
from esdedup.forest.memory import MemoryStore
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


def written(watched: Watched, arrivals: Arrivals) -> list[StoredPage]:
    """Return the pages that a batch writes, and nothing else."""
    Forest(watched).assign(arrivals, now_ms=NOW_MS)
    stored = [Packing(watched.relation).unpack(packed) for packed in watched.plan.written]
    assert all(isinstance(each, StoredPage) for each in stored)
    return [each for each in stored if isinstance(each, StoredPage)]


def bare(seen_ms: int) -> StoredPage:
    return StoredPage(f"{1:016x}", None, seen_ms)


def test_a_flood_of_one_page_is_written_once_a_granularity() -> None:
    watched = store()
    assert written(watched, as_batch([BARE] * 50)) == [bare(0)]
    assert written(watched, as_batch([BARE] * 50)) == []
    later = dataclasses.replace(BARE, time=1)
    assert written(watched, as_batch([later] * 50)) == [bare(AGING.granularity_ms)]
    assert written(watched, as_batch([dataclasses.replace(later, time=AGING.granularity_ms)])) == []


def test_texts_without_letters_and_digits_are_not_remembered() -> None:
    """They never have a fingerprint, whatever was learned."""
    assert written(store(), as_batch([dataclasses.replace(BARE, page=0)] * 50)) == []


def test_a_page_that_stays_without_a_node_is_counted_as_without_a_fingerprint() -> None:
    """Its signature of today makes nothing: the same text on another page becomes a root."""
    forest = Forest(store())
    (first,) = forest.assign(as_batch([BARE]), now_ms=NOW_MS)
    again, other = forest.assign(
        as_batch([Arrival(NODE_ID, 0, page=1), Arrival(NODE_ID, 0, page=2)]), now_ms=NOW_MS
    )
    assert [each.kind for each in (first, again, other)] == [
        *[Kind.WITHOUT_FINGERPRINT] * 2,
        Kind.NEW_ROOT,
    ]
    assert [(each.node, each.root) for each in (first, again, other)] == [*[(None, None)] * 2, (NODE_ID,) * 2]
