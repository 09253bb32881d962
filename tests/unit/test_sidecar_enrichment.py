"""How the items of a request are enriched or rejected, and which callers may write to an index."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import ArticleAction, read_action

from esdedup.elastic.kept import WritableIndex
from esdedup.errors import IndexNotReady, ServerError, ServerUnavailable
from esdedup.fields import Fields
from esdedup.serving.refusals import Refused
from esdedup.sidecar import auth as module
from esdedup.sidecar.auth import CallerRefused, Rights
from esdedup.sidecar.bulk_request import BulkItem, Rejection, read_bulk
from esdedup.sidecar.enrichment import Enrichment, Indices, Target
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.upstream import Headers, WholeAnswer
from tests.support.decided import decide

DATE = "2020-01-02T03:04:05Z"
INDICES: dict[str, Any] = {
    "news": WritableIndex(fields=Fields(), name="news-1"),
    "routed": WritableIndex(fields=Fields(text="body"), name="routed", is_routed_by_root=True),
    "others": WritableIndex(fields=Fields(), name="others", forest="other"),
    "own": WritableIndex(fields=Fields(), name="own", forest="own"),
    "closed": IndexNotReady("the index 'closed' is closed: open it first", index="closed"),
}
Assigning = Callable[[Sequence[ArticleAction], Hashable], AbstractAsyncContextManager[None]]
HEADERS = [(b"authorization", b"ApiKey feeder")]


class Sidecar:
    """Assigns every article to a root of its own, and notes what it was asked."""

    def __init__(self, *, forbidden: str = "") -> None:
        self.articles: list[ArticleAction] = []
        self.asked: list[Collection[str]] = []
        self.forbidden = forbidden
        self.enrichment = self.enrichment_with(self.assigning)

    def enrichment_with(self, assigning: Assigning) -> Enrichment:
        return Enrichment(
            forest="own",
            find=self.find,
            may_write=self.may_write,
            assigning=assigning,
            ownership=lambda: Ownership(is_owner=True),
            metrics=Metrics(),
        )

    async def find(self, names: Collection[str]) -> dict[str, Any]:
        return {name: INDICES.get(name) for name in names}

    async def may_write(self, headers: Headers, names: Collection[str]) -> dict[str, bool]:
        assert headers == HEADERS
        self.asked.append(names)
        return {name: name != self.forbidden for name in names}

    @contextlib.asynccontextmanager
    async def assigning(self, articles: Sequence[ArticleAction], _: Hashable) -> AsyncIterator[None]:
        self.articles += articles
        self.assign(articles)
        yield

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        for at, each in enumerate(articles):
            decide(each, at)

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.articles]

    def enrich(
        self,
        *lines: Any,
        index: str | None = None,
        unset: WritableIndex | None = None,
        backfill: bool = False,
    ) -> list[BulkItem]:
        items = items_of(*lines, index=index)
        asyncio.run(self.enrichment.enrich(items, {"headers": HEADERS}, unset=unset, backfill=backfill))
        return items


def items_of(*lines: Any, index: str | None = None) -> list[BulkItem]:
    return read_bulk(b"".join(orjson.dumps(line) + b"\n" for line in lines), index=index)


def roots(item: BulkItem) -> dict[str, str]:
    assert item.added is not None
    return {part: values["root"] for part, values in item.added.parts.items() if values is not None}


def reasons(*items: BulkItem) -> list[Rejection | None]:
    """Return why items were rejected; None for those that are passed on unchanged."""
    assert all(each.added is None for each in items)
    return [each.rejection for each in items]


def test_articles_are_enriched_in_order_and_everything_else_stays() -> None:
    sidecar = Sidecar()
    items = sidecar.enrich(
        {"index": {"_id": "1"}},
        {"text": "one"},
        {"index": {"_index": "logs"}},
        {"text": "no article"},
        {"delete": {"_id": "2"}},
        {"create": {"_index": "routed", "_id": "3"}},
        {"body": "two"},
        {"update": {"_id": "4"}},
        {"doc": {"views": 7}},
        {"update": {"_id": "5"}},
        {"doc": {"text": "three"}},
        index="news",
    )
    assert sidecar.texts == ["one", "two", "three"]
    assert sidecar.asked == [["news", "routed"]]
    first, *others, routed, date, updated = items
    assert reasons(*others, date) == [None] * 3
    assert roots(first) == {"source": "root-0"}
    assert roots(routed) == {"source": "root-1"}
    assert roots(updated) == {"doc": "root-2"}
    assert [each.added and each.added.routing for each in (first, routed, updated)] == [None, "root-1", None]


def test_rejected_articles_do_not_stop_the_others() -> None:
    sidecar = Sidecar(forbidden="routed")
    items = sidecar.enrich(
        {"index": {"_id": "1"}},
        {"title": "no text"},
        {"index": {"_index": "closed"}},
        {"text": "closed"},
        {"index": {"_index": "routed"}},
        {"body": "forbidden"},
        {"index": {"_id": "2"}},
        {"text": "taken"},
        {"update": {"_id": "3"}},
        {"doc": {"published_at": "2026-01-02T03:04:05Z"}},
        {"update": {"_id": "4"}},
        orjson.Fragment(b'{"doc":{"text":"trailing"}}}'),
        {"index": {"_id": "5"}},
        orjson.Fragment(b'{"text":"half \\ud83d"}'),
        index="news",
    )
    assert sidecar.texts == ["taken", "half ?"]
    missing, closed, forbidden, taken, dated, unreadable, half = items
    for number, refused in (1, missing), (4, unreadable):
        assert refused.rejection is not None
        assert refused.rejection.status == 400
        assert f"{number}: " in refused.rejection.reason
    assert reasons(closed, forbidden) == [
        Rejection("the index 'closed' is closed: open it first"),
        Rejection("the caller may not write to the index [routed]", 403),
    ]
    assert all(each.rejection is None for each in (taken, dated, half))
    assert roots(taken)
    assert roots(half)


def test_articles_that_others_write_are_enriched() -> None:
    """Without an index, the usual fields count; an index is accepted only if the caller may write to it."""
    sidecar = Sidecar(forbidden="routed")
    one, two, *others = sidecar.enrich(
        {"index": {}},
        {"content": "one"},
        {"create": {"_index": "news"}},
        {"text": "two"},
        {"index": {"_index": "logs"}},
        {"text": "no article"},
        {"index": {"_index": "No,index"}},
        {"text": "no index"},
        {"index": {"_index": "closed"}},
        {"text": "closed"},
        {"index": {"_index": "routed"}},
        {"body": "forbidden"},
        {"delete": {"_index": "logs", "_id": "1"}},
        {"delete": {"_id": "2"}},
        unset=WritableIndex(fields=Fields(text="content")),
        backfill=True,
    )
    assert sidecar.texts == ["one", "two"]
    assert all(each.is_backfill for each in sidecar.articles)
    assert roots(one)
    assert roots(two)
    assert reasons(*others) == [
        Rejection("the index 'logs' was not set up for articles", 409),
        Rejection("no index can be called 'No,index'"),
        Rejection("the index 'closed' is closed: open it first", 409),
        Rejection("the caller may not write to the index [routed]", 403),
        None,
        None,
    ]


def test_an_index_of_another_forest_is_refused() -> None:
    sidecar = Sidecar()
    others, own = sidecar.enrich(
        {"index": {"_index": "others"}}, {"text": "one"}, {"index": {"_index": "own"}}, {"text": "two"}
    )
    assert others.rejection is not None
    assert "the index 'others' belongs to the forest 'other', and not to 'own'" in others.rejection.reason
    assert roots(own)
    assert sidecar.texts == ["two"]


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
def test_updates_get_what_they_get_from_the_library(update: dict[str, Any]) -> None:
    """No dedup object that a caller sends makes a difference."""
    sidecar = Sidecar()
    action = {"_op_type": "update", "_id": "1", "_source": update}
    (item,) = sidecar.enrich({"update": {"_id": "1"}}, update, index="news", backfill=True)
    read = read_action(action, INDICES["news"], position=1, now_ms=2_000_000_000_000, backfill=True)
    if isinstance(read, ArticleAction):
        sidecar.assign([read])
        enriched = read.enriched()
        assert isinstance(enriched, dict)
        read = enriched
    assert orjson.loads(item.body()) == read["_source"]


def test_requests_without_articles_need_no_rights() -> None:
    sidecar = Sidecar()
    assert reasons(*sidecar.enrich({"index": {"_index": "logs"}}, {"a": 1})) == [None]
    assert reasons(*sidecar.enrich({"delete": {"_index": "news", "_id": "1"}})) == [None]
    assert sidecar.asked == []


def test_deletions_that_would_fail_the_request_are_rejected() -> None:
    sidecar = Sidecar()
    deletions = [{"delete": {"_index": name, "_id": "1"}} for name in ("news", "_x", "", "a*")]
    expected = [None, *(Rejection(f"no index can be called {name!r}") for name in ("_x", "", "a*"))]
    assert reasons(*sidecar.enrich(*deletions)) == expected
    article, *others = sidecar.enrich({"index": {"_index": "news"}}, {"text": "one"}, *deletions)
    assert roots(article)
    assert reasons(*others) == expected


def test_a_refusal_by_the_intake_is_raised() -> None:
    sidecar = Sidecar()

    def refuse(*_: Any) -> AbstractAsyncContextManager[None]:
        raise Refused("too much waits")

    sidecar.enrichment = sidecar.enrichment_with(refuse)
    with pytest.raises(Refused, match="too much waits"):
        sidecar.enrich({"index": {"_index": "news"}}, {"text": "one"})


FEEDER = [(b"Authorization", b"ApiKey feeder"), (b"User-Agent", b"test")]
VISITOR = [(b"authorization", b"ApiKey visitor")]


class Elasticsearch:
    """Lets the feeder write to `news`; counts what it is asked."""

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


def test_unknown_callers_get_the_answer_of_elasticsearch() -> None:
    answer = WholeAnswer(401, [(b"www-authenticate", b"ApiKey")], b'{"error":{}}')
    with pytest.raises(CallerRefused) as refused:
        may_write(Rights(Elasticsearch(answer).ask), [], "news")
    assert refused.value.answer is answer


def test_a_failed_check_of_rights_permits_nothing() -> None:
    given = Rights(Elasticsearch(WholeAnswer(503, [], b"")).ask)
    with pytest.raises(ServerUnavailable, match="who may write to news: it answers with status 503"):
        may_write(given, FEEDER, "news")
    assert may_write(given, FEEDER, "news") == {"news": True}


NEWS = WritableIndex(fields=Fields(), name="news")
CLOSED = IndexNotReady("the index 'news' is closed", index="news")


def test_only_indices_that_take_articles_are_remembered() -> None:
    answers: list[WritableIndex | IndexNotReady] = [CLOSED, CLOSED, NEWS]

    def find(name: str) -> WritableIndex | None:
        assert name == "news"
        answer = answers.pop(0)
        if isinstance(answer, IndexNotReady):
            raise answer
        return answer

    async def found() -> list[Target]:
        async with Indices(find) as indices:
            return [(await indices.find({"news"}))["news"] for _ in range(5)]

    assert asyncio.run(found()) == [CLOSED, CLOSED, NEWS, NEWS, NEWS]


def test_an_invalid_index_name_fails_only_its_items() -> None:
    def find(name: str) -> WritableIndex | None:
        if name == "<a1-{now/x}>":
            raise ServerError("unit [x] not supported for date math", status=400)
        return NEWS

    async def found() -> dict[str, Target]:
        async with Indices(find) as indices:
            return await indices.find({"news", "<a1-{now/x}>"})

    answers = asyncio.run(found())
    assert answers["news"] is NEWS
    assert isinstance(answers["<a1-{now/x}>"], IndexNotReady)


def test_too_many_indices_in_a_request_are_refused() -> None:
    """Each index takes a request to Elasticsearch, and other callers would wait for it."""

    async def ask() -> None:
        async with Indices(fail_if_asked) as indices:
            with pytest.raises(Refused, match="may name 1,000 indices, not 1,001"):
                await indices.find(f"news-{number}" for number in range(1_001))

    def fail_if_asked(name: str) -> None:
        raise AssertionError(name)

    asyncio.run(ask())
