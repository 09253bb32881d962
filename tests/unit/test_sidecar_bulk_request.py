"""Bodies of write requests: unpacking, parsing in linear time, and adding the dedup objects."""

import asyncio
import contextlib
import dataclasses
import gzip
import json
import time
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import (
    Addition,
    ArticleAction,
    addition_to,
    article_in,
)
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup.elastic.meta import WritableIndex
from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.forest.model import Assignment, Kind
from esdedup.serving.framing import framing_fault
from esdedup.serving.limits import HOLD
from esdedup.sidecar import bulk_request
from esdedup.sidecar.bodies import unpacked
from esdedup.sidecar.bulk_request import (
    BulkItem,
    RequestRefused,
    members,
    read_bulk,
    with_member,
    without_objects,
)
from esdedup.sidecar.paths import article_path, error_body, parts_of, values_of
from tests.support.bulk_bodies import BODIES

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
_documents = st.dictionaries(st.text() | st.sampled_from(["dedup", "dedup.root", "dedupe", "a"]), _values)
INDEX = WritableIndex(fields=Fields(), other_objects=("dedup_2",))
_TEXTS = [b"_id", b"_index", b"pipeline", b"routing"]
_NO_TEXTS = [b"{}", b'["a"]', b"NaN", b"1e400", b'"\\ud800"', b'"\xff"']
_numbers = st.sampled_from(["1", "1.0", "-0", "1e400", "123456789012345678901234567890", "0.1000", "1E5"])


def _item(source: bytes, operation: str = "index", **meta: Any) -> BulkItem:
    header = json.dumps({operation: meta}).encode()
    return BulkItem(operation=operation, index="news", meta=meta, header=header, source=source)


def _enriched(item: BulkItem, *, route_by_root: bool = False) -> bytes:
    """Return the lines that are sent to Elasticsearch for an item."""
    index = dataclasses.replace(INDEX, is_routed_by_root=route_by_root)
    item.objects = index.objects
    given = {**item.meta, "_op_type": item.operation, "_source": item.document()}
    article = article_in(given, index, name="1", now_ms=2_000_000_000_000)
    if isinstance(article, ArticleAction):
        item.added = addition_to(
            article,
            Assignment(Kind.NEW_ROOT, "f" * 32, "r" * 32, 7, 1_700_000_000_000, b""),
            {"fingerprint": "f" * 32, "bands": ["b"]},
            alphanumerics=9,
            profile="verified-5",
        )
    else:
        item.added = article
    return item.lines()


def _read(body: bytes) -> list[BulkItem] | RequestRefused:
    try:
        return read_bulk(body, index=None)
    except RequestRefused as error:
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
def test_written_items_are_read_back(written: list[Any], ascii_only: bool) -> None:
    body = ""
    for operation, meta, document, line_break, blank in written:
        body += blank + json.dumps({operation: meta}, ensure_ascii=ascii_only) + line_break
        if operation != "delete":
            body += json.dumps(document) + line_break
    encoded = body.encode()
    items = read_bulk(encoded, index="news")
    assert [each.operation for each in items] == [operation for operation, *_ in written]
    for item, (operation, meta, document, *_) in zip(items, written, strict=True):
        assert item.meta == meta
        assert item.index == meta.get("_index", "news")
        assert item.lines() in encoded.replace(b"\r\n", b"\n")
        if operation != "delete":
            assert item.source == json.dumps(document).encode()


@given(
    st.binary() | st.lists(st.sampled_from(BODIES)).map(b"".join),
    st.integers(0, 99),
    st.binary(max_size=2),
)
@example(b'{"index":{"_id":' + b"[" * 100_000 + b"}}\n{}\n", 0, b"")
@example(b'{"index":{}}\n{"text":' + b"[" * 100_000 + b"}\n", 0, b"")
@example(b'{"index":{"version":1e999999999}}\n{}\n', 0, b"")
def test_any_bytes_are_read_or_refused(body: bytes, at: int, inserted: bytes) -> None:
    body = body[:at] + inserted + body[at:]
    items = _read(body)
    if isinstance(items, RequestRefused):
        assert items.status in (400, 413)
        assert json.loads(error_body(items.status, items.kind, str(items)))["error"]["type"] == items.kind
        return
    for item in items:
        assert item.lines() in body.replace(b"\r\n", b"\n")
        if item.source is not None:
            with contextlib.suppress(ArticleRejected):
                _enriched(item)


@pytest.mark.parametrize(
    ("line", "operation", "meta"),
    [
        (b'{"index":{"_id":1,"_index":2,"routing":-3,"pipeline":null}}', "index", ["1", "2", "-3"]),
        (b'{"index":{"op_type":"create"}}', "create", []),
        (b'{"create":{"_id":null,"frob":[1],"version":true,"_index":"a","_index":"b"}}', "create", ["b"]),
        # Elasticsearch 8 ignores text after the operation, and Elasticsearch 9 refuses it.
        (b'{"index":{"_id":"1"},"attempts":0}', "index", ["1"]),
        (b'{"delete":{"_id":"1"},"index":{"_id":"2"},"index":', "delete", ["1"]),
        (b'{"create":{"_id":"1"}}{"create":{"_id":"2"}}', "create", ["1"]),
        (b'{"create":{"_id":"1"}', "create", ["1"]),
        (b'\xef\xbb\xbf{"index":{"_id":1.0,"routing":true,"_index":-0}} ', "index", ["1.0", "-0", "true"]),
        (b'{"index":{"_id":123456789012345678901234567890}}', "index", ["123456789012345678901234567890"]),
        (b' {"d\\u0065lete": {"_\\u0069d":"\\ud83d\\ude00"}}\t\r', "delete", ["\U0001f600"]),
    ],
)
def test_an_action_line_gives_target_and_operation(line: bytes, operation: str, meta: list[str]) -> None:
    (item,) = read_bulk(line + b'\n{"text":"x"}\n'[: 1 if operation == "delete" else None], index=None)
    read = [item.meta[key] for key in ("_id", "_index", "routing", "pipeline") if key in item.meta]
    assert (item.operation, read) == (operation, meta)
    assert item.index == item.meta.get("_index")
    assert item.header == line.removesuffix(b"\r")


@pytest.mark.parametrize(
    "line",
    [
        *(b"x", b"{}", b"[]", b"null", b'{"index":null}', b'{"frob":{}}', b'{"a":0,"index":{}}'),
        *(b'/**/{"index":{}}', b'{"index":/**/{}}', b"#", b'{"\xff":{}}', b'{"\\x":{}}', b"{", b'{"index":}'),
        *(b'{/*"index":{"_index":"a"},*/"index":{}}', b'{"index":{"_id":"1"/*},*/,"_id":"2"}}'),
        *(b'{"index":{"%b":%b}}' % (key, value) for key in _TEXTS for value in _NO_TEXTS),
    ],
)
def test_invalid_action_lines_are_refused_with_their_number(line: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        read_bulk(b'{"delete":{"_id":"1"}}\n\n' + line + b"\n{}\n", index="news")
    assert (caught.value.status, caught.value.kind) == (400, "illegal_argument_exception")
    assert str(caught.value).startswith("Malformed action/metadata line [3], ")


def test_too_many_or_too_long_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"delete":{"_id":"1"}}\n' * 5
    monkeypatch.setattr(bulk_request, "MAX_ITEMS", 5)
    assert len(read_bulk(body, index="a")) == 5
    for most in (4, 1):
        monkeypatch.setattr(bulk_request, "MAX_ITEMS", most)
        with pytest.raises(RequestRefused) as caught:
            read_bulk(body, index="a")
        assert caught.value.status == 413
    monkeypatch.undo()
    longest = len(b'{"delete":{"_id":"1"}}')
    monkeypatch.setattr(bulk_request, "MAX_LINE_BYTES", longest)
    assert read_bulk(body, index="a")
    monkeypatch.setattr(bulk_request, "MAX_LINE_BYTES", longest - 1)
    with pytest.raises(RequestRefused, match="a line of more than 21 bytes"):
        read_bulk(body, index="a")


@given(_documents, _values, st.sampled_from([None, 1]))
def test_adding_a_member_keeps_all_other_members(
    document: dict[str, Any], value: Any, indent: int | None
) -> None:
    source = json.dumps(document, indent=indent).encode()
    without = without_objects(source, ("dedup",))
    rest = {key: each for key, each in document.items() if key != "dedup" and not key.startswith("dedup.")}
    expected = rest | {"dedup": value}
    got = json.loads(with_member(without, "dedup", json.dumps(value).encode()))
    # The documents are compared as text, because NaN does not equal itself.
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


def test_dedup_values_sent_by_the_caller_are_removed() -> None:
    source = b'{"dedup":{"root":"evil"},"text":"x","dedup.root":"evil","d\\u0065dup":1, "dedupe":{"dedup":1}}'
    migrating = b'{"dedup_2":{"root":"evil"},"d\\u0065dup_2.root":"evil","dedup_22":1,'
    source = source.replace(b"{", migrating, 1)
    _, document = _sent(_enriched(_item(source)))
    assert document["dedup"]["root"] == "r" * 32
    assert list(document) == ["dedup_22", "text", "dedupe", "dedup"]
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
    """With `doc_as_upsert`, `doc` is copied to `upsert` if the two get different objects."""
    update = {"doc": {"text": "x", "dedup.root": "y"}, "doc_as_upsert": True, "detect_noop": False}
    item = _item(json.dumps(update, indent=1).replace("\n", "").encode(), "update", _id="1")
    item.objects, item.added = INDEX.objects, Addition(parts)
    assert _sent(item.lines()) == ({"update": {"_id": "1"}}, sent | {"detect_noop": False})


_REPEATED = [
    *(b'"', b'"\\', b'"\\"', b'\\"', b"\\ud800", b'"\\ud800",'),
    *(b"/* ", b"[", b"{", b'{"a":', b"1", b"1,", b" ", b"\n"),
]
_DOCUMENT = b'{"dedup":"evil","text":"x","a":'


@pytest.mark.timeout(20)
@pytest.mark.parametrize("repeated", _REPEATED)
@pytest.mark.parametrize(
    "around", [b"%b", b'{"index":{"_id":"%b"}}', _DOCUMENT + b'"%b"}', _DOCUMENT + b"[%b1]}"]
)
def test_lines_are_read_in_linear_time(repeated: bytes, around: bytes) -> None:
    """A search that restarts at each quote would take 87 s for 100 kB."""
    line = around % (repeated * (1_000_000 // len(repeated)))
    began = time.process_time()
    assert isinstance(_read(line + b'\n{"text":"x"}\n'), list | RequestRefused)
    with contextlib.suppress(ArticleRejected):
        assert b"evil" not in _enriched(_item(line))
    assert time.process_time() - began < 5


def test_only_a_new_routing_changes_the_action_line() -> None:
    header = b' {"index" : {"_id":"1", "pipeline":"p"} }'
    body = header + b'\n{"text":"x"}\n'
    (item,) = read_bulk(body, index="news")
    assert _enriched(item).startswith(header + b"\n")
    action, _ = _sent(_enriched(item, route_by_root=True))
    assert action == {"index": {"_id": "1", "pipeline": "p", "routing": "r" * 32}}


@pytest.mark.parametrize("operation", ["index", "update"])
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        *((each, "is not a JSON object") for each in (b"[]", b"null", b'"\\ud800"')),
        *((each, "is not JSON") for each in (b"", b'{"text":"\xff"}', b'{"text":NaN}', b"[" * 100_000)),
        *((start + b'{"text":"a"}', "is not JSON") for start in (b"\xef\xbb\xbf", b"/**/", b"#\r")),
        *((b'{"text":"a"}' + rest, "is not JSON") for rest in (b"}", b" x", b"{}", b",", b"\x80", b"//")),
        *(
            (b'{"text":"\\ud800"%b}' % each, "is not JSON")
            for each in (b',"a":NaN', b"}", b"/**/", b',"\xff":1')
        ),
    ],
)
def test_invalid_documents_are_rejected(operation: str, source: bytes, reason: str) -> None:
    with pytest.raises(ArticleRejected, match=reason):
        _item(source, operation).document()


def test_a_lone_surrogate_is_passed_on_unchanged() -> None:
    source = b'{"text":"a \\ud83d b","\\udc00":["\\ud800"],"n":1e400}'
    item = _item(source)
    assert item.document() == {"text": "a ? b", "?": ["?"], "n": float("inf")}
    assert source.removesuffix(b"}") in _enriched(item)


def test_each_document_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`read_bulk` must not parse documents; each document is parsed once, when it is needed."""
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


ONE, OTHER = b'{"index":{}}\n{"text":"a"}\n', Random(1).randbytes(50_000)
MOST_BYTES = 60_000


def _name(value: object) -> str:
    # The name does not contain the bytes, because gzip writes the current time into them.
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def _unpacked(body: bytes, *, encoding: str = "gzip", hold: Callable[[int], None] = lambda _: None) -> bytes:
    scope = {HOLD: hold, "headers": [(b"content-encoding", encoding.encode())]}
    return asyncio.run(unpacked(body, scope=scope, most_bytes=MOST_BYTES))


@pytest.mark.parametrize(
    ("packed", "whole"),
    [
        (gzip.compress(ONE), ONE),
        (gzip.compress(b""), b""),
        # Concatenated files.
        (gzip.compress(ONE) + gzip.compress(OTHER), ONE + OTHER),
        (gzip.compress(OTHER) + gzip.compress(b"") + gzip.compress(ONE), OTHER + ONE),
        (gzip.compress(ONE) * 900, ONE * 900),
        # A file padded with zeros.
        (gzip.compress(ONE) + bytes(512), ONE),
        (gzip.compress(bytes(MOST_BYTES)), bytes(MOST_BYTES)),
    ],
    ids=_name,
)
def test_whole_bodies_are_unpacked(packed: bytes, whole: bytes) -> None:
    sizes: list[int] = []
    assert _unpacked(packed, hold=sizes.append) == whole
    assert sizes == [len(whole)]


@pytest.mark.parametrize(
    ("packed", "status", "reason"),
    [
        (b"", 400, "truncated"),
        (ONE, 400, "not gzip"),
        (gzip.compress(ONE)[:-1], 400, "truncated"),
        (gzip.compress(ONE) + gzip.compress(ONE)[:-9], 400, "truncated"),
        (gzip.compress(ONE)[:-8] + bytes(8), 400, "not gzip"),
        (gzip.compress(bytes(MOST_BYTES + 1)), 413, "60,000 bytes"),
        (gzip.compress(OTHER) * 2, 413, "60,000 bytes"),
        (gzip.compress(b"") * 10_001, 400, "10,000 members"),
    ],
    ids=_name,
)
def test_damaged_or_large_bodies_are_refused(packed: bytes, status: int, reason: str) -> None:
    with pytest.raises(RequestRefused, match=reason) as refused:
        _unpacked(packed)
    assert refused.value.status == status


@pytest.mark.parametrize("window_bits", [zlib.MAX_WBITS, -zlib.MAX_WBITS])
def test_deflate_is_unpacked_with_and_without_header(window_bits: int) -> None:
    def packed(content: bytes) -> bytes:
        return zlib.compress(content, wbits=window_bits)

    sizes: list[int] = []
    assert _unpacked(packed(ONE), encoding="deflate", hold=sizes.append) == ONE
    assert sizes == [len(ONE)]
    for broken, status in ((packed(OTHER)[:-9], 400), (b"", 400), (packed(bytes(MOST_BYTES + 1)), 413)):
        with pytest.raises(RequestRefused) as refused:
            _unpacked(broken, encoding="deflate")
        assert refused.value.status == status


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "identity, gzip", "gzip, identity"])
def test_ambiguous_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        _unpacked(gzip.compress(ONE), encoding=encoding)
    assert refused.value.status == 415


SMALL, TIMES = 10_000, 8
# For an input eight times as large, a quadratic function takes 64 times as long.
MOST_TIMES = 24


def bulk(body: bytes) -> None:
    with contextlib.suppress(RequestRefused):
        read_bulk(body, index="news")


def spaced(count: int) -> bytes:
    return b'{"index":' + b" " * count + b"{}}\n{}\n"


CASES: dict[str, tuple[Callable[[bytes], object], Callable[[int], bytes]]] = {
    "blank lines": (bulk, lambda count: b"\n" * count),
    "spaces in an action line": (bulk, spaced),
    "spaces without an end": (bulk, lambda count: b" " * count),
    "quotes in an action line": (bulk, lambda count: b'{"index":{"_id":"' + b'\\"' * count),
    "backslashes": (bulk, lambda count: b'{"index":{"_id":"' + b"\\" * count + b'"}}\n{}\n'),
    "deep action lines": (bulk, lambda count: b"[" * count + b"\n"),
    "many items": (bulk, lambda count: b'{"index":{}}\n{"text":"a"}\n' * (count // 10)),
    "members": (members, lambda count: b"{" + b",".join([b'"a":1'] * count) + b"}"),
    "deep members": (members, lambda count: b'{"a":' * count + b"1" + b"}" * count),
    "a string without an end": (members, lambda count: b'{"a":"' + b'\\"' * count),
    "an added member": (lambda body: with_member(body, "d", b"1"), lambda count: b"{" + b" " * count + b"}"),
    "removed objects": (
        lambda body: without_objects(body, ("d",)),
        lambda count: b"{" + b",".join([b'"d.e":1', b'"a":1'] * count) + b"}",
    ),
    "a head with one header": (framing_fault, lambda count: b"GET / HTTP/1.1\r\nA: " + b" " * count),
    "a head with many headers": (
        framing_fault,
        lambda count: b"GET / HTTP/1.1\r\n" + b"content-length\t \r\n" * count,
    ),
    "blank lines before a head": (framing_fault, lambda count: b"\r\n" * count),
    "slashes": (lambda path: article_path("POST", path), lambda count: b"/" * count),
    "escapes": (lambda path: article_path("POST", path), lambda count: b"/a/_doc/" + b"%41" * count),
    "parts": (parts_of, lambda count: b"/a" * count),
    "parameters": (values_of, lambda count: b"a=b&" * count),
}


@pytest.mark.parametrize("name", CASES)
def test_parsing_time_is_proportional_to_size(name: str) -> None:
    parse, of = CASES[name]

    def taken_s(count: int) -> float:
        given, least_s = of(count), float("inf")
        for _ in range(3):
            began_s = time.process_time()
            parse(given)
            least_s = min(least_s, time.process_time() - began_s)
        return least_s

    # Times of less than 20 ms are too short to be compared.
    assert taken_s(TIMES * SMALL) <= max(MOST_TIMES * taken_s(SMALL), 0.02)
