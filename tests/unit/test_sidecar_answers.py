"""Answers that are put together: order, bytes, form; and which requests are read at all."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esdedup.errors import ServerError
from esdedup.sidecar.answer_form import AnswerForm, json_accept, read_form
from esdedup.sidecar.bulk_answer import all_rejected, merged, rejected_item
from esdedup.sidecar.bulk_request import BulkItem
from esdedup.sidecar.content_types import json_content_type
from esdedup.sidecar.document_request import ArticlePath, article_path, read_document, routed
from esdedup.sidecar.refusals import ARTICLE_REJECTED, RequestRefused

PLAIN = AnswerForm()


def _answer(items: list[bytes], head: bytes = b'"errors":false,"took":30,"ingest_took":2,') -> bytes:
    return b"{%b" % head + b'"items":[' + b",".join(items) + b"]}"


def _rejected(number: int, operation: str = "index") -> bytes:
    meta = {"_id": str(number)}
    item = BulkItem(operation=operation, index="news", meta=meta, header=b"", source=b"{}")
    return rejected_item(item, "has no text")


# Among them what a user's own document may bring into an answer.
_ITEMS = st.sampled_from(
    [
        b'{"index":{"_index":"news","_id":"\\uD800","status":201}}',
        b'{"update":{"_id":"1","get":{"_source":{"a":[{"index":{"b":{}}},{"index":{"_id":"x"}}]}},"status":200}}',
        b'{"create":{"_id":"}},{\\"index\\":{","status":409,"error":{"type":"x","reason":"]}"}}}',
        b'{"delete":{"_id":"2","status":404}}',
    ]
)


@given(st.lists(st.none() | _ITEMS, min_size=1).filter(any))
def test_items_stand_in_the_order_of_the_request(items: list[bytes | None]) -> None:
    rejected_items = {place: _rejected(place) for place, each in enumerate(items) if each is None}
    sent = [each for each in items if each is not None]
    got = merged(_answer(sent), rejected_items, count=len(items), form=PLAIN)
    parsed = json.loads(got)
    assert parsed["items"] == [json.loads(each or _rejected(place)) for place, each in enumerate(items)]
    assert parsed["errors"] is bool(rejected_items)
    assert list(parsed) == ["errors", "took", "ingest_took", "items"]
    assert (parsed["took"], parsed["ingest_took"]) == (30, 2)


def test_items_stay_as_they_came() -> None:
    odd = b'{"index":{"_index":"news", "_id":"\\u00E9\\/","x":1.0,"x":1E2}}'
    got = merged(_answer([odd, odd]), {1: _rejected(1)}, count=3, form=PLAIN)
    assert got == _answer([odd, _rejected(1), odd]).replace(b"false", b"true")


def test_an_error_in_a_document_is_not_taken_for_the_answers_own() -> None:
    item = b'{"index":{"a":{"errors":false}}}'
    got = merged(_answer([item], b'"took":1,"errors":true,'), {0: _rejected(0)}, count=2, form=PLAIN)
    assert item in got
    assert got.startswith(b'{"took":1,"errors":true,"items":[')


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"items":{}}',
        b'{"items":[1,2]}',
        b'{"items":[{}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_to_these_items_is_an_error(answer: bytes) -> None:
    with pytest.raises(ServerError):
        merged(answer, {0: _rejected(0)}, count=2, form=PLAIN)


def test_an_answer_that_is_laid_out_otherwise_is_read_too() -> None:
    item = b'{"index":{"_id":"1","status":201}}'
    answer = json.dumps(json.loads(_answer([item])), indent=2).encode()
    got = merged(answer, {0: _rejected(0)}, count=2, form=PLAIN)
    assert json.loads(got) == json.loads(_answer([_rejected(0), item]).replace(b"false", b"true"))


def test_all_may_be_rejected() -> None:
    items = [_rejected(0), _rejected(1, "update")]
    assert json.loads(all_rejected(items, took_ms=3, form=PLAIN)) == {
        "errors": True,
        "took": 3,
        "items": [
            {each: {"_index": "news", "_id": place, "status": 400, "error": error}}
            for each, place, error in (
                ("index", "0", {"type": "esdedup_article_rejected", "reason": "has no text"}),
                ("update", "1", {"type": "esdedup_article_rejected", "reason": "has no text"}),
            )
        ],
    }
    form, _ = read_form(b"filter_path=errors,items.*.status", None)
    assert all_rejected(items, took_ms=3, form=form) == (
        b'{"errors":true,"items":[{"index":{"status":400}},{"update":{"status":400}}]}'
    )


def test_an_id_may_have_half_a_character() -> None:
    item = BulkItem(operation="index", index="a", meta={"_id": "\ud800"}, header=b"", source=b"{}")
    for query in (b"", b"pretty", b"filter_path=items"):
        form, _ = read_form(query, None)
        assert b"ud800" in all_rejected([rejected_item(item, "x")], took_ms=0, form=form).lower()


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_a_pretty_answer_means_the_same(value: Any) -> None:
    answer = {"a": value, "{}": {}, "[]": [], '"{}': "[]"}
    assert json.loads(AnswerForm(is_pretty=True).write(answer)) == answer


def test_nothing_is_left_out_of_an_error() -> None:
    form, _ = read_form(b"filter_path=nope", None)
    assert form.write({"error": "x"}) == b"{}"
    assert form.write_error({"error": "x"}) == b'{"error":"x"}'


@given(st.binary(), st.none() | st.text())
def test_any_query_is_read_or_refused(query: bytes, accept: str | None) -> None:
    try:
        form, others = read_form(query, accept)
    except RequestRefused:
        return
    assert json.loads(form.write({"a": 1})) in ({}, {"a": 1})
    assert read_form(others, accept)[0] == AnswerForm(content_type=form.content_type)


def test_the_other_parameters_stay_as_they_came() -> None:
    query = b"refresh=wait%5Ffor&filter_path=a&pipeline=%E4+x&pretty;routing=a=b&&timeout=1m&format=yaml"
    assert read_form(query, None)[1] == b"refresh=wait%5Ffor&pipeline=%E4+x&routing=a=b&timeout=1m"


@pytest.mark.parametrize(
    ("accept", "asked", "content_type"),
    [
        (None, "application/json", "application/json"),
        ("*/*", "application/json", "application/json"),
        ("application/yaml", "application/json", "application/json"),
        (
            "application/vnd.elasticsearch+json; compatible-with=8",
            "application/vnd.elasticsearch+json; compatible-with=8",
            "application/vnd.elasticsearch+json;compatible-with=8",
        ),
        (
            "application/vnd.elasticsearch+cbor;compatible-with=9",
            "application/vnd.elasticsearch+json;compatible-with=9",
            "application/vnd.elasticsearch+json;compatible-with=9",
        ),
    ],
)
def test_an_answer_is_json_of_the_version_that_is_wanted(
    accept: str | None, asked: str, content_type: str
) -> None:
    assert json_accept(accept) == asked
    assert read_form(b"", accept)[0].content_type == content_type


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
def test_json_is_taken_under_each_of_its_names(content_type: str) -> None:
    assert json_content_type(content_type, usual="x") == content_type


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "text/plain; charset=UTF-8"])
def test_json_need_not_say_so(content_type: str | None) -> None:
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
    assert caught.value.type == "media_type_header_exception"


@given(st.text(), st.binary())
def test_any_path_is_read(method: str, path: bytes) -> None:
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
    ],
)
def test_paths(request_line: bytes, expected: ArticlePath | None) -> None:
    method, path = request_line.split(b" ")
    assert article_path(method.decode(), path) == expected


@given(st.binary(), st.text().filter(lambda text: text.isascii()))
def test_the_routing_replaces_any_other(query: bytes, routing: str) -> None:
    item = read_document(ArticlePath("index", "news", None), routed(query, routing), b"{}")
    assert item.meta.get("routing", "") == routing


def test_a_refusal_has_the_shape_of_the_servers() -> None:
    assert orjson.loads(RequestRefused(400, ARTICLE_REJECTED, "has no text").body()) == {
        "error": {
            "root_cause": [{"type": "esdedup_article_rejected", "reason": "has no text"}],
            "type": "esdedup_article_rejected",
            "reason": "has no text",
        },
        "status": 400,
    }
