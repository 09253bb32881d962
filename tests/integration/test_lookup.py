"""Looking up a text, in a forest or through its owner, predicts how an article with this text is assigned."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import AsyncElasticsearch, Elasticsearch
from esdedup.ingest.owner import Owner

from esdedup import (
    ArticleRejected,
    AsyncReader,
    Dedup,
    ForestMismatch,
    IndexNotReady,
    Reader,
    ServerError,
    SettingError,
)
from esdedup.elastic.forest.log import EVERY_LOG
from esdedup.fields import Fields
from esdedup.fingerprint.profile import CLASSIC, VERIFIED, Profile
from esdedup.forest import Assignment
from esdedup.reading.reader import asking_owner
from esdedup.sites import site_of
from tests.support.between import Answer, Send, Sent, answer, client_with
from tests.support.forests import ARTICLES, SHARDED, Read, feed, nodes, owner_of, roots
from tests.support.learned import Pace, contents, learned
from tests.support.names import Names
from tests.support.pages import pages


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=lambda profile: profile.name)
@pytest.mark.parametrize("how", [{"lookup": "memory"}, {"lookup": "search"}, SHARDED["3 shards"]], ids=str)
def test_a_lookup_predicts_the_root_of_an_article(
    es: Elasticsearch, read: Read, index_name: Names, profile: Profile, how: dict[str, Any]
) -> None:
    """The reader searches the articles if the nodes are in the owner's memory."""
    index, forest = index_name("articles"), index_name("forest")
    of = {"forest": forest, "profile": profile}
    known, coming = ARTICLES[:-15], ARTICLES[-15:]
    with Dedup(es, forest=forest, profile=profile, **how) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, known)
        joined, after = 0, roots(es, index)
        for article in [*coming, known[0]]:
            # No refresh has made the owner's last writes visible yet.
            page = read("similar_to_text", index, article["text"], of=of)
            before = after
            feed(es, dedup, index, [article])
            after = roots(es, index)
            root = after[article["_id"]]
            is_new = root not in before.values()
            assert page.root == (None if is_new else root)
            assert page.root_exact == (how["lookup"] == "search")
            members = [each for each, its in before.items() if its == root]
            assert page.total == len(members)
            assert {each.id for each in page.rows} <= set(members)
            joined += not is_new
        assert 3 < joined < 15, joined


def test_lookup_uses_whole_texts_if_boilerplate_is_kept(
    es: Elasticsearch, read: Read, index_name: Names
) -> None:
    """A menu is left out even before it is learned, unless the profile keeps boilerplate."""
    index, forest = index_name("articles"), index_name("forest")
    profile = VERIFIED.with_changes(keep_boilerplate=True)
    menu = " / ".join(ARTICLES[0]["text"].replace(".", "").split()[:150])
    article = ARTICLES[1] | {"text": f"{menu}\nHome\n{ARTICLES[1]['text']}"}
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [article])
    text = f"{article['text']} It was said so."
    assert read("similar_to_text", index, text, of={"forest": forest, "profile": profile}).total == 1
    with pytest.raises(ForestMismatch, match=profile.label):
        read("similar_to_text", index, text, of={"forest": forest})


def test_a_readers_lookup_changes_nothing(es: Elasticsearch, unchanged: tuple[str, str], read: Read) -> None:
    index, forest = unchanged
    before = nodes(es, forest)
    text = str(ARTICLES[0]["text"])
    page = read("similar_to_text", index, text, of={"forest": forest})
    assert page.root
    assert {article.resemblance for article in page.rows} >= {1.0}
    assert (
        read("similar_to_text", index, "nobody has ever written this down before", of={"forest": forest}).root
        is None
    )
    assert read("similar_to_text", index, "?!", of={"forest": forest}).root is None
    assert nodes(es, forest) == before


def test_impossible_lookups_are_refused(es: Elasticsearch, unchanged: tuple[str, str], read: Read) -> None:
    index, forest = unchanged
    with pytest.raises(IndexNotReady, match=f"belongs to the forest '{forest}'"):
        read("similar_to_text", index, "some text", of={"forest": "test-none"})
    with pytest.raises(ForestMismatch, match="made with profile"):
        read("similar_to_text", index, "some text", of={"forest": forest, "profile": CLASSIC})
    with pytest.raises(SettingError, match="not a string"):
        read("similar_to_text", index, None, of={"forest": forest})
    with pytest.raises(ArticleRejected, match="lone surrogate"):
        read("similar_to_text", index, "\ud800", of={"forest": forest})


COPIES = [{**each, "_id": f"again-{each['_id']}"} for each in ARTICLES[::20]]


@pytest.fixture
def names(index_name: Names) -> tuple[str, str]:
    return index_name("articles"), index_name("forest")


@pytest.fixture
def dedup(es: Elasticsearch, names: tuple[str, str]) -> Iterator[Dedup]:
    index, forest = names
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        yield dedup


def fed(dedup: Dedup, index: str, article: dict[str, Any]) -> Assignment:
    """Return the assignment of an article."""
    found: list[Assignment] = []
    list(dedup.enrich([{"_index": index, **article}], on_assigned=lambda _, each: found.append(each)))
    (assignment,) = found
    return assignment


def looked_up(owner: Owner, article: dict[str, Any]) -> Assignment:
    found = owner.look_up(article["text"], site_of(article, Fields()))
    assert found is not None
    return found


def same(found: Assignment, decided: Assignment) -> bool:
    # Ignore times, which differ, and signatures, which contain an origin only if the article was assigned.
    return found._replace(time_ms=0, signature=b"") == decided._replace(time_ms=0, signature=b"")


@pytest.mark.parametrize("profile", [VERIFIED, CLASSIC], ids=lambda each: each.label)
def test_an_owner_predicts_its_decision(es: Elasticsearch, names: tuple[str, str], profile: Profile) -> None:
    """Only the owner can predict its decision, because no article has been indexed yet."""
    index, forest = names
    kinds = set()
    with Dedup(es, forest=forest, profile=profile) as dedup:
        dedup.setup(index)
        list(dedup.enrich({"_index": index, **each} for each in ARTICLES[:200]))
        for article in [*ARTICLES[200:240], *COPIES, {"_id": "none", "text": "?!"}]:
            found = looked_up(owner_of(dedup), article)
            assert same(found, looked_up(owner_of(dedup), article))
            assert same(found, fed(dedup, index, article))
            kinds.add(found.kind.value)
    assert kinds == {"new_root", "joined", "known", "without_fingerprint"}


def test_the_owners_lookup_filters_boilerplate(es: Elasticsearch, names: tuple[str, str]) -> None:
    index, forest = names
    with Pace().kept(), Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        for page in pages(60):
            article = {"_id": page["id"], "text": page["text"]}
            found = looked_up(owner_of(dedup), article) if dedup_is_open(dedup) else None
            decided = fed(dedup, index, article)
            assert found is None or same(found, decided)
        es.indices.refresh(index=forest)
        assert contents(owner_of(dedup)._store.boilerplate) == learned(es, forest)  # type: ignore[union-attr]


def dedup_is_open(dedup: Dedup) -> bool:
    return owner_of(dedup).is_open


def log_of(es: Elasticsearch, forest: str) -> list[tuple[str, int]]:
    es.indices.refresh(index=forest)
    hits = es.search(index=forest, query=EVERY_LOG, size=1_000, sort="log", seq_no_primary_term=True)
    return [(hit["_id"], hit["_seq_no"]) for hit in hits["hits"]["hits"]]


def test_querying_the_owner_changes_nothing(
    es: Elasticsearch, dedup: Dedup, names: tuple[str, str], unchanged: tuple[str, str]
) -> None:
    """A feeder gets the same roots while another thread looks up texts."""
    index, forest = names
    owner, answered, is_over = owner_of(dedup), [0], threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            for article in ARTICLES[::7]:
                answered[0] += owner.look_up(article["text"], None) is not None

    asking = threading.Thread(target=ask)
    feed(es, dedup, index, ARTICLES[:10])
    asking.start()
    try:
        for at in range(10, len(ARTICLES), 29):
            feed(es, dedup, index, ARTICLES[at : at + 29])
    finally:
        is_over.set()
        asking.join()
    assert answered[0] > 50
    before, state = log_of(es, forest), owner._store.state  # type: ignore[union-attr]
    held = owner.contents()
    for article in ARTICLES[:30]:
        looked_up(owner, article)
    assert (log_of(es, forest), owner._store.state, owner.contents()) == (before, state, held)  # type: ignore[union-attr]
    assert roots(es, index) == roots(es, unchanged[0])
    assert learned(es, forest) == learned(es, unchanged[1])


def test_the_reader_of_a_dedup_asks_its_owner(
    es: Elasticsearch, elasticsearch_url: str, dedup: Dedup, names: tuple[str, str]
) -> None:
    index, forest = names
    text = ARTICLES[5]["text"]
    feed(es, dedup, index, ARTICLES[:20])
    (root,) = {root for id_, root in roots(es, index).items() if id_ == ARTICLES[5]["_id"]}

    async def ask() -> tuple[str | None, bool]:
        async with AsyncElasticsearch(elasticsearch_url) as client:
            page = await AsyncReader.like(dedup.reader, client).similar_to_text(index, text)
            return page.root, page.root_exact

    def answers() -> list[tuple[str | None, bool]]:
        found = [reader.similar_to_text(index, text) for reader in (dedup.reader, Reader(es, forest=forest))]
        return [*((page.root, page.root_exact) for page in found), asyncio.run(ask())]

    assert answers() == [(root, True), (root, False), (root, True)]
    # The article is deleted, but the forest still has its root.
    es.delete(index=index, id=ARTICLES[5]["_id"], refresh=True)
    assert dedup.reader.similar_to_text(index, text).root == root
    dedup.close()
    assert [is_exact for _, is_exact in answers()] == [False] * 3
    # The look-ups did not open the forest.
    assert not owner_of(dedup).is_open


def test_an_owner_without_a_forest_returns_no_root(
    es: Elasticsearch, dedup: Dedup, names: tuple[str, str]
) -> None:
    index, forest = names
    feed(es, dedup, index, ARTICLES[:20])
    es.indices.delete(index=forest)
    owner = owner_of(dedup)
    owner._store.writer.lease._renewed_at -= 1_000  # type: ignore[union-attr]
    assert owner.look_up(ARTICLES[0]["text"], None) is None
    assert owner.look_up(ARTICLES[0]["text"], None) is None


@pytest.mark.parametrize("operation", ["_mapping", "_doc", "_search"])
def test_lookup_needs_the_right_to_read_the_forest(
    dedup: Dedup, es: Elasticsearch, elasticsearch_url: str, names: tuple[str, str], operation: str
) -> None:
    index, forest = names
    feed(es, dedup, index, ARTICLES[:20])
    texts: list[str] = []

    def between(request: Sent, send: Send) -> Answer:
        if request.path.startswith(f"/{forest}/{operation}"):
            return answer(403, {"error": {"type": "security_exception", "reason": "not for you"}})
        return send()

    reader = asking_owner(Reader(es, forest=forest), lambda text, _: texts.append(text))
    reader.similar_to_text(index, ARTICLES[0]["text"])
    assert texts == [ARTICLES[0]["text"]]
    with client_with(elasticsearch_url, between) as client, pytest.raises(ServerError, match="not for you"):
        asking_owner(Reader(client, forest=forest), lambda text, _: texts.append(text)).similar_to_text(
            index, ARTICLES[1]["text"]
        )
    assert len(texts) == 1
