"""Features of `/api/v1` for front ends: entity tags, compression, CORS, requested fields, errors, OpenAPI."""

import asyncio
import gzip
import json
import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import urlencode

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch, helpers
from starlette.types import ASGIApp

from esdedup import Dedup
from esdedup.elastic.client import connect_async
from esdedup.errors import SettingError
from esdedup.origins import origin_of
from esdedup.web.api import PREFIX
from esdedup.web.app import create_app
from tests import sample
from tests.support.asgi import Request, Response, request, requests, send

DESK = "https://desk.example"
CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "empty"}


@pytest.fixture(scope="module")
def index(es: Elasticsearch) -> Iterator[str]:
    """An index of articles with additional fields: an object, a list, and a very long string."""
    index = f"test-api-articles-{secrets.token_hex(4)}"
    forest = index.replace("articles", "forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        articles = [
            each | {"author": {"name": f"A. Writer {at}"}, "tags": ["sea", "town"], "long": "x" * 5_000}
            for at, each in enumerate(sample.articles(80))
        ]
        actions = ({"_index": index, "_id": each["id"], "_source": each} for each in articles)
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    yield index
    es.indices.delete(index=[index, forest])


class Ask(Protocol):
    """Sends a request to the application, as a browser or script would."""

    def __call__(self, path: str, query: str = "", **headers: str) -> Response: ...


@pytest.fixture(scope="module")
def ask(elasticsearch_url: str, index: str) -> Iterator[Ask]:
    """One application for all tests, since creating it takes longer than a request."""
    with asyncio.Runner() as runner:

        async def start() -> tuple[AsyncElasticsearch, ASGIApp]:
            client = connect_async(elasticsearch_url)
            return client, create_app(client, index)

        client, app = runner.run(start())

        def ask(path: str, query: str = "", **headers: str) -> Response:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return runner.run(send(app, Request(path=path, query=query, headers=named)))

        yield ask
        runner.run(client.close())


@pytest.mark.parametrize("path", [f"{PREFIX}/list", f"{PREFIX}/overview"])
def test_a_period_selects_the_latest_articles(ask: Ask, path: str) -> None:
    recent = {"since": (datetime.now(UTC) - timedelta(hours=24)).isoformat()}
    every, since = (ask(path, urlencode(query)).json["total_articles"] for query in ({}, recent))
    assert since < every
    assert ask(path, "period=24h").json["total_articles"] == since
    assert ask(path, "period=24h&since=2000-01-01").json["total_articles"] == every
    assert "24h" in ask(path, "period=1h").json["detail"]


def test_unchanged_responses_are_not_sent_again(ask: Ask) -> None:
    path = f"{PREFIX}/list"
    first = ask(path, "size=3")
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    for sent in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = ask(path, "size=3", if_none_match=sent)
        assert (again.status, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["cache-control"] == "private, no-cache"
    for unknown in ('"other"', "", tag[:-2]):
        assert ask(path, "size=3", if_none_match=unknown).json == first.json
    assert ask(path, "size=4").headers["etag"] != tag
    # A static file has an entity tag, too; an error has none.
    style = ask("/static/style.css")
    known = ask("/static/style.css", if_none_match=style.headers["etag"])
    assert (known.status, known.headers["cache-control"]) == (304, "private, no-cache")
    wrong = ask(path, "size=0")
    assert wrong.headers["cache-control"] == "no-store"
    assert "etag" not in wrong.headers


def test_long_responses_are_compressed(ask: Ask) -> None:
    plain, packed = (
        ask(f"{PREFIX}/list", "size=50", accept_encoding=encoding) for encoding in ("identity", "gzip")
    )
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < len(plain.content) / 2
    assert packed.headers["etag"] == plain.headers["etag"]
    assert "Accept-Encoding" in plain.headers["vary"]
    short = ask(f"{PREFIX}/list", "q=nothinghasthis", accept_encoding="gzip")
    assert "content-encoding" not in short.headers


def test_only_pages_of_allowed_origins_may_read_responses(elasticsearch_url: str, index: str) -> None:
    def status_of(origins: tuple[str, ...], origin: str) -> tuple[int, str | None]:
        given = Request(path=f"{PREFIX}/list", headers=CROSS_SITE | {"origin": origin})
        (response,) = requests(elasticsearch_url, index, [given], of={"origins": origins})
        return response.status, response.headers.get("access-control-allow-origin")

    assert status_of((), DESK) == (403, None)
    assert status_of((DESK,), "https://evil.example") == (403, None)
    assert status_of((DESK,), "null") == (403, None)
    assert status_of((DESK,), DESK) == (200, DESK)
    assert status_of(("https://DESK.example:443/",), DESK) == (200, DESK)
    assert status_of(("*",), "https://evil.example") == (200, "*")
    # The allowed origin can read errors, too. Browsers send a preflight request before they post JSON.
    wrong = Request(path=f"{PREFIX}/nothing", headers=CROSS_SITE | {"origin": DESK})
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    before = Request(
        path=f"{PREFIX}/similar", method="OPTIONS", headers=CROSS_SITE | {"origin": DESK} | preflight
    )
    refused, allowed = requests(elasticsearch_url, index, [wrong, before], of={"origins": [DESK]})
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (404, DESK)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, DESK)
    assert "content-type" in allowed.headers["access-control-allow-headers"].lower()
    # In DNS rebinding, the host name of another site resolves to this server.
    rebound = Request(path=f"{PREFIX}/list", headers={"host": "evil.example", "origin": DESK})
    assert requests(elasticsearch_url, index, [rebound], of={"origins": [DESK]})[0].status == 421


@pytest.mark.parametrize(
    "origin", ["desk.example", "https://desk.example/path", "", "null", "ftp://x", "a b"]
)
def test_an_invalid_origin_is_refused(origin: str) -> None:
    with pytest.raises(SettingError, match="is not an origin"):
        origin_of(origin)


def test_requested_fields_are_included(ask: Ask) -> None:
    listed = ask(f"{PREFIX}/list", "size=5&sort=similar-desc").json
    head = listed["rows"][0]
    assert head["included"] is None
    paths = {
        "list": "size=5",
        "similar": f"id={head['id']}",
        "articles": f"root={head['root']}",
        "article": f"id={head['id']}",
    }
    for path, query in paths.items():
        includes = "source_includes=author.name,nothing&source_includes=tags,long"
        answer = ask(f"{PREFIX}/{path}", f"{query}&{includes}").json
        for row in answer.get("rows", [answer]):
            included = row["included"]
            assert included.keys() == {"author.name", "nothing", "tags", "long"}
            assert included["author.name"].startswith("A. Writer")
            assert (included["nothing"], included["tags"]) == (None, ["sea", "town"])
            assert len(included["long"]) == 1_001
    for wrong in ("*", "a..b", ",".join(f"f{at}" for at in range(21)), "author.*"):
        refused = ask(f"{PREFIX}/list", f"source_includes={wrong}")
        assert refused.status == 400
        assert "source_includes" in refused.json["detail"]


def test_explanations_are_in_the_requested_language(index: str, ask: Ask) -> None:
    head = ask(f"{PREFIX}/list", "size=1&sort=similar-desc").json["rows"][0]["id"]
    other = ask(f"{PREFIX}/similar", f"id={head}&size=1").json["rows"][0]["id"]
    english, chinese = (
        ask(
            f"{PREFIX}/explanation",
            f"id={head}&other={other}",
            accept_language=code,
        )
        for code in ("en", "zh-CN")
    )
    assert english.json["is_one_cluster"] is chinese.json["is_one_cluster"] is True
    assert english.json["verdict"].isascii()
    assert re.search("[\u4e00-\u9fff]", chinese.json["verdict"])
    assert {english.headers["content-language"], chinese.headers["content-language"]} == {"en", "zh"}
    assert all(fact["name"] and fact["value"] for fact in english.json["facts"])
    missing = ask(f"{PREFIX}/explanation", f"id={head}&other=none")
    assert (missing.status, missing.json["type"]) == (404, "urn:esdedup:problem:article_not_found")
    # The two articles may be in different indices.
    both = f"id={head}&index={index}&other={other}"
    assert ask(f"{PREFIX}/explanation", f"{both}&other_index={index}").json == english.json
    assert ask(f"{PREFIX}/explanation", f"{both}&other_index=none").status == 404


def test_errors_are_problem_details(elasticsearch_url: str, ask: Ask) -> None:
    kinds = {
        ("list", "size=0"): (400, "invalid_request"),
        ("list", "fbclid=1"): (400, "invalid_request"),
        ("similar", "id=1&by_source=true"): (400, "invalid_request"),
        ("explanation", "id=1&other=2&size=3"): (400, "invalid_request"),
        ("article", "id=none"): (404, "article_not_found"),
        ("nothing", ""): (404, "no_such_endpoint"),
        ("similar", "id=1&id=2"): (400, "invalid_request"),
    }
    for (path, query), (status, kind) in kinds.items():
        answer = ask(f"{PREFIX}/{path}", query)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json
        assert (problem["status"], problem["type"]) == (status, f"urn:esdedup:problem:{kind}")
        assert problem["title"]
        assert problem["detail"]
    unknown = ask(f"{PREFIX}/timeline", "id=1&fbclid=1").json
    assert unknown["detail"] == "unknown parameter 'fbclid'; this path takes id, index"
    # Pages and feeds ignore parameters, such as fbclid, that are added when an address is shared.
    for path in ("/", "/feed.rss", f"{PREFIX}/docs"):
        assert ask(path, "fbclid=1").status == 200
    missing = request(elasticsearch_url, "test-api-none", f"{PREFIX}/list")
    assert (missing.status, missing.json["type"]) == (409, "urn:esdedup:problem:index_not_ready")


def test_every_operation_has_examples_and_can_be_tried_out(ask: Ask) -> None:
    described = ask("/openapi.json").json
    page = ask(f"{PREFIX}/docs").body
    for path, methods in described["paths"].items():
        for operation in methods.values():
            (answer,) = operation["responses"]["200"]["content"].values()
            assert answer["example"], path
            assert operation["summary"]
            assert all(each["description"] for each in operation.get("parameters", []))
            assert f">{path}</code>" in page
            for each in operation.get("parameters", []):
                assert f'id="{operation["operationId"]}-{each["name"]}"' in page
    # The forms need no inline script, and nothing is loaded from other sites.
    assert all('src="/static/' in each for each in re.findall("<script[^>]*>", page))
    assert "HTTPValidationError" not in json.dumps(described)


def test_submitting_a_text_finds_similar_articles(elasticsearch_url: str, index: str) -> None:
    text = next(iter(sample.articles(80)))["text"]
    form = {"content-type": "application/x-www-form-urlencoded"}

    def post(body: bytes) -> Response:
        given = Request(path=f"{PREFIX}/docs/similar", method="POST", headers=form, body=body)
        return requests(
            elasticsearch_url, index, [given], of={"forest": index.replace("articles", "forest")}
        )[0]

    answer = post(urlencode({"text": text, "site": "", "page": 1, "size": 3, "after": ""}).encode())
    assert answer.status == 200, answer.body
    assert answer.json["root"]
    assert 0 < len(answer.json["rows"]) <= 3
    for body in (b"size=x&text=a", b"\xff", b"a=1&" * 200):
        assert post(body).status == 400
