"""Unit costs, measured with a real server."""

import functools

import pytest
from elasticsearch import Elasticsearch

from benchmarks.measure import Sizes
from benchmarks.server import version_of
from benchmarks.unit_costs import measure
from esdedup.elastic.client import connect
from esdedup.fingerprint.profile import Profile
from tests.support import exploring

pytestmark = [pytest.mark.node, pytest.mark.night]

FEW = Sizes(
    texts=20,
    rounds=1,
    nodes=(500, 1_000),
    batches=1,
    articles=100,
    opened_nodes=(500, 1_000),
    stored_nodes=1_000,
    stored_batches=1,
    stored_hashes=500,
    stored_articles=100,
    stored_roots=1_000,
    searched_nodes=(500, 1_000),
    searched_shards=(1, 2),
    kept_for_recovery_s=0.0,
)


@pytest.mark.parametrize("profile", exploring.PROFILES, ids=lambda profile: profile.name)
def test_costs_are_measured_and_nothing_is_left_behind(
    es: Elasticsearch, elasticsearch_url: str, profile: Profile
) -> None:
    costs = measure(profile, functools.partial(connect, elasticsearch_url), FEW)
    stored = costs.server
    assert profile.signature_dtype.itemsize < costs.node_bytes < 4 * profile.signature_dtype.itemsize + 100
    assert 20e6 < costs.process_bytes < 1e9
    assert costs.without_boilerplate.us(1_000) > 0 < costs.whole.us(1_000)
    assert costs.omitting.us(1_000) > 0
    assert costs.deciding.us(10_000) >= costs.deciding.us(1_000) > 0
    # A stored node is larger than its signature, because it also has keys.
    assert stored.node_bytes > profile.signature_dtype.itemsize
    assert stored.page_bytes < stored.node_bytes
    assert stored.article_bytes > profile.signature_dtype.itemsize
    assert 1 <= stored.requests_a_batch < 5
    assert stored.work.us_an_arrival > 0
    assert stored.searching.node_bytes > stored.node_bytes
    assert stored.searching.shard.us(1_000) >= 0
    assert stored.searching.owner_us > 0
    assert stored.searching.measured_shards == 2
    assert 0 < stored.work.heap_bytes_a_root < 1_000
    assert version_of(es).split(".")[0].isdigit()
    assert not es.indices.get(index="esdedup-plan-*", expand_wildcards="all", allow_no_indices=True)
