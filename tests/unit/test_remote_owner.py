"""A feeder finds the sidecar that owns the forest, sends it requests, and reads its responses."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from elasticsearch import Elasticsearch
from esdedup.ingest.actions import Addition, ArticleAction, read_action
from esdedup.ingest.remote_owner import RemoteOwner, SidecarConnection

from esdedup import VERIFIED, Dedup, Fields, SettingError, SidecarError, SidecarUnavailable
from esdedup.elastic.meta import WritableIndex
from esdedup.fields import fields_given
from esdedup.forest import NO_TIME, Assignment, Kind
from esdedup.sidecar.enrich_api import EnrichQuery
from tests.support.wire import Connection, ScriptedServer, answer, closed_port

ADDRESS = "http://sidecar:9500"
INDEX = WritableIndex(fields=Fields())
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DEDUP: dict[str, Any] = {
    "root": "r",
    "seq": 7,
    "seen": 1_000,
    "fingerprint": "f",
    "signature": base64.b64encode(b"\0\xff").decode(),
}
JOINED = Assignment(Kind.JOINED, "f", "r", 7, 1_000, b"\0\xff")


class Answering:
    """A fake connection that records requests and returns a fixed response."""

    address = ADDRESS

    def __init__(self, *items: Any, answer: bytes | None = None) -> None:
        self.answer = json.dumps({"rejected": 0, "items": items}).encode() if answer is None else answer
        self.sent: list[tuple[str, bytes, str]] = []
        self.closed = 0

    def post(self, path: str, body: bytes, *, content_type: str) -> bytes:
        self.sent.append((path, body, content_type))
        return self.answer

    def close(self) -> None:
        self.closed += 1


def remote(connection: Any, fields: Fields = INDEX.fields) -> RemoteOwner:
    return RemoteOwner(connection, forest="own", profile=VERIFIED, fields=fields)


def article(
    action: dict[str, Any], fields: Fields = INDEX.fields, *, backfill: bool = False
) -> ArticleAction:
    read = read_action(action, WritableIndex(fields=fields), position=1, now_ms=0, backfill=backfill)
    assert isinstance(read, ArticleAction)
    return read


def lines(*articles: ArticleAction) -> list[Any]:
    """Return the lines that are sent for articles."""
    connection = Answering(*[{"outcome": "joined", "dedup": DEDUP}] * len(articles))
    remote(connection).assign(articles)
    ((_, body, _),) = connection.sent
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.splitlines()]


def answered(item: Any, action: dict[str, Any] | None = None) -> ArticleAction:
    found = article(action or {"_id": "1", "text": "hello"})
    remote(Answering(item)).assign([found])
    return found


@pytest.mark.parametrize("backfill", [True, False])
def test_a_request_names_forest_profile_and_backfill(backfill: bool) -> None:
    connection = Answering({"outcome": "joined", "dedup": DEDUP})
    fields = Fields(text="title", title="head", time="date", link="address", site="host", dedup="near")
    remote(connection, fields).assign([article({"text": "hello"}, backfill=backfill)])
    ((path, _, content_type),) = connection.sent
    assert (urlsplit(path).path, content_type) == ("/v1/enrich", "application/x-ndjson")
    expected = {"forest": ["own"], "profile": [VERIFIED.label]} | ({"backfill": ["true"]} if backfill else {})
    # The request also has the names of fields, for actions that name no index.
    names = {"text": "title", "title": "head", "time": "date", "link": "address", "source": "source"}
    names |= {"site": "host", "dedup": "near"}
    expected |= {f"{role}_field": [name] for role, name in names.items()}
    query = parse_qs(urlsplit(path).query)
    assert query == expected
    # The sidecar reads the same names back, although the text field has the default name of the title field.
    asked = EnrichQuery.model_validate({name: values[0] for name, values in query.items()})
    assert fields_given(asked) == fields


def test_only_fields_that_the_forest_needs_are_sent() -> None:
    needed = {"text": "hello", "title": "Hello", "published_at": "2026-01-01"}
    needed |= {"url": "http://a.example/1", "source": "A"}
    whole = {"tags": ["x"], "dedup": {"root": "old"}, **needed}
    names = Fields()
    assert {names.text, names.title, names.time, names.link, names.source} == needed.keys()
    assert lines(
        article({"_index": "news", "_id": "1", "_source": whole, "routing": "x", "pipeline": "p"}),
        article({"_op_type": "create", "_id": 7, **whole}),
        article({"text": "hello", "source": None}),
    ) == [
        {"index": {"_index": "news", "_id": "1"}},
        needed,
        {"create": {"_id": "7"}},
        needed,
        {"index": {}},
        {"text": "hello", "source": None},
    ]


def test_configured_field_names_are_used() -> None:
    fields = Fields(text="body.plain", time="meta.date", site="crawl.site")
    action = {"body": {"plain": "hello", "html": "<p>"}, "meta": {"date": DATE}, "crawl.site": "a.example"}
    assert lines(article(action, fields)) == [
        {"index": {}},
        {"body.plain": "hello", "meta.date": DATE.isoformat(), "crawl.site": "a.example"},
    ]


def test_the_parts_of_an_update_are_sent() -> None:
    doc = {"text": "hello", "published_at": DATE, "n": 1}
    assert lines(
        article({"_op_type": "update", "_id": "1", "doc": doc, "doc_as_upsert": True, "detect_noop": False}),
        article({"_op_type": "update", "_id": "2", "upsert": doc, "script": {"source": "x"}}),
        article({"_op_type": "update", "_id": "3", "doc": {"n": 1}, "upsert": {"text": "hello"}}),
    ) == [
        {"update": {"_id": "1"}},
        {"doc": {"text": "hello", "published_at": DATE.isoformat()}, "doc_as_upsert": True},
        {"update": {"_id": "2"}},
        {"upsert": {"text": "hello", "published_at": DATE.isoformat()}},
        {"update": {"_id": "3"}},
        {"doc": {}, "upsert": {"text": "hello"}},
    ]


def test_a_response_gives_assignment_and_dedup_object() -> None:
    found = answered(
        {"outcome": "joined", "dedup": DEDUP, "routing": "r", "is_cut": True, "boilerplate_letters": 9}
    )
    assert found.assignment == JOINED
    assert found.added == Addition({"source": DEDUP}, "r")
    assert (found.is_cut, found.boilerplate_letters) == (True, 9)
    other = answered({"outcome": "joined", "dedup": DEDUP})
    assert (other.is_cut, other.boilerplate_letters) == (False, 0)


def test_parts_of_an_update_get_their_own_dedup_object() -> None:
    update = {"_op_type": "update", "_id": "1", "doc": {"text": "hello"}, "doc_as_upsert": True}
    upsert = DEDUP | {"published": 1_000}
    both = answered({"outcome": "joined", "doc": DEDUP, "upsert": upsert}, update)
    assert both.assignment == JOINED
    assert both.added == Addition({"doc": DEDUP, "upsert": upsert})
    # Only the dedup object that the caller sent is removed from `doc`.
    forged = {"_op_type": "update", "_id": "1", "doc": {"n": 1}, "upsert": {"text": "hello"}}
    one = answered({"outcome": "joined", "doc": None, "upsert": DEDUP}, forged)
    assert one.assignment == JOINED
    assert one.added == Addition({"doc": None, "upsert": DEDUP})


def test_an_article_without_fingerprint_has_no_forest_root() -> None:
    found = answered({"outcome": "without_fingerprint", "dedup": {"root": "~1", "seq": 9}})
    assert found.assignment == Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 9, NO_TIME, b"")
    assert found.added == Addition({"source": {"root": "~1", "seq": 9}})


def rejection(status: int, detail: str = "1: has no text") -> dict[str, Any]:
    return {"error": {"type": "x", "title": "X", "status": status, "detail": detail}}


def test_a_rejection_affects_only_its_own_article() -> None:
    connection = Answering(
        rejection(400),
        {"outcome": "joined", "dedup": DEDUP},
        # The sidecar counts lines instead of articles.
        rejection(400, "action 5: has no text"),
        rejection(400, "a: b: has no text"),
    )
    articles = [article({"_id": each, "text": "hello"}) for each in ("1", "2", None, "a: b")]
    remote(connection).assign(articles)
    one, other, nameless, odd = articles
    for each, name in ((one, "1"), (nameless, "action 1"), (odd, "a: b")):
        assert each.rejection is not None
        assert (each.rejection.article, each.rejection.reason) == (name, "has no text")
    assert other.assignment == JOINED


@pytest.mark.parametrize("status", [403, 409, 500])
def test_index_and_caller_errors_fail_the_batch(status: int) -> None:
    with pytest.raises(SidecarError, match="1: the sidecar refuses it: may not write") as raised:
        answered(rejection(status, "may not write"))
    assert (raised.value.address, raised.value.status) == (ADDRESS, status)


@pytest.mark.parametrize(
    "item",
    [
        *({}, None, 7, "joined"),
        {"outcome": "joined"},
        {"outcome": "joined", "doc": None},
        {"dedup": DEDUP},
        {"outcome": "guessed", "dedup": DEDUP},
        {"outcome": "joined", "dedup": {}},
        {"outcome": "joined", "dedup": "r"},
        {"outcome": "joined", "dedup": DEDUP | {"signature": "not base64"}},
        {"outcome": "joined", "dedup": DEDUP | {"signature": 7}},
        {"error": "no"},
        {"error": {"status": 400}},
    ],
)
def test_a_malformed_item_is_a_sidecar_error(item: Any) -> None:
    with pytest.raises(SidecarError, match="has an unknown format") as raised:
        answered(item)
    assert raised.value.address == ADDRESS


_NO_ITEMS = (
    b"",
    b"<html>",
    b"\xff",
    b"[]",
    b"null",
    b"{}",
    b'{"items":7}',
    b'{"items":null}',
    b'{"items":[]}',
)


@pytest.mark.parametrize("answer", [*_NO_ITEMS, b'{"items":[{},{}]}', b"[" * 100_000])
def test_a_malformed_response_is_a_sidecar_error(answer: bytes) -> None:
    with pytest.raises(SidecarError, match="has an unknown format"):
        remote(Answering(answer=answer)).assign([article({"text": "hello"})])


def test_closing_the_owner_closes_its_connection() -> None:
    connection = Answering()
    remote(connection).close()
    assert connection.closed == 1


TYPE = "application/x-test"


def response(status: int, body: bytes = b"{}") -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(body), body)


DECIDED = response(200, b"decided")
NOT_OWNER = response(503, b'{"type":"urn:esdedup:problem:not_owner","detail":"another process owns it"}')


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esdedup.elastic.patience._FIRST_PAUSE_S", 0.01)


@pytest.fixture
def servers() -> Iterator[list[ScriptedServer]]:
    with ExitStack() as running:
        yield [running.enter_context(ScriptedServer().running()) for _ in range(2)]


def connection_to(*urls: str, patience_s: float = 20.0, token: str | None = None) -> SidecarConnection:
    return SidecarConnection(
        urls,
        token=token,
        credentials={"authorization": "ApiKey k"},
        ca_certs=None,
        patience_s=patience_s,
    )


def test_the_owning_sidecar_is_found_and_remembered(servers: list[ScriptedServer]) -> None:
    heads: list[list[bytes]] = [[], []]
    standby, owner = servers
    standby.script = answer(NOT_OWNER, heads[0], body_end=b"asked")
    owner.script = answer(DECIDED, heads[1], body_end=b"asked")
    nobody = f"http://127.0.0.1:{closed_port()}"
    asking = connection_to(nobody, standby.url, f"{owner.url}/under", token="s")
    for _ in range(3):
        assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    assert [len(each) for each in heads] == [1, 3]
    assert heads[1][0].startswith(b"POST /under/v1/enrich HTTP/1.1\r\n")
    assert b"x-esdedup-token: s\r\n" in heads[1][0].lower()
    # Elasticsearch identifies the writer by these credentials.
    assert b"authorization: apikey k\r\n" in heads[1][0].lower()
    # The other sidecar takes over.
    standby.script, owner.script = owner.script, standby.script
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    asking.close()
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"


def test_requests_are_retried_until_a_sidecar_accepts(servers: list[ScriptedServer]) -> None:
    """The sidecar disconnects, is busy, stops in mid-response, or is behind a proxy without a backend."""
    turns = iter([b"", response(429), DECIDED[:-3], response(502, b"<html>"), NOT_OWNER, response(504)])

    def script(connection: Connection) -> None:
        connection.until(b"asked")
        connection.send(next(turns, DECIDED))
        connection.socket.close()

    servers[0].script = script
    asking = connection_to(servers[0].url)
    assert asking.post("/v1/enrich", b"asked", content_type=TYPE) == b"decided"
    assert next(turns, None) is None


def test_retries_stop_after_the_allowed_time(servers: list[ScriptedServer]) -> None:
    servers[0].script = answer(NOT_OWNER, body_end=b"asked")
    began_s = time.monotonic()
    asking = connection_to(servers[0].url, f"http://127.0.0.1:{closed_port()}", patience_s=0.5)
    with pytest.raises(SidecarUnavailable, match=r"within 0.5 s .*: 503 another process owns it; ") as raised:
        asking.post("/v1/enrich", b"asked", content_type=TYPE)
    assert time.monotonic() - began_s < 20
    assert "cannot connect" in str(raised.value)
    assert servers[0].url in raised.value.address


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "pass the correct sidecar_token"),
        (404, "the address of a sidecar"),
        (409, "that is wrong"),
        (500, ""),
    ],
)
def test_a_refusal_is_raised_immediately(servers: list[ScriptedServer], status: int, advice: str) -> None:
    servers[0].script = answer(response(status, b'{"detail":"that is wrong"}'), body_end=b"asked")
    with pytest.raises(SidecarError, match=f"refuses these articles: {status} that is wrong") as raised:
        connection_to(*(each.url for each in servers)).post("/v1/enrich", b"asked", content_type=TYPE)
    assert advice in str(raised.value)
    assert (raised.value.address, raised.value.status) == (servers[0].url, status)


def test_unusable_arguments_are_refused_before_sending() -> None:
    client = Elasticsearch("http://127.0.0.1:9")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sidecar": []}, "sidecar is empty: give at least one address"),
        ({"sidecar": "localhost:9500"}, "an address must look like"),
        ({"sidecar": "http://user:secret@:x"}, "an address must look like"),
        ({"sidecar_token": "a\n"}, "sidecar_token is blank, or has an invalid character"),
        ({"sidecar_patience_s": 0}, "sidecar_patience_s is 0"),
        (
            {"workers": 3, "wait_s": 1.0},
            "wait_s and workers: with a sidecar, these are settings of the sidecar",
        ),
    ]
    for wrong, message in cases:
        with pytest.raises(SettingError, match=message) as raised:
            Dedup(client, **{"sidecar": "http://localhost:9500"} | wrong)
        assert "secret" not in str(raised.value)
    dedup = Dedup(client, sidecar="http://localhost:9500")
    with pytest.raises(SettingError, match="sidecar"):
        dedup.expire()
    client.close()
