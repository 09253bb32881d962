"""The sidecar's own paths, its health and metrics, and the formats of its errors."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from fastapi import APIRouter, FastAPI
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from docs import made_from_code
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import (
    ClockMismatch,
    EsdedupError,
    ForestBusy,
    ForestLost,
    ForestOwner,
    IndexNotReady,
    Refused,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.forest.model import Kind
from esdedup.serving.problems import Problem
from esdedup.sidecar import app as module
from esdedup.sidecar.app import OPENAPI_PATH, create_app, health_routes
from esdedup.sidecar.metrics import ArticleKind, Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.paths import answer
from esdedup.sidecar.upstream import Upstream
from tests.support.asgi import Request, Response, send
from tests.support.wire import OK, Connection, ScriptedServer

PASSED, OWN, WRITES = "{}", '"own"', "writes"


@pytest.mark.parametrize(
    ("method", "path", "answered"),
    [
        ("GET", "/healthz", OWN),
        ("POST", "/v1/enrich", OWN),
        ("GET", "/v1/other/abc", OWN),
        ("POST", "/_bulk", WRITES),
        # All other paths and methods reach Elasticsearch, since an index may have any of these names.
        ("HEAD", "/healthz", ""),
        ("PUT", "/healthz", PASSED),
        ("DELETE", "/healthz", PASSED),
        ("GET", "/healthz/", PASSED),
        ("GET", "/healthz/_doc/1", PASSED),
        ("POST", "/v1/_search", PASSED),
        ("GET", "/v1", PASSED),
        ("GET", "/v1/", PASSED),
        ("GET", "/docs", PASSED),
        ("GET", "/openapi.json", PASSED),
        ("GET", "/_bulk", PASSED),
        ("GET", "//_bulk", PASSED),
        ("OPTIONS", "/_bulk", PASSED),
        ("PROPFIND", "/a", PASSED),
    ],
)
def test_only_exact_paths_and_methods_are_the_sidecars_own(method: str, path: str, answered: str) -> None:
    assert _ask(method, path) == (200, answered)


def test_the_openapi_description_has_only_own_endpoints() -> None:
    status, body = _ask("GET", OPENAPI_PATH)
    assert status == 200
    assert "/v1/enrich" in body
    assert "_bulk" not in body


async def test_background_tasks_start_in_order_and_stop_in_reverse() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def task(name: str) -> AsyncIterator[None]:
        events.append(f"begin {name}")
        yield
        events.append(f"end {name}")

    app = create_app(Upstream(["http://localhost:9200"]), alongside=[task("one"), task("two")])
    async with app.router.lifespan_context(app):
        events.append("running")
    assert events == ["begin one", "begin two", "running", "end two", "end one"]


def _ask(method: str, path: str) -> tuple[int, str]:
    own = APIRouter()
    for its_method, its_path in (("GET", "/healthz"), ("POST", "/v1/enrich"), ("GET", "/v1/other/{name}")):
        own.add_api_route(its_path, lambda: "own", methods=[its_method])

    async def write(_: object) -> PlainTextResponse:
        return PlainTextResponse(WRITES)

    async def run(url: str) -> tuple[int, str]:
        upstream = Upstream([url])
        app = create_app(upstream, own=[own], others=[Route("/_bulk", write, methods=["POST", "PUT"])])
        async with app.router.lifespan_context(app):
            got = await send(app, Request(path=path, method=method))
        return got.status, got.body

    def script(connection: Connection) -> None:
        head = connection.head()
        connection.send(OK.removesuffix(b"{}") if head.startswith(b"HEAD") else OK)

    with ScriptedServer(script).running() as server:
        return asyncio.run(run(server.url))


OTHER_URL = "http://a:9500"
OTHER = ForestOwner(host="a", pid=7, since=datetime(2026, 1, 2, tzinfo=UTC), released=False, url=OTHER_URL)
OWNED_BY_OTHER: dict[str, str | None] = {
    "owner": "process 7 on a has owned it since 2026-01-02 00:00:00 UTC"
    f", and accepts articles at {OTHER_URL}",
    "url": OTHER_URL,
}
BUSY = ForestBusy("process 7 on a owns it", forest="f", owner=OTHER)
IS_NOT_OWNER = "this process does not own the forest 'f': process 7 on a owns it"


async def answers() -> None:
    """A probe of Elasticsearch that succeeds."""


async def is_away() -> None:
    raise ServerUnavailable("cannot reach Elasticsearch")


async def hangs() -> None:
    await asyncio.Event().wait()


def readiness_of(ownership: Ownership, *, ask: Any = answers) -> dict[str, Any]:
    return {"ownership": lambda: ownership, "ask": ask}


def get(path: str, *, readiness: dict[str, Any] | None = None, metrics: Metrics | None = None) -> Response:
    app = FastAPI()
    ready = readiness or readiness_of(Ownership(is_owner=True))
    app.include_router(health_routes("f", **ready, metrics=metrics or Metrics()))
    return asyncio.run(send(app, Request(path=path)))


def test_an_owner_is_alive_and_ready() -> None:
    assert (get("/healthz").status, get("/healthz").json) == (200, {"status": "alive"})
    assert (get("/readyz").status, get("/readyz").json) == (
        200,
        {"status": "ready", "missing": [], "forest": "f", "owner": "this process"},
    )


@pytest.mark.parametrize(
    ("ownership", "ask", "missing"),
    [
        (Ownership(error=BUSY), answers, [IS_NOT_OWNER]),
        (Ownership(), answers, ["this process does not own the forest 'f': it is being opened"]),
        (Ownership(is_owner=True), is_away, ["cannot reach Elasticsearch"]),
        (Ownership(is_owner=True), hangs, ["Elasticsearch does not answer within 0 seconds"]),
        (Ownership(error=BUSY), is_away, [IS_NOT_OWNER, "cannot reach Elasticsearch"]),
    ],
)
def test_unmet_conditions_are_reported(
    monkeypatch: pytest.MonkeyPatch, ownership: Ownership, ask: Any, missing: list[str]
) -> None:
    monkeypatch.setattr(module, "_ASK_S", 0.05)
    readiness = readiness_of(ownership, ask=ask)
    response = get("/readyz", readiness=readiness)
    assert (response.status, response.headers["content-type"]) == (503, "application/problem+json")
    assert response.headers["retry-after"] == "1"
    assert response.json["missing"] == missing
    assert response.json["detail"] == "; ".join(missing)
    assert get("/healthz", readiness=readiness).status == 200


@pytest.mark.parametrize(
    ("ownership", "shown"),
    [
        (Ownership(is_owner=True), {"owner": "this process"}),
        (Ownership(error=BUSY), OWNED_BY_OTHER),
        (Ownership(error=ForestLost("lost", forest="f", owner=OTHER)), OWNED_BY_OTHER),
        (Ownership(error=ForestLost("lost", forest="f")), {"owner": None}),
        (Ownership(error=ServerUnavailable("no server answers")), {"owner": None}),
        (Ownership(), {"owner": None}),
    ],
)
def test_the_owner_of_the_forest_is_reported(ownership: Ownership, shown: dict[str, str | None]) -> None:
    found = get("/readyz", readiness=readiness_of(ownership, ask=is_away)).json
    named = {name: value for name, value in found.items() if name in {"forest", "owner", "url"}}
    assert named == {"forest": "f", **shown}


def test_counted_events_are_exposed_as_metrics() -> None:
    metrics = Metrics()
    metrics.articles({"new_root": 1, "joined": 3})
    metrics.upstream(200, seconds=0.1)
    metrics.upstream(None, seconds=0.1)
    metrics.items({201: 3, 409: 1, 400: 2, 503: 1, 700: 1})
    metrics.nodes.set(6)
    response = get("/metrics", metrics=metrics)
    assert response.headers["content-type"].startswith("text/plain; version=")
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.body)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }
    expected = {
        ("esdedup_articles_total", "new_root"): 1,
        ("esdedup_articles_total", "joined"): 3,
        ("esdedup_articles_total", "rejected"): 0,
        ("esdedup_elasticsearch_requests_total", "2xx"): 1,
        ("esdedup_elasticsearch_requests_total", "none"): 1,
        ("esdedup_elasticsearch_request_seconds_count",): 2,
        ("esdedup_bulk_items_total", "2xx"): 3,
        ("esdedup_bulk_items_total", "409"): 1,
        ("esdedup_bulk_items_total", "4xx"): 2,
        ("esdedup_bulk_items_total", "5xx"): 2,
        ("esdedup_forest_nodes", DEFAULT_FOREST): 6,
    }
    assert {name: shown.get(name) for name in expected} == expected
    assert shown["process_resident_memory_bytes",] > 1e6


def test_every_outcome_of_the_forest_is_counted() -> None:
    assert {kind.value for kind in Kind} | {"rejected", "not_set_up"} == set(get_args(ArticleKind))


def test_metrics_follow_the_naming_rules_of_prometheus() -> None:
    described = list(made_from_code.metrics())
    for each in described:
        assert each.name.startswith("esdedup_")
        assert each.name.endswith("_total") is (each.type == "counter")
        assert each.text.endswith(".")
    assert len({each.name for each in described}) == len(described) > 10
    # Two sidecars in one process have separate metrics.
    Metrics().expired_nodes.inc(1)
    assert Metrics().registry.get_sample_value("esdedup_expired_nodes_total") == 0


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (BUSY, 503, "not_owner"),
        (ClockMismatch("no", here_ms=1, server_ms=0), 503, "clock_mismatch"),
        (IndexNotReady("no"), 409, "index_not_ready"),
        (ServerUnavailable("no"), 502, "elasticsearch_unavailable"),
        (ServerError("no"), 502, "elasticsearch_error"),
        (SettingError("no"), 400, "invalid_request"),
        (Refused("no", status=413, kind="body_too_large"), 413, "body_too_large"),
        (EsdedupError("no"), 500, "failed"),
    ],
)
def test_errors_are_equivalent_in_both_formats(error: EsdedupError, status: int, kind: str) -> None:
    problem = Problem.of_error(error)
    ours = answer({"method": "POST", "path": "/v1/enrich"}, problem)
    theirs = answer({"method": "POST", "path": "/news/_bulk"}, problem)
    assert ours.status_code == theirs.status_code == status
    assert ours.headers.get("retry-after") == theirs.headers.get("retry-after")
    assert (ours.headers.get("retry-after") == "1") is (status in {429, 502, 503})
    shown, read = json.loads(bytes(ours.body)), json.loads(bytes(theirs.body))
    assert shown["type"] == f"urn:esdedup:problem:{kind}"
    assert read["error"]["type"] == f"esdedup_{kind}"
    assert shown["detail"] == read["error"]["reason"] == str(error)


def test_unexpected_errors_reveal_no_details() -> None:
    problem = Problem.of_error(RuntimeError("a text of an article"))
    assert (problem.status, "article" in problem.detail) == (500, False)


def test_details_are_short_and_can_be_encoded() -> None:
    problem = Problem.of_error(SettingError("x" * 5_000 + "\ud800"))
    assert len(problem.detail) == 1_001
    assert answer({"method": "GET", "path": "/"}, Problem.of_error(SettingError("\ud800"))).status_code == 400
