"""Checks before the routes: hosts, requests from other sites, and limits of size, time and number."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from elasticsearch import AsyncElasticsearch

from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.reading.results import FullArticle, Page, Row, SimilarArticle, SimilarPage, Source, SourcesPage
from esdedup.web import guards
from esdedup.web.app import Visit, create_app
from esdedup.web.formats import MAX_SHOWN_TEXT, MAX_VALUE, bounded
from tests.support.asgi import Request, Response, request, requests, send
from tests.support.wire import first_bytes, running

# Nothing listens at this address, so requests that pass the guards get 502 from their route.
NOWHERE = "http://127.0.0.1:9"
PASSED = 502


def statuses_of(*given: Request, hosts: tuple[str, ...] = ()) -> list[int]:
    return [response.status for response in requests(NOWHERE, "news", given, of={"hosts": hosts})]


def test_only_requests_for_known_hosts_are_answered() -> None:
    expected = {
        "localhost": PASSED,
        "localhost.:8000": PASSED,
        "pages.localhost:8000": PASSED,
        "127.0.0.1:8000": PASSED,
        "[::1]:8000": PASSED,
        "10.1.2.3": PASSED,
        "news.example:8000": PASSED,
        "NEWS.example": PASSED,
        "": 421,
        "evil.example": 421,
        "evil.example:8000": 421,
        "127.0.0.1.evil.example": 421,
        "localhost.evil.example": 421,
        "news.example.evil.example": 421,
        "evil.example@127.0.0.1.x": 421,
        "[::1": 421,
    }
    for path in ("/", "/api/v1/list"):
        given = [Request(path=path, headers={"host": host}) for host in expected]
        found = statuses_of(*given, hosts=("News.Example",))
        assert dict(zip(expected, found, strict=True)) == expected


def test_pages_of_other_sites_may_only_link() -> None:
    local = "http://localhost:8000"
    expected: list[tuple[str, dict[str, str], int]] = [
        # In order: a typed address, a link on another site, one of our own pages, and an API client.
        ("GET", {"sec-fetch-site": "none", "sec-fetch-dest": "document"}, PASSED),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}, PASSED),
        ("GET", {"sec-fetch-site": "same-origin", "sec-fetch-dest": "image"}, PASSED),
        ("GET", {}, PASSED),
        # A picture, a frame or a script's request on another site.
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "empty"}, 403),
        # Requests by forms and scripts. They have no body, so requests that pass the guards get 400.
        ("POST", {}, 400),
        ("POST", {"origin": local}, 400),
        ("POST", {"sec-fetch-site": "same-origin", "origin": "https://proxy.example"}, 400),
        ("POST", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", {"sec-fetch-site": "same-site"}, 403),
        ("POST", {"origin": "http://evil.example"}, 403),
        ("POST", {"origin": "http://localhost:3000"}, 403),
        ("POST", {"origin": "null"}, 403),
    ]
    paths = {"GET": "/api/v1/list", "POST": "/api/v1/similar"}
    given = [Request(path=paths[method], method=method, headers=headers) for method, headers, _ in expected]
    found = statuses_of(*given)
    assert [(*each[:2], status) for each, status in zip(expected, found, strict=True)] == expected


def test_every_response_has_the_security_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    def headers_of(*given: Request) -> dict[int, Response]:
        return {response.status: response for response in requests(NOWHERE, "news", given)}

    answers = headers_of(
        Request(path="/static/style.css"),
        Request(path="/api/v1/"),
        Request(path="/"),
        Request(path="/nowhere"),
        Request(path="/static/none"),
        Request(path="/", method="DELETE"),
        Request(path="/article"),
        Request(path="/", headers={"host": "evil.example"}),
        Request(path="/", headers={"sec-fetch-site": "cross-site"}),
        Request(path="/api/v1/similar", method="POST", body=b" " * (guards.MAX_BODY_BYTES + 1)),
    )
    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.list", fail)
    answers |= headers_of(Request(path="/api/v1/list"))
    assert sorted(answers) == [200, 307, 400, 403, 404, 405, 413, 421, 500, 502]
    for status, response in answers.items():
        assert response.headers.items() >= {(k.lower(), v) for k, v in guards.HEADERS.items()}, status
    assert answers[405].headers["allow"] == "GET"
    assert answers[413].headers["connection"] == "close"


def test_a_repeated_parameter_is_refused() -> None:
    given = [
        Request(path=path, query=query)
        for path in ("/", "/api/v1/list", "/api/v1/similar")
        for query in ("after=a&after=b", "id=1&id=2", "index=a&index=", "page=1&page=1")
    ]
    for sent, response in zip(given, requests(NOWHERE, "news", given), strict=True):
        assert response.status == 400, sent
        assert "is given more than once" in response.body, sent


def test_a_text_must_be_sent_as_json() -> None:
    expected = {
        "application/json": PASSED,
        "Application/JSON; charset=utf-8": PASSED,
        "application/x-www-form-urlencoded": 400,
        "": 400,
    }
    body = b'{"text": "The harbour council voted."}'
    given = [
        Request(path="/api/v1/similar", method="POST", headers={"content-type": media_type}, body=body)
        for media_type in expected
    ]
    responses = requests(NOWHERE, "news", given)
    assert [response.status for response in responses] == list(expected.values())
    for response in responses:
        is_explained = "send the text as JSON, with `Content-Type: application/json`" in response.body
        assert is_explained is (response.status == 400)


def test_the_api_lists_its_routes() -> None:
    answer = request(NOWHERE, "news", "/api/v1").json
    assert "GET /api/v1/list" in answer["routes"]
    assert "POST /api/v1/similar" in answer["routes"]
    assert request(NOWHERE, "news", answer["description"]).json["openapi"]


async def test_a_body_is_read_only_up_to_its_limit() -> None:
    """`test_the_longest_text_passes` checks that the limit suffices."""
    read_bytes, statuses = 0, list[int]()

    async def receive() -> dict[str, Any]:
        nonlocal read_bytes
        read_bytes += 2**16
        return {"type": "http.request", "body": b" " * 2**16, "more_body": True}

    async def collect(message: Any) -> None:
        statuses.append(message.get("status"))

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/similar",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    async with AsyncElasticsearch(NOWHERE) as client:
        await asyncio.wait_for(create_app(client, "news")(scope, receive, collect), timeout=60)
    assert statuses[0] == 413
    assert read_bytes <= guards.MAX_BODY_BYTES + 2**16


async def test_concurrent_requests_and_their_time_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    is_answered = asyncio.Event()

    async def wait(*_: Any, **__: Any) -> None:
        await is_answered.wait()

    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.list", wait)
    monkeypatch.setattr(guards, "MAX_REQUESTS", 2)
    monkeypatch.setattr(guards, "MAX_ANSWER_S", 0.2)
    async with AsyncElasticsearch(NOWHERE) as client:
        app = create_app(client, "news")
        concurrent = await asyncio.gather(*(send(app, Request(path="/api/v1/list")) for _ in range(3)))
        answers = [*concurrent, await send(app, Request(path="/api/v1"))]
    assert [response.status for response in answers] == [504, 504, 503, 200]
    assert ["no response within" in response.body for response in answers[:3]] == [True, True, False]
    assert "too many requests" in answers[2].body
    assert answers[2].headers["retry-after"] == "1"


class Impatient(Visit):
    max_connections = 3
    max_request_s = 0.3
    max_answer_s = max_idle_s = 0.6


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """Serve the pages on a free port with small limits; yield the port."""
    async with AsyncElasticsearch(NOWHERE) as client:
        app = create_app(client, "news")
        config = uvicorn.Config(app, http=Impatient, ws="none", port=0, log_level="critical", lifespan="off")
        async with running(uvicorn.Server(config)) as port:
            yield port


HEAD = b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "half",
    [
        b"",
        HEAD,
        b"POST /api/v1/similar HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        HEAD + b"\r\n" + HEAD,
    ],
    ids=["nothing", "half a head", "half a body", "half a second request"],
)
def test_a_request_that_does_not_arrive_times_out(half: bytes) -> None:
    async def until_closed() -> bytes:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(half)
            # Uvicorn by itself would wait forever.
            with contextlib.suppress(ConnectionResetError):
                received = await asyncio.wait_for(reader.read(), timeout=20)
            writer.close()
            return received

    assert (b'"routes"' in asyncio.run(until_closed())) is (half.count(HEAD) == 2)


async def test_connections_beyond_the_limit_are_closed() -> None:
    async with listening() as port:
        answers = await first_bytes(port, HEAD + b"Connection: close\r\n\r\n", connections=5)
        assert answers == [b"HTTP/1.1 200"] * 3 + [b""] * 2


async def test_responses_to_invalid_requests_have_the_security_headers() -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"nonsense\r\n\r\n")
        received = await asyncio.wait_for(reader.read(), timeout=20)
        writer.close()
    assert received.startswith(b"HTTP/1.1 400")
    assert b"default-src 'none'" in received


LONG = 50 * MAX_VALUE
ODD: dict[str, Any] = {
    "title": "'" * LONG,
    "url": "https://a.example/" + "x" * LONG,
    "source": ["x" * LONG] * 3,
    "published_at": {"nested": [{"deeply": list(range(LONG))}]},
}


def post(*bodies: bytes, path: str = "/api/v1/similar") -> list[Response]:
    json_type = {"content-type": "application/json"}
    given = [Request(path=path, method="POST", headers=json_type, body=body) for body in bodies]
    return requests(NOWHERE, "news", given)


LISTS = b"[]," * 300_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"x":[' + LISTS + b'[]],"text":"abc"}', "x: Extra inputs are not permitted"),
        (b'{"x":["' + b'","' * 300_000 + b'"],"text":"abc"}', "x: Extra inputs are not permitted"),
        (b"[" * 100_000, "error parsing the body"),
        (b'{"text":' + b"9" * 100_000 + b"}", "error parsing the body"),
        (('{"x":"\u0122","y":[' + "[]," * 100_000 + '[]],"text":"abc"}').encode("utf-16-le"), "not UTF-8"),
        (b'{"x":1,"text":"abc"}', "x: Extra inputs are not permitted"),
        (b'{"' + b"x" * 10_000 + b'":1,"text":"abc"}', "xxx…"),
        (b"{" + b",".join(b'"%d":1' % each for each in range(90_000)) + b"}", "Extra inputs"),
    ],
    ids=["lists", "strings", "depth", "digits", "another encoding", "field", "name", "fields"],
)
def test_a_body_with_anything_but_a_text_is_refused(body: bytes, message: str) -> None:
    (answer,) = post(body)
    assert answer.status == 400
    assert message in answer.json["detail"]
    assert len(answer.body) < 2 * MAX_VALUE


@pytest.mark.parametrize(
    "body",
    [b'{"text":' + b"9" * 5_000 + b"}", b"[" * 100_000, b"[" + LISTS + b"0]", b'{"x":' * 100_000],
    ids=["digits", "depth", "lists", "objects"],
)
def test_deeply_nested_or_long_bodies_get_short_errors(body: bytes) -> None:
    paths = ("/api/v1/similar", "/api/v1/edits")
    for answer in (answer for path in paths for answer in post(body, path=path)):
        assert answer.status in {400, 403}, answer.body
        assert len(answer.body) < 2 * MAX_VALUE


@pytest.mark.parametrize("character", ["a", '"', "\\", "[", "\n", "\u4e2d", "\U0001f600"])
def test_the_longest_text_passes(character: str) -> None:
    text = {"text": character * MAX_TEXT_LENGTH}
    whole = [json.dumps(text, ensure_ascii=is_ascii, indent=1).encode() for is_ascii in (False, True)]
    short = json.dumps(text, ensure_ascii=False).encode()
    longer = json.dumps({"text": character * (MAX_TEXT_LENGTH + 1)}, ensure_ascii=False).encode()
    expected = [413 if len(body) > guards.MAX_BODY_BYTES else PASSED for body in whole]
    assert [answer.status for answer in post(*whole, short, longer)] == [*expected, PASSED, 400]


async def test_incomplete_requests_and_unread_responses_take_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "MAX_REQUESTS", 1)
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
        assert found == [200, 200]


def size(result: Any) -> int:
    return len(result.model_dump_json())


def test_long_values_are_truncated_in_every_response() -> None:
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


def test_short_values_are_unchanged() -> None:
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
