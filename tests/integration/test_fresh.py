"""What reads a forest sees all that was acknowledged, or says that it may not."""

import logging

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, ForestMismatch, Maintenance
from esdedup.elastic.forest.meta import Lookup
from tests.support.forests import ARTICLES, in_both_lookups
from tests.support.names import Names
from tests.support.secured import secured

FIRST, THEN = ARTICLES[:5], ARTICLES[5:205]


def half_shown(es: Elasticsearch, index_name: Names, lookup: Lookup) -> tuple[Dedup, str, str]:
    """Feed a forest of which hardly anything can be searched, as it is while it is fed."""
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, lookup=lookup) as dedup:
        dedup.setup(index)
        es.indices.put_settings(index=index, settings={"refresh_interval": -1})
        helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in FIRST))
    dedup = Dedup(es, forest=forest)
    helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in THEN))
    return dedup, index, forest


@in_both_lookups
def test_what_was_acknowledged_is_verified_counted_and_rebuilt(
    es: Elasticsearch, index_name: Names, lookup: Lookup
) -> None:
    dedup, index, forest = half_shown(es, index_name, lookup)
    with dedup:
        maintenance = Maintenance(es, forest=forest)
        assert maintenance.count_articles([index]) == len(FIRST) + len(THEN)
        seen: list[int] = []
        assert list(maintenance.verify([index], on_progress=seen.append)) == []
        assert sum(seen) == maintenance.count([index]) > len(FIRST) + len(THEN)
        helpers.bulk(es, dedup.enrich({"_index": index, **each} for each in ARTICLES[205:210]))
    assert Maintenance(es, forest=forest).rebuild([index], replace=True) == maintenance.stats().nodes


def test_who_only_reads_is_told_what_he_may_not_see(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    dedup, index, forest = half_shown(es, index_name, "search")
    names = {"names": ["*"], "privileges": ["view_index_metadata", "read"]}
    es.indices.refresh(index=index)
    with dedup, secured(elasticsearch_url, {"reader": {"indices": [names]}}) as node:
        reader = Elasticsearch(node.url, basic_auth=("reader", "password"))
        with pytest.raises(ForestMismatch, match="as far as this client, which may not refresh it"):
            list(Maintenance(reader, forest=forest).verify([index]))
        es.indices.refresh(index=forest)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="esdedup"):
            assert list(Maintenance(reader, forest=forest).verify([index])) == []
        (said,) = (each.message for each in caplog.records if each.name == "esdedup")
        assert "may not be refreshed by this client (it lacks the privilege `maintenance`)" in said
