"""The server's own verdicts on bulk bodies, paths and `filter_path` are those of the sidecar."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

from esdedup.sidecar.bulk_request import BulkItem, read_bulk
from esdedup.sidecar.refusals import BulkMalformed
from tests.support.bulk_bodies import BODIES, TWICE_MALFORMED
from tests.support.exploring import examples
from tests.support.names import new_names

# JSON that cannot be read: the server quotes its parser, which words it otherwise.
_QUOTED = {"x_content_parse_exception", "x_content_e_o_f_exception", "parse_exception"}


class Server:
    """Sends what a client library would not."""

    def __init__(self, url: str, index: str) -> None:
        self.index = index
        self._url = url
        self._pool = urllib3.PoolManager()

    def send(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/x-ndjson"}
        answer = self._pool.request(method, self._url + path, body=body, headers=headers)
        return answer.status, json.loads(answer.data)

    def bulk(self, body: bytes, query: str = "") -> tuple[int, dict[str, Any]]:
        return self.send("POST", f"/{self.index}/_bulk{query}", body)

    def close(self) -> None:
        self._pool.clear()


@pytest.fixture(scope="module")
def server(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Server]:
    with new_names(es) as name:
        sending = Server(elasticsearch_url, name("bodies"))
        # Nothing is mapped, so that only the JSON counts.
        es.indices.create(index=sending.index, mappings={"dynamic": False})
        yield sending
        sending.close()


def _read(server: Server, body: bytes) -> list[BulkItem] | BulkMalformed:
    try:
        return read_bulk(body, index=server.index)
    except BulkMalformed as error:
        return error


def _is_left_to_the_server(answer: dict[str, Any], items: list[BulkItem]) -> bool:
    """Return whether an answer is what the server says after reading, or of an update's document."""
    kind = answer["error"]["type"]
    has_updates = any(each.operation == "update" for each in items)
    return kind == "action_request_validation_exception" or (kind in _QUOTED and has_updates)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:60]))
def test_the_same_bodies_are_refused_for_the_same_reasons(server: Server, body: bytes) -> None:
    status, answer = server.bulk(body)
    read = _read(server, body)
    if isinstance(read, BulkMalformed):
        assert (status, answer.get("error", {}).get("type")) == (read.status, read.type), answer
        if read.type not in _QUOTED and not read.reason.startswith("Expected text"):
            assert json.loads(read.body()) == answer
    elif status != 200:
        assert _is_left_to_the_server(answer, read), answer
    else:
        answered = [next(iter(each.items())) for each in answer["items"]]
        assert [operation for operation, _ in answered] == [each.operation for each in read]
        for item, (_, values) in zip(read, answered, strict=True):
            if "_id" in item.meta:
                assert values["_id"] in (item.meta["_id"], "auto-generated")


_LINES = sorted({line for body in BODIES for line in body.split(b"\n") if b"_index" not in line})


@examples(25)
@given(
    st.lists(st.sampled_from(_LINES) | st.just(b'{"index":{"_id":"1"}}') | st.just(b"{}"), max_size=6),
    st.integers(0, 60),
    st.sampled_from(
        [b"", b"{", b"}", b'"', b",", b":", b" ", b"\\", b"\r", b"\n", b"[", b"]", b"1", b"\xff"]
    ),
    st.booleans(),
)
def test_so_are_random_ones(
    server: Server, lines: list[bytes], at: int, inserted: bytes, is_ended: bool
) -> None:
    body = b"\n".join(lines) + (b"\n" if is_ended else b"")
    _compare_status(server, body[:at] + inserted + body[at:])


@pytest.mark.parametrize("body", TWICE_MALFORMED, ids=lambda body: repr(body[:60]))
def test_two_errors_give_the_same_status(server: Server, body: bytes) -> None:
    _compare_status(server, body)


def _compare_status(server: Server, body: bytes) -> None:
    status, answer = server.bulk(body)
    read = _read(server, body)
    if isinstance(read, BulkMalformed):
        # A line with two errors may be refused for the other one. And the server takes some names of
        # parameters with a byte in them that is no character for those without it.
        is_lenient = status == 200 and read.reason.endswith("Invalid UTF-8")
        assert status == read.status or is_lenient, f"Elasticsearch takes it: {answer}"
    elif status == 200:
        assert [next(iter(each)) for each in answer["items"]] == [each.operation for each in read]
    else:
        assert _is_left_to_the_server(answer, read), answer
