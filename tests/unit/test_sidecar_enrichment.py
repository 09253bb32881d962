"""What becomes of the items of a request: enriched, rejected, or left as they came."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import orjson
import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigned import Assigned

from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import IndexNotReady
from esdedup.fields import Fields
from esdedup.forest.model import Assignment, Kind
from esdedup.sidecar.bulk_request import read_bulk
from esdedup.sidecar.enrichment import Changed, Enrichment, Outcome, Rejected, Untouched
from esdedup.sidecar.headers import Headers
from esdedup.sidecar.intake import Overloaded

INDICES = {
    "news": WritableIndex(fields=Fields(), name="news-1"),
    "routed": WritableIndex(fields=Fields(text="body"), name="routed", is_routed_by_root=True),
    "closed": IndexNotReady("the index 'closed' is closed: open it first", index="closed"),
}
HEADERS = [(b"authorization", b"ApiKey feeder")]


class Sidecar:
    """Assigns every article to a root of its own, and notes what it was asked."""

    def __init__(self, *, forbidden: str = "") -> None:
        self.texts: list[str] = []
        self.asked: list[Collection[str]] = []
        self.forbidden = forbidden
        self.enrichment = Enrichment(find=self.find, may_write=self.may_write, assign=self.assign)

    async def find(self, names: Collection[str]) -> dict[str, Any]:
        return {name: INDICES.get(name) for name in names}

    async def may_write(self, headers: Headers, names: Collection[str]) -> dict[str, bool]:
        assert headers == HEADERS
        self.asked.append(names)
        return {name: name != self.forbidden for name in names}

    async def assign(self, articles: Sequence[ArticleAction]) -> list[Assigned]:
        self.texts += [each.text for each in articles]
        return [
            Assigned(
                each,
                Assignment(Kind.NEW_ROOT, f"n{at}", f"root-{at}", at, 1_000, b""),
                {"fingerprint": f"n{at}"},
                len(each.text),
                "verified-3",
                False,
            )
            for at, each in enumerate(articles)
        ]

    def enrich(self, *lines: Any, index: str | None = None) -> list[Outcome]:
        body = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        items = read_bulk(body, index=index)
        return asyncio.run(self.enrichment.enrich(items, headers=HEADERS))


def test_articles_are_enriched_in_order_and_everything_else_stays() -> None:
    sidecar = Sidecar()
    outcomes = sidecar.enrich(
        {"index": {"_id": "1"}},
        {"text": "one"},
        {"index": {"_index": "logs"}},
        {"text": "no article"},
        {"delete": {"_id": "2"}},
        {"create": {"_index": "routed", "_id": "3"}},
        {"body": "two"},
        {"update": {"_id": "4"}},
        {"doc": {"views": 7}},
        {"update": {"_id": "5"}},
        {"doc": {"text": "three"}},
        index="news",
    )
    assert sidecar.texts == ["one", "two", "three"]
    assert sidecar.asked == [["news", "routed"]]
    kinds = [type(each) for each in outcomes]
    assert kinds == [Changed, Untouched, Untouched, Changed, Untouched, Changed]
    first, routed, updated = (each for each in outcomes if isinstance(each, Changed))
    assert first.action["_source"]["dedup"]["root"] == "root-0"
    assert routed.action["routing"] == "root-1"
    assert updated.action["_source"]["doc"]["dedup"]["root"] == "root-2"


def test_articles_that_cannot_be_taken_are_rejected_and_the_rest_goes_on() -> None:
    sidecar = Sidecar(forbidden="routed")
    outcomes = sidecar.enrich(
        {"index": {"_id": "1"}},
        {"title": "no text"},
        {"index": {"_index": "closed"}},
        {"text": "closed"},
        {"index": {"_index": "routed"}},
        {"body": "forbidden"},
        {"index": {"_id": "2"}},
        {"text": "taken"},
        {"update": {"_id": "3"}},
        {"doc": {"published_at": "2026-01-02T03:04:05Z"}},
        index="news",
    )
    assert sidecar.texts == ["taken"]
    missing, closed, forbidden, taken, dated = outcomes
    assert isinstance(missing, Rejected)
    assert missing.status == 400
    assert "1: " in missing.reason
    assert closed == Rejected("the index 'closed' is closed: open it first")
    assert forbidden == Rejected("the caller may not write to the index [routed]", 403)
    assert isinstance(taken, Changed)
    assert isinstance(dated, Changed | Untouched)


def test_nobody_is_asked_about_requests_without_articles() -> None:
    sidecar = Sidecar()
    assert sidecar.enrich({"index": {"_index": "logs"}}, {"a": 1}) == [Untouched()]
    assert sidecar.enrich({"delete": {"_index": "news", "_id": "1"}}) == [Untouched()]
    assert sidecar.asked == []


def test_what_the_intake_refuses_is_refused() -> None:
    sidecar = Sidecar()

    async def refuse(_: Sequence[ArticleAction]) -> list[Assigned]:
        raise Overloaded("too much waits")

    sidecar.enrichment = Enrichment(find=sidecar.find, may_write=sidecar.may_write, assign=refuse)
    with pytest.raises(Overloaded):
        sidecar.enrich({"index": {"_index": "news"}}, {"text": "one"})
