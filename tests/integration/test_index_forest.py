"""An index that belongs to a forest: others refuse its articles, by name."""

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, IndexNotReady, Maintenance
from esdedup.elastic.forest.meta import Lookup
from tests.support.forests import ARTICLES, feed, in_both_lookups, roots
from tests.support.names import Names
from tests.support.sidecar_process import running


@in_both_lookups
def test_an_index_with_articles_is_given_only_to_a_forest_that_knows_them(
    es: Elasticsearch, index_name: Names, lookup: Lookup
) -> None:
    index, forest, other = index_name("articles"), index_name("forest"), index_name("other")
    for name, where, articles in (
        (forest, index, ARTICLES[:50]),
        (other, index_name("others"), ARTICLES[50:60]),
    ):
        with Dedup(es, forest=name, lookup=lookup) as dedup:
            dedup.setup(where)
            feed(es, dedup, where, articles)
    dedup = Dedup(es)
    for wrong in (other, index_name("missing")):
        with pytest.raises(IndexNotReady, match=f"{index!r} has articles that the forest {wrong!r} does not"):
            dedup.setup(index, forest=wrong)
    with Dedup(es, forest=forest) as feeding:
        # Also while it is fed, and has not been refreshed.
        feed(es, feeding, index, ARTICLES[100:200])
        dedup.setup(index, forest=forest)
    with pytest.raises(IndexNotReady, match="does not know"):
        dedup.setup(index, forest=other)
    renamed = index_name("renamed")
    Maintenance(es, forest=renamed).rebuild([index])
    dedup.setup(index, forest=renamed)
    with Dedup(es, forest=forest) as feeding, pytest.raises(IndexNotReady, match=f"belongs to .*{renamed!r}"):
        feeding.require_ready(index)


def test_only_its_forest_takes_the_articles_of_an_index(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    own, others, anyones = index_name("own"), index_name("others"), index_name("anyones")
    forest, other = index_name("forest"), index_name("other")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(own, forest=forest)
        dedup.setup(others)
        dedup.setup(anyones)
        # An index that exists is given to a forest, too, and stays there.
        dedup.setup(others, forest=other)
        dedup.setup(others)
        with pytest.raises(IndexNotReady, match=f"{others!r} belongs to the forest {other!r}, and not to"):
            list(dedup.enrich([{"_index": others, **ARTICLES[0]}]))
    actions = [
        {"_index": index, **article, "_id": f"{at}-{index}"}
        for at, article in enumerate(ARTICLES[:4])
        for index in (own, others, anyones)
    ]
    with running(elasticsearch_url, forest=forest) as sidecar:
        with Elasticsearch(sidecar.url) as client:
            written, refused = helpers.bulk(client, actions, raise_on_error=False, refresh=True)
        assert isinstance(refused, list)
        assert (written, len(refused)) == (8, 4)
        for each in refused:
            assert each["index"]["status"] == 400
            assert f"belongs to the forest {other!r}" in each["index"]["error"]["reason"]
        answers = sidecar.enrich(*ARTICLES[:2], index=others)
    assert [each["error"]["status"] for each in answers] == [400, 400]
    assert [len(roots(es, index)) for index in (own, others, anyones)] == [4, 0, 4]
    with Dedup(es, forest=other) as dedup:
        assert len(list(dedup.enrich([{"_index": others, **ARTICLES[0]}]))) == 1
