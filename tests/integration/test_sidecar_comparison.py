"""The same requests with and without the sidecar: the same statuses, headers and bytes."""

import gzip
import http.client
import json
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from elasticsearch import Elasticsearch

from tests.support.names import Names

Answer = tuple[int, list[tuple[str, str]], bytes]
Request = tuple[str, str, dict[str, str], bytes | None]

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
# What differs between two requests to the same server.
VARYING = re.compile(
    rb'"(took|ingest_took)":\d+|"_scroll_id":"[^"]+"'
    # The ids of indices, and when they were made.
    rb"|(?<![\w-])[\w-]{22}(?![\w-])|\b\d{13}\b|\b\d{4}-\d\d-\d\dT[\d:.]+Z"
)


def bulk(*lines: dict[str, object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def requests(index: str) -> list[Request]:
    """Return requests that each give the same answer whenever all are sent, in this order."""
    dated = f"%3C{index}-%7Bnow%2Fy%7D%3E"
    actions = bulk(
        {"index": {"_id": "1"}},
        {"text": "Umlaute: äöü, 漢字", "n": 1},
        {"create": {"_id": "1"}},
        {"text": "a conflict"},
        {"index": {"_id": "2"}},
        {"n": "no number"},
        {"update": {"_id": "none"}},
        {"doc": {}},
        {"delete": {"_id": "none"}},
    )
    versioned = "application/vnd.elasticsearch+json;compatible-with=8"
    return [
        ("DELETE", f"/{index}*", {}, None),
        ("HEAD", "/", {}, None),
        ("GET", "/", {}, None),
        ("PUT", f"/{index}", JSON, b'{"mappings":{"properties":{"n":{"type":"long"}}}}'),
        ("PUT", f"/{index}", JSON, b"{}"),
        ("HEAD", f"/{index}", {}, None),
        ("HEAD", f"/{index}-missing", {}, None),
        ("GET", f"/{index}?pretty", {}, None),
        ("GET", f"/{index}?human&format=yaml", {}, None),
        ("POST", f"/{index}/_bulk?refresh=true", NDJSON, actions),
        ("POST", f"/{index}/_bulk?refresh=true&filter_path=items.*.status", NDJSON, actions),
        ("PUT", "/_bulk", NDJSON | {"Content-Encoding": "gzip"}, gzip.compress(actions)),
        ("POST", f"/{index}/_bulk", NDJSON, b'{"index":{}}\nnothing'),
        ("POST", f"/{index}/_bulk", NDJSON, b""),
        ("PUT", f"/{index}/_doc/a%2Fb?routing=x%20y&refresh=true", JSON, b'{"n":1.0}'),
        ("GET", f"/{index}/_doc/a%2Fb?routing=x+y", {}, None),
        ("HEAD", f"/{index}/_doc/a%2fb?routing=x+y", {}, None),
        ("GET", f"/{index}/_doc/a/b", {}, None),
        ("PUT", f"/{index}/_create/1", JSON, b"{}"),
        ("PUT", f"/{dated}/_doc/1", JSON, b"{}"),
        ("GET", f"/{dated}/_doc/1", {}, None),
        ("GET", f"//{index}//_count", {}, None),
        ("GET", f"/{index}/_search?q=n:1&filter_path=hits", {"Accept-Encoding": "gzip"}, None),
        ("GET", f"/{index}/_search?filter_path=-took", JSON, b'{"size":1}'),
        ("POST", f"/{index}/_search", JSON, b'{"query":{"none":{}}}'),
        ("POST", f"/{index}/_search?scroll=1m", JSON, b'{"size":1}'),
        ("GET", f"/{index}/_search?error_trace=false&unknown=1", {}, None),
        ("GET", f"/{index}/_mapping", {"Accept": versioned}, None),
        ("GET", f"/{index}/_mapping", {"Accept": "application/cbor"}, None),
        ("GET", f"/{index}/_mapping", {"Accept": "image/png"}, None),
        ("POST", f"/{index}/_search", {"Content-Type": "text/none"}, b"{}"),
        ("PATCH", f"/{index}", {}, None),
        ("OPTIONS", f"/{index}", {}, None),
        ("GET", "/_no/such/path", {}, None),
        ("GET", f"/{index}/_count", {"X-Opaque-Id": "mine"}, None),
        ("GET", f"/{index}/_count", {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}, None),
        ("DELETE", f"/{index}*", {}, None),
    ]


@pytest.fixture
def allowed_to_delete(es: Elasticsearch) -> Iterator[None]:
    name = "action.destructive_requires_name"
    es.cluster.put_settings(persistent={name: False})
    yield
    es.cluster.put_settings(persistent={name: None})


@pytest.mark.usefixtures("allowed_to_delete")
def test_everything_is_as_without_a_sidecar(
    es: Elasticsearch, elasticsearch_url: str, sidecar: str, index_name: Names
) -> None:
    index = index_name("comparison")
    ours, theirs = (_answers(url, requests(index)) for url in (sidecar, elasticsearch_url))
    for request, our, their in zip(requests(index), ours, theirs, strict=True):
        assert our == their, request[:2]
    names = {name.lower() for _, headers, _ in ours for name, _ in headers}
    assert {"content-encoding", "x-opaque-id", "x-elastic-product", "allow"} <= names
    assert {status for status, _, _ in ours} >= {200, 201, 400, 404, 405, 406, 409}


def test_a_body_that_is_too_large_is_refused_by_elasticsearch(elasticsearch_url: str, sidecar: str) -> None:
    """Before it is sent, if the caller asks first."""
    head = (
        b"PUT /a/_doc/1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"expect: 100-continue\r\ncontent-length: 999999999\r\n\r\n"
    )
    got = []
    for url in (sidecar, elasticsearch_url):
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as caller:
            caller.sendall(head)
            got.append(caller.recv(65_536).split(b"\r\n")[0])
    assert got[0] == got[1]
    assert b" 413 " in got[0]


def _answers(url: str, sent: list[Request]) -> list[Answer]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        return [_answer(connection, *request) for request in sent]
    finally:
        connection.close()


def _answer(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes | None,
) -> Answer:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    got = answer.read()
    # Cut into chunks or not: that concerns the connection. The length differs with what varies in the body.
    kept = [
        (name, value)
        for name, value in answer.getheaders()
        if name.lower() not in {"transfer-encoding", "content-length"}
    ]
    if answer.getheader("content-encoding") == "gzip":
        got = gzip.decompress(got)
    return answer.status, kept, VARYING.sub(b"", got)
