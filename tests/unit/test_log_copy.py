"""A copy that follows a growing and expiring log assigns articles like a freshly loaded copy."""

import base64
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.elastic.forest.following import LogCopy
from esdedup.elastic.forest.log import LogDocument, LogDocuments
from esdedup.fingerprint.profile import CLASSIC
from esdedup.forest import NO_TIME, Nodes, State
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import (
    AGING,
    NOW_MS,
    Arrival,
    arrivals,
    as_batch,
    batch_sizes,
    batches,
    ordered_arrivals,
)

RELATION = relation_of(CLASSIC)
PLENTY = 2**30


class Owner:
    """A fake owner that assigns batches, and writes a log like the real owner."""

    def __init__(self) -> None:
        self.nodes, self.state = Nodes(RELATION, AGING), State()
        self.log = LogDocuments(RELATION, last=0)
        self.documents: dict[int, LogDocument] = {}
        self.writes: dict[int, int] = {}

    @property
    def live_since_ms(self) -> int:
        return self.state.live_since_ms(AGING)

    def decide(self, batch: Sequence[Arrival], *, is_new: bool) -> None:
        plan = self.nodes.assign(as_batch(list(batch)), self.state, now_ms=NOW_MS)
        self.nodes.keep()
        self.state = plan.state
        if is_new and self.documents:
            self.log.begin_another()
        self.write(self.log.add(plan.written, plan.log, plan.state))

    def write(self, document: LogDocument) -> None:
        self.documents[document.number] = document
        self.writes[document.number] = 1 + max(self.writes.values(), default=0)

    def expire(self) -> None:
        """Remove expired documents from the log, and copy their live nodes to a new document."""
        for number, each in list(self.documents.items()):
            seen_ms = max(each.seen_ms, each.state.time_ms)
            if self.live_since_ms != NO_TIME and seen_ms < self.live_since_ms:
                kept = self.nodes.living(each.log, live_since_ms=self.live_since_ms)
                if kept:
                    self.write(self.log.add(kept, None, None))
                del self.documents[number]

    def hits(self, first: int) -> list[dict[str, Any]]:
        return [self.hit(self.documents[each]) for each in sorted(self.documents) if each >= first]

    def hit(self, document: LogDocument) -> dict[str, Any]:
        _, source = document.json()
        fields = {
            name: value if isinstance(value, list) else [value] for name, value in json.loads(source).items()
        }
        versions = {"_seq_no": self.writes[document.number], "_primary_term": 1}
        return {"sort": [document.number], "fields": fields, **versions}

    def loaded(self) -> Nodes:
        nodes = Nodes(RELATION, AGING)
        nodes.load_logs([self.documents[number].log for number in sorted(self.documents)])
        nodes.settle(live_since_ms=self.live_since_ms)
        return nodes

    def versions(self, copy: LogCopy) -> dict[int, tuple[int, int]]:
        """Return the versions that a search finds for the documents that a copy has read."""
        lives = {number: max(each.seen_ms, each.state.time_ms) for number, each in self.documents.items()}
        return {
            number: (self.writes[number], 1)
            for number, seen_ms in lives.items()
            if number < copy.number and seen_ms >= self.live_since_ms
        }


def read(copy: LogCopy, owner: Owner, *, page_size: int) -> None:
    """Read the log to its end, `page_size` documents at a time."""
    while True:
        hits = owner.hits(copy.number)[:page_size]
        copy.add(hits)
        if len(hits) < page_size:
            return


def read_on(copy: LogCopy, owner: Owner, *, page_size: int) -> LogCopy:
    """Continue to read; like a standby, start again if the last document that was read has been deleted."""
    if copy.number and copy.number not in owner.documents:
        with pytest.raises(ValueError, match="replaced"):
            read(copy, owner, page_size=page_size)
        copy = copied()
    read(copy, owner, page_size=page_size)
    return copy


def copied(memory_bytes: int = PLENTY) -> LogCopy:
    return LogCopy(RELATION, AGING, memory_bytes=memory_bytes)


# Whether the owner begins a new document, then removes expired documents, and whether the copy reads the log.
steps = st.tuples(st.booleans(), st.booleans(), st.booleans())


@example([Arrival(None, 0), Arrival(None, 100)], [1], [(True, True, True)], 2, [])
@given(
    st.one_of(arrivals, ordered_arrivals, ordered_arrivals),
    batch_sizes,
    st.lists(steps, min_size=1),
    st.integers(2, 5),
    st.one_of(arrivals, ordered_arrivals),
)
def test_followed_and_loaded_nodes_give_the_same_assignments(
    before: list[Arrival],
    sizes: list[int],
    steps: list[tuple[bool, bool, bool]],
    page_size: int,
    after: list[Arrival],
) -> None:
    owner, copy = Owner(), copied()
    for number, batch in enumerate(batches(before, sizes)):
        is_new, shortens, reads = steps[number % len(steps)]
        owner.decide(batch, is_new=is_new)
        if shortens:
            owner.expire()
        if reads:
            copy = read_on(copy, owner, page_size=page_size)
            copy.settle()
    # The owner stops here.
    assert owner.versions(copy) == copy.versions(owner.live_since_ms)
    copy = read_on(copy, owner, page_size=page_size)
    copy.settle(live_since_ms=owner.live_since_ms)
    loaded = owner.loaded()
    assert len(copy.nodes) == len(loaded)
    state = owner.state
    for batch in batches(
        [dataclasses.replace(each, time=max(each.time, state.time_ms)) for each in after], [3, 7]
    ):
        expected, found = (
            nodes.assign(as_batch(batch), state, now_ms=NOW_MS) for nodes in (loaded, copy.nodes)
        )
        assert expected == found
        state = found.state
        loaded.keep()
        copy.nodes.keep()


def many(numbers: range, time: int = 0) -> list[Arrival]:
    return [Arrival(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}", time) for number in numbers]


def followed(owner: Owner) -> LogCopy:
    copy = copied()
    read(copy, owner, page_size=100)
    copy.settle()
    return copy


@pytest.fixture
def owner() -> Owner:
    owner = Owner()
    for start in range(0, 30, 10):
        owner.decide(many(range(start, start + 10), time=start), is_new=True)
    return owner


def test_only_new_documents_are_read(owner: Owner) -> None:
    copy = followed(owner)
    assert copy.read_count == 3
    read(copy, owner, page_size=100)
    assert not copy.is_unsettled
    owner.decide(many(range(30, 31)), is_new=False)
    read(copy, owner, page_size=100)
    assert (copy.read_count, copy.is_unsettled) == (4, True)


def test_a_replaced_last_document_is_refused(owner: Owner) -> None:
    copy = followed(owner)
    last = owner.documents[3]
    owner.write(last._replace(log=last.log[1:]))
    with pytest.raises(ValueError, match="replaced"):
        read(copy, owner, page_size=100)
    copy = followed(owner)
    with pytest.raises(ValueError, match="replaced"):
        copy.add([])


@pytest.mark.parametrize("change", ["deleted", "written", "added"])
def test_changes_of_earlier_documents_are_noticed(owner: Owner, change: str) -> None:
    if change == "added":
        late = owner.documents.pop(2)
        copy = followed(owner)
        owner.documents[2] = late
    else:
        copy = followed(owner)
        if change == "deleted":
            del owner.documents[1]
        else:
            owner.write(owner.documents[1])
    assert owner.versions(copy) != copy.versions(owner.live_since_ms)


def test_expired_nodes_take_no_memory(owner: Owner) -> None:
    copy = followed(owner)
    for time in range(40, 2_000, 40):
        owner.decide(many(range(time * 10, time * 10 + 10), time=time), is_new=True)
        owner.expire()
        read(copy, owner, page_size=100)
        copy.settle()
    assert len(copy.nodes) < 60
    assert len(copy.versions(NO_TIME)) < 6
    assert owner.versions(copy) == copy.versions(owner.live_since_ms)


def test_a_copy_that_exceeds_its_memory_is_refused(owner: Owner) -> None:
    size_bytes = followed(owner).nodes.size_bytes
    copy = copied(size_bytes - 1)
    read(copy, owner, page_size=100)
    with pytest.raises(ValueError, match="memory"):
        copy.settle()
    with pytest.raises(ValueError, match="memory"):
        read(copied(size_bytes // 3), owner, page_size=100)


def test_an_unreadable_document_is_refused(owner: Owner) -> None:
    for damage in ({}, {"packed": ["a"]}, {"packed": [base64.b64encode(b"a").decode()] * 2}):
        hits = owner.hits(1)
        del hits[1]["fields"]["packed"]
        hits[1]["fields"] |= damage
        with pytest.raises(ValueError, match=r".*"):
            copied().add(hits)
