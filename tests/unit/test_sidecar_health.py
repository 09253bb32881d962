"""Whether the sidecar says that it lives and is ready, its metrics, and what errors become."""

import asyncio
import json
from datetime import UTC, datetime
from typing import get_args

import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from esdedup.errors import (
    EsdedupError,
    ForestBusy,
    ForestOwner,
    IndexNotReady,
    ServerError,
    ServerUnavailable,
    SettingError,
)
from esdedup.forest.model import Kind
from esdedup.sidecar import health
from esdedup.sidecar.health import Readiness, health_routes
from esdedup.sidecar.intake import Overloaded
from esdedup.sidecar.metrics import Metrics, Outcome
from esdedup.sidecar.owner import NotOwner, Ownership
from esdedup.sidecar.problems import Refused, answer, problem_of
from tests.support.asgi import Request, Response, send

OTHER = ForestOwner(host="a", pid=7, since=datetime(2026, 1, 2, tzinfo=UTC), released=False)
BUSY = ForestBusy("process 7 on a owns it", forest="f", owner=OTHER)


async def answers() -> None:
    """Elasticsearch, as far as it is asked."""


async def is_away() -> None:
    raise ServerUnavailable("cannot reach Elasticsearch")


async def hangs() -> None:
    await asyncio.Event().wait()


def get(path: str, *, readiness: Readiness | None = None, metrics: Metrics | None = None) -> Response:
    app = FastAPI()
    ready = readiness or Readiness(ownership=lambda: Ownership(is_owner=True), ask=answers)
    app.include_router(health_routes(missing=ready.missing, metrics=metrics or Metrics()))
    return asyncio.run(send(app, Request(path=path)))


def test_it_lives_and_is_ready() -> None:
    assert (get("/healthz").status, get("/healthz").json) == (200, {"status": "alive"})
    assert (get("/readyz").status, get("/readyz").json) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    ("ownership", "ask", "missing"),
    [
        (Ownership(reason=BUSY), answers, ["this process does not own the forest: process 7 on a owns it"]),
        (Ownership(), answers, ["this process does not own the forest: it is being taken"]),
        (Ownership(is_owner=True), is_away, ["cannot reach Elasticsearch"]),
        (Ownership(is_owner=True), hangs, ["Elasticsearch does not answer within 0 seconds"]),
        (
            Ownership(reason=BUSY),
            is_away,
            ["this process does not own the forest: process 7 on a owns it", "cannot reach Elasticsearch"],
        ),
    ],
)
def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, ownership: Ownership, ask: object, missing: list[str]
) -> None:
    monkeypatch.setattr(health, "_ASK_S", 0.05)
    readiness = Readiness(ownership=lambda: ownership, ask=ask)  # type: ignore[arg-type]
    response = get("/readyz", readiness=readiness)
    assert (response.status, response.headers["content-type"]) == (503, "application/problem+json")
    assert response.headers["retry-after"] == "1"
    assert response.json["missing"] == missing
    assert get("/healthz", readiness=readiness).status == 200


def test_what_happened_is_exposed() -> None:
    metrics = Metrics()
    metrics.article("new_root")
    metrics.article("joined", number=3)
    metrics.batch(articles=4, wait_s=0.003)
    metrics.decided(decide_s=0.02, write_s=0.2)
    metrics.queue(5)
    metrics.upstream(200, seconds=0.1)
    metrics.upstream(None, seconds=0.1)
    metrics.items({201: 3, 409: 1, 400: 2, 503: 1, 700: 1})
    metrics.lease(is_held=True)
    metrics.forest(nodes=6, pages=7, memory_bytes=8)
    metrics.expired(9)
    metrics.boilerplate(10)
    metrics.refused("queue")
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
        ("esdedup_batch_articles_sum",): 4,
        ("esdedup_batch_wait_seconds_sum",): 0.003,
        ("esdedup_batch_decide_seconds_sum",): 0.02,
        ("esdedup_batch_write_seconds_sum",): 0.2,
        ("esdedup_queue_articles",): 5,
        ("esdedup_elasticsearch_requests_total", "2xx"): 1,
        ("esdedup_elasticsearch_requests_total", "none"): 1,
        ("esdedup_elasticsearch_request_seconds_count",): 2,
        ("esdedup_bulk_items_total", "2xx"): 3,
        ("esdedup_bulk_items_total", "409"): 1,
        ("esdedup_bulk_items_total", "4xx"): 2,
        ("esdedup_bulk_items_total", "5xx"): 2,
        ("esdedup_lease_held",): 1,
        ("esdedup_forest_nodes",): 6,
        ("esdedup_forest_pages",): 7,
        ("esdedup_forest_memory_bytes",): 8,
        ("esdedup_expired_nodes_total",): 9,
        ("esdedup_boilerplate_passages",): 10,
        ("esdedup_requests_refused_total", "queue"): 1,
    }
    assert {name: shown.get(name) for name in expected} == expected
    assert shown["process_resident_memory_bytes",] > 1e6


def test_every_outcome_of_the_forest_is_counted() -> None:
    assert {kind.value for kind in Kind} | {"rejected"} == set(get_args(Outcome))


def test_metrics_are_named_as_prometheus_asks_for() -> None:
    metrics = Metrics()
    for each in metrics.described:
        assert each.name.startswith("esdedup_")
        assert each.name.endswith("_total") is (each.type == "counter")
        assert each.text.endswith(".")
    assert len({each.name for each in metrics.described}) == len(metrics.described)
    # Two sidecars in one process do not meet.
    metrics.expired(1)
    assert Metrics().registry.get_sample_value("esdedup_expired_nodes_total") == 0


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Overloaded("wait"), 429, "queue_full"),
        (NotOwner(BUSY), 503, "not_owner"),
        (BUSY, 503, "not_owner"),
        (IndexNotReady("no"), 409, "index_not_ready"),
        (ServerUnavailable("no"), 502, "elasticsearch_unavailable"),
        (ServerError("no"), 502, "elasticsearch_error"),
        (SettingError("no"), 400, "invalid_request"),
        (Refused("no", status=413, reason="body_too_large"), 413, "body_too_large"),
        (EsdedupError("no"), 500, "failed"),
    ],
)
def test_an_error_has_one_meaning_in_both_shapes(error: EsdedupError, status: int, kind: str) -> None:
    problem = problem_of(error)
    ours = answer({"method": "POST", "path": "/v1/enrich"}, problem)
    theirs = answer({"method": "POST", "path": "/news/_bulk"}, problem)
    assert ours.status_code == theirs.status_code == status
    assert ours.headers.get("retry-after") == theirs.headers.get("retry-after")
    assert (ours.headers.get("retry-after") == "1") is (status in {429, 502, 503})
    shown, read = json.loads(bytes(ours.body)), json.loads(bytes(theirs.body))
    assert shown["type"] == f"urn:esdedup:problem:{kind}"
    assert read["error"]["type"] == f"esdedup_{kind}"
    assert shown["detail"] == read["error"]["reason"] == str(error)


def test_what_is_none_of_ours_says_nothing_of_itself() -> None:
    problem = problem_of(RuntimeError("a text of an article"))
    assert (problem.status, "article" in problem.detail) == (500, False)


def test_a_detail_is_short_and_can_be_written() -> None:
    problem = problem_of(SettingError("x" * 5_000 + "\ud800"))
    assert len(problem.detail) == 1_001
    assert answer({"method": "GET", "path": "/"}, problem_of(SettingError("\ud800"))).status_code == 400
