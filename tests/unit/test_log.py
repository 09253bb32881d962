"""A forest's log: what is read of it is the forest that wrote it, in whatever pieces."""

from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.elastic.forest.log import LogDocuments
from esdedup.elastic.forest.stored import Entry, Packing, Stored, StoredNode, StoredPage
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import NO_TIME, Nodes, Plan, State
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import (
    AGING,
    Arrival,
    arrivals,
    assert_follows_model,
    batch_sizes,
    batches,
    ordered_arrivals,
)
from tests.support.model import Model

RELATION = relation_of(CLASSIC)
PACKING = Packing(RELATION)


class Logged(MemoryStore):
    """A store that knows no more after each batch than what its log says."""

    def __init__(self, is_shortened: list[bool]) -> None:
        super().__init__(aging=AGING, relation=RELATION)
        self._logs: list[bytes] = []
        # Whether the first log goes after a batch, when what lives of it has been written again.
        self._is_shortened = iter(is_shortened)

    def commit(self, plan: Plan) -> Future[None]:
        written = super().commit(plan)
        self._logs.append(plan.log)
        live_since_ms = plan.state.live_since_ms(AGING)
        if next(self._is_shortened, False):
            first = self._logs.pop(0)
            self._logs.append(PACKING.log(self._nodes.living(first, live_since_ms=live_since_ms)))
        self._nodes = Nodes(RELATION, AGING)
        # In pieces, as documents come.
        self._nodes.load_logs(self._logs[:2])
        self._nodes.load_logs(self._logs[2:])
        self._nodes.settle(live_since_ms=live_since_ms)
        return written


@given(st.one_of(arrivals, ordered_arrivals), batch_sizes, st.lists(st.booleans(), max_size=20))
def test_a_forest_that_is_read_from_its_log_follows_the_laws(
    all_arrivals: list[Arrival], sizes: list[int], is_shortened: list[bool]
) -> None:
    store, model = Logged(is_shortened), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)


def a_node(profile: Profile) -> StoredNode:
    relation = relation_of(profile)
    size = relation.id_bytes
    return StoredNode(
        "ab" * size, "cd" * size, bytes(relation.dtype.itemsize), 7, 100, 120, f"{5:016x}", page_seen_ms=110
    )


@pytest.mark.parametrize("profile", [CLASSIC, VERIFIED], ids=lambda profile: profile.name)
def test_entries_are_read_as_they_were_written(profile: Profile) -> None:
    packing, node = Packing(relation_of(profile)), a_node(profile)
    stored: list[Stored] = [node, StoredPage(node.page, node.id, 3), StoredPage(node.page, None, NO_TIME)]
    packed = [packing.pack(each) for each in stored]
    log = packing.log(packed)
    assert [entry for _, entry in packing.entries(log)] == packed == packing.whole(log)
    assert [packing.seen_ms(*each) for each in packing.entries(log)] == [120, 3, NO_TIME]
    refreshed = bytes([Entry.REFRESHED]) + bytes.fromhex(node.id) + (150).to_bytes(8, "little") * 2
    ((kind, entry),) = packing.entries(refreshed)
    assert (kind, packing.seen_ms(kind, entry)) == (Entry.REFRESHED, 150)
    assert packing.unpack(packing.refreshed(packed[0], entry)) == node._replace(seen_ms=150, page_seen_ms=150)
    assert packing.whole(log + refreshed) == packed


@given(st.binary(max_size=300), st.integers(0, 200))
def test_what_cannot_be_read_ends_a_log_and_nothing_else(rest: bytes, length: int) -> None:
    """The crate and Python read equally far."""
    log = (PACKING.log([PACKING.pack(a_node(CLASSIC)._replace(root=a_node(CLASSIC).id))]) + rest)[:length]
    nodes = Nodes(RELATION, AGING)
    nodes.load_logs([log])
    nodes.settle()
    whole = {each.id for each in map(PACKING.unpack, PACKING.whole(log)) if isinstance(each, StoredNode)}
    assert len(nodes) >= len(whole)
    if len(log) < 1 + 64:
        assert len(nodes) == len(whole) == 0


def test_a_document_says_what_state_and_time_it_has() -> None:
    documents = LogDocuments(PACKING, last=4)
    node = PACKING.pack(a_node(CLASSIC))
    first = documents.add([node], None, State(seq=9, time_ms=115, origin_ms=50))
    assert (first.number, first.log, first.seen_ms) == (5, PACKING.log([node]), 120)
    assert first.json() == (
        "log-5",
        '{"log": 5, "packed": "' + first.json()[1].split('"packed": "')[1].split('"')[0] + '", "seq": 9, '
        '"made": [50, 115], "seen": 120}',
    )
    # The next small batch is added to it; a state without nodes too.
    second = documents.add([], None, State(seq=10, time_ms=130, origin_ms=50))
    assert (second.number, second.log) == (5, first.log)
    assert second.json()[1].endswith('"seq": 10, "made": [50, 130], "seen": 130}')
    third = documents.add([node] * 300, None, None)
    assert (third.number, len(third.log)) == (6, 300 * len(first.log))
    # What a repair writes has no state.
    assert '"seq"' not in third.json()[1]
    documents.begin_another()
    assert documents.number == 7
