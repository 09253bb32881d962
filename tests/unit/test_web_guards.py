"""What stands before the routes: headers, hosts, foreign pages, sizes, times and numbers."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from elasticsearch import AsyncElasticsearch

from esdedup.web import Visit, create_app, guards
from esdedup.web.api import MAX_TEXT
from tests.support.asgi import Request, Response, request, requests, send

# Nobody listens there: what passes the guards gets 502 from the routes.
NOWHERE = "http://127.0.0.1:9"
PASSED = 502


def statuses_of(*given: Request, hosts: tuple[str, ...] = ()) -> list[int]:
    return [response.status for response in requests(NOWHERE, "news", given, of={"hosts": hosts})]


def test_only_known_names_are_answered() -> None:
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
        # A typed address, a link on another site, a page of our own, a program.
        ("GET", {"sec-fetch-site": "none", "sec-fetch-dest": "document"}, PASSED),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}, PASSED),
        ("GET", {"sec-fetch-site": "same-origin", "sec-fetch-dest": "image"}, PASSED),
        ("GET", {}, PASSED),
        # A picture, a frame or a script's request on another site.
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-dest": "empty"}, 403),
        # Forms and scripts; in this test nobody sends a body, so that one which passes is invalid.
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


def test_every_answer_has_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_text_is_sent_as_json() -> None:
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
        said = "send the text as JSON, with `Content-Type: application/json`" in response.body
        assert said is (response.status == 400)


def test_the_api_says_what_there_is() -> None:
    answer = request(NOWHERE, "news", "/api/v1").json
    assert "GET /api/v1/list" in answer["routes"]
    assert "POST /api/v1/similar" in answer["routes"]
    assert request(NOWHERE, "news", answer["description"]).json["openapi"]


def test_a_body_is_read_up_to_its_limit_only() -> None:
    """The largest text passes however it is written; of a larger body no more is read than the limit."""
    given = Request(
        path="/api/v1/similar",
        method="POST",
        headers={"content-type": "application/json"},
        body=json.dumps({"text": "\u4e2d" * MAX_TEXT}).encode(),
    )
    assert [response.status for response in requests(NOWHERE, "news", [given])] == [PASSED]
    read_bytes = 0

    async def send_without_end() -> int:
        async with AsyncElasticsearch(NOWHERE) as client:
            statuses: list[int] = []

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
            await asyncio.wait_for(create_app(client, "news")(scope, receive, collect), timeout=60)
            return statuses[0]

    assert asyncio.run(send_without_end()) == 413
    assert read_bytes <= guards.MAX_BODY_BYTES + 2**16


def test_requests_at_once_and_their_time_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    going_on = asyncio.Event()

    async def wait(*_: Any, **__: Any) -> None:
        await going_on.wait()

    monkeypatch.setattr("esdedup.reading.reader.AsyncReader.list", wait)
    monkeypatch.setattr(guards, "MAX_REQUESTS", 2)
    monkeypatch.setattr(guards, "MAX_ANSWER_S", 0.2)

    async def three() -> list[Response]:
        async with AsyncElasticsearch(NOWHERE) as client:
            app = create_app(client, "news")
            at_once = await asyncio.gather(*(send(app, Request(path="/api/v1/list")) for _ in range(3)))
            return [*at_once, await send(app, Request(path="/api/v1"))]

    answers = asyncio.run(three())
    assert [response.status for response in answers] == [504, 504, 503, 200]
    assert ["no answer within" in response.body for response in answers[:3]] == [True, True, False]
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
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
        server.should_exit = True
        await serving


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
def test_a_request_that_does_not_arrive_is_given_up(half: bytes) -> None:
    async def until_closed() -> bytes:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(half)
            # Uvicorn would wait for ever.
            with contextlib.suppress(ConnectionResetError):
                received = await asyncio.wait_for(reader.read(), timeout=20)
            writer.close()
            return received

    assert (b'"routes"' in asyncio.run(until_closed())) is (half.count(HEAD) == 2)


def test_connections_beyond_the_limit_are_closed() -> None:
    async def answers() -> list[bytes]:
        async with listening() as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            received: list[bytes] = []
            for reader, writer in held:
                try:
                    writer.write(HEAD + b"Connection: close\r\n\r\n")
                    received.append((await asyncio.wait_for(reader.read(), timeout=20))[:12])
                except ConnectionError:
                    received.append(b"")
                writer.close()
            return received

    assert asyncio.run(answers()) == [b"HTTP/1.1 200"] * 3 + [b""] * 2


def test_what_is_no_request_gets_the_headers_too() -> None:
    async def answer() -> bytes:
        async with listening() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"nonsense\r\n\r\n")
            received = await asyncio.wait_for(reader.read(), timeout=20)
            writer.close()
            return received

    received = asyncio.run(answer())
    assert received.startswith(b"HTTP/1.1 400")
    assert b"default-src 'none'" in received
