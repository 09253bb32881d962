"""The sidecar's own endpoints, in front of a real node."""

import asyncio
import html
import json
import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from starlette.routing import Match

from esdedup import AsyncReader
from esdedup.elastic.client import connect_async
from esdedup.sidecar.app import create_app
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.paths import counting
from esdedup.sidecar.reading import PagesRoute, ReadingApi
from esdedup.sidecar.upstream import Upstream
from esdedup.web.app import create_app as create_pages
from tests.support import asgi
from tests.support.forests import ARTICLES
from tests.support.wire import Connection, ScriptedServer

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def fed(unchanged: tuple[str, str], elasticsearch_url: str) -> Any:
    """Sends requests to endpoints that read the sample."""
    index, forest = unchanged

    def ask(method: str, path: str, body: Any = None, *, default: str | None = index) -> asgi.Response:
        request = asgi.Request(path=path.partition("?")[0], query=path.partition("?")[2], method=method)
        return asyncio.run(_asked(elasticsearch_url, request, body, forest=forest, default=default))

    return ask


async def _asked(
    url: str,
    request: asgi.Request,
    body: Any,
    *,
    forest: str,
    default: str | None,
    headers: dict[str, str] | None = None,
) -> asgi.Response:
    async with connect_async(url) as client:
        reader = AsyncReader(client, forest=forest)
        app = create_app(
            Upstream([url]),
            others=[ReadingApi(reader, client, index=default, time_zone="UTC")],
            answer=counting(Metrics()),
        )
        sent = asgi.Request(
            path=request.path,
            query=request.query,
            method=request.method,
            headers=JSON | (headers or {}),
            body=json.dumps(body).encode() if body is not None else b"",
        )
        return await asgi.send(app, sent)


def test_texts_and_articles_find_the_same_similar_articles(fed: Any, unchanged: tuple[str, str]) -> None:
    article = ARTICLES[0]
    path = f"/api/v1/similar?id={article['_id']}&index={unchanged[0]}"
    by_id = fed("GET", path, default=None).json
    by_text = fed("POST", "/api/v1/similar?size=100", {"text": article["text"]}).json
    assert by_id["root"] == by_text["root"]
    assert by_text["total"] == by_id["total"] + 1
    new = fed("POST", "/api/v1/similar", {"text": "Nobody has ever written such a sentence before today."})
    assert (new.status, new.json["root"], new.json["rows"]) == (200, None, [])


def test_without_a_default_requests_must_name_an_index(fed: Any) -> None:
    answer = fed("GET", "/api/v1/articles?root=nothing", default=None)
    assert (answer.status, answer.json["detail"][:16]) == (400, "index is missing")


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "caller_refused"), (403, "not_allowed"), (503, "elasticsearch_unavailable")]
)
def test_elasticsearch_receives_the_callers_credentials(status: int, kind: str) -> None:
    heads: list[bytes] = []

    def script(connection: Connection) -> None:
        while head := connection.head():
            heads.append(head)
            body = b'{"error":{"type":"security_exception","reason":"no"},"status":%d}' % status
            connection.send(
                b"HTTP/1.1 %d No\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (status, len(body), body)
            )

    with ScriptedServer(script).running() as server:
        answer = asyncio.run(
            _asked(
                server.url,
                asgi.Request(path="/api/v1/articles", query="root=x"),
                None,
                forest="forest",
                default="news",
                headers={"authorization": "ApiKey mine", "es-security-runas-user": "me", "x-other": "1"},
            )
        )
    assert answer.json["type"] == f"urn:esdedup:problem:{kind}"
    assert answer.status == (502 if status == 503 else status)
    assert heads
    for head in heads:
        assert b"authorization: ApiKey mine" in head
        assert b"es-security-runas-user: me" in head
        assert b"x-other" not in head


def test_links_of_pages_stay_under_their_prefix(elasticsearch_url: str, unchanged: tuple[str, str]) -> None:
    index, forest = unchanged

    async def follow() -> dict[str, int]:
        async with connect_async(elasticsearch_url) as client:
            pages = PagesRoute(create_pages(client, index, forest=forest))
            app = create_app(Upstream([elasticsearch_url]), others=[pages], alongside=[pages.running()])
            async with app.router.lifespan_context(app):
                moved = await asgi.send(app, asgi.Request(path="/pages"))
                assert moved.headers["location"] == "/pages/"
                shown = await asgi.send(app, asgi.Request(path="/pages/"))
                article = _links(shown.body, "/pages/article")[0]
                article_page = await asgi.send(app, article)
                links = _links(shown.body + article_page.body, "/")
                return {each.path: (await asgi.send(app, each)).status for each in links}

    found = asyncio.run(follow())
    assert {"/pages/", "/pages/article", "/pages/static/style.css"} <= found.keys()
    # Switching the language redirects back to the page.
    assert found.pop("/pages/language") == 303
    assert set(found.values()) == {200}


@pytest.mark.parametrize(
    ("method", "path", "is_page"),
    [
        ("GET", "/pages", True),
        ("GET", "/pages/api/v1/list", True),
        ("POST", "/pages/api/v1/similar", True),
        # These requests belong to an index called `pages`.
        ("HEAD", "/pages", False),
        ("PUT", "/pages", False),
        ("GET", "/pages/_search", False),
        ("POST", "/pages/_doc/1", False),
        ("GET", "/pages-1/", False),
    ],
)
def test_pages_differ_from_requests_to_an_index_called_pages(method: str, path: str, is_page: bool) -> None:
    route = PagesRoute(lambda *_: None)  # type: ignore[arg-type]
    found, _ = route.matches({"type": "http", "method": method, "path": path})
    assert (found is Match.FULL) is is_page


def _links(page: str, beginning: str) -> list[asgi.Request]:
    """Return requests for a page's links to this server, one for each path and set of parameters."""
    found = sorted(set(re.findall(rf'(?:href|action)="({beginning}[^"#]*)', page)))
    parts = [html.unescape(each).partition("?") for each in found]
    by_form = {(path, *parse_qs(query)): asgi.Request(path=path, query=query) for path, _, query in parts}
    return [*by_form.values()]
