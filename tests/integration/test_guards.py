"""Clusters that are larger than one story can be, and sentences that unrelated articles share."""

import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import VERIFIED, Dedup, IndexNotReady, Maintenance, Profile
from tests.support.names import Names

FOOTER = "subscribe to the harbour letter and read about ferries and weather every morning"
LIMIT = 4


def words(draw: Random, count: int) -> str:
    return " ".join("".join(draw.choices("abcdefghij", k=6)) for _ in range(count))


@pytest.fixture
def fed(es: Elasticsearch, index_name: Names) -> Callable[[Profile, list[str]], tuple[str, str]]:
    """Feeds texts to a new index and forest, where few leaves are plausible."""

    def feed(profile: Profile, texts: list[str]) -> tuple[str, str]:
        index, forest = index_name("articles"), index_name("forest")
        with Dedup(es, forest=forest, profile=profile, most_plausible_leaves=LIMIT) as dedup:
            dedup.setup(index)
            actions = [{"_index": index, "_id": str(at), "text": text} for at, text in enumerate(texts)]
            helpers.bulk(es, dedup.enrich(actions), refresh=True)
        return index, forest

    return feed


def template(count: int) -> list[str]:
    draw = Random(1)
    body = f"{words(draw, 30)}. {words(draw, 40)}. {words(draw, 25)}"
    return [f"{body}. {words(draw, 6)}." for _ in range(count)]


def test_a_cluster_that_is_too_large(es: Elasticsearch, fed: Any, caplog: pytest.LogCaptureFixture) -> None:
    texts = template(2 * LIMIT + 3)
    with caplog.at_level(logging.WARNING, logger="esdedup"):
        index, forest = fed(VERIFIED, texts)
    found = Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats()
    live = 2 * LIMIT + 2
    assert found.implausible_trees == 1
    (cluster,) = found.implausible
    assert (cluster.root, cluster.leaves) == (found.largest[0].root, live)
    assert cluster.shared is not None
    assert (cluster.shared.nodes, cluster.shared.examined, cluster.shared.trees) == (live, live, 1)
    assert cluster.shared.sentence is None
    for record, passed in zip(caplog.records, (LIMIT, 2 * LIMIT), strict=True):
        assert cluster.root in record.getMessage()
        assert f"more than {passed} distinct texts" in record.getMessage()
        assert not any(word in record.getMessage() for word in texts[0].split())
    told = Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats([index]).implausible[0].shared
    assert told is not None
    assert told.kind == "sentence"
    assert told.sentence is not None
    assert told.sentence in texts[0]
    # An index without the forest's articles gives no sentence.
    empty, _ = fed(VERIFIED, [])
    assert (
        Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats([empty]).implausible[0].shared
        == cluster.shared
    )
    with pytest.raises(IndexNotReady):
        Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats([forest])


def test_a_plausible_cluster_is_not_reported(
    es: Elasticsearch, fed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, forest = fed(VERIFIED, template(LIMIT + 1))
    found = Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats()
    assert (found.largest[0].leaves, found.implausible, found.implausible_trees) == (LIMIT, (), 0)
    assert (found.shared_by_trees, caplog.records) == ((), [])


def test_a_footer_of_unrelated_articles_is_named(es: Elasticsearch, fed: Any) -> None:
    draw = Random(2)
    # A sentence for each half.
    texts = [f"{words(draw, 40)}. {FOOTER}." for _ in range(12)]
    index, forest = fed(VERIFIED, texts)
    (shared,) = Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats([index]).shared_by_trees
    assert (shared.kind, shared.sentence) == ("sentence", FOOTER)
    assert (shared.nodes, shared.examined, shared.trees) == (12, 12, 12)
    (unsaid,) = Maintenance(es, forest=forest, most_plausible_leaves=LIMIT).stats().shared_by_trees
    assert unsaid == shared.model_copy(update={"kind": None, "sentence": None})
    own, other = fed(VERIFIED, texts[:9])
    assert Maintenance(es, forest=other, most_plausible_leaves=LIMIT).stats([own]).shared_by_trees == ()
