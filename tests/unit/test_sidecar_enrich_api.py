"""The endpoints that return roots for articles without writing them."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import ArticleAction

from esdedup.elastic.meta import WritableIndex
from esdedup.errors import ForestBusy, ForestOwner, Refused
from esdedup.fields import Fields
from esdedup.sidecar.app import create_app
from esdedup.sidecar.auth import CallerRefused
from esdedup.sidecar.enrich_api import enrich_routes
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.paths import counting
from esdedup.sidecar.upstream import Headers, Upstream, WholeAnswer
from esdedup.sites import RawPage
from tests.support import asgi
from tests.support.decided import decide

MOST_BYTES = 5_000
OWNED_AT = "http://other:9500"
JSON = {"content-type": "application/json"}
INDICES = {
    "news": WritableIndex(fields=Fields(text="body"), name="news-1"),
    "plain": WritableIndex(fields=Fields(), name="plain"),
    "routed": WritableIndex(fields=Fields(), name="routed", is_routed_by_root=True),
    "secret": WritableIndex(fields=Fields(), name="secret"),
}


class Sidecar:
    """A sidecar that gives each article its own root, or raises the given error."""

    def __init__(
        self,
        *,
        refused: Exception | None = None,
        failure: Exception | None = None,
        assigning: Callable[[Sequence[ArticleAction], Hashable], AbstractAsyncContextManager[None]]
        | None = None,
        max_body_bytes: int = MOST_BYTES,
    ) -> None:
        self.refused = refused
        self.failure = failure
        self.articles: list[ArticleAction] = []
        self.metrics = Metrics()
        self.ownership = Ownership(is_owner=True)
        enrichment = Enrichment(
            forest="own",
            find=self._find,
            may_write=self._may_write,
            assigning=assigning or self._assigning,
            ownership=lambda: self.ownership,
            metrics=self.metrics,
        )
        routes = enrich_routes(
            enrichment, learn=self._learn, fields=None, profile="verified-5", max_body_bytes=max_body_bytes
        )
        answer = counting(self.metrics)
        self.app = create_app(Upstream(["http://localhost:9200"]), own=[routes], answer=answer)

    async def _learn(self, pages: Sequence[RawPage], are_last: bool) -> int:
        return len(pages)

    async def _find(self, names: Any) -> Any:
        return {name: INDICES.get(name) for name in names}

    async def _may_write(self, _: Headers, names: Any) -> Any:
        if self.refused is not None:
            raise self.refused
        return {name: name != "secret" for name in names}

    @contextlib.asynccontextmanager
    async def _assigning(self, articles: Sequence[ArticleAction], _: Hashable) -> AsyncIterator[None]:
        if self.failure is not None:
            raise self.failure
        self.articles += articles
        for at, each in enumerate(articles):
            each.is_cut = "long" in each.text
            decide(each, at)
        yield

    def refusals(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value
        return value("esdedup_requests_refused_total", {"reason": reason}) or 0

    def ask(
        self, body: bytes, *, path: str = "", query: str = "", method: str = "POST", **headers: str
    ) -> asgi.Response:
        named = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        request = asgi.Request(path=f"/v1/enrich{path}", query=query, method=method, headers=named, body=body)
        return asyncio.run(asgi.send(self.app, request))

    def enrich(self, *given: Any, query: str = "") -> list[dict[str, Any]]:
        """Return the response's item for each action."""
        response = self.ask(lines(*given), query=query, content_type="application/x-ndjson")
        assert (response.status, response.headers["content-type"]) == (200, "application/json")
        items: list[dict[str, Any]] = response.json["items"]
        assert response.json["rejected"] == sum("error" in each for each in items)
        return items


def lines(*given: Any) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in given)


ONE = lines({"index": {}}, {"text": "one"})


def test_each_action_gets_its_own_dedup_object() -> None:
    sidecar = Sidecar()
    first, deleted, created, updated, untouched, no_text = sidecar.enrich(
        {"index": {"_id": "1"}},
        {"text": "one", "dedup": {"root": "old"}},
        {"delete": {"_id": "2"}},
        {"create": {"_id": "3"}},
        {"text": "two"},
        {"update": {"_id": "4"}},
        {"doc": {"text": "three", "published_at": 1_000}, "upsert": {"text": "three", "n": 1}},
        {"update": {"_id": "5"}},
        {"doc": {"n": 1}},
        {"index": {"_id": "6"}},
        {"title": "no text"},
    )
    assert [each.text for each in sidecar.articles] == ["one", "two", "three"]
    assert first == {
        "outcome": "new_root",
        "dedup": {
            "root": "root-0",
            "seq": 0,
            "seen": 1_000,
            "published": 1_000,
            "length": 3,
            "partition": first["dedup"]["partition"],
            "profile": "verified-5",
            "fingerprint": "n0",
        },
    }
    assert created.keys() == {"outcome", "dedup"}
    assert created["dedup"]["root"] == "root-1"
    assert updated.keys() == {"outcome", "doc", "upsert"}
    assert updated["doc"]["root"] == updated["upsert"]["root"] == "root-2"
    # `None` removes bands that an earlier text of the article may have had.
    assert updated["doc"]["bands"] is None
    assert "bands" not in updated["upsert"]
    assert deleted == untouched == {}
    assert no_text["error"] == {
        "type": "urn:esdedup:problem:article_rejected",
        "title": "Article rejected",
        "status": 400,
        "detail": "6: has no field 'text', or it is null",
    }


def test_dedup_fields_in_an_update_are_removed() -> None:
    forged = {"dedup": {"root": "forged"}}
    alone, dated, with_upsert = Sidecar().enrich(
        {"update": {"_id": "1"}},
        {"doc": {"n": 1, **forged}},
        {"update": {"_id": "2"}},
        {"doc": {"published_at": 1_788_800_000_000, **forged}},
        {"update": {"_id": "3"}},
        {"doc": forged, "upsert": {"text": "one"}},
        query="backfill=true",
    )
    assert alone == {"doc": None}
    assert dated == {"doc": {"published": 1_788_800_000_000}}
    assert with_upsert["doc"] is None
    assert with_upsert["upsert"]["root"] == "root-0"


def test_each_index_has_its_own_fields_and_rights() -> None:
    sidecar = Sidecar()
    given: list[Any] = []
    for name in ("news", "plain", "routed", "secret", "logs", "Bad,name"):
        given += [{"index": {"_index": name}}, {"text": name, "body": f"body of {name}"}]
    news, plain, routed, *refused = sidecar.enrich(
        *given, {"index": {}}, {"text": "unnamed"}, query="index=news"
    )
    assert [each.text for each in sidecar.articles] == ["body of news", "plain", "routed"]
    assert "routing" not in news
    assert "routing" not in plain
    assert routed["routing"] == routed["dedup"]["root"] == "root-2"
    assert [(each["error"]["status"], each["error"]["detail"]) for each in refused] == [
        (403, "the caller may not write to the index [secret]"),
        (409, "the index 'logs' was not set up for articles"),
        (400, "'Bad,name' is not a valid index name"),
        # This action names no index, so it has the fields of the index that the request names.
        (400, "line 13: has no field 'body', or it is null"),
    ]
    kinds = ("not_allowed", "index_not_ready", "article_rejected", "article_rejected")
    assert [each["error"]["type"] for each in refused] == [f"urn:esdedup:problem:{kind}" for kind in kinds]
    # Rights are not checked for actions without an index.
    assert Sidecar(refused=CallerRefused(WholeAnswer(401, [], b""))).enrich({"index": {}}, {"text": "one"})


def test_truncated_texts_are_marked() -> None:
    cut, whole = Sidecar().enrich({"index": {}}, {"text": "long"}, {"index": {}}, {"text": "short"})
    assert cut["is_cut"] is True
    assert "is_cut" not in whole


def test_bodies_may_be_compressed_with_gzip() -> None:
    sidecar = Sidecar()
    packed = gzip.compress(ONE)
    assert sidecar.ask(packed, content_encoding="gzip").json["items"][0]["dedup"]["root"] == "root-0"
    bomb = gzip.compress(ONE + b"\n" * 2 * MOST_BYTES)
    assert sidecar.ask(bomb, content_encoding="gzip").status == 413
    assert sidecar.refusals("body_too_large") == 1
    assert sidecar.ask(packed[:-9], content_encoding="gzip").status == 400
    assert sidecar.ask(packed, content_encoding="br").status == 415
    one = sidecar.ask(gzip.compress(b'{"text":"one"}'), path="/one", content_encoding="gzip")
    assert one.json["dedup"]["root"] == "root-0"


@pytest.mark.parametrize(
    ("body", "query", "status", "expected"),
    [
        (b"", "", 400, "request body is required"),
        (b"{", "", 400, "terminated by a newline"),
        (b"\n", "", 400, "no requests added"),
        (b'{"articles":[]}\n', "", 400, ""),
        (lines({"index": {}}, {"text": "one"})[:-1], "", 400, "terminated by a newline"),
        (
            b'/**/{"index":{}}\n{"text":"one"}\n',
            "",
            400,
            "Malformed action/metadata line [1], it is not JSON",
        ),
        (ONE, "forest=other", 409, "the forest of this sidecar is own, not other"),
        (ONE, "profile=classic-4", 409, "the profile of this sidecar is verified-5, not classic-4"),
        (ONE, "backfill=perhaps", 400, "backfill: "),
    ],
)
def test_invalid_requests_are_refused_with_a_problem_document(
    body: bytes, query: str, status: int, expected: str
) -> None:
    answer = Sidecar().ask(body, query=query)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json.keys() == {"type", "title", "status", "detail"}
    assert expected in answer.json["detail"]


def test_a_matching_forest_and_profile_are_accepted() -> None:
    (item,) = Sidecar().enrich({"index": {}}, {"text": "one"}, query="forest=own&profile=verified-5")
    assert item["outcome"] == "new_root"


def test_field_names_can_be_given_without_an_index() -> None:
    sidecar = Sidecar()
    article = {"body": {"text": "one"}, "date": "1970-01-02T00:00:00Z", "host": "a.example"}
    query = "text_field=body.text&time_field=date&site_field=host"
    (item,) = sidecar.enrich({"index": {}}, article, query=query)
    assert item["outcome"] == "new_root"
    (read,) = sidecar.articles
    assert (read.text, read.dated_ms, read.site) == ("one", 86_400_000, "a.example")
    answer = sidecar.ask(ONE, query="text_field=_a")
    assert (answer.status, "cannot name the text field" in answer.json["detail"]) == (400, True)


@pytest.mark.parametrize("path", ["", "/one"])
@pytest.mark.parametrize(
    ("sidecar", "status", "kind"),
    [
        (Sidecar(refused=CallerRefused(WholeAnswer(401, [], b""))), 401, "caller_refused"),
        (Sidecar(failure=Refused("full", status=429, kind="queue_full")), 429, "queue_full"),
        (Sidecar(failure=RuntimeError("one")), 500, "internal_error"),
    ],
)
def test_a_failed_request_returns_a_problem_document(
    sidecar: Sidecar, status: int, kind: str, path: str
) -> None:
    before = sidecar.refusals("queue")
    answer = sidecar.ask(
        b'{"body":"one"}' if path else lines({"index": {}}, {"body": "one"}), path=path, query="index=news"
    )
    assert (answer.status, answer.json["type"]) == (status, f"urn:esdedup:problem:{kind}")
    assert ("retry-after" in answer.headers) == (status == 429)
    assert sidecar.refusals("queue") - before == (status == 429)


@pytest.mark.parametrize("path", ["", "/one"])
async def test_a_standby_refuses_requests_without_reading_them(path: str) -> None:
    sidecar = Sidecar()
    owner = ForestOwner(host="h", pid=1, since=datetime(2026, 1, 1, tzinfo=UTC), released=False, url=OWNED_AT)
    sidecar.ownership = Ownership(error=ForestBusy("owned", forest="own", owner=owner))
    asked = asgi.Request(path=f"/v1/enrich{path}", query="forest=other", method="POST", headers=JSON)
    got = await asgi.send(sidecar.app, asked, asgi.unread)
    assert (got.status, got.headers["retry-after"]) == (503, "1")
    problem = got.json
    assert problem["type"] == "urn:esdedup:problem:not_owner"
    assert OWNED_AT in problem["detail"]
    assert sidecar.refusals("not_owner") == 1


def test_a_single_article_keeps_its_bytes() -> None:
    sent = rb'{"_id":"a","text":"[{\"}],\ud83d" , "n":1.10, "big":123456789012345678901234567890}'
    answer = Sidecar().ask(sent, path="/one")
    assert answer.status == 200
    assert answer.content.startswith(sent[:-1] + b',"dedup":{')
    forged = Sidecar().ask(b'{"text":"one", "dedup":{"root":"old"}, "dedup.seq":1}', path="/one").json
    assert (forged["dedup"]["root"], forged.keys()) == ("root-0", {"text", "dedup"})


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/octet-stream", "application/vnd.x+json"]
)
def test_a_single_article_needs_no_json_content_type(content_type: str) -> None:
    answer = Sidecar().ask(b'\xef\xbb\xbf{"text":"one"}', path="/one", content_type=content_type)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json.keys() == {"text", "dedup"}


@pytest.mark.parametrize(
    ("body", "query", "status", "expected"),
    [
        (b"", "", 400, "not JSON"),
        (b"{", "", 400, "not JSON"),
        (b"\xff\xfe{\x00", "", 400, "not JSON"),
        (b'{"a":NaN}', "", 400, "not JSON"),
        (b"[" * 4_000, "", 400, "not JSON"),
        (b"7", "", 400, "not a JSON object"),
        (b"[]", "", 400, "not a JSON object"),
        (b'{"title":"no text"}', "", 400, "has no field 'text'"),
        (b'{"_id":"half \\ud83d"}', "", 400, "lone surrogate"),
        (b'{"text":"one"}', "index=news", 400, "has no field 'body'"),
        (b'{"text":"one"}', "index=a,b", 400, "'a,b' is not a valid index name"),
        (b'{"text":"one"}', "index=", 400, "'' is not a valid index name"),
        (b'{"text":"one"}', "index=secret", 403, "may not write to the index [secret]"),
        (b'{"text":"one"}', "index=logs", 409, "was not set up for articles"),
    ],
)
def test_a_refused_single_article_is_a_problem_document(
    body: bytes, query: str, status: int, expected: str
) -> None:
    answer = Sidecar().ask(body, path="/one", query=query)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert expected in answer.json["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [("GET", "", 405, "POST"), ("PUT", "/one", 405, "POST"), ("POST", "/two", 404, None)],
)
def test_wrong_methods_and_paths_are_refused(
    method: str, path: str, status: int, allowed: str | None
) -> None:
    answer = Sidecar().ask(b"{}", path=path, method=method)
    assert (answer.status, answer.headers.get("allow")) == (status, allowed)
    assert answer.headers["content-type"] == "application/problem+json"


def test_form_data_is_refused() -> None:
    answer = Sidecar().ask(b"text=one", path="/one", content_type="application/x-www-form-urlencoded")
    assert (answer.status, answer.json["type"]) == (415, "urn:esdedup:problem:unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({"pages": [{"text": "one", "title": "two"}]}, None),
        ({"pages": [{"text": "one", "titel": "two"}]}, "pages.0.titel: "),
        ({"pages": [], "more": True}, "more: "),
    ],
)
async def test_fields_of_pages_that_would_be_ignored_are_refused(body: Any, refused: str | None) -> None:
    asked = asgi.Request(path="/v1/learn", method="POST", headers=JSON, body=orjson.dumps(body))
    got = await asgi.send(Sidecar().app, asked)
    assert got.status == (400 if refused else 200)
    assert got.json == {"learned": 1} if refused is None else got.json["detail"].startswith(refused)


def test_articles_are_counted_by_outcome() -> None:
    sidecar = Sidecar()
    sidecar.enrich({"index": {}}, {"text": "one"}, {"index": {}}, {}, {"create": {}}, {"text": "two"})
    sidecar.ask(b'{"title":"no text"}', path="/one")
    value = sidecar.metrics.registry.get_sample_value
    assert value("esdedup_articles_total", {"outcome": "new_root"}) == 2
    assert value("esdedup_articles_total", {"outcome": "rejected"}) == 2


def test_the_openapi_description_is_complete() -> None:
    paths = Sidecar().app.openapi()["paths"]
    for path, body in (("/v1/enrich", "application/x-ndjson"), ("/v1/enrich/one", "application/json")):
        described = paths[path]["post"]
        assert described["requestBody"]["content"].keys() == {body}
        assert {"200", "400", "403", "409", "429", "503", "default"} <= described["responses"].keys()
        assert "422" not in described["responses"]
        assert described["responses"]["503"]["content"].keys() == {"application/problem+json"}
    named = {each["name"] for each in paths["/v1/enrich"]["post"]["parameters"]}
    names = {f"{role}_field" for role in ("text", "title", "time", "link", "source", "site", "dedup")}
    assert named == {"index", "backfill", "forest", "profile", *names}


@pytest.mark.parametrize("path", ["", "/one"])
async def test_a_truncated_request_body_is_refused(path: str) -> None:
    sidecar = Sidecar()
    begun = {"type": "http.request", "body": b'{"index":', "more_body": True}
    asked = asgi.Request(path=f"/v1/enrich{path}", method="POST", headers=JSON)
    got = await asgi.send(sidecar.app, asked, asgi.arriving(begun, {"type": "http.disconnect"}))
    assert (got.status, sidecar.articles) == (400, [])
