"""Requests and answers of the pages have a limited size and structure, whatever is in them."""

import asyncio
import json
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch

from esdedup.reading.results import FullArticle, Page, Row, SimilarArticle, SimilarPage, Source, SourcesPage
from esdedup.web import create_app, guards
from esdedup.web.api import MAX_TEXT
from esdedup.web.bounds import MAX_SHOWN_TEXT, MAX_VALUE, bounded
from tests.support.asgi import Request, Response, requests, send

# Nobody listens there: what passes the guards gets 502 from the routes.
NOWHERE = "http://127.0.0.1:9"
PASSED = 502
LONG = 50 * MAX_VALUE
ODD: dict[str, Any] = {
    "title": "'" * LONG,
    "url": "https://a.example/" + "x" * LONG,
    "source": ["x" * LONG] * 3,
    "published_at": {"nested": [{"deeply": list(range(LONG))}]},
}


def post(*bodies: bytes) -> list[Response]:
    json_type = {"content-type": "application/json"}
    path = "/api/v1/similar"
    given = [Request(path=path, method="POST", headers=json_type, body=body) for body in bodies]
    return requests(NOWHERE, "news", given)


LISTS = b"[]," * 300_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"x":[' + LISTS + b'[]],"text":"abc"}', "too many values"),
        (b'{"x":"\\"\\\\",' + b'"y":[' + LISTS + b'[]],"text":"abc"}', "too many values"),
        (b'{"x":["' + b'","' * 300_000 + b'"],"text":"abc"}', "too many values"),
        (b"[" * 100_000, "too many values"),
        (b'{"text":' + b"9" * 5_000 + b"}", "too many values"),
        (('{"x":"\u0122","y":[' + "[]," * 100_000 + '[]],"text":"abc"}').encode("utf-16-le"), "not UTF-8"),
        (b'{"x":1,"text":"abc"}', "x: Extra inputs are not permitted"),
        (b'{"' + b"x" * 10_000 + b'":1,"text":"abc"}', "xxx…"),
    ],
    ids=["lists", "after escapes", "strings", "depth", "digits", "another encoding", "field", "name"],
)
def test_a_body_is_no_more_than_a_text(monkeypatch: pytest.MonkeyPatch, body: bytes, message: str) -> None:
    parsed: list[bytes] = []

    def loads(given: bytes, **_: Any) -> Any:
        parsed.append(given)
        return json.JSONDecoder().decode(given.decode())

    with monkeypatch.context() as patched:
        patched.setattr(json, "loads", loads)
        (answer,) = post(body)
    # Only what is quickly parsed is parsed.
    assert bool(parsed) is ("xxx" in message or "Extra" in message)
    assert answer.status == 400
    assert message in answer.json["detail"]
    assert len(answer.body) < 2 * MAX_VALUE


@pytest.mark.parametrize("character", ["a", '"', "\\", "[", "\n", "\u4e2d", "\U0001f600"])
def test_the_longest_text_passes(character: str) -> None:
    text = {"text": character * MAX_TEXT}
    whole = [json.dumps(text, ensure_ascii=is_ascii, indent=1).encode() for is_ascii in (False, True)]
    short = json.dumps(text, ensure_ascii=False).encode()
    longer = json.dumps({"text": character * (MAX_TEXT + 1)}, ensure_ascii=False).encode()
    expected = [413 if len(body) > guards.MAX_BODY_BYTES else PASSED for body in whole]
    assert [answer.status for answer in post(*whole, short, longer)] == [*expected, PASSED, 400]


def test_half_a_request_and_an_unread_answer_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "MAX_REQUESTS", 1)

    async def statuses() -> list[int]:
        async with AsyncElasticsearch(NOWHERE) as client:
            app = create_app(client, "news")
            never = asyncio.Event()

            def scope(method: str, path: str) -> dict[str, Any]:
                headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
                return {
                    "type": "http",
                    "method": method,
                    "path": path,
                    "query_string": b"",
                    "headers": headers,
                }

            async def half() -> dict[str, Any]:
                if not sent:
                    sent.append(True)
                    return {"type": "http.request", "body": b"{", "more_body": True}
                await never.wait()
                raise AssertionError

            async def nothing() -> dict[str, Any]:
                return {"type": "http.request", "body": b""}

            async def unread(_: Any) -> None:
                reading.set()
                await never.wait()

            async def ignored(_: Any) -> None:
                pass

            sent: list[bool] = []
            reading = asyncio.Event()
            stuck = asyncio.gather(
                app(scope("POST", "/api/v1/similar"), half, ignored),
                app(scope("GET", "/api/v1"), nothing, unread),
            )
            await asyncio.wait_for(reading.wait(), timeout=20)
            found = [(await send(app, Request(path="/api/v1"))).status for _ in range(2)]
            stuck.cancel()
            return found

    assert asyncio.run(statuses()) == [200, 200]


def size(result: Any) -> int:
    return len(result.model_dump_json())


def test_long_values_are_cut_in_every_answer() -> None:
    about: dict[str, Any] = {"id": "1", "index": "news", "root": "r", **ODD}
    row = Row(**about, similar=0, matching=1)
    similar = SimilarArticle(**about)
    page = Page(
        rows=(row,) * 3,
        total_rows=3,
        total_rows_exact=True,
        total_articles=3,
        not_enriched=0,
        order_exact=True,
        cut_short=False,
        page=1,
        size=3,
        sort="newest",
        next="x" * 700,
    )
    articles = SimilarPage(root="r", total=3, rows=(similar,) * 3, page=1, size=3)
    source = Source(source="x" * LONG, articles=1, first=None, last=None, earliest=similar)
    sources = SourcesPage(root="r", total=3, total_sources=3, sources=(source,) * 3, page=1, size=3)
    for result in (page, articles, sources):
        assert size(result) > 3 * LONG
        assert size(bounded(result)) < 3 * 6 * MAX_VALUE
    cut = bounded(page)
    assert cut.next == page.next
    assert cut.rows[0].title == "'" * MAX_VALUE + "…"
    assert cut.rows[0].source == '["' + "x" * (MAX_VALUE - 2) + "…"
    assert cut.rows[0].published_at.startswith('{"nested": [{"deeply": [0, 1, 2')


def test_short_values_stay_as_they_are() -> None:
    article = FullArticle(
        id="1",
        index="news",
        root=None,
        title=None,
        source=["A", {"name": "B"}],
        published_at=1,
        text="a text",
    )
    assert bounded(article) == article
    long = article.model_copy(update={"text": "y" * (MAX_SHOWN_TEXT + 1)})
    assert bounded(long).text == "y" * MAX_SHOWN_TEXT + "…"
