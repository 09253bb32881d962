"""Who is not the owner of the forest reads no articles."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from starlette.routing import Match

from esdedup.errors import ForestBusy, ForestOwner
from esdedup.sidecar.bulk import BulkRoute
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.upstream import Upstream

URL = "http://other:9500"
OWNER = ForestOwner(host="h", pid=1, since=datetime(2026, 1, 1, tzinfo=UTC), released=False, url=URL)
BUSY = ForestBusy("process 1 on h owns it", forest="f", owner=OWNER)


def unexpected(*_: Any, **__: Any) -> Any:
    raise AssertionError("the body was read")


@pytest.mark.parametrize(
    ("ownership", "said"),
    [(Ownership(reason=BUSY), URL), (Ownership(), "the forest is being taken: send this again in a moment")],
)
@pytest.mark.parametrize("path", ["/_bulk", "/news/_bulk", "/news/_doc/1", "/news/_update/1"])
def test_a_standby_refuses_what_it_has_not_read(path: str, ownership: Ownership, said: str) -> None:
    metrics, sent = Metrics(), list[Any]()
    writing = BulkRoute(
        Upstream(["http://localhost:9200"]),
        Enrichment(forest="f", find=unexpected, may_write=unexpected, assigning=unexpected, metrics=metrics),
        ownership=lambda: ownership,
        metrics=metrics,
        max_body_bytes=100,
    )

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        # Neither is looked at.
        "headers": [(b"content-type", b"application/cbor"), (b"content-length", b"1000")],
    }
    match, found = writing.matches(scope)
    assert match is Match.FULL
    asyncio.run(writing.handle({**scope, **found}, unexpected, send))
    start, body = sent
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"1")
    # As Elasticsearch's clients read it.
    error = orjson.loads(body["body"])["error"]
    assert error["type"] == "esdedup_not_owner"
    assert said in error["reason"]
    refused = metrics.registry.get_sample_value
    assert refused("esdedup_requests_refused_total", {"reason": "not_owner"}) == 1
