"""Readers return the same excerpt counts and links as a brute-force computation over all documents."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup
from esdedup.elastic.execute import execute
from esdedup.elastic.mappings import article_index
from esdedup.elastic.requests import Search
from esdedup.fields import Fields
from esdedup.maintenance import Maintenance, ViolationKind
from esdedup.reading.excerpts import MAX_CLUSTERS_SHOWN
from esdedup.reading.scope import Scope
from esdedup.reading.versions import versions
from tests.support.brute_force import HOUR_MS, Document, oldest_first, random_corpus
from tests.support.excerpts import articles
from tests.support.forests import Read, feed, in_each_way, remove
from tests.support.names import Names
from tests.support.noted_searches import noting


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Random articles, many of which are excerpts of another cluster or of a missing cluster."""

    index: str
    documents: dict[str, Document]

    @property
    def clusters(self) -> dict[str, dict[str, Document]]:
        found: dict[str, dict[str, Document]] = defaultdict(dict)
        for article_id, article in self.documents.items():
            found[article["dedup"]["root"]][article_id] = article
        return found


@pytest.fixture(scope="module", params=[1, 5], ids=["one shard", "five shards"])
def corpus(request: pytest.FixtureRequest, es: Elasticsearch) -> Iterator[Corpus]:
    index, chance = f"test-excerpts-{request.param}", Random(request.param)
    made = Corpus(index, random_corpus(chance, clusters=90))
    roots = list(made.clusters)
    quoted = [*roots[:3], roots[0], roots[0], "no-article-has-it"]
    for article_ids in list(made.clusters.values())[3:60]:
        whole = chance.choice(quoted)
        for article in article_ids.values():
            article["dedup"] |= {"part_of": whole, "published": chance.randrange(99) * HOUR_MS}
    for article_ids in list(made.clusters.values())[60:80]:
        part = chance.choice([roots[0], roots[5], roots[81], "no-article-has-it"])
        for article in article_ids.values():
            article["dedup"] |= {"has_part": part}
    es.options(ignore_status=404).indices.delete(index=index)
    Dedup(es).setup(index, shards=request.param)
    helpers.bulk(
        es,
        ({"_index": index, "_id": each, "_source": source} for each, source in made.documents.items()),
        refresh=True,
    )
    yield made
    es.indices.delete(index=index)


def whole_of(corpus: Corpus, root: str) -> str | None:
    """Return the root that `root` is a part of.

    This is its own `part_of`, otherwise the root of the oldest article whose `has_part` is `root`.
    """
    articles = corpus.clusters[root].values()
    later = {
        article_id: article
        for article_id, article in corpus.documents.items()
        if article["dedup"].get("has_part") == root
    }
    own = next(iter(articles))["dedup"].get("part_of")
    return own or (later[first_of(later)]["dedup"]["root"] if later else None)


def first_of(cluster: dict[str, Document]) -> str:
    return min(cluster, key=lambda each: oldest_first(cluster[each]))


def quoting(corpus: Corpus, root: str) -> list[dict[str, Document]]:
    """Return the excerpts of a root as clusters, by the time of their first article, newest first."""
    parts = {each["dedup"].get("has_part") for each in corpus.clusters[root].values()}
    found = [
        (name, cluster)
        for name, cluster in sorted(corpus.clusters.items())
        if name in parts or any(each["dedup"].get("part_of") == root for each in cluster.values())
    ]
    found.sort(key=lambda each: -each[1][first_of(each[1])]["dedup"]["published"])
    return [cluster for _, cluster in found]


@pytest.mark.parametrize("operation", ["similar", "versions", "sources", "cluster"])
def test_every_page_about_a_cluster_lists_excerpts(corpus: Corpus, read: Read, operation: str) -> None:
    seen = set()
    for root, cluster in list(corpus.clusters.items())[:85]:
        article_id = first_of(cluster)
        page = read(operation, corpus.index, root if operation == "cluster" else article_id)
        # Excerpts are not included in the total.
        alone = operation in {"similar", "sources"}
        assert page.total == len(cluster) - alone
        expected = quoting(corpus, root)
        assert page.excerpts.articles == sum(map(len, expected))
        assert page.excerpts.clusters == len(expected)
        rows = [(row.id, row.articles) for row in page.excerpts.rows]
        assert rows == [(first_of(each), len(each)) for each in expected[:MAX_CLUSTERS_SHOWN]]
        whole = whole_of(corpus, root)
        if whole is None:
            assert page.excerpt_of is None
        else:
            quoted = corpus.clusters.get(whole, {})
            assert (page.excerpt_of.root, page.excerpt_of.articles) == (whole, len(quoted))
            first = page.excerpt_of.first
            assert (first and first.id) == (first_of(quoted) if quoted else None)
        seen.add(
            (len(expected) > MAX_CLUSTERS_SHOWN, bool(expected), whole is None or whole in corpus.clusters)
        )
    assert seen == {(True, True, True), (False, True, True), (False, False, True), (False, False, False)}


@in_each_way
def test_excerpts_may_arrive_before_their_story(
    es: Elasticsearch, index_name: Names, lookup: dict[str, Any], read: Read
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    story, copy, excerpt, excerpt_copy, *_ = articles()
    maintenance = Maintenance(es, forest=forest)
    with Dedup(es, forest=forest, **lookup) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [excerpt, excerpt_copy])
        found = read("similar_to_text", index, story["text"], of={"forest": forest})
        feed(es, dedup, index, [story])
    assert (found.root, found.excerpts.articles) == (None, 2)
    maintenance.rebuild([index])
    with Dedup(es, forest=forest, **lookup) as dedup:
        feed(es, dedup, index, [copy])
    assert list(maintenance.verify([index])) == []
    rows = {row.id: row.details for row in read("list", index, details=True).rows}
    assert {name: each.excerpts for name, each in rows.items()} == {"excerpt-copy": 0, "story-copy": 2}
    assert rows["excerpt-copy"].excerpt_of.id == "story"
    assert rows["story-copy"].excerpt_of is None


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, articles())
    return index, forest


def test_excerpts_and_stories_link_to_each_other(fed: tuple[str, str], read: Read, read_async: Read) -> None:
    index, _ = fed
    for reader in (read, read_async):
        story = reader("versions", index, "story-copy")
        assert (story.total, story.excerpt_of) == (2, None)
        assert (story.excerpts.articles, story.excerpts.clusters) == (3, 2)
        newest, oldest = story.excerpts.rows
        assert (newest.id, newest.articles) == ("second-excerpt", 1)
        assert (oldest.id, oldest.articles) == ("excerpt", 2)
        assert oldest.url == "https://excerpt.example/"
        excerpt = reader("similar", index, "excerpt-copy")
        assert [row.id for row in excerpt.rows] == ["excerpt"]
        assert (excerpt.excerpt_of.root, excerpt.excerpt_of.articles) == (story.root, 2)
        assert excerpt.excerpt_of.first.id == "story"
        assert excerpt.excerpts.clusters == 0
        assert reader("article", index, "excerpt-copy").part_of == story.root
        assert reader("article", index, "story").part_of is None
        other = reader("similar", index, "other")
        assert (other.excerpt_of, other.excerpts.articles) == (None, 0)
        # A cluster that is requested by its root has the link, too.
        assert reader("cluster", index, excerpt.root).excerpt_of == excerpt.excerpt_of
        assert reader("with_fingerprint", index, excerpt.root).excerpt_of is None


def test_lost_and_forged_links_are_found_and_repaired(fed: tuple[str, str], es: Elasticsearch) -> None:
    index, forest = fed
    edited = articles()[2]
    edited |= {"_id": "edited", "text": edited["text"] + " Indeed."}
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [edited])

    def links() -> dict[str, tuple[str | None, str | None]]:
        hits = es.search(index=index, size=50)["hits"]["hits"]
        objects = ((hit["_id"], hit["_source"]["dedup"]) for hit in hits)
        return {name: (each.get("part_of"), each.get("has_part")) for name, each in objects}

    before, root = links(), es.get(index=index, id="other")["_source"]["dedup"]["root"]
    damages = {
        "excerpt-copy": {"part_of": None},
        "lost-excerpt": {"part_of": root},
        "story": {"part_of": root, "has_part": ["no", "id"]},
        "other": {"has_part": "no id"},
    }
    for name, change in damages.items():
        es.update(index=index, id=name, doc={"dedup": change}, refresh=True)
    maintenance = Maintenance(es, forest=forest)
    found = sorted((each.subject, each.kind) for each in maintenance.verify([index]))
    assert found == [(name, ViolationKind.OTHER_LINKS) for name in sorted(damages)]
    assert maintenance.repair([index]) == {ViolationKind.OTHER_LINKS: len(damages)}
    assert (links(), list(maintenance.verify([index]))) == (before, [])
    # If a copy has lost its link, a rebuild from articles takes the link from another copy.
    for name in ("excerpt-copy", "other"):
        es.update(index=index, id=name, doc={"dedup": damages[name]}, refresh=True)
    maintenance.rebuild([index], articles_only=True)
    assert (links(), list(maintenance.verify([index]))) == (before, [])
    # The root is recreated from a leaf, which has no link.
    remove(es, forest, es.get(index=index, id="edited")["_source"]["dedup"]["root"])
    maintenance.repair()
    maintenance.repair([index])
    assert (links(), list(maintenance.verify([index]))) == (before, [])


def test_a_looked_up_text_can_be_an_excerpt(fed: tuple[str, str], read: Read) -> None:
    index, forest = fed
    story, *_ = articles()
    part = " ".join(f"{each}." for each in story["text"].split(". ")[6:23])
    found = read("similar_to_text", index, part, of={"forest": forest})
    assert (found.root, found.rows) == (None, ())
    assert found.excerpt_of.first.id == "story"
    known = read("similar_to_text", index, articles()[2]["text"], of={"forest": forest})
    assert known.root == read("article", index, "excerpt").root
    assert (known.total, known.excerpt_of) == (2, found.excerpt_of)


def test_a_quoted_story_may_have_no_articles_left(
    fed: tuple[str, str], es: Elasticsearch, read: Read
) -> None:
    index, _ = fed
    es.delete(index=index, id="lost", refresh=True)
    quoted = read("sources", index, "lost-excerpt").excerpt_of
    assert (quoted.articles, quoted.first) == (0, None)


def test_indices_without_link_fields_have_no_excerpts(
    es: Elasticsearch, index_name: Names, read: Read
) -> None:
    index = index_name("before")
    body = article_index(Fields())
    for name in ("part_of", "has_part"):
        del body["mappings"]["properties"]["dedup"]["properties"][name]
    es.indices.create(index=index, **body)
    dedup = {"root": "r", "seq": 1, "published": 1, "profile": "verified-3", "fingerprint": "f"}
    es.index(index=index, id="a", document={"text": "Of old", "dedup": dedup}, refresh=True)
    page = read("versions", index, "a")
    assert (page.total, page.excerpt_of, page.excerpts.articles, page.excerpts.rows) == (1, None, 0, ())


def test_only_linked_stories_need_a_request_for_excerpts(corpus: Corpus, es: Elasticsearch) -> None:
    records = {each: article["dedup"] for each, article in corpus.documents.items()}
    linked = {each[name] for each in records.values() for name in ("part_of", "has_part") if name in each}
    linked |= {each["root"] for each in records.values() if "part_of" in each or "has_part" in each}
    part = next(each for each, record in records.items() if "part_of" in record)
    alone = next(each for each, record in records.items() if record["root"] not in linked)
    # The first request searches for the article; the second, for its versions, the titles by which
    # placeholders are recognised, and links; the third, for excerpts and the story that it quotes.
    for article, expected in ((alone, [1, 3]), (part, [1, 3, 2])):
        searches: list[Search] = []
        execute(es, noting(versions(Scope(), corpus.index, article), searches))
        assert [len(each.bodies) for each in searches] == expected
