"""Texts at which the core fails: their articles are rejected by name, and all others go on."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigner import Assigner, LocalDecision
from esdedup.ingest.enricher import Enricher, ForestOwner
from esdedup.ingest.files import FileArticle
from esdedup.ingest.remote_owner import RemoteOwner

from esdedup import VERIFIED, ArticleRejected, Fields, Profile, sample
from esdedup.boilerplate.pins import NO_PINS
from esdedup.elastic.article_indices import WritableIndex
from esdedup.errors import TextFailed
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging, Forest
from esdedup.forest.memory import MemoryStore
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.relation import relation_of
from esdedup.sidecar.bulk_request import read_bulk
from esdedup.sidecar.enrichment import Changed, Enrichment, Rejected
from esdedup.sidecar.metrics import Metrics
from esdedup.sites import RawPage
from tests.support.clusterings import clustering
from tests.support.faults import PLACE, fail_at
from tests.unit.test_sidecar_enrich_api import Sidecar

ARTICLES = [{"id": str(at), "text": each["text"]} for at, each in enumerate(sample.articles(40))]
ARTICLES[7]["text"] += " A tale of grumbleweed."
ARTICLES[23]["text"] += " Grumbleweed and grumbleweed."
REASON = f"its text met a fault in esdedup; please report it: {PLACE}"
SAID = [f"{name}: {REASON}" for name in ("7", "23")]
OTHERS = [each["id"] for each in ARTICLES if each["id"] not in ("7", "23")]


@pytest.fixture(autouse=True, params=[True, False], ids=["parsing", "signature"])
def failing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    fail_at(monkeypatch, "rumbleweed", when_parsed=request.param)


class InMemory:
    """Assigns articles as `Owner` does, in memory."""

    def __init__(self, profile: Profile = VERIFIED) -> None:
        store = MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=relation_of(profile))
        self.forest = Forest(store)
        self._assigner = Assigner(profile, pins=NO_PINS, most_plausible_leaves=64, threads=2)

    def assign(self, articles: Sequence[ArticleAction]) -> list[LocalDecision]:
        return self._assigner.assign(articles, forest=self.forest, now_ms=0).articles

    @contextlib.asynccontextmanager
    async def assigning(
        self, articles: Sequence[ArticleAction], _: Hashable
    ) -> AsyncIterator[list[LocalDecision]]:
        yield self.assign(articles)


def enriched(forest: ForestOwner) -> tuple[list[dict[str, Any]], list[ArticleRejected], list[str]]:
    enricher = Enricher(
        forest,
        fields=None,
        check_process=lambda: None,
        check_index=lambda name: WritableIndex(fields=Fields(), name=name),
        batch_size=20,
        max_text_length=VERIFIED.max_text_length,
    )
    rejected: list[ArticleRejected] = []
    assigned: list[str] = []
    actions = enricher.enrich(
        ({"_index": "plain", "_id": each["id"], "_source": {"text": each["text"]}} for each in ARTICLES),
        backfill=False,
        on_rejected=rejected.append,
        on_assigned=lambda article, _: assigned.append(article.name),
    )
    return list(actions), rejected, assigned


def test_the_fingerprints_of_the_others_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [each["text"] for each in ARTICLES]
    found = Fingerprinter(VERIFIED, threads=2).fingerprint(texts)
    monkeypatch.undo()
    whole = Fingerprinter(VERIFIED).fingerprint(texts)
    are_right = found.faults == ""
    assert np.flatnonzero(~are_right).tolist() == [7, 23]
    assert set(found.faults[~are_right]) == {PLACE}
    for column in ("signatures", "exists", "letters", "are_cut", "pages"):
        given, expected = getattr(found, column), getattr(whole, column)
        np.testing.assert_array_equal(given[are_right], expected[are_right])
        assert not any(given[~are_right].tobytes())


def test_their_articles_are_rejected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = InMemory()
    actions, rejected, assigned = enriched(in_memory)
    assert [action["_id"] for action in actions] == assigned == OTHERS
    assert all(action["_source"]["dedup"]["page"] for action in actions)
    assert [str(each) for each in rejected] == SAID
    assert {type(each) for each in rejected} == {TextFailed}
    assert all(each.__traceback__ is None for each in rejected)
    # When the fault is mended, they are not remembered as pages without a fingerprint.
    monkeypatch.undo()
    actions, rejected, _ = enriched(in_memory)
    assert len(actions) == len(ARTICLES)
    assert all("fingerprint" in action["_source"]["dedup"] for action in actions)


def test_through_a_sidecar_too() -> None:
    sidecar = Sidecar(assigning=InMemory().assigning, max_body_bytes=10**6)

    class Connection:
        address = "http://localhost:9500"

        def post(self, path: str, body: bytes, *, content_type: str) -> bytes:
            address = urlsplit(path)
            assert address.path == "/v1/enrich"
            return sidecar.ask(body, query=address.query, content_type=content_type).content

    connection: Any = Connection()
    owner = RemoteOwner(connection, forest="own", profile=VERIFIED, fields=Fields())
    actions, rejected, assigned = enriched(owner)
    assert [action["_id"] for action in actions] == assigned == OTHERS
    assert [str(each) for each in rejected] == SAID


def test_their_items_are_rejected_by_a_sidecar() -> None:
    async def find(names: Any) -> dict[str, Any]:
        return {name: WritableIndex(fields=Fields(), name=name) for name in names}

    async def may_write(_: Any, names: Any) -> dict[str, bool]:
        return dict.fromkeys(names, True)

    enrichment = Enrichment(
        forest="own", find=find, may_write=may_write, assigning=InMemory().assigning, metrics=Metrics()
    )
    lines = [line for each in ARTICLES for line in ({"index": {"_id": each["id"]}}, {"text": each["text"]})]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    outcomes = asyncio.run(enrichment.enrich(read_bulk(body, index="news"), headers=[]))
    assert [each for each in outcomes if isinstance(each, Rejected)] == [
        Rejected(said, fields=Fields()) for said in SAID
    ]
    assert sum(isinstance(each, Changed) for each in outcomes) == len(OTHERS)


def test_of_files_the_others_are_clustered() -> None:
    rejected: list[ArticleRejected] = []
    articles = [
        FileArticle(place=f"f:{each['id']}", id=each["id"], article=each, size_bytes=9) for each in ARTICLES
    ]
    found = list(clustering(rejected).cluster(articles))
    assert [each.id for each in found] == OTHERS
    assert [(each.article, type(each)) for each in rejected] == [
        (articles[at].name, TextFailed) for at in (7, 23)
    ]


def test_pages_that_teach_are_named_in_the_log(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    with caplog.at_level(logging.WARNING):
        clustering([]).learn(RawPage(each["text"], article=each["id"]) for each in ARTICLES)
    # Signatures teach nothing.
    is_parsing = "parsing" in request.node.name
    assert caplog.messages == [f"page left out: {said}" for said in SAID if is_parsing]


def test_a_text_alone_is_an_error() -> None:
    with pytest.raises(TextFailed, match=f"text 1: .*{PLACE}"):
        Explainer(VERIFIED).fingerprint(ARTICLES[7]["text"])
