"""The endpoints that give articles their roots without writing them."""

import asyncio
import gzip
import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned

from esdedup.elastic.article_indices import WritableIndex
from esdedup.fields import Fields
from esdedup.forest.model import Assignment, Kind
from esdedup.sidecar.app import create_app
from esdedup.sidecar.enrich_api import enrich_routes
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.headers import Headers
from esdedup.sidecar.intake import Overloaded
from esdedup.sidecar.json_splice import elements
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_endpoints import handle_errors
from esdedup.sidecar.rights import Answer, CallerRefused
from esdedup.sidecar.upstream import Upstream
from tests.support import asgi

JSON = {"content-type": "application/json"}
MOST_BYTES = 5_000


class Sidecar:
    """Gives each article a root of its own."""

    def __init__(self, *, allowed: bool | Exception = True, failure: Exception | None = None) -> None:
        self.allowed = allowed
        self.failure = failure
        self.metrics = Metrics()
        self.app = create_app(Upstream(["http://localhost:9200"]), own=[self._routes()])
        handle_errors(self.app, self.metrics)

    def _routes(self) -> Any:
        async def find(names: Any) -> Any:
            known = {"news": WritableIndex(fields=Fields(text="body"), name="news-1")}
            return {name: known.get(name) for name in names}

        async def may_write(_: Headers, names: Any) -> Any:
            if isinstance(self.allowed, Exception):
                raise self.allowed
            return dict.fromkeys(names, self.allowed)

        enrichment = Enrichment(find=find, may_write=may_write, assign=self._assign)
        return enrich_routes(enrichment, fields=None, metrics=self.metrics, max_body_bytes=MOST_BYTES)

    async def _assign(self, articles: Sequence[ArticleAction]) -> list[Assigned]:
        if self.failure is not None:
            raise self.failure
        return [
            Assigned(
                each,
                Assignment(Kind.NEW_ROOT, f"n{at}", f"root-{at}", at, 1_000, b""),
                {},
                len(each.text),
                "verified-3",
                False,
            )
            for at, each in enumerate(articles)
        ]

    def ask(
        self, body: bytes, *, path: str = "", query: str = "", method: str = "POST", **headers: str
    ) -> asgi.Response:
        named = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        request = asgi.Request(path=f"/v1/enrich{path}", query=query, method=method, headers=named, body=body)
        return asyncio.run(asgi.send(self.app, request))


def test_articles_keep_their_order_and_their_bytes() -> None:
    sent = rb"""{"articles": [ {"_id":"a","text":"one" , "n":1.10, "big":123456789012345678901234567890},
        {"title":"no text"}, 7, {"text":"half \ud83d"},
        {"text":"[{\"}],", "dedup":{"root":"old"}, "dedup.seq":1} ]}"""
    answer = Sidecar().ask(sent)
    assert answer.status == 200
    first, *rejected, last = answer.json["articles"]
    assert b'{"_id":"a","text":"one" , "n":1.10, "big":123456789012345678901234567890,"dedup":{' in (
        answer.body.encode()
    )
    assert (first["dedup"]["root"], last["dedup"]["root"]) == ("root-0", "root-1")
    assert last.keys() == {"text", "dedup"}
    assert [each["error"]["type"] for each in rejected] == ["urn:esdedup:problem:article_rejected"] * 3
    assert [each["error"]["detail"].partition(" ")[2][:30] for each in rejected] == [
        "2: has no field 'text', or it ",
        "3: is not a JSON object",
        "4: contains half a character (",
    ]
    assert answer.json["rejected"] == 3


def test_an_index_says_which_fields_articles_have() -> None:
    sidecar = Sidecar()
    body = orjson.dumps({"index": "news", "articles": [{"body": "one"}, {"text": "two"}]})
    found = sidecar.ask(body).json["articles"]
    assert found[0]["dedup"]["root"] == "root-0"
    assert "no field 'body'" in found[1]["error"]["detail"]
    one = sidecar.ask(b'{"body":"one"}', path="/one", query="index=news")
    assert (one.status, one.json["dedup"]["root"]) == (200, "root-0")
    refused = sidecar.ask(b'{"text":"one"}', path="/one", query="index=news")
    assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")
    assert "no field 'body'" in refused.json["detail"]


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/octet-stream", "application/vnd.x+json"]
)
def test_one_article_is_the_body_and_the_answer(content_type: str) -> None:
    answer = Sidecar().ask(b'\xef\xbb\xbf{"text":"one"}', path="/one", content_type=content_type)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json.keys() == {"text", "dedup"}


def test_bodies_may_be_gzip() -> None:
    sidecar = Sidecar()
    packed = gzip.compress(b'{"articles":[{"text":"one"}]}')
    assert sidecar.ask(packed, content_encoding="gzip").json["articles"][0]["dedup"]["root"] == "root-0"
    bomb = gzip.compress(b'{"articles":[' + b" " * 2 * MOST_BYTES + b"]}")
    assert sidecar.ask(bomb, content_encoding="gzip").status == 413
    refused = sidecar.metrics.registry.get_sample_value
    assert refused("esdedup_requests_refused_total", {"reason": "body_too_large"}) == 1
    assert sidecar.ask(packed[:-9], content_encoding="gzip").status == 400


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{\x00", "not JSON"),
        (b'{"articles":[NaN]}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"7", "body: "),
        (b"[]", "body: "),
        (b"{}", "articles: "),
        (b'{"articles":{}}', "articles: "),
        (b'{"articles":null}', "articles: "),
        (b'{"articles":[],"index":7}', "index: "),
        (b'{"articles":[],"index":""}', "cannot name one index"),
        (b'{"articles":[],"index":"a,b"}', "cannot name one index"),
        (b'{"articles":[],"other":7}', "other: "),
    ],
)
def test_odd_requests_are_refused_in_words(body: bytes, said: str) -> None:
    answer = Sidecar().ask(body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json.keys() == {"type", "title", "status", "detail"}
    assert said in answer.json["detail"]


@pytest.mark.parametrize(
    ("sidecar", "index", "status", "kind"),
    [
        (Sidecar(), "none", 409, "index_not_ready"),
        (Sidecar(allowed=False), "news", 403, "not_allowed"),
        (Sidecar(allowed=CallerRefused(Answer(401, [], b""))), "news", 401, "caller_refused"),
        (Sidecar(failure=Overloaded("full")), None, 429, "queue_full"),
        (Sidecar(failure=RuntimeError("one")), None, 500, "internal_error"),
    ],
)
def test_a_request_that_fails_is_a_problem(
    sidecar: Sidecar, index: str | None, status: int, kind: str
) -> None:
    answer = sidecar.ask(orjson.dumps({"index": index, "articles": [{"text": "one", "body": "one"}]}))
    assert (answer.status, answer.json["type"]) == (status, f"urn:esdedup:problem:{kind}")
    assert ("retry-after" in answer.headers) == (status == 429)
    refused = sidecar.metrics.registry.get_sample_value("esdedup_requests_refused_total", {"reason": "queue"})
    assert refused == (status == 429)


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [("GET", "", 405, "POST"), ("PUT", "/one", 405, "POST"), ("POST", "/two", 404, None)],
)
def test_wrong_methods_and_paths(method: str, path: str, status: int, allowed: str | None) -> None:
    answer = Sidecar().ask(b"{}", path=path, method=method)
    assert (answer.status, answer.headers.get("allow")) == (status, allowed)
    assert answer.headers["content-type"] == "application/problem+json"


def test_other_types_than_json_are_refused() -> None:
    answer = Sidecar().ask(b"text=one", path="/one", content_type="application/x-www-form-urlencoded")
    assert (answer.status, answer.json["type"]) == (415, "urn:esdedup:problem:unsupported_media_type")


def test_articles_are_counted_by_what_became_of_them() -> None:
    sidecar = Sidecar()
    sidecar.ask(b'{"articles":[{"text":"one"},{},{"text":"two"}]}')
    sidecar.ask(b'{"title":"no text"}', path="/one")
    value = sidecar.metrics.registry.get_sample_value
    assert value("esdedup_articles_total", {"outcome": "new_root"}) == 2
    assert value("esdedup_articles_total", {"outcome": "rejected"}) == 2


def test_the_description_is_whole() -> None:
    paths = Sidecar().app.openapi()["paths"]
    for path in ("/v1/enrich", "/v1/enrich/one"):
        described = paths[path]["post"]
        assert described["requestBody"]["content"].keys() == {"application/json"}
        assert {"200", "400", "403", "429", "503", "default"} <= described["responses"].keys()
        assert "422" not in described["responses"]
        assert described["responses"]["503"]["content"].keys() == {"application/problem+json"}


@pytest.mark.parametrize(
    "source",
    ["[]", " [ ] ", "[1]", '[ {"a":[1,2]} , "x,]" ,[], {} ]', '["\\"", "\\\\", null]', "[[[1]],[2]]"],
)
def test_elements_of_an_array(source: str) -> None:
    assert [json.loads(each) for each in elements(source.encode())] == json.loads(source)
