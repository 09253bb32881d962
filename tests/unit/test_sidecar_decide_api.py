"""What sidecars ask each other, as anybody might send it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned

from esdedup.forest import Assignment, Kind
from esdedup.sidecar.app import create_app
from esdedup.sidecar.decide_api import decide_routes
from esdedup.sidecar.forest_choice import ForestChoice
from esdedup.sidecar.forests import Forests
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_endpoints import handle_errors
from esdedup.sidecar.own_paths import DECIDE, RELEASE
from esdedup.sidecar.owner import NotOwner, Ownership
from esdedup.sidecar.upstream import Upstream
from tests.support import asgi

ARTICLE: dict[str, Any] = {"name": "a", "text": "b"}


class Owned:
    """A forest that is owned until it is handed over."""

    def __init__(self) -> None:
        self.ownership = Ownership(is_owner=True)

    async def assign(self, articles: Sequence[ArticleAction]) -> Sequence[Assigned]:
        if not self.ownership.is_owner:
            raise NotOwner(None)
        assignment = Assignment(Kind.NEW_ROOT, "n", "r", 1, 2, b"s")
        return [Assigned(each, assignment, {}, len(each.text), "p", is_backfill=False) for each in articles]

    async def hand_over(self) -> bool:
        self.ownership = Ownership()
        return True

    async def take(self) -> None:
        raise AssertionError("nobody was asked for it")


def ask(path: str, body: Any, *, method: str = "POST", forests: Forests | None = None) -> asgi.Response:
    owned = forests or Forests({"f": Owned()}, choice=ForestChoice("f"), peers=None)
    app = create_app(Upstream(["http://localhost:1"]), own=[decide_routes(owned, max_body_bytes=10_000)])
    handle_errors(app, Metrics())
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    return asyncio.run(asgi.send(app, asgi.Request(path=path, method=method, headers=headers, body=sent)))


def test_it_decides_articles_and_releases_a_forest_to_who_has_fewer() -> None:
    forests = Forests({"f": Owned(), "g": Owned()}, choice=ForestChoice("f"), peers=None)
    decided = ask(DECIDE, {"forest": "g", "articles": [ARTICLE, ARTICLE | {"id": "x", "dated_ms": 5}]})
    assert decided.status == 503
    decided = ask(DECIDE, {"forest": "g", "articles": [ARTICLE] * 2}, forests=forests).json["decided"]
    assert [(each["root"], each["letters"]) for each in decided] == [("r", 1)] * 2
    assert ask(RELEASE, {"forest": "g", "owned": 1}, forests=forests).json == {"released": False}
    assert ask(RELEASE, {"forest": "g", "owned": 0}, forests=forests).json == {"released": True}
    refused = ask(DECIDE, {"forest": "g", "articles": [ARTICLE]}, forests=forests)
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert refused.json["type"] == "urn:esdedup:problem:not_owner"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (DECIDE, b"", 400),
        (DECIDE, b"{", 400),
        (DECIDE, [], 400),
        (DECIDE, {"forest": "f"}, 400),
        (DECIDE, {"forest": "f", "articles": {}}, 400),
        (DECIDE, {"forest": "f", "articles": [None]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"text": None}]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"id": 5}]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"dated_ms": 2**63}]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"dated_ms": True}]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"text": "\ud800"}]}, 400),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"id": "\udfff"}]}, 400),
        (DECIDE, {"forest": "\ud800", "articles": []}, 503),
        (DECIDE, {"forest": "f", "articles": [ARTICLE | {"further": 1}]}, 400),
        (DECIDE, {"forest": "f", "articles": []}, 200),
        (RELEASE, {"forest": "f", "owned": -1}, 400),
        (RELEASE, {"forest": "f", "owned": "many"}, 400),
        (RELEASE, {"forest": "g", "owned": 0}, 503),
        (RELEASE, {}, 400),
    ],
)
def test_what_is_malformed_is_refused(path: str, body: Any, status: int) -> None:
    answered = ask(path, body)
    assert answered.status == status
    assert status == 200 or answered.headers["content-type"] == "application/problem+json"


def test_only_sidecars_need_to_know_it() -> None:
    assert ask(DECIDE, b"", method="PUT").status == 405
    described = ask("/v1/openapi.json", b"", method="GET").json
    assert not {DECIDE, RELEASE} & set(described["paths"])
