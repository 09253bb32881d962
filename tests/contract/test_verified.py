"""The contract of every store for the signatures of `verified`, and for frequent keys."""

import dataclasses
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from esdedup.elastic.forest.store import ElasticStore
from esdedup.fingerprint.agreement import Agreement
from esdedup.fingerprint.profile import VERIFIED, Profile
from esdedup.fingerprint.signature import REPRESENTATIVES, SIGNATURE
from esdedup.forest import NO_TIME, Store
from esdedup.forest.store import MemoryStore
from esdedup.maintenance import Maintenance
from esdedup.neighbours.relation import relation_of
from tests.support.arrivals import (
    AGING,
    NOW_MS,
    Arrival,
    as_batch,
    assigned_by,
    batch_sizes,
    batches,
    some_hash,
    values_of,
)
from tests.support.assign import assign
from tests.support.comparison import compare, resemblance
from tests.support.exploring import examples
from tests.support.forests import in_each_way
from tests.support.model import Model

# Some simhashes, and some minhashes, are a few bits apart. Minhashes are odd.
_SIMHASHES = [0, 0b110, 0xFFFF_0000_FFFF_0000, 0xFFFF_0000_FFFF_0000 ^ 1 << 40]
_MINHASHES = [1, 0b11, 0b111, 0xFFFF_0000_FFFF_0001]


@st.composite
def _signatures(draw: st.DrawFn) -> bytes:
    made = np.zeros(1, SIGNATURE)
    representatives = st.sampled_from([*_SIMHASHES, *_MINHASHES])
    made["representatives"] = (draw(st.lists(representatives, min_size=1, max_size=4)) * REPRESENTATIVES)[
        :REPRESENTATIVES
    ]
    # Each of the eight words has two values, so resemblances are near multiples of 1/8.
    made["sketch"] = [draw(st.sampled_from([0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA])) for _ in range(8)]
    made["units"] = draw(st.sampled_from([50, 5_000]))
    made["runs"] = draw(st.sampled_from([100, 150, 300]))
    made["figures"] = draw(st.sampled_from([0, 20]))
    made["figure_sketch"] = draw(st.sampled_from([0, 1, 2**40 - 1]))
    made["name_sketch"] = draw(st.sampled_from([0, 7 | 31 << 30, 15 | 15 << 30 | 1 << 60, 2**40 - 1]))
    made["origin"] = draw(st.sampled_from([0, 1, 2])) << 38 | draw(st.sampled_from([0, 0, 1])) << 12
    return made.tobytes()


def _addresses(signature: np.ndarray) -> frozenset[int]:
    link, of_id = (int(signature["origin"][0]) >> shift & 2**26 - 1 for shift in (38, 12))
    return frozenset({-link, -of_id << 32} - {0})


def _at_one_address(signature: np.ndarray, period: int = 0) -> np.ndarray:
    moved = signature.copy()
    moved["origin"] = 1 << 38 | period
    return moved


Drawn = tuple[bytes, int | None, int]
verified_arrivals = st.lists(
    st.tuples(_signatures(), some_hash, st.one_of(st.just(NO_TIME), st.integers(0, 400))), max_size=40
)


def _assert_verified_follows(
    open_store: Callable[[Profile], Store],
    drawn: list[Drawn],
    sizes: list[int],
    max_postings: int,
) -> None:
    rules = Agreement(max_postings=max_postings)
    profile = dataclasses.replace(VERIFIED, agreement=rules)
    relation = relation_of(profile)
    signatures = np.frombuffer(b"".join(each for each, _, _ in drawn), SIGNATURE)
    ids = relation.ids(signatures)
    by_id = dict(zip(ids, signatures[:, None], strict=True))
    model = Model(
        AGING,
        lambda one, other: bool(compare(by_id[one], by_id[other], rules).agree[0]),
        lambda text, member, root: bool(
            compare(by_id[text], by_id[member], rules).by_member[0]
            & compare(by_id[text], by_id[root], rules).to_root[0]
            & 3
        ),
        lambda text, whole: (
            bool(compare(by_id[text], by_id[whole], rules).is_part[0])
            and bool(by_id[text]["runs"][0] < by_id[whole]["runs"][0])
        ),
        lambda text, root: float(resemblance(by_id[text]["sketch"], by_id[root]["sketch"])[0]),
        lambda text: by_id[text]["representatives"][0].tolist(),
        lambda one, other: one == other or (not (one | other) & 1 and (one ^ other).bit_count() <= 3),
        max_postings,
        lambda text, before: bool(
            compare(_at_one_address(by_id[text]), _at_one_address(by_id[before]), rules).by_member[0] & 4
        ),
        lambda text, root: bool(compare(by_id[text], by_id[root], rules).to_root[0] & 4),
        lambda text: int(by_id[text]["units"][0]),
        lambda text, period: relation.ids(_at_one_address(by_id[text], period % 4096))[0],
    )
    store = open_store(profile)
    arriving = [
        Arrival(name, time, content_hash, _addresses(signature))
        for name, signature, (_, content_hash, time) in zip(ids, signatures[:, None], drawn, strict=True)
    ]
    for batch in batches(list(zip(arriving, signatures, strict=True)), sizes):
        each_signature = np.array([signature for _, signature in batch], SIGNATURE)
        arrived = [arrival for arrival, _ in batch]
        answers = assign(store, as_batch(arrived, each_signature), now_ms=NOW_MS)
        assert [values_of(each) for each in answers] == [assigned_by(model, each) for each in arrived]


max_postings_drawn = st.sampled_from([1, 2, 3, 64])


@given(verified_arrivals, batch_sizes, max_postings_drawn)
def test_memory_follows_the_laws_of_verified(drawn: list[Drawn], sizes: list[int], max_postings: int) -> None:
    _assert_verified_follows(
        lambda profile: MemoryStore(aging=AGING, relation=relation_of(profile)), drawn, sizes, max_postings
    )


@in_each_way
@examples(4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verified_arrivals, batch_sizes, max_postings_drawn)
def test_elasticsearch_follows_the_laws_of_verified(
    es: Elasticsearch,
    lookup: dict[str, Any],
    drawn: list[Drawn],
    sizes: list[int],
    max_postings: int,
) -> None:
    _assert_elasticsearch_follows(es, lookup, drawn, sizes, max_postings)


def _assert_elasticsearch_follows(
    es: Elasticsearch,
    lookup: dict[str, Any],
    drawn: list[Drawn],
    sizes: list[int],
    max_postings: int,
) -> None:
    name = f"test-forest-{secrets.token_hex(4)}"
    stores: list[ElasticStore] = []

    def opened(profile: Profile) -> ElasticStore:
        stores.append(ElasticStore(es, forest=name, profile=profile, aging=AGING, **lookup))
        return stores[-1]

    try:
        _assert_verified_follows(opened, drawn, sizes, max_postings)
        stores[-1].close()
        assert not list(Maintenance(es, forest=name).verify())
    finally:
        es.options(ignore_status=404).indices.delete(index=name)
