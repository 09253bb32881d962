"""What the sidecar reads in odd bulk bodies is what the server reads in them; the rest it refuses."""

from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

from esdedup.sidecar.bulk_request import RequestRefused, read_bulk
from tests.support.bulk_bodies import BODIES
from tests.support.exploring import examples
from tests.support.fuzzed import Fuzzed, check_bulk, fuzzed
from tests.support.names import new_names

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def stage(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Fuzzed]:
    with new_names(es) as name, fuzzed(es, elasticsearch_url, name) as made:
        yield made
        made.check_is_idle()


def _check_is_read_alike(stage: Fuzzed, body: bytes) -> None:
    # An index in which only the JSON counts.
    answer = stage.elasticsearch.send("POST", f"/{stage.plain.theirs}/_bulk", body, NDJSON)
    try:
        read = read_bulk(body, index=stage.plain.theirs)
    except RequestRefused:
        return
    # What the server does not take it refuses itself: it gets the same bytes.
    if answer.status == 200:
        assert [operation for operation, _ in answer.items] == [each.operation for each in read]
        for item, (_, values) in zip(read, answer.items, strict=True):
            assert values["_index"] == item.index
            assert "_id" not in item.meta or values["_id"] in (item.meta["_id"], "auto-generated")


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:60]))
def test_what_is_read_is_what_the_server_reads(stage: Fuzzed, body: bytes) -> None:
    _check_is_read_alike(stage, body)


_LINES = sorted({line for body in BODIES for line in body.split(b"\n") if b"_index" not in line})


@examples(25)
@given(
    st.lists(st.sampled_from(_LINES) | st.just(b'{"index":{"_id":"1"}}') | st.just(b"{}"), max_size=6),
    st.integers(0, 60),
    st.sampled_from([*(bytes([each]) for each in b'{}",: \\\r\n[]1#\xff'), b"", b"\xef\xbb\xbf", b"/**/"]),
    st.booleans(),
)
def test_so_it_is_in_random_ones(
    stage: Fuzzed, lines: list[bytes], at: int, inserted: bytes, is_ended: bool
) -> None:
    body = b"\n".join(lines) + (b"\n" if is_ended else b"")
    _check_is_read_alike(stage, body[:at] + inserted + body[at:])


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:60]))
def test_none_brings_in_an_article_without_a_root(stage: Fuzzed, es: Elasticsearch, body: bytes) -> None:
    ours, theirs = stage.both(stage.set_up, "/{index}/_bulk?refresh=true", body, NDJSON)
    check_bulk(body, ours, theirs)
    stage.articles(es)
    stage.check_lives()
