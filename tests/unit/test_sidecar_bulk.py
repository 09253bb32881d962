"""Write requests: content types, paths, responses, and refusal by a standby."""

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import ForestBusy, ForestOwner, ServerError
from esdedup.sidecar.app import create_app
from esdedup.sidecar.bodies import json_content_type
from esdedup.sidecar.bulk import (
    BulkRoute,
    ItemStatuses,
    json_type,
    merged,
    read_document,
    refused_item,
    whole_answer,
)
from esdedup.sidecar.bulk_request import (
    BulkItem,
    Rejection,
    RequestRefused,
)
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.paths import ArticlePath, article_path, counting, routed
from esdedup.sidecar.upstream import Upstream
from tests.support import asgi


def _answer(items: list[bytes], head: bytes = b'"errors":false,"took":30,"ingest_took":2,') -> bytes:
    return b"{%b" % head + b'"items":[' + b",".join(items) + b"]}"


def _refused(number: int, operation: str = "index") -> dict[str, Any]:
    meta = {"_id": str(number)}
    item = BulkItem(operation=operation, index="news", meta=meta, header=b"", source=b"{}")
    return refused_item(item, Rejection("has no text"))


# Some items contain text of users' documents that looks like part of a response.
_ITEMS = st.sampled_from(
    [
        b'{"index":{"_index":"news","_id":"\\uD800","status":201}}',
        b'{"index":{"_index":"news", "_id":"\\u00E9\\/","x":1.0, "y":1234567890123456789012}}',
        b'{"update":{"_id":"1","get":{"_source":{"errors":false,"items":[{"index":{}},{}]}},"status":200}}',
        b'{"create":{"_id":"}},{\\"index\\":{","status":409,"error":{"type":"x","reason":"]}"}}}',
        b'{"delete":{"_id":"2","status":404}}',
    ]
)


@given(st.lists(st.none() | _ITEMS, min_size=1), st.sampled_from([None, 1]))
def test_merged_items_keep_the_order_of_the_request(items: list[bytes | None], indent: int | None) -> None:
    refused = {place: _refused(place) for place, each in enumerate(items) if each is None}
    sent = json.loads(_answer([each for each in items if each is not None]))
    got = merged(json.dumps(sent, indent=indent).encode(), refused, count=len(items))
    remaining = iter(sent["items"])
    expected = [next(remaining) if each else refused[place] for place, each in enumerate(items)]
    assert json.loads(got) == {"errors": True, "took": 30, "ingest_took": 2, "items": expected}
    assert b"\n" not in got


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"[]", b"null", b"{}", b'{"items":{}}', b'{"items":null}', b'{"items":1}', b'{"items":"a"}'),
        *(b'{"items":[1,2]}', b'{"items":[{}', b"\xff", b"[" * 100_000, b'{"items":' + b"1" * 5_000 + b"}"),
    ],
)
def test_a_response_with_unexpected_items_is_an_error(answer: bytes) -> None:
    with pytest.raises(ServerError):
        merged(answer, {0: _refused(0)}, count=2)


def test_all_items_may_be_refused() -> None:
    refused = {0: _refused(0), 1: _refused(1, "update")}
    error = {"type": "esdedup_article_rejected", "reason": "has no text"}
    assert json.loads(merged(b'{"took":3,"items":[]}', refused, count=2)) == {
        "errors": True,
        "took": 3,
        "items": [
            {each: {"_index": "news", "_id": place, "status": 400, "error": error}}
            for each, place in (("index", "0"), ("update", "1"))
        ],
    }


@given(st.binary())
def test_filter_path_can_be_removed_from_any_query(query: bytes) -> None:
    whole = whole_answer(query)
    assert whole_answer(whole) == whole
    assert whole_answer(query + b"&pretty") == whole or b"#" in query
    assert set(whole.split(b"&")) <= {b"", *query.replace(b";", b"&").partition(b"#")[0].split(b"&")}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            b"refresh=wait%5Ffor&filter_path=a&pipeline=%E4+x&pretty;routing=a=b&&timeout=1m&format=yaml",
            b"refresh=wait%5Ffor&pipeline=%E4+x&routing=a=b&timeout=1m",
        ),
        (b"filter%5Fpath=took;pretty=x&human#&refresh", b"human"),
        (b"filter_paths=a&Pretty", b"filter_paths=a&Pretty"),
    ],
)
def test_only_parameters_that_change_the_response_are_removed(query: bytes, expected: bytes) -> None:
    assert whole_answer(query) == expected


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        *(
            (each, "application/json")
            for each in (None, "", "*/*", "application/yaml", "x;compatible-with=y")
        ),
        (
            "application/vnd.elasticsearch+json; compatible-with=8",
            "application/vnd.elasticsearch+json;compatible-with=8",
        ),
        (
            "application/vnd.elasticsearch+cbor;compatible-with=9",
            "application/vnd.elasticsearch+json;compatible-with=9",
        ),
    ],
)
def test_a_response_has_the_requested_version_of_json(accept: str | None, content_type: str) -> None:
    assert json_type(accept) == content_type


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/x-ndjson",
        "APPLICATION/X-NDJSON ; charset=utf-8",
        "application/vnd.elasticsearch+x-ndjson;compatible-with=8",
        "application/vnd.elasticsearch+json; compatible-with=9",
    ],
)
def test_all_media_types_of_json_are_accepted(content_type: str) -> None:
    assert json_content_type(content_type, usual="x") == content_type


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "text/plain; charset=UTF-8"])
def test_the_content_type_defaults_to_json(content_type: str | None) -> None:
    assert json_content_type(content_type, usual="application/x-ndjson") == "application/x-ndjson"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/cbor",
        "application/smile",
        "application/yaml",
        "application/vnd.elasticsearch+cbor",
        "json",
    ],
)
def test_other_formats_are_refused(content_type: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        json_content_type(content_type, usual="x")
    assert caught.value.status == 415
    assert caught.value.kind == "media_type_header_exception"


@given(st.text(), st.binary())
def test_any_path_can_be_parsed(method: str, path: bytes) -> None:
    assert article_path(method, path) is None or path


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (b"POST /news/_doc", ArticlePath("index", "news", None)),
        (b"POST /news/_doc/", ArticlePath("index", "news", None)),
        (b"PUT /news/_doc", None),
        (b"PUT /news/_doc/a%2Fb", ArticlePath("index", "news", "a/b")),
        (b"POST /%3Cnews-%7Bnow%2Fd%7D%3E/_doc/1", ArticlePath("index", "<news-{now/d}>", "1")),
        (b"POST news/_create/1", ArticlePath("create", "news", "1")),
        (b"POST /news/_create", None),
        (b"POST /news/_update/a+b", ArticlePath("update", "news", "a+b")),
        (b"PUT /news/_update/1", None),
        (b"GET /news/_doc/1", None),
        (b"DELETE /news/_doc/1", None),
        (b"POST /news/_doc/%zz", None),
        (b"POST /news/%5Fdoc/1", None),
        (b"POST /news/_search", None),
        (b"POST /", None),
        (b"POST /_doc", None),
        (b"GET /_bulk", None),
        # Elasticsearch also accepts the first four of these paths, and refuses the other three.
        (b"PUT /_bulk/", ArticlePath("bulk", None, None)),
        (b"POST //_bulk", ArticlePath("bulk", "", None)),
        (b"POST /news,old/_bulk//", ArticlePath("bulk", "news,old", None)),
        (b"POST /_bulk#x", ArticlePath("bulk", None, None)),
        (b"POST /news//_bulk", None),
        (b"POST /%5Fbulk", None),
        (b"POST /_bulk;x", None),
    ],
)
def test_article_paths_are_recognised(request_line: bytes, expected: ArticlePath | None) -> None:
    method, path = request_line.split(b" ")
    assert article_path(method.decode(), path) == expected


@given(st.binary(), st.text().filter(lambda text: text.isascii()))
def test_the_routing_replaces_any_other_routing(query: bytes, routing: str) -> None:
    item = read_document(ArticlePath("index", "news", None), routed(query, routing), b"{}")
    assert item.meta.get("routing", "") == routing


ANSWER = orjson.dumps(
    {
        "errors": True,
        "took": 200,
        "items": [
            {"index": {"_id": "1", "status": 201}},
            {"index": {"_id": '"status":404', "status": 400, "error": {"reason": 'x "status":500 y'}}},
            {"create": {"_id": "2", "status": 409}},
            {"delete": {"_id": "3", "status": 409}},
        ],
    },
)


@given(st.lists(st.integers(1, 40), min_size=1))
def test_each_item_is_counted_once(sizes: list[int]) -> None:
    statuses, start = ItemStatuses(), 0
    while start < len(ANSWER):
        for size in sizes:
            statuses.read(ANSWER[start : start + size])
            start += size
    assert statuses.counts == {201: 1, 400: 1, 409: 2}
    pretty = ItemStatuses()
    pretty.read(orjson.dumps(orjson.loads(ANSWER), option=orjson.OPT_INDENT_2))
    assert pretty.counts == statuses.counts


URL = "http://other:9500"
OWNER = ForestOwner(host="h", pid=1, since=datetime(2026, 1, 1, tzinfo=UTC), released=False, url=URL)
BUSY = ForestBusy("process 1 on h owns it", forest="f", owner=OWNER)


def unexpected(*_: Any, **__: Any) -> Any:
    raise AssertionError("unexpected call")


@pytest.mark.parametrize(
    ("ownership", "reason"),
    [(Ownership(error=BUSY), URL), (Ownership(), "this sidecar does not own the forest yet: try again")],
)
@pytest.mark.parametrize("path", ["/_bulk", "/news/_bulk", "/news/_doc/1", "/news/_update/1"])
async def test_a_standby_refuses_writes_without_reading_them(
    path: str, ownership: Ownership, reason: str
) -> None:
    metrics = Metrics()
    route = BulkRoute(
        Upstream(["http://localhost:9200"]),
        Enrichment(
            forest="f",
            find=unexpected,
            may_write=unexpected,
            assigning=unexpected,
            ownership=lambda: ownership,
            metrics=metrics,
        ),
        max_body_bytes=100,
    )

    app = create_app(Upstream(["http://localhost:9200"]), others=[route], answer=counting(metrics))
    # A standby checks neither of these headers.
    headers = {"content-type": "application/cbor", "content-length": "1000"}
    got = await asgi.send(app, asgi.Request(path=path, method="POST", headers=headers), asgi.unread)
    assert (got.status, got.headers["retry-after"]) == (503, "1")
    # The error is in the format that Elasticsearch's clients read.
    error = got.json["error"]
    assert error["type"] == "esdedup_not_owner"
    assert reason in error["reason"]
    refused = metrics.registry.get_sample_value
    assert refused("esdedup_requests_refused_total", {"reason": "not_owner"}) == 1
