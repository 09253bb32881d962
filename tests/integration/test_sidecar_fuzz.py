"""Malformed requests neither crash the sidecar nor make it hang."""

import gzip
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from esdedup.sidecar.bulk_request import read_bulk
from tests.support.bulk_bodies import BODIES
from tests.support.exploring import examples, new_random, times_effort
from tests.support.forests import ARTICLES
from tests.support.from_openapi import Description
from tests.support.fuzzed import JSON_TYPE, MOST_BYTES, ONE, Answer, Fuzzed, check_bulk, fuzzed
from tests.support.names import new_names

_INSERTED = [
    *(
        b"",
        b"{",
        b"}",
        b'"',
        b",",
        b":",
        b" ",
        b"\\",
        b"\r",
        b"\n",
        b"\r\n",
        b"[",
        b"]",
        b"\0",
        b"\xff",
        b"\xc3",
    ),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud83d", b"\\u0000", b"null", b"true", b"-", b"1e999", b"9" * 400),
    *(b'"text":1,', b'"text":"b",', b'"dedup":{"root":"x"},', b'"_id":null,', b'"routing":"r",'),
    *(b'"\\u0074ext":', b"[" * 2_000, b'{"a":' * 1_200, b"#", b"//", b"/**/", b"'"),
]


def mutated(chance: random.Random, body: bytes) -> bytes:
    """Return a body with up to three changes, some at the beginning of a key, so it often stays valid."""
    for _ in range(chance.randrange(4)):
        keys = [at + 1 for at, byte in enumerate(body) if byte in b"{,:["] or [0]
        at = chance.choice([chance.randrange(len(body) + 1), chance.choice(keys)])
        left_out = chance.choice([0, 0, 0, 1, 40, len(body)])
        body = body[:at] + chance.choice(_INSERTED) + body[at + left_out :]
    return body


NDJSON = {"Content-Type": "application/x-ndjson"}
# With these headers, a server of version 9 accepts the requests of version 8.
_AS_8 = "application/vnd.elasticsearch+{};compatible-with=8"
AS_8 = {"Content-Type": _AS_8.format("x-ndjson"), "Accept": _AS_8.format("json")}


@pytest.fixture(scope="module")
def stage(es: Elasticsearch, elasticsearch_url: str) -> Iterator[Fuzzed]:
    """A sidecar that must be healthy at the end, and must not have indexed articles without roots."""
    with new_names(es) as name, fuzzed(es, elasticsearch_url, name) as made:
        made.process.post(f"/{made.set_up.ours}/_doc/known?refresh=true", {"text": ONE["text"]})
        yield made
        made.articles(es)
        made.check_lives()
        made.check_is_idle()


@pytest.fixture(scope="module")
def description(stage: Fuzzed) -> Description:
    return Description(stage.process.get("/v1/openapi.json"))


@examples(25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_described_endpoint_fails(stage: Fuzzed, description: Description, data: st.DataObject) -> None:
    known = {
        "index": [stage.set_up.ours, stage.plain.ours, "none-there"],
        "root": [stage.root],
        "text": [ONE["text"], ARTICLES[1]["text"]],
        "id": ["known", "unknown"],
        "_id": ["1", "2"],
        "title": ["A title"],
        "published_at": ["2026-09-07T21:32:00Z", "yesterday"],
        "url": ["https://a.example/1"],
    }
    sent = data.draw(description.requests(known=known))
    answer = stage.sidecar.send(sent.method, sent.target, sent.body, sent.headers)
    _check_problem(answer)
    # A request with another method gets 405, and a path with an empty part gets 404.
    assert str(answer.status) in sent.answers or answer.status in {404, 405}, (answer.status, answer.body)
    stage.check_lives()


def _check_problem(answer: Answer) -> None:
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        problem = json.loads(answer.body)
        assert answer.headers["content-type"] == "application/problem+json", answer.body
        assert problem["status"] == answer.status
        assert problem["type"].startswith("urn:esdedup:problem:")
        assert problem["detail"]


def _bulk(*lines: Any) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


_SHORT = "The harbour council voted on Monday to build a second ferry for the northern islands this year."
_BULKS = [
    _bulk({"index": {"_id": "1"}}, {"text": _SHORT, "n": 1}, {"create": {"_id": "2"}}, {"text": ONE["text"]}),
    _bulk({"index": {}}, {"text": _SHORT}, {"delete": {"_id": "1"}}, {"create": {"_id": "2"}}, {"n": 1}),
    _bulk(
        {"update": {"_id": "2"}}, {"doc": {"text": _SHORT}, "doc_as_upsert": True}, {"delete": {"_id": "3"}}
    ),
    _bulk(
        {"index": {"_id": "4", "routing": "a"}}, {"text": _SHORT}, {"update": {"_id": "4"}}, {"doc": {"n": 1}}
    ),
    _bulk(
        {"update": {"_id": "5"}}, {"doc": {"n": 2}, "upsert": {"text": _SHORT}}, {"index": {"_id": "5"}}, {}
    ),
]


_DOCUMENTS = [_bulk(each) for each in ({"text": _SHORT, "n": 1}, {"n": 1}, {"text": ONE["text"]})]
_UPDATES = [
    *(_bulk({"doc": {"text": _SHORT}, "doc_as_upsert": True}), _bulk({"doc": {"n": 2}})),
    _bulk({"doc": {}, "upsert": {}}),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:60]))
def test_bulk_bodies_are_parsed_as_by_elasticsearch(stage: Fuzzed, body: bytes) -> None:
    ours, theirs = stage.both(stage.set_up, "/{index}/_bulk", body, AS_8)
    check_bulk(body, ours, theirs)
    if ours.status == theirs.status == 200:
        read = read_bulk(body, index=stage.set_up.theirs)
        for item, (operation, values) in zip(read, theirs.items, strict=True):
            assert (operation, values["_index"]) == (item.operation, item.index)
            assert "_id" not in item.meta or values["_id"] in (item.meta["_id"], "auto-generated")


def test_bulk_requests_are_refused_or_get_the_servers_status(stage: Fuzzed) -> None:
    chance = new_random("bulk")
    for _ in range(times_effort(20)):
        body = packed = mutated(chance, chance.choice(_BULKS))
        headers = NDJSON
        # In a gzip body, Elasticsearch ignores a last line without a newline; the sidecar refuses it.
        if body.endswith(b"\n") and chance.random() < 0.5:
            # Compress the body like two concatenated files.
            packed = gzip.compress(body[:100]) + gzip.compress(body[100:])
            headers = NDJSON | {"Content-Encoding": "gzip"}
        ours, theirs = stage.both(stage.plain, "/{index}/_bulk", packed, headers)
        check_bulk(body, ours, theirs)
        assert ours.status != 200 or (theirs.status == 200 and b"esdedup_" not in ours.body), theirs.body
        ours, theirs = stage.both(stage.set_up, "/{index}/_bulk", packed, headers)
        check_bulk(body, ours, theirs)
    stage.check_lives()


def test_each_action_to_be_enriched_is_answered(stage: Fuzzed) -> None:
    chance = new_random("enrich")
    for _ in range(times_effort(17)):
        body = mutated(chance, chance.choice(_BULKS))
        named = chance.choice(["", f"index={stage.set_up.ours}&"])
        target = f"/v1/enrich?{named}backfill={chance.choice(['true', 'false'])}"
        answer = stage.sidecar.send("POST", target, body, NDJSON)
        _check_problem(answer)
        if answer.status != 200:
            continue
        given = json.loads(answer.body)
        assert given["rejected"] == sum("error" in each for each in given["items"])
        assert len(given["items"]) <= body.count(b"\n")
        for each in given["items"]:
            roots = [each.get(part, {}).get("root") for part in ("dedup", "doc", "upsert")]
            assert any(roots) or "outcome" not in each, each
    stage.check_lives()


def test_documents_get_the_servers_status(stage: Fuzzed) -> None:
    chance = new_random("documents")
    for _ in range(times_effort(14)):
        operation = chance.choice(["_doc", "_create", "_update"])
        body = mutated(chance, chance.choice(_UPDATES if operation == "_update" else _DOCUMENTS))
        id_ = chance.choice(["1", "2", "a%2Fb", "%F0%9F%98%80", "%ff", "a" * 513])
        path = f"/{{index}}/{operation}/{id_}"
        ours, theirs = stage.both(stage.plain, path, body, JSON_TYPE)
        assert (ours.status, ours.type) == (theirs.status, theirs.type), (ours.body, theirs.body)
        ours, theirs = stage.both(stage.set_up, path, body, JSON_TYPE)
        # Documents that the sidecar has rejected are missing later.
        is_same = ours.status // 100 == theirs.status // 100 or {ours.status, theirs.status} & {404, 409}
        assert is_same or ours.type.startswith("esdedup_"), (ours.body, theirs.body)
    stage.check_lives()


@pytest.mark.parametrize("path", ["/{index}/_bulk", "/{index}/_doc/1", "/v1/enrich", "/v1/enrich/one"])
@pytest.mark.parametrize("which", ["set_up", "plain"])
def test_damaged_gzip_is_refused(stage: Fuzzed, path: str, which: str) -> None:
    packed = gzip.compress(_BULKS[0])
    headers = (NDJSON if path.endswith("_bulk") else JSON_TYPE) | {"Content-Encoding": "gzip"}
    target = path.format(index=getattr(stage, which).ours)
    for damaged in (
        packed[:-1],
        packed[:-9],
        packed[:20],
        packed[:-8] + bytes(8),
        packed + packed[:30],
        b"{}",
    ):
        assert stage.sidecar.send("POST", target, damaged, headers).status == 400
    large = gzip.compress(bytes(MOST_BYTES + 1))
    assert stage.sidecar.send("POST", target, large, headers).status == 413
    stage.check_lives()


def test_acknowledged_writes_are_stored(stage: Fuzzed, es: Elasticsearch) -> None:
    """After many mutated requests, the index contains exactly the acknowledged articles."""
    chance = new_random("acknowledged")
    index = stage.set_up.ours
    there = set(stage.articles(es))
    for _ in range(times_effort(20)):
        body = mutated(chance, b"".join(chance.choices(_BULKS, k=3)))
        answer = stage.sidecar.send("POST", f"/{index}/_bulk", body, NDJSON)
        assert answer.status in {200, 400}, answer.body
        if answer.status == 200:
            for operation, item in answer.items:
                if item["status"] in {200, 201}:
                    (there.discard if operation == "delete" else there.add)(item["_id"])
    assert stage.articles(es).keys() == there
