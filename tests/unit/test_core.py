"""The core: results do not depend on batches or threads, and a text that fails affects no other text."""

import contextlib
import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Hashable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assigner import Assigner
from esdedup.ingest.enricher import Enricher
from esdedup.ingest.remote_owner import RemoteOwner
from hypothesis import given
from hypothesis import strategies as st

from esdedup import VERIFIED, ArticleRejected, Fields, Profile, _core
from esdedup.boilerplate.boilerplate import Boilerplate
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.meta import WritableIndex
from esdedup.errors import TextFailed
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.forest import Aging
from esdedup.forest.model import DEFAULT_RETENTION
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.relation import relation_of
from esdedup.sites import RawPage
from esdedup.text.parsed import LocatedPassages, ParsedTexts, visible_text
from tests import sample
from tests.support.faults import PLACE, fail_at
from tests.support.forests import clustering
from tests.unit.test_sidecar_enrich_api import Sidecar

# Made-up texts and their results, computed by a former implementation in NumPy.
VECTORS = Path(__file__).parents[1] / "fixtures" / "core" / "texts.jsonl"


def vectors() -> list[dict[str, Any]]:
    return [json.loads(line) for line in VECTORS.read_text().splitlines()]


def seen(text: str, max_length: int) -> dict[str, Any]:
    """Return the results for a text in the format of `VECTORS`."""
    fingerprinter = Fingerprinter(dataclasses.replace(VERIFIED, max_text_length=max_length))
    found = fingerprinter.fingerprint([text])
    located = LocatedPassages.of(text, max_length=max_length)
    (normal,), are_cut = _core.normalise([text], max_length=max_length)
    columns = (
        [f"{each:016x}" for each in located.passages.hashes.tolist()],
        *(each.tolist() for each in (located.passages.alphanumerics, located.passages.are_prose)),
        *(each.tolist() for each in (located.passages.have_figures, located.starts, located.ends)),
    )
    return {
        "text": text,
        "max_length": max_length,
        "normal": normal,
        "cut": bool(are_cut[0]),
        "page": f"{found.content_hashes[0]:016x}",
        "letters": int(found.alphanumerics[0]),
        "signature": found.signatures.tobytes().hex() if found.exists[0] else None,
        "passages": [list(passage) for passage in zip(*columns, strict=True)],
    }


def test_hostile_texts_match_their_vectors() -> None:
    for vector in vectors():
        assert seen(vector["text"], vector["max_length"]) == vector


def test_batches_and_single_texts_give_equal_results() -> None:
    texts = [vector["text"] for vector in vectors()]
    together = Fingerprinter(VERIFIED).fingerprint(texts)
    for at, text in enumerate(texts):
        alone = Fingerprinter(VERIFIED).fingerprint([text])
        for column in ("signatures", "exists", "alphanumerics", "are_cut", "content_hashes"):
            assert getattr(together, column)[at] == getattr(alone, column)[0]


@given(st.text(), st.text())
def test_lone_surrogates_split_words_like_control_characters(before: str, after: str) -> None:
    texts = [f"{before}\ud800{after}", f"{before}\x01{after}"]
    found = Fingerprinter(VERIFIED).fingerprint(texts)
    assert found.signatures[0] == found.signatures[1]
    assert found.content_hashes[0] == found.content_hashes[1]
    assert visible_text(f"{before}\x01{after}").count("\x01") == visible_text(texts[0]).count(
        "\ud800"
    ) - before.count("\ud800") - after.count("\ud800") + (before + after).count("\x01")


def test_visible_text_keeps_lone_surrogates() -> None:
    assert visible_text("<b>a\udfff</b>\U00040001&lt;\ud800") == "a\udfff\U00040001<\ud800"


def test_a_wrong_number_of_flags_is_refused() -> None:
    parsed = ParsedTexts.of(["One sentence. Another one."], max_length=100)
    with pytest.raises(ValueError, match="3 flags for 2 passages"):
        parsed.core.whole_texts(bytes(3))
    with pytest.raises(ValueError, match="do not match the hashes"):
        _core.weighted_simhashes(bytes(16), bytes(8), bytes(8))


@given(st.lists(st.text(st.sampled_from("ab1 2.,:中文。\n<p>&"), max_size=30), max_size=5), st.randoms())
def test_leaving_out_passages_changes_nothing_else(batch: list[str], chance: Any) -> None:
    parsed = ParsedTexts.of(batch, max_length=1_000)
    hashes = dict.fromkeys(parsed.passages.hashes.tolist())
    overrides = Overrides({(each, None): chance.random() < 0.3 for each in hashes})
    left_out = parsed.left_out(Boilerplate().filter(overrides=overrides))
    found = Fingerprinter(VERIFIED).fingerprint(
        batch, passage_filter=Boilerplate().filter(overrides=overrides)
    )
    kept = np.bincount(parsed.passages.texts, parsed.passages.alphanumerics * ~left_out, len(batch))
    assert found.alphanumerics.tolist() == kept.tolist()
    whole = np.bincount(parsed.passages.texts, parsed.passages.alphanumerics, len(batch))
    assert found.exists.tolist() == (whole >= VERIFIED.min_letters).tolist()


ARTICLES = [{"id": str(at), "text": each["text"]} for at, each in enumerate(sample.articles(40))]
ARTICLES[7]["text"] += " A tale of grumbleweed."
ARTICLES[23]["text"] += " Grumbleweed and grumbleweed."
REASON = f"its text triggered a bug in esdedup; please report it: {PLACE}"
REJECTIONS = [f"{name}: {REASON}" for name in ("7", "23")]
OTHERS = [each["id"] for each in ARTICLES if each["id"] not in ("7", "23")]


@pytest.fixture(autouse=True, params=[True, False], ids=["parsing", "signature"])
def failing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    fail_at(monkeypatch, "rumbleweed", when_parsed=request.param)


class InMemory:
    """An owner that assigns articles in memory."""

    def __init__(self, profile: Profile = VERIFIED) -> None:
        self.store = MemoryStore(aging=Aging.of(retention=DEFAULT_RETENTION), relation=relation_of(profile))
        self._assigner = Assigner(profile, overrides=NO_OVERRIDES, most_plausible_leaves=64, threads=2)

    def assign(self, articles: Sequence[ArticleAction]) -> None:
        self._assigner.assign(articles, store=self.store, now_ms=0)

    @contextlib.asynccontextmanager
    async def assigning(self, articles: Sequence[ArticleAction], _: Hashable) -> AsyncIterator[None]:
        self.assign(articles)
        yield


def enriched(forest: InMemory | RemoteOwner) -> tuple[list[dict[str, Any]], list[ArticleRejected], list[str]]:
    rejected: list[ArticleRejected] = []
    assigned: list[str] = []
    enricher = Enricher(
        assign=forest.assign,
        fields=None,
        check_process=lambda: None,
        check_index=lambda name: WritableIndex(fields=Fields(), name=name),
        batch_size=20,
        max_text_length=VERIFIED.max_text_length,
        on_rejected=rejected.append,
        on_assigned=lambda article, _: assigned.append(article.name),
    )
    actions = enricher.enrich(
        {"_index": "plain", "_id": each["id"], "_source": {"text": each["text"]}} for each in ARTICLES
    )
    return list(actions), rejected, assigned


def test_texts_that_do_not_fail_keep_their_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [each["text"] for each in ARTICLES]
    found = Fingerprinter(VERIFIED, threads=2).fingerprint(texts)
    monkeypatch.undo()
    whole = Fingerprinter(VERIFIED).fingerprint(texts)
    are_right = found.faults == ""
    assert np.flatnonzero(~are_right).tolist() == [7, 23]
    assert set(found.faults[~are_right]) == {PLACE}
    for column in ("signatures", "exists", "alphanumerics", "are_cut", "content_hashes"):
        given, expected = getattr(found, column), getattr(whole, column)
        np.testing.assert_array_equal(given[are_right], expected[are_right])
        assert not any(given[~are_right].tobytes())


def test_articles_with_failing_texts_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = InMemory()
    actions, rejected, assigned = enriched(in_memory)
    assert [action["_id"] for action in actions] == assigned == OTHERS
    assert all(action["_source"]["dedup"]["page"] for action in actions)
    assert [str(each) for each in rejected] == REJECTIONS
    assert {type(each) for each in rejected} == {TextFailed}
    assert all(each.__traceback__ is None for each in rejected)
    # Once the fault is fixed, these texts get fingerprints: their content hashes were not stored.
    monkeypatch.undo()
    actions, rejected, _ = enriched(in_memory)
    assert len(actions) == len(ARTICLES)
    assert all("fingerprint" in action["_source"]["dedup"] for action in actions)


def test_a_sidecar_rejects_articles_with_failing_texts() -> None:
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
    assert [str(each) for each in rejected] == REJECTIONS


def test_failing_pages_are_logged_while_learning(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    with caplog.at_level(logging.WARNING):
        clustering([]).learn(RawPage(each["text"], article=each["id"]) for each in ARTICLES)
    # Learning computes no signatures.
    is_parsing = "parsing" in request.node.name
    assert caplog.messages == [f"page left out: {each}" for each in REJECTIONS if is_parsing]


def test_a_single_failing_text_raises_an_error() -> None:
    with pytest.raises(TextFailed, match=f"text 1: .*{PLACE}"):
        Explainer(VERIFIED).signature(ARTICLES[7]["text"])
