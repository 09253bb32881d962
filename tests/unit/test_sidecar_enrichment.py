"""How the items of a request are enriched or rejected, and which callers may write to an index."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Hashable, Sequence
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import ArticleAction, read_action

from esdedup.elastic.meta import WritableIndex
from esdedup.errors import IndexNotReady, Refused, ServerError, ServerUnavailable
from esdedup.fields import Fields
from esdedup.sidecar import auth as module
from esdedup.sidecar.auth import CallerRefused, Rights
from esdedup.sidecar.bulk_request import BulkItem, Rejection, read_bulk
from esdedup.sidecar.enrichment import Enrichment, Indices
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.upstream import Headers, WholeAnswer
from tests.support.decided import decide

DATE = "2020-01-02T03:04:05Z"
INDICES: dict[str, Any] = {
    "news": WritableIndex(fields=Fields(), name="news-1"),
    "secret": WritableIndex(fields=Fields(), name="secret"),
    "closed": IndexNotReady("the index 'closed' is closed: open it first", index="closed"),
}


@contextlib.asynccontextmanager
async def assigning(articles: Sequence[ArticleAction], _: Hashable) -> AsyncIterator[None]:
    """Assign each article to its own root."""
    for at, each in enumerate(articles):
        decide(each, at)
    yield


async def enriched(*lines: Any, index: str | None = None, asked: list[Any] | None = None) -> list[BulkItem]:
    """Enrich items for a caller who may not write to `secret`; add the checked names to `asked`."""

    async def find(names: Collection[str]) -> dict[str, Any]:
        return {name: INDICES.get(name) for name in names}

    async def may_write(_: Headers, names: Collection[str]) -> dict[str, bool]:
        if asked is not None:
            asked.append(names)
        return {name: name != "secret" for name in names}

    enrichment = Enrichment(
        forest="own",
        find=find,
        may_write=may_write,
        assigning=assigning,
        ownership=lambda: Ownership(is_owner=True),
        metrics=Metrics(),
    )
    items = read_bulk(b"".join(orjson.dumps(line) + b"\n" for line in lines), index=index)
    await enrichment.enrich(items, {"headers": []}, unset=None, backfill=True)
    return items


async def test_rejected_articles_do_not_stop_the_others() -> None:
    asked: list[Any] = []
    missing, closed, forbidden, taken, *others = await enriched(
        {"index": {"_id": "1"}},
        {"title": "no text"},
        {"index": {"_index": "closed"}},
        {"text": "closed"},
        {"index": {"_index": "secret"}},
        {"text": "forbidden"},
        {"index": {"_id": "2"}},
        orjson.Fragment(b'{"text":"half \\ud83d"}'),
        {"index": {"_index": "logs"}},
        {"text": "no article"},
        {"delete": {"_id": "3"}},
        {"update": {"_id": "4"}},
        {"doc": {"views": 7}},
        index="news",
        asked=asked,
    )
    assert asked == [["closed", "news", "secret"]]
    assert [each.rejection for each in (missing, closed, forbidden)] == [
        Rejection("1: has no field 'text', or it is null"),
        Rejection("the index 'closed' is closed: open it first"),
        Rejection("the caller may not write to the index [secret]", 403),
    ]
    assert taken.added is not None
    assert [(each.added, each.rejection) for each in others] == [(None, None)] * 3


UPDATES: list[dict[str, Any]] = [
    {"doc": {"text": "x", "published_at": DATE}, "upsert": {"text": "x"}},
    {"doc": {"text": "x"}, "doc_as_upsert": True, "detect_noop": False},
    {"doc": {"text": "x", "published_at": DATE}, "upsert": {"a": 1}, "doc_as_upsert": True},
    {"doc": {"text": "x", "dedup.root": "y"}, "upsert": {"other": 1}, "doc_as_upsert": "true"},
    {"doc": {"title": "x"}, "upsert": {"text": "x", "dedup": None}},
    {"script": {"source": "ctx.op = 'none'"}, "upsert": {"text": "x"}},
    {"doc": {"published_at": DATE}},
    {"doc": {"text": "x"}, "_source": ["a", {"b": "}"}]},
    {"doc": {"dedup": {"root": "x"}, "a": 1}, "script": "x"},
    {"doc": {"dedup": {"root": "x"}, "published_at": DATE}},
    # One part has the text, the other part a dedup object.
    {"doc": {"dedup": {"root": "x"}}, "upsert": {"text": "x"}},
    {"doc": {"text": "x", "published_at": DATE}, "upsert": {"dedup": {}}, "doc_as_upsert": True},
]


@pytest.mark.parametrize("update", UPDATES)
async def test_updates_are_enriched_as_in_the_library(update: dict[str, Any]) -> None:
    """Dedup objects sent by callers make no difference."""
    action = {"_op_type": "update", "_id": "1", "_source": update}
    (item,) = await enriched({"update": {"_id": "1"}}, update, index="news")
    read = read_action(action, INDICES["news"], position=1, now_ms=2_000_000_000_000, backfill=True)
    if isinstance(read, ArticleAction):
        decide(read, 0)
        added = read.enriched()
        assert isinstance(added, dict)
        read = added
    assert orjson.loads(item.body()) == read["_source"]


async def test_requests_without_articles_need_no_rights() -> None:
    asked: list[Any] = []
    await enriched({"index": {"_index": "logs"}}, {"a": 1}, asked=asked)
    await enriched({"delete": {"_index": "news", "_id": "1"}}, asked=asked)
    assert asked == []


async def test_deletions_that_would_fail_the_request_are_rejected() -> None:
    names = ("news", "_x", "", "a*")
    items = await enriched(*({"delete": {"_index": name, "_id": "1"}} for name in names))
    expected = [None, *(Rejection(f"{name!r} is not a valid index name") for name in names[1:])]
    assert [each.rejection for each in items] == expected


FEEDER = [(b"Authorization", b"ApiKey feeder"), (b"User-Agent", b"test")]
VISITOR = [(b"authorization", b"ApiKey visitor")]


class Elasticsearch:
    """A fake server that lets the feeder write to `news`, and records its requests."""

    def __init__(self, *answers: WholeAnswer) -> None:
        self.asked: list[tuple[Headers, list[str]]] = []
        self.answers = list(answers)

    async def ask(self, method: str, target: bytes, headers: Headers, body: bytes) -> WholeAnswer:
        assert (method, target) == ("POST", b"/_security/user/_has_privileges")
        (request,) = orjson.loads(body)["index"]
        self.asked.append((headers, request["names"]))
        if self.answers:
            return self.answers.pop(0)
        is_feeder = (b"Authorization", b"ApiKey feeder") in headers
        found = {name: {"create_doc": is_feeder and name == "news"} for name in request["names"]}
        return WholeAnswer(200, [], orjson.dumps({"has_all_requested": False, "index": found}))


def may_write(given: Rights, headers: Sequence[tuple[bytes, bytes]], *indices: str) -> dict[str, bool]:
    return dict(asyncio.run(given.may_write(headers, indices)))


def test_rights_are_checked_with_only_the_callers_credentials() -> None:
    server = Elasticsearch()
    assert may_write(Rights(server.ask), FEEDER, "news", "other") == {"news": True, "other": False}
    ((headers, names),) = server.asked
    assert headers == [FEEDER[0], (b"content-type", b"application/json")]
    assert names == ["news", "other"]


def test_a_right_is_cached_briefly_per_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    server, now_s = Elasticsearch(), [0.0]
    monkeypatch.setattr(f"{module.__name__}.time.monotonic", lambda: now_s[0])
    given = Rights(server.ask)
    for _ in range(3):
        assert may_write(given, FEEDER, "news") == {"news": True}
    assert len(server.asked) == 1
    assert may_write(given, VISITOR, "news") == {"news": False}
    now_s[0] = 61.0
    assert may_write(given, FEEDER, "news") == {"news": True}
    assert len(server.asked) == 3


def test_a_missing_right_is_not_cached() -> None:
    server = Elasticsearch()
    given = Rights(server.ask)
    for _ in range(2):
        assert may_write(given, VISITOR, "news") == {"news": False}
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error":"no handler found for uri [/_security/user/_has_privileges] and method [POST]"}'),
        (500, b'{"error":{"reason":"Security must be explicitly enabled when using a [basic] license."}}'),
    ],
)
def test_without_security_everybody_may_write(status: int, body: bytes) -> None:
    server = Elasticsearch(WholeAnswer(status, [], body))
    given = Rights(server.ask)
    assert may_write(given, [], "news", "other") == {"news": True, "other": True}
    assert may_write(given, VISITOR, "more") == {"more": True}
    assert len(server.asked) == 1


def test_unknown_callers_get_the_response_of_elasticsearch() -> None:
    answer = WholeAnswer(401, [(b"www-authenticate", b"ApiKey")], b'{"error":{}}')
    with pytest.raises(CallerRefused) as refused:
        may_write(Rights(Elasticsearch(answer).ask), [], "news")
    assert refused.value.answer is answer


def test_a_failed_check_of_rights_permits_nothing() -> None:
    given = Rights(Elasticsearch(WholeAnswer(503, [], b"")).ask)
    with pytest.raises(ServerUnavailable, match="who may write to news: it answered with status 503"):
        may_write(given, FEEDER, "news")
    assert may_write(given, FEEDER, "news") == {"news": True}


NEWS = WritableIndex(fields=Fields(), name="news")
CLOSED = IndexNotReady("the index 'news' is closed", index="news")


async def test_only_indices_that_accept_articles_are_remembered() -> None:
    answers: list[WritableIndex | IndexNotReady] = [CLOSED, CLOSED, NEWS]

    def find(name: str) -> WritableIndex | None:
        assert name == "news"
        answer = answers.pop(0)
        if isinstance(answer, IndexNotReady):
            raise answer
        return answer

    async with Indices(find) as indices:
        assert [(await indices.find({"news"}))["news"] for _ in range(5)] == [
            CLOSED,
            CLOSED,
            NEWS,
            NEWS,
            NEWS,
        ]


async def test_an_invalid_index_name_fails_only_its_items() -> None:
    def find(name: str) -> WritableIndex | None:
        if name == "<a1-{now/x}>":
            raise ServerError("unit [x] not supported for date math", status=400)
        return NEWS

    async with Indices(find) as indices:
        answers = await indices.find({"news", "<a1-{now/x}>"})
    assert answers["news"] is NEWS
    assert isinstance(answers["<a1-{now/x}>"], IndexNotReady)


async def test_too_many_indices_in_a_request_are_refused() -> None:
    """Each index requires a request to Elasticsearch, for which other callers would have to wait."""

    async def ask() -> None:
        async with Indices(fail_if_asked) as indices:
            with pytest.raises(Refused, match="may name 1,000 indices, not 1,001"):
                await indices.find(f"news-{number}" for number in range(1_001))

    def fail_if_asked(name: str) -> None:
        raise AssertionError(name)

    (await ask())
