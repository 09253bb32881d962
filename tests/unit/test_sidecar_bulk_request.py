"""Bulk bodies are read without losing a byte, and documents get their object without changing another."""

import json
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import (
    Addition,
    ArticleAction,
    addition,
    forged_parts,
    read_action,
    redating,
)
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.forest.model import Assignment, Kind
from esdedup.sidecar.action_line import read_action_line
from esdedup.sidecar.bulk_request import BulkItem, read_bulk
from esdedup.sidecar.json_splice import members, with_member, without_object
from esdedup.sidecar.refusals import BulkMalformed
from tests.support.bulk_bodies import BODIES, TWICE_MALFORMED

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
_documents = st.dictionaries(st.text() | st.sampled_from(["dedup", "dedup.root", "dedupe", "a"]), _values)
_numbers = st.sampled_from(["1", "1.0", "-0", "1e400", "123456789012345678901234567890", "0.1000", "1E5"])


def _item(source: bytes, operation: str = "index", **meta: Any) -> BulkItem:
    header = json.dumps({operation: meta}).encode()
    return BulkItem(operation=operation, index="news", meta=meta, header=header, source=source)


def _enriched(item: BulkItem, *, route_by_root: bool = False) -> bytes:
    """Return what is sent for an item."""
    document = item.document()
    given = {**item.meta, "_op_type": item.operation, "_source": document}
    article = read_action(given, Fields(), position=1)
    if isinstance(article, ArticleAction):
        added = addition(
            article,
            Assignment(Kind.NEW_ROOT, "f" * 32, "r" * 32, 7, 1_700_000_000_000, b""),
            {"fingerprint": "f" * 32, "bands": ["b"]},
            letters=9,
            profile="verified-3",
            nonce="n",
            route_by_root=route_by_root,
        )
    else:
        redated = redating(article, fields=Fields(), now_ms=2_000_000_000_000, backfill=True)
        added = Addition({**forged_parts(document, Fields()), **(redated.parts if redated else {})})
    return item.with_addition(added, document, dedup="dedup")


def _read(body: bytes) -> list[BulkItem] | BulkMalformed:
    try:
        return read_bulk(body, index=None)
    except BulkMalformed as error:
        return error


def _sent(lines: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    header, source, end = lines.split(b"\n")
    assert end == b""
    return json.loads(header), json.loads(source)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["index", "create", "update", "delete"]),
            st.dictionaries(st.sampled_from(["_id", "_index", "routing", "pipeline"]), st.text(min_size=1)),
            _documents,
            st.sampled_from(["\n", "\r\n"]),
            st.sampled_from(["", "\n", " \n", "\r\n"]),
        ),
        min_size=1,
    ),
    st.booleans(),
)
def test_items_are_those_that_were_written(written: list[Any], ascii_only: bool) -> None:
    body = ""
    for operation, meta, document, line_break, blank in written:
        body += blank + json.dumps({operation: meta}, ensure_ascii=ascii_only) + line_break
        if operation != "delete":
            body += json.dumps(document) + line_break
    try:
        encoded = body.encode()
    except UnicodeEncodeError:
        encoded = body.encode(errors="surrogatepass")
    items = read_bulk(encoded, index="news")
    assert [each.operation for each in items] == [operation for operation, *_ in written]
    for item, (operation, meta, document, *_) in zip(items, written, strict=True):
        assert item.meta == meta
        assert item.index == meta.get("_index", "news")
        assert item.as_it_came() in encoded.replace(b"\r\n", b"\n")
        if operation != "delete":
            assert item.source == json.dumps(document).encode()


@given(
    st.binary() | st.lists(st.sampled_from(BODIES + TWICE_MALFORMED)).map(b"".join),
    st.integers(0, 99),
    st.binary(max_size=2),
)
@example(b'{"index":{"_id":' + b"[" * 100_000 + b"}}\n{}\n", 0, b"")
@example(b'{"index":{"_id":' + b"1" * 10_000 + b"}}\n{}\n", 0, b"")
@example(b'{"index":{"version":' + b"1" * 10_000 + b"}}\n{}\n", 0, b"")
@example(b'{"index":{"version":1e999999999}}\n{}\n', 0, b"")
def test_any_bytes_are_read_or_refused(body: bytes, at: int, inserted: bytes) -> None:
    body = body[:at] + inserted + body[at:]
    items = _read(body)
    if isinstance(items, BulkMalformed):
        assert items.status in (400, 413)
        assert json.loads(items.body())["error"]["type"] == items.type
        return
    for item in items:
        assert item.as_it_came() in body.replace(b"\r\n", b"\n")
        if item.source is not None:
            try:
                _enriched(item)
            except (ArticleRejected, BulkMalformed):
                continue


@given(st.sampled_from(BODIES))
def test_the_fast_way_reads_what_the_careful_one_reads(body: bytes) -> None:
    for line in body.split(b"\n"):
        # A comment is only taken by the careful way.
        results = []
        for each in (line, b"/**/" + line):
            try:
                results.append(repr(read_action_line(each, 1)))
            except BulkMalformed as error:
                results.append(f"{error.status} {error.type}")
        assert results[0] == results[1] or line.startswith(b"\xef\xbb\xbf")


def test_one_line_more_than_the_bound_is_refused() -> None:
    body = b'{"delete":{"_id":"1"}}\n' * 5
    assert len(read_bulk(body, index="a", max_items=5)) == 5
    for most in (4, 1):
        with pytest.raises(BulkMalformed) as caught:
            read_bulk(body, index="a", max_items=most)
        assert caught.value.status == 413
    longest = len(b'{"delete":{"_id":"1"}}')
    assert read_bulk(body, index="a", max_line_bytes=longest)
    with pytest.raises(BulkMalformed, match="a line of more than 21 bytes"):
        read_bulk(body, index="a", max_line_bytes=longest - 1)


@given(_documents, _values, st.sampled_from([None, 1]))
def test_a_member_is_added_and_all_else_stays(
    document: dict[str, Any], value: Any, indent: int | None
) -> None:
    source = json.dumps(document, indent=indent).encode()
    without = without_object(source, "dedup")
    rest = {key: each for key, each in document.items() if key != "dedup" and not key.startswith("dedup.")}
    expected = rest | {"dedup": value}
    got = json.loads(with_member(without, "dedup", json.dumps(value).encode()))
    # As text, for NaN equals nothing.
    assert json.dumps(got) == json.dumps(expected)
    assert [each.key for each in members(source)] == list(document)
    for each in members(source):
        assert json.dumps(json.loads(source[each.value : each.end])) == json.dumps(document[each.key])


@given(_numbers, _numbers)
def test_numbers_keep_every_digit(first: str, second: str) -> None:
    source = f'{{"a":{first}, "text":"x", "b": [{second},"\\u0000\\u4e2d\\/"],"a":{second}}}'.encode()
    sent = _enriched(_item(source))
    assert source[:-1] + b"," in sent
    assert sent.endswith(b"}}\n")


def test_what_was_in_the_place_of_the_object_goes() -> None:
    source = b'{"dedup":{"root":"evil"},"text":"x","dedup.root":"evil","d\\u0065dup":1, "dedupe":{"dedup":1}}'
    _, document = _sent(_enriched(_item(source)))
    assert document["dedup"]["root"] == "r" * 32
    assert list(document) == ["text", "dedupe", "dedup"]
    assert document["dedupe"] == {"dedup": 1}
    assert b"evil" not in _enriched(_item(source))


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        ({"doc": {"root": "r"}}, {"doc": {"text": "x", "dedup": {"root": "r"}}, "doc_as_upsert": True}),
        (
            {"doc": {"root": "r"}, "upsert": {"root": "s"}},
            {"doc": {"text": "x", "dedup": {"root": "r"}}, "upsert": {"text": "x", "dedup": {"root": "s"}}},
        ),
        ({"doc": None}, {"doc": {"text": "x"}, "doc_as_upsert": True}),
    ],
)
def test_parts_of_an_update_get_their_own_objects(parts: dict[str, Any], sent: dict[str, Any]) -> None:
    """Where the doc was to serve as upsert, that is written out, if it gets another object."""
    update = {"doc": {"text": "x", "dedup.root": "y"}, "doc_as_upsert": True, "detect_noop": False}
    item = _item(json.dumps(update, indent=1).replace("\n", "").encode(), "update", _id="1")
    lines = item.with_addition(Addition(parts), item.document(), dedup="dedup")
    assert _sent(lines) == ({"update": {"_id": "1"}}, sent | {"detect_noop": False})


@pytest.mark.timeout(20)
@pytest.mark.parametrize("repeated", [b'"\\', b'"\\"', b"/* ", b'/*"', b'{"a":/*', b"//", b'" /', b"*/ /*"])
@pytest.mark.parametrize("end", [b"", b'"', b"\\"])
def test_an_action_line_is_read_in_a_time_that_is_linear(repeated: bytes, end: bytes) -> None:
    """Where each of its quotes began the search anew, 100 kB took 87 s."""
    body = repeated * (1_000_000 // len(repeated)) + end + b'\n{"text":"x"}\n'
    with pytest.raises(BulkMalformed):
        read_bulk(body, index="news")


def test_only_another_routing_changes_the_action_line() -> None:
    header = b' {"index" : {"_id":"1", "pipeline":"p"} }'
    body = header + b'\n{"text":"x"}\n'
    (item,) = read_bulk(body, index="news")
    assert _enriched(item).startswith(header + b"\n")
    action, _ = _sent(_enriched(item, route_by_root=True))
    assert action == {"index": {"_id": "1", "pipeline": "p", "routing": "r" * 32}}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b'{"text":"\xff"}', "is not JSON"),
        (b'{"text":NaN', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_document_is_rejected_and_an_update_refuses_the_request(
    source: bytes, reason: str
) -> None:
    with pytest.raises(ArticleRejected, match=reason):
        _item(source).document()
    with pytest.raises(BulkMalformed, match=reason):
        _item(source, "update").document()


@pytest.mark.parametrize("rest", [b"}", b" x", b'{"doc":{"text":"other"}}', b",", b"\x80"])
def test_what_follows_the_object_of_an_update_means_nothing(rest: bytes) -> None:
    # Elasticsearch reads no further there. An article that is indexed is refused.
    (update,) = read_bulk(b'{"update":{"_id":"1"}}\n {"doc":{"text":"a"}}' + rest + b"\n", index="news")
    assert update.document() == {"doc": {"text": "a"}}
    added = Addition({"doc": {"root": "r"}})
    changed = update.source_with(added, update.document(), dedup="dedup")
    assert json.loads(changed) == {"doc": {"text": "a", "dedup": {"root": "r"}}}
    (article,) = read_bulk(b'{"index":{"_id":"1"}}\n{"text":"a"}' + rest + b"\n", index="news")
    with pytest.raises(ArticleRejected, match="is not JSON"):
        article.document()


def test_half_a_character_is_named_as_the_reason() -> None:
    with pytest.raises(ArticleRejected, match="half a character"):
        _enriched(_item(b'{"text":"\\ud800"}'))


def test_a_byte_order_mark_stays() -> None:
    assert b'\xef\xbb\xbf{"text":"x","dedup"' in _enriched(_item(b'\xef\xbb\xbf{"text":"x"}'))


def test_nothing_is_parsed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading must not look into documents: each is parsed once, by whoever needs it."""
    body = b'{"index":{"_index":"news","_id":"1"}}\n' + b'{"text":"' + b"x" * 1_500 + b'"}\n'
    parsed = 0
    loads = orjson.loads

    def counting(data: bytes) -> Any:
        nonlocal parsed
        parsed += len(data)
        return loads(data)

    monkeypatch.setattr("orjson.loads", counting)
    for item in read_bulk(body * 100, index=None):
        item.document()
    assert parsed == len(body.replace(b"\n", b"")) * 100
