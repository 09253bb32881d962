"""Checks before the sidecar's routes: hosts, pages of other sites, the token, and limits."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from esdedup.errors import Refused
from esdedup.serving.limits import HOLD
from esdedup.serving.problems import Problem
from esdedup.sidecar.app import guarded
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.paths import counting, kind_of
from esdedup.sidecar.settings import Settings
from tests.support import asgi

TOKEN = "0123456789abcdef"
Answer = tuple[int, dict[str, str], Any]


async def asked(
    app: ASGIApp,
    path: str = "/_bulk",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    body: Iterable[bytes] = (b"",),
) -> Answer:
    """Send a request in this process; the parts of its body arrive one by one."""
    given = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
    got = await asgi.send(app, asgi.Request(path=path, method=method, headers=given), asgi.arriving(*body))
    return got.status, dict(got.headers), got.json


async def show(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the headers and the size of the body that were received."""
    request = Request(scope, receive)
    body = await request.body()
    await JSONResponse({"headers": dict(request.headers), "size": len(body)})(scope, receive, send)


def refused(metrics: Metrics, reason: str) -> float | None:
    return metrics.registry.get_sample_value("esdedup_requests_refused_total", {"reason": reason})


def callers(metrics: Metrics, *, token: str | None = TOKEN) -> ASGIApp:
    return with_guards(show, metrics, allow_hosts=("news.example",), token=token and SecretStr(token))


def bounds(app: ASGIApp, metrics: Metrics, *, timeout_s: float = 60.0) -> ASGIApp:
    limits = {"max_requests": 2, "max_body_bytes": 100, "max_bodies_bytes": 150}
    return with_guards(app, metrics, **limits, request_timeout_s=timeout_s, answer_timeout_s=0)


def with_guards(app: ASGIApp, metrics: Metrics, **given: Any) -> ASGIApp:
    """Return `app` behind the sidecar's guards, which get the given settings without validation."""
    return guarded(app, Settings.model_construct(**given), counting(metrics), metrics)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x_esdedup_token": TOKEN}, 200),
        ({}, 401),
        ({"x_esdedup_token": ""}, 401),
        ({"x_esdedup_token": TOKEN[:-1]}, 401),
        ({"x_esdedup_token": f"{TOKEN}0"}, 401),
        # The authorization header is meant for Elasticsearch.
        ({"authorization": f"Bearer {TOKEN}"}, 401),
        ({"x_esdedup_token": TOKEN, "host": "news.example"}, 200),
        ({"x_esdedup_token": TOKEN, "host": "evil.example"}, 421),
        ({"x_esdedup_token": TOKEN, "origin": "http://evil.example"}, 403),
        ({"x_esdedup_token": TOKEN, "sec_fetch_site": "cross-site"}, 403),
    ],
)
async def test_requests_need_the_token_and_a_known_host(headers: dict[str, str], status: int) -> None:
    metrics = Metrics()
    found, answered, body = await asked(callers(metrics), headers=headers)
    assert found == status
    assert ("www-authenticate" in answered) is (status == 401)
    if status != 200:
        # The error is in the format that Elasticsearch's clients read.
        assert body["status"] == status
        assert body["error"]["type"] == body["error"]["root_cause"][0]["type"]
        assert body["error"]["type"].startswith("esdedup_")
        assert TOKEN not in str(body)
        assert sum(refused(metrics, reason) or 0 for reason in ("host", "foreign_page", "token")) == 1


async def test_allowed_origins_may_read_only_the_pages() -> None:
    app = with_guards(show, Metrics(), allow_origins=("https://desk.example",))

    async def status(path: str, origin: str) -> int:
        headers = {"origin": origin, "sec_fetch_site": "cross-site", "sec_fetch_dest": "empty"}
        return (await asked(app, path, headers, method="GET"))[0]

    assert await status("/pages/api/v1/list", "https://desk.example") == 200
    assert await status("/pages/api/v1/list", "https://evil.example") == 403
    for path in ("/_search", "/api/v1/list", "/pages", "/pagesx/1"):
        assert await status(path, "https://desk.example") == 403


async def test_without_a_token_only_hosts_and_pages_are_checked() -> None:
    app = callers(Metrics(), token=None)
    assert (await asked(app))[0] == 200
    assert (await asked(app, headers={"host": "evil.example"}))[0] == 421


@pytest.mark.parametrize("token", [TOKEN, None])
async def test_the_token_is_not_passed_on(token: str | None) -> None:
    app = callers(Metrics(), token=token)
    _, _, body = await asked(app, headers={"x_esdedup_token": TOKEN, "authorization": "ApiKey abc"})
    assert "x-esdedup-token" not in body["headers"]
    assert body["headers"]["authorization"] == "ApiKey abc"


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/healthz", {"host": "evil.example"}, 200),
        ("GET", "/readyz", {}, 200),
        ("GET", "/metrics", {}, 401),
        ("GET", "/metrics", {"authorization": f"bearer {TOKEN}"}, 200),
        ("GET", "/metrics", {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
        # These requests need the token: for example, an index may be named healthz.
        ("PUT", "/healthz", {}, 401),
        ("GET", "/healthz/_search", {}, 401),
        ("GET", "/v1/openapi.json", {}, 401),
    ],
)
async def test_only_probes_need_no_token(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert (await asked(callers(Metrics()), path, headers, method=method))[0] == status


async def test_errors_of_our_own_paths_are_problem_details() -> None:
    status, headers, body = await asked(callers(Metrics()), "/v1/enrich")
    assert headers["content-type"] == "application/problem+json"
    assert body == {
        "type": "urn:esdedup:problem:token",
        "title": "Token",
        "status": status,
        "detail": "the header X-Esdedup-Token is missing",
    }


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        ([b"x" * 100], {}, 200, None),
        ([b"x" * 60, b"x" * 40], {}, 200, None),
        ([b"x" * 101], {}, 413, "body_too_large"),
        # Without a content length, the excess is noticed while the body arrives.
        ([b"x" * 60, b"x" * 41, b"x" * 60], {}, 413, "body_too_large"),
        ([b""], {"content_length": "101"}, 413, "body_too_large"),
        ([b""], {"content_length": "nonsense"}, 200, None),
    ],
)
async def test_the_size_of_a_body_is_limited(
    body: list[bytes], headers: dict[str, str], status: int, reason: str | None
) -> None:
    metrics = Metrics()
    found, answered, _ = await asked(bounds(show, metrics), body=body, headers=headers)
    assert found == status
    assert answered.get("connection") == (None if status == 200 else "close")
    assert reason is None or refused(metrics, reason) == 1
    assert metrics.registry.get_sample_value("esdedup_request_bodies_bytes") == 0


def waiting(until: Callable[[], asyncio.Event]) -> ASGIApp:
    """Return an application that reads the body, and responds once an event is set."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect as error:
            raise RuntimeError("the caller has disconnected") from error
        await until().wait()
        await JSONResponse({"size": len(body)})(scope, receive, send)

    return app


async def test_the_totals_of_bodies_and_requests_are_limited() -> None:
    metrics = Metrics()
    moment = asyncio.Event()
    app = bounds(waiting(lambda: moment), metrics)
    first = asyncio.create_task(asked(app, body=[b"x" * 100]))
    await asyncio.sleep(0)
    # While 100 bytes are held, 51 more exceed the limit and 50 do not. Then two requests are in progress.
    status, headers, _ = await asked(app, body=[b"x" * 51])
    assert (status, headers["retry-after"]) == (429, "1")
    second = asyncio.create_task(asked(app, body=[b"x" * 50]))
    await asyncio.sleep(0)
    status, headers, body = await asked(app)
    assert (status, headers["retry-after"]) == (429, "1")
    assert "2 requests are in progress" in body["error"]["reason"]
    watched = asyncio.create_task(asked(app, "/metrics", method="GET"))
    await asyncio.sleep(0)
    moment.set()
    assert [(await each)[0] for each in (first, second, watched)] == [200] * 3
    assert (await asked(app, body=[b"x" * 100]))[0] == 200
    assert (refused(metrics, "bodies"), refused(metrics, "requests")) == (1, 1)
    value = metrics.registry.get_sample_value
    assert value("esdedup_requests_in_progress") == value("esdedup_request_bodies_bytes") == 0
    # Refused requests are counted too; requests for metrics are not.
    assert value("esdedup_request_seconds_count", {"kind": "bulk"}) == 5


async def test_the_unpacked_size_of_a_body_is_limited() -> None:
    metrics = Metrics()
    unpacked = [50, 101]

    async def unpack(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        try:
            scope[HOLD](unpacked.pop(0))
        except Refused as error:
            await counting(metrics)(scope, Problem.of_error(error))(scope, receive, send)
        else:
            await JSONResponse({})(scope, receive, send)

    app = bounds(unpack, metrics)
    found = [(await asked(app, body=[b"x" * 50]))[0] for _ in range(2)]
    assert found == [200, 429]
    assert refused(metrics, "bodies") == 1
    assert metrics.registry.get_sample_value("esdedup_request_bodies_bytes") == 0


async def test_a_late_response_is_replaced_by_an_error() -> None:
    metrics = Metrics()
    status, _, body = await asked(bounds(waiting(asyncio.Event), metrics, timeout_s=0.01))
    assert (status, body["error"]["type"]) == (504, "esdedup_late")
    assert refused(metrics, "late") == 1


async def test_a_request_cut_off_at_shutdown_may_be_resent() -> None:
    metrics = Metrics()
    asking = asyncio.create_task(asked(bounds(waiting(asyncio.Event), metrics)))
    await asyncio.sleep(0.01)
    asking.cancel("timeout graceful shutdown exceeded")
    status, headers, body = await asking
    assert (status, body["error"]["type"]) == (503, "esdedup_shutting_down")
    assert headers["retry-after"] == "1"
    assert refused(metrics, "shutting_down") == 1


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/_bulk", "bulk"),
        ("PUT", "/news/_bulk/", "bulk"),
        ("PUT", "/news/_doc/1", "document"),
        ("POST", "/news/_update/1", "document"),
        ("GET", "/news/_doc/1", "other"),
        ("POST", "/news/_search", "other"),
        ("POST", "/v1/enrich", "own"),
        ("POST", "/v1/_doc", "document"),
        ("POST", "/", "other"),
    ],
)
def test_requests_are_counted_by_kind(method: str, path: str, kind: str) -> None:
    assert kind_of({"method": method, "path": path, "raw_path": path.encode()}) == kind
