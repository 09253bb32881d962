"""Nodes and content hashes in memory, in logs and packed; limits on nodes per key; growth of clusters."""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.signatures import documents
from esdedup.elastic.forest.log import LogDocuments, stored_in_log
from esdedup.elastic.forest.stored import (
    Stored,
    StoredHash,
    StoredNode,
    agrees,
    search_body,
    stored_of,
    unpack,
)
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.fingerprint.signature import MINHASH, PLACES, REPRESENTATIVES, SIGNATURE
from esdedup.forest import Aging, Arrivals, Assignment, Kind, Nodes, Plan, State
from esdedup.forest.forest import MOST_PLAUSIBLE_LEAVES, Growth
from esdedup.forest.model import NO_TIME
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import (
    AGING,
    NOW_MS,
    Arrival,
    arrivals,
    as_batch,
    assert_follows_model,
    batch_sizes,
    batches,
    ordered_arrivals,
)
from tests.support.assign import assign
from tests.support.model import Model

RELATION = relation_of(CLASSIC)
_LOWEST = np.uint64(0x5555_5555_5555_5555)


def scattered(numbers: range, time: int) -> list[Arrival]:
    return [Arrival(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}", time, hash=n + 1) for n in numbers]


def test_expired_nodes_free_memory_and_rows() -> None:
    nodes, state, sizes = Nodes(RELATION, Aging(retention_ms=1_000, granularity_ms=10)), State(), []
    for round_ in range(40):
        batch = as_batch(scattered(range(500 * round_, 500 * (round_ + 1)), 100 * round_))
        state = nodes.assign(batch, state, now_ms=NOW_MS).state
        nodes.keep()
        sizes.append(nodes.size_bytes)
    # The nodes of about ten rounds are live; up to a fifth more have expired but are not examined yet.
    assert 5_000 <= len(nodes) <= 7_000
    assert sizes[-1] <= 1.2 * sizes[14]


@given(arrivals, batch_sizes, arrivals, st.integers(1, 3))
def test_undone_assignments_change_nothing(
    kept: list[Arrival], sizes: list[int], undone: list[Arrival], depth: int
) -> None:
    """Any number of assignments can be undone together."""
    plain, disturbed = Nodes(RELATION, AGING), Nodes(RELATION, AGING)
    state = State()
    for batch in map(as_batch, batches(kept, sizes)):
        after = state
        for number in range(depth):
            after = disturbed.assign(as_batch(undone[number::depth]), after, now_ms=NOW_MS).state
        disturbed.undo()
        one, other = (nodes.assign(batch, state, now_ms=NOW_MS) for nodes in (plain, disturbed))
        assert one == other
        state = one.state
        plain.keep()
        disturbed.keep()


@given(arrivals, batch_sizes, st.randoms(use_true_random=False), arrivals)
def test_stored_records_restore_the_same_nodes(
    all_arrivals: list[Arrival], sizes: list[int], random: st.DataObject, later: list[Arrival]
) -> None:
    """Records may be read in any order and more than once."""
    nodes, state = Nodes(RELATION, AGING), State()
    stored: dict[bytes, bytes] = {}
    for batch in map(as_batch, batches(all_arrivals, sizes)):
        plan = nodes.assign(batch, state, now_ms=NOW_MS)
        state = plan.state
        # Each record begins with its id; the record of a node has 64 bytes.
        stored |= {packed[:8] + bytes([len(packed) == 64]): packed for packed in plan.written}
        nodes.keep()
    packed = list(stored.values())
    random.shuffle(packed)  # type: ignore[attr-defined]
    read = Nodes(RELATION, AGING)
    for _ in range(2):
        read.load(packed, live_since_ms=state.live_since_ms(AGING))
        assert read.missing() == ([], [])
        read.settle()
    one, other = (each.assign(as_batch(later), state, now_ms=NOW_MS) for each in (nodes, read))
    assert one.assignments == other.assignments
    assert one.state == other.state


def test_a_missing_root_is_recreated_from_its_leaf() -> None:
    nodes = Nodes(RELATION, AGING)
    plan = nodes.assign(as_batch([Arrival("00" * 8, 0), Arrival("00" * 7 + "07", 0)]), State(), now_ms=NOW_MS)
    read = Nodes(RELATION, AGING)
    read.load(plan.written[1:], live_since_ms=NO_TIME)
    assert read.missing() == (["00" * 8], [])
    read.settle()
    (again,) = read.assign(
        as_batch([Arrival("00" * 7 + "07", 0, hash=5)]), plan.state, now_ms=NOW_MS
    ).assignments
    assert (again.kind.value, again.root) == ("known", "00" * 8)
    assert len(read) == 2


def test_records_of_unknown_sizes_are_ignored() -> None:
    nodes = Nodes(RELATION, AGING)
    nodes.load([b"", bytes(15), bytes(63), bytes(65), bytes(1_000)], live_since_ms=NO_TIME)
    nodes.settle()
    assert (len(nodes), nodes.extra_hash_count) == (0, 0)


def test_columns_that_differ_in_length_are_refused() -> None:
    nodes = Nodes(relation_of(CLASSIC), AGING)
    batch = as_batch([Arrival("00" * 8, 0), Arrival("ff" * 8, 0)])
    for name in ("signatures", "exist", "content_hashes", "times_ms"):
        shorter = dataclasses.replace(batch, **{name: getattr(batch, name)[:1]})
        with pytest.raises(ValueError, match="differ in length"):
            nodes.assign(shorter, State(), now_ms=0)
        assert nodes.depth == 0


def test_the_earlier_of_two_equally_near_roots_is_joined() -> None:
    """The order in which the two roots are loaded makes no difference."""
    earlier, later, between = "00" * 8, "00" * 7 + "3f", "00" * 7 + "07"
    nodes = Nodes(RELATION, AGING)
    plan = nodes.assign(as_batch([Arrival(earlier, 0), Arrival(later, 0)]), State(), now_ms=NOW_MS)
    for written in (plan.written, plan.written[::-1]):
        read = Nodes(RELATION, AGING)
        read.load(written, live_since_ms=NO_TIME)
        read.settle()
        (joined,) = read.assign(as_batch([Arrival(between, 0)]), plan.state, now_ms=NOW_MS).assignments
        assert joined.root == earlier


SHARED = 0b110


def different_texts(count: int) -> np.ndarray:
    """Make signatures of texts that do not agree but share their first simhash."""
    random = np.random.default_rng(1)
    signatures = np.zeros(count, SIGNATURE)
    signatures["representatives"] = random.integers(0, 2**62, (count, REPRESENTATIVES), np.uint64) | MINHASH
    signatures["representatives"][:, 0] = SHARED
    signatures["sketch"] = random.integers(0, 2**62, signatures["sketch"].shape, np.uint64) | _LOWEST
    signatures["units"], signatures["runs"] = 5_000, 300
    return signatures


def test_the_earlier_of_two_equally_similar_roots_is_joined() -> None:
    signatures = different_texts(3)
    signatures["sketch"][:2] = [[_LOWEST], [~_LOWEST]]
    signatures["sketch"][2] = [_LOWEST] * 4 + [~_LOWEST] * 4
    relation = relation_of(dataclasses.replace(VERIFIED, agreement=Agreement(resemblance=0.2)))
    ids = relation.ids(signatures)
    batches = [as_batch([Arrival(ids[at], 0) for at in some], signatures[some]) for some in ([0, 1], [2])]
    plan = Nodes(relation, AGING).assign(batches[0], State(), now_ms=NOW_MS)
    assert [each.kind for each in plan.assignments] == [Kind.NEW_ROOT] * 2
    for written in (plan.written, plan.written[::-1]):
        read = Nodes(relation, AGING)
        read.load(written, live_since_ms=NO_TIME)
        read.settle()
        (joined,) = read.assign(batches[1], plan.state, now_ms=NOW_MS).assignments
        assert joined.root == plan.assignments[0].root


class Saturated:
    """Nodes of which at most `max_postings` are indexed under the same key."""

    def __init__(self, max_postings: int) -> None:
        rules = Agreement(max_postings=max_postings)
        self._relation = relation_of(dataclasses.replace(VERIFIED, agreement=rules))
        self._nodes, self._state = Nodes(self._relation, AGING), State()

    def are_indexed(self, signatures: np.ndarray, time: int) -> list[bool]:
        """Let texts arrive, and return which nodes are indexed under the shared simhash."""
        batch = as_batch([Arrival(each, time) for each in self._relation.ids(signatures)], signatures)
        plan = self._nodes.assign(batch, self._state, now_ms=NOW_MS)
        self._nodes.keep()
        self._state = plan.state
        held = np.frombuffer(b"".join(each.signature for each in plan.assignments), SIGNATURE)
        return list(map(bool, held["indexed"] & PLACES[0]))


def test_a_key_indexes_at_most_max_postings_nodes() -> None:
    assert Saturated(4).are_indexed(different_texts(6), 0) == [True] * 4 + [False] * 2


def test_only_nodes_made_within_the_retention_saturate_keys() -> None:
    """Nodes made earlier may still be live if articles have used them since."""
    saturated, texts = Saturated(2), different_texts(4)
    assert saturated.are_indexed(texts[:2], 0) == [True, True]
    assert saturated.are_indexed(texts[:3], AGING.retention_ms // 2) == [True, True, False]
    assert saturated.are_indexed(texts[3:], AGING.retention_ms + AGING.granularity_ms) == [True]


BARE = Arrival(None, 0, hash=1)
NODE_ID = "0" * 15 + "7"


class Watched(MemoryStore):
    """A store that keeps its last plan for inspection."""

    plan: Plan

    def commit(self, plan: Plan) -> Future[None]:
        self.plan = plan
        return super().commit(plan)


def store() -> Watched:
    return Watched(aging=AGING, relation=relation_of(CLASSIC))


def written(watched: Watched, arrivals: Arrivals) -> list[StoredHash]:
    """Return the content hashes that a batch writes; fail if it writes anything else."""
    assign(watched, arrivals, now_ms=NOW_MS)
    stored = [unpack(packed, watched.relation) for packed in watched.plan.written]
    assert all(isinstance(each, StoredHash) for each in stored)
    return [each for each in stored if isinstance(each, StoredHash)]


def bare(seen_ms: int) -> StoredHash:
    return StoredHash(f"{1:016x}", None, seen_ms)


def test_repeats_of_a_text_are_written_once_per_granularity() -> None:
    watched = store()
    assert written(watched, as_batch([BARE] * 50)) == [bare(0)]
    assert written(watched, as_batch([BARE] * 50)) == []
    later = dataclasses.replace(BARE, time=1)
    assert written(watched, as_batch([later] * 50)) == [bare(AGING.granularity_ms)]
    assert written(watched, as_batch([dataclasses.replace(later, time=AGING.granularity_ms)])) == []


def test_texts_without_letters_or_digits_are_not_remembered() -> None:
    """Such texts never get a fingerprint."""
    assert written(store(), as_batch([dataclasses.replace(BARE, hash=0)] * 50)) == []


def test_a_text_remembered_without_a_node_gets_no_fingerprint() -> None:
    """This holds even if the text has a signature now; another text with this signature becomes a root."""
    watched = store()
    (first,) = assign(watched, as_batch([BARE]), now_ms=NOW_MS)
    again, other = assign(
        watched, as_batch([Arrival(NODE_ID, 0, hash=1), Arrival(NODE_ID, 0, hash=2)]), now_ms=NOW_MS
    )
    assert [each.kind for each in (first, again, other)] == [
        *[Kind.WITHOUT_FINGERPRINT] * 2,
        Kind.NEW_ROOT,
    ]
    assert [(each.node, each.root) for each in (first, again, other)] == [*[(None, None)] * 2, (NODE_ID,) * 2]


def joined(root: str, count: int) -> Iterator[Assignment]:
    return (Assignment(Kind.JOINED, f"{seq:016x}", root, seq, 0, b"") for seq in range(count))


def test_growth_is_reported_once_per_doubling() -> None:
    counted = Growth()
    assert counted.add(joined("a", MOST_PLAUSIBLE_LEAVES)) == []
    assert counted.add(joined("b", MOST_PLAUSIBLE_LEAVES + 1)) == [("b", MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", MOST_PLAUSIBLE_LEAVES - 1)) == []
    assert counted.add(joined("a", 1)) == [("a", MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", 1)) == [("b", 2 * MOST_PLAUSIBLE_LEAVES)]
    assert counted.add(joined("b", 2 * MOST_PLAUSIBLE_LEAVES)) == [("b", 4 * MOST_PLAUSIBLE_LEAVES)]


@pytest.mark.parametrize("kind", [Kind.NEW_ROOT, Kind.KNOWN, Kind.WITHOUT_FINGERPRINT])
def test_only_joining_articles_count_as_growth(kind: Kind) -> None:
    others = (Assignment(kind, "b", "a", seq, 0, b"") for seq in range(2 * MOST_PLAUSIBLE_LEAVES))
    assert Growth().add(others) == []


def test_small_clusters_are_forgotten_before_large_ones() -> None:
    counted = Growth(max_clusters=10)
    counted.add(joined("large", MOST_PLAUSIBLE_LEAVES))
    for each in range(100):
        counted.add(joined(f"small-{each}", 2))
    assert counted.add(joined("large", 1)) == [("large", MOST_PLAUSIBLE_LEAVES)]


CORE = RELATION.core


class Logged(MemoryStore):
    """A store that is read back from its logs after each batch."""

    def __init__(self, is_shortened: list[bool]) -> None:
        super().__init__(aging=AGING, relation=RELATION)
        self._logs: list[bytes] = []
        # For each batch: whether a log of the live nodes replaces the first log after the batch.
        self._is_shortened = iter(is_shortened)

    def commit(self, plan: Plan) -> Future[None]:
        written = super().commit(plan)
        self._logs.append(plan.log)
        live_since_ms = plan.state.live_since_ms(AGING)
        if next(self._is_shortened, False):
            first = self._logs.pop(0)
            self._logs.append(CORE.log(self._nodes.living(first, live_since_ms=live_since_ms))[0])
        self._nodes = Nodes(RELATION, AGING)
        # The logs are loaded in several calls, like documents that are read one after another.
        self._nodes.load_logs(self._logs[:2])
        self._nodes.load_logs(self._logs[2:])
        self._nodes.settle(live_since_ms=live_since_ms)
        return written


@given(st.one_of(arrivals, ordered_arrivals), batch_sizes, st.lists(st.booleans(), max_size=20))
def test_a_forest_read_from_its_log_follows_the_laws(
    all_arrivals: list[Arrival], sizes: list[int], is_shortened: list[bool]
) -> None:
    store, model = Logged(is_shortened), Model(AGING)
    for batch in batches(all_arrivals, sizes):
        assert_follows_model(store, model, batch)


def a_node(profile: Profile) -> StoredNode:
    relation = relation_of(profile)
    size = 8 if profile == CLASSIC else 16
    return StoredNode(
        "ab" * size, "cd" * size, bytes(relation.dtype.itemsize), 7, 100, 120, f"{5:016x}", hash_seen_ms=110
    )


@pytest.mark.parametrize("profile", [CLASSIC, VERIFIED], ids=lambda profile: profile.name)
def test_log_entries_are_read_as_written(profile: Profile) -> None:
    relation, node = relation_of(profile), a_node(profile)
    stored: list[Stored] = [
        node,
        StoredHash(node.content_hash, node.id, 3),
        StoredHash(node.content_hash, None, NO_TIME),
        node._replace(has_part=node.root),
    ]
    packed = [relation.core.pack(each) for each in stored]
    log, seen_ms = relation.core.log(packed)
    assert (relation.core.entries(log), seen_ms) == ((packed, True), 120)
    refreshed = b"\3" + bytes.fromhex(node.id) + (150).to_bytes(8, "little") + (140).to_bytes(8, "little")
    assert relation.core.entries(log + refreshed) == ([*packed, (node.id, 150, 140)], True)
    assert relation.core.entries(log + refreshed[:-1]) == (packed, False)
    assert list(stored_in_log(log + refreshed, relation)) == stored


@given(st.binary(max_size=300), st.integers(0, 200))
def test_unreadable_bytes_do_not_hide_earlier_log_entries(rest: bytes, length: int) -> None:
    node = a_node(CLASSIC)
    log = (CORE.log([CORE.pack(node._replace(root=node.id))])[0] + rest)[:length]
    nodes = Nodes(RELATION, AGING)
    nodes.load_logs([log])
    nodes.settle()
    found = {each.id for each in stored_in_log(log, RELATION) if isinstance(each, StoredNode)}
    assert len(nodes) >= len(found)
    if len(log) < 1 + 64:
        assert len(nodes) == len(found) == 0


def test_a_log_document_contains_its_state_and_time() -> None:
    documents = LogDocuments(RELATION, last=4)
    node = CORE.pack(a_node(CLASSIC))
    first = documents.add([node], None, State(seq=9, time_ms=115, origin_ms=50))
    assert (first.number, first.log, first.seen_ms) == (5, CORE.log([node])[0], 120)
    assert first.json() == (
        "log-5",
        '{"log": 5, "packed": "' + first.json()[1].split('"packed": "')[1].split('"')[0] + '", "seq": 9, '
        '"made": [50, 115], "seen": 120}',
    )
    # The next small batch is added to the same document, even if the batch has only a state.
    second = documents.add([], None, State(seq=10, time_ms=130, origin_ms=50))
    assert (second.number, second.log) == (5, first.log)
    assert second.json()[1].endswith('"seq": 10, "made": [50, 130], "seen": 130}')
    third = documents.add([node] * 300, None, None)
    assert (third.number, len(third.log)) == (6, 300 * len(first.log))
    # Entries written by a repair have no state.
    assert '"seq"' not in third.json()[1]
    documents.begin_another()
    assert documents.number == 7


PROFILES = (CLASSIC, VERIFIED)


@st.composite
def profiles_and_stored(draw: st.DrawFn) -> tuple[Profile, Stored]:
    profile = draw(st.sampled_from(PROFILES))
    relation = relation_of(profile)
    id_bytes = 8 if profile == CLASSIC else 16
    node_ids = st.binary(min_size=id_bytes, max_size=id_bytes).map(bytes.hex)
    hashes = st.integers(1, 2**64 - 1).map("{:016x}".format)
    times = st.just(NO_TIME) | st.integers(-(2**62), 2**62)
    size = relation.dtype.itemsize
    nodes = st.builds(
        StoredNode,
        id=node_ids,
        root=node_ids,
        signature=st.binary(min_size=size, max_size=size),
        seq=st.integers(0, 2**63 - 1),
        made_ms=times,
        seen_ms=times,
        content_hash=st.just("") | hashes,
        part_of=st.just("") | node_ids.filter(lambda each: each.strip("0")),
        has_part=st.just("") | node_ids.filter(lambda each: each.strip("0")),
        hash_seen_ms=times,
    )
    extra = st.builds(StoredHash, content_hash=hashes, node=st.none() | node_ids, seen_ms=times)
    return profile, draw(nodes | extra)


@given(profiles_and_stored())
def test_packed_records_are_unpacked_unchanged(drawn: tuple[Profile, Stored]) -> None:
    profile, stored = drawn
    relation = relation_of(profile)
    packed = relation.core.pack(stored)
    assert unpack(packed, relation) == stored
    # A truncated record is not read as the same record.
    assert unpack(packed[:-4], relation) != stored


@given(profiles_and_stored())
def test_a_document_agrees_only_with_its_own_node(drawn: tuple[Profile, Stored]) -> None:
    profile, stored = drawn
    relation = relation_of(profile)
    ((name, body),) = documents([stored], relation)
    hit = {"_id": name, "fields": {field: [value] for field, value in body.items() if field != "keys"}}
    assert stored_of([hit], relation) == [stored]
    assert agrees(hit, stored)
    assert not agrees(hit, stored._replace(seen_ms=12_345 if stored.seen_ms != 12_345 else 12_346))
    assert stored_of([hit | {"_id": "another"}], relation) == []


@pytest.mark.parametrize("values", [[], ["AA=="], ["", ""]])
def test_documents_without_a_readable_value_are_ignored(values: list[str]) -> None:
    assert stored_of([{"fields": {"packed": values}}], relation_of(VERIFIED)) == []


def test_a_search_requests_one_value_per_document() -> None:
    """Fetching eight fields, or the id, takes the server ten times as long."""
    body = search_body({"match_all": {}}, size=10)
    assert body["docvalue_fields"] == ["packed"]
    assert body["stored_fields"] == "_none_"
    assert "_source" not in body
