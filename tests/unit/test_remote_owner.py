"""What a feeder sends to a sidecar, and what it makes of the answer."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from esdedup.ingest.actions import Addition, ArticleAction, read_action
from esdedup.ingest.remote_owner import Answered, RemoteOwner

from esdedup import VERIFIED, ArticleRejected, Fields, SidecarError
from esdedup.elastic.article_indices import WritableIndex
from esdedup.fields import fields_given
from esdedup.forest import NO_TIME, Assignment, Kind
from esdedup.sidecar.enrich_api import EnrichQuery

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


class Connection:
    """Keeps what is sent, and gives an answer."""

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
    read = read_action(action, fields, position=1, backfill=backfill)
    assert isinstance(read, ArticleAction)
    return read


def lines(*articles: ArticleAction) -> list[Any]:
    """Return what is sent for articles."""
    connection = Connection(*[{"outcome": "joined", "dedup": DEDUP}] * len(articles))
    remote(connection).assign(articles)
    ((_, body, _),) = connection.sent
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.splitlines()]


def answered(item: Any, action: dict[str, Any] | None = None) -> Answered:
    (found,) = remote(Connection(item)).assign([article(action or {"_id": "1", "text": "hello"})])
    return found


@pytest.mark.parametrize("backfill", [True, False])
def test_it_names_its_forest_and_profile_and_says_whether_old_articles_come(backfill: bool) -> None:
    connection = Connection({"outcome": "joined", "dedup": DEDUP})
    fields = Fields(text="title", title="head", time="date", link="address", site="host", dedup="near")
    remote(connection, fields).assign([article({"text": "hello"}, backfill=backfill)])
    ((path, _, content_type),) = connection.sent
    assert (urlsplit(path).path, content_type) == ("/v1/enrich", "application/x-ndjson")
    expected = {"forest": ["own"], "profile": [VERIFIED.label]} | ({"backfill": ["true"]} if backfill else {})
    # For actions that name no index.
    names = {"text": "title", "title": "head", "time": "date", "link": "address", "source": "source"}
    names |= {"site": "host", "dedup": "near"}
    expected |= {f"{role}_field": [name] for role, name in names.items()}
    query = parse_qs(urlsplit(path).query)
    assert query == expected
    # As the sidecar reads them: a text may be called as titles usually are.
    asked = EnrichQuery.model_validate({name: values[0] for name, values in query.items()})
    assert fields_given(asked) == fields


def test_only_what_the_forest_looks_at_is_sent() -> None:
    looked_at = {"text": "hello", "published_at": "2026-01-01", "url": "http://a.example/1", "source": "A"}
    whole = {"title": "Hello", "tags": ["x"], "dedup": {"root": "old"}, **looked_at}
    names = Fields()
    assert {names.text, names.time, names.link, names.source} == looked_at.keys()
    assert lines(
        article({"_index": "news", "_id": "1", "_source": whole, "routing": "x", "pipeline": "p"}),
        article({"_op_type": "create", "_id": 7, **whole}),
        article({"text": "hello", "source": None}),
    ) == [
        {"index": {"_index": "news", "_id": "1"}},
        looked_at,
        {"create": {"_id": "7"}},
        looked_at,
        {"index": {}},
        {"text": "hello", "source": None},
    ]


def test_fields_have_their_own_names() -> None:
    fields = Fields(text="body.plain", time="meta.date", site="crawl.site")
    action = {"body": {"plain": "hello", "html": "<p>"}, "meta": {"date": DATE}, "crawl.site": "a.example"}
    assert lines(article(action, fields)) == [
        {"index": {}},
        {"body.plain": "hello", "meta.date": DATE.isoformat(), "crawl.site": "a.example"},
    ]


def test_of_an_update_its_parts_are_sent() -> None:
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


def test_an_answer_is_an_assignment_and_what_is_added() -> None:
    found = answered({"outcome": "joined", "dedup": DEDUP, "routing": "r", "is_cut": True})
    assert found.assignment == JOINED
    assert found.addition(INDEX) == Addition({"source": DEDUP}, "r")
    assert found.article.is_cut
    assert not answered({"outcome": "joined", "dedup": DEDUP}).article.is_cut


def test_parts_of_an_update_are_what_is_added_to_them() -> None:
    update = {"_op_type": "update", "_id": "1", "doc": {"text": "hello"}, "doc_as_upsert": True}
    upsert = DEDUP | {"published": 1_000}
    both = answered({"outcome": "joined", "doc": DEDUP, "upsert": upsert}, update)
    assert both.assignment == JOINED
    assert both.addition(INDEX) == Addition({"doc": DEDUP, "upsert": upsert})
    # The doc only loses what it says of the object.
    forged = {"_op_type": "update", "_id": "1", "doc": {"n": 1}, "upsert": {"text": "hello"}}
    one = answered({"outcome": "joined", "doc": None, "upsert": DEDUP}, forged)
    assert one.assignment == JOINED
    assert one.addition(INDEX) == Addition({"doc": None, "upsert": DEDUP})


def test_an_article_without_a_fingerprint_has_no_root_in_the_forest() -> None:
    found = answered({"outcome": "without_fingerprint", "dedup": {"root": "~1", "seq": 9}})
    assert found.assignment == Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 9, NO_TIME, b"")
    assert found.addition(INDEX) == Addition({"source": {"root": "~1", "seq": 9}})


def rejection(status: int, detail: str = "1: has no text") -> dict[str, Any]:
    return {"error": {"type": "x", "title": "X", "status": status, "detail": detail}}


def test_a_rejected_article_is_rejected_by_its_name_and_the_others_are_not() -> None:
    connection = Connection(
        rejection(400),
        {"outcome": "joined", "dedup": DEDUP},
        # The sidecar counts lines.
        rejection(400, "action 5: has no text"),
        rejection(400, "a: b: has no text"),
    )
    one, other, nameless, odd = remote(connection).assign(
        [article({"_id": each, "text": "hello"}) for each in ("1", "2", None, "a: b")]
    )
    for each, name in ((one, "1"), (nameless, "action 1"), (odd, "a: b")):
        with pytest.raises(ArticleRejected) as raised:
            each.addition(INDEX)
        assert (raised.value.article, raised.value.reason) == (name, "has no text")
    assert other.assignment == JOINED


@pytest.mark.parametrize("status", [403, 409, 500])
def test_what_is_wrong_with_the_index_or_the_caller_fails_the_batch(status: int) -> None:
    with pytest.raises(SidecarError, match="1: the sidecar refuses it: may not write") as raised:
        answered(rejection(status, "may not write"))
    assert (raised.value.address, raised.value.status) == (ADDRESS, status)


@pytest.mark.parametrize(
    "item",
    [
        {},
        None,
        7,
        "joined",
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
def test_an_item_that_is_no_answer_is_an_error_of_the_sidecar(item: Any) -> None:
    with pytest.raises(SidecarError, match="something else than roots") as raised:
        answered(item)
    assert raised.value.address == ADDRESS


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"items":7}',
        b'{"items":null}',
        b'{"items":[]}',
        b'{"items":[{},{}]}',
        b"[" * 100_000,
    ],
)
def test_an_answer_that_is_none_is_an_error_of_the_sidecar(answer: bytes) -> None:
    with pytest.raises(SidecarError, match="something else than roots"):
        remote(Connection(answer=answer)).assign([article({"text": "hello"})])


def test_it_closes_its_connection() -> None:
    connection = Connection()
    remote(connection).close()
    assert connection.closed == 1
