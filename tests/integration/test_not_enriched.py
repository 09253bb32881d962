"""Articles that were indexed without esdedup: they are in no row, and every list says how many they are."""

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import Dedup, Maintenance
from esdedup.cli import output
from esdedup.reading.list_request import SORTS
from tests.support.asgi import request
from tests.support.forests import TEXT, Read
from tests.support.names import Names


@pytest.fixture
def some(es: Elasticsearch, index_name: Names) -> tuple[str, str]:
    """An index with one enriched article and three others, and its forest."""
    index, forest = index_name("some"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        enriched = dedup.enrich([{"_index": index, "_id": "a", "text": TEXT, "title": "fox"}])
        plain = [{"_index": index, "_id": each, "text": TEXT, "title": title} for each, title in OTHERS]
        helpers.bulk(es, [*enriched, *plain], refresh=True)
    return index, forest


OTHERS = [("b", "fox"), ("c", "fox and dog"), ("d", "dog")]


def test_lists_count_what_is_not_enriched(some: tuple[str, str], read: Read) -> None:
    index, _ = some
    for sort in SORTS:
        page = read("list", index, sort=sort)
        assert (page.total_rows, page.total_articles, page.not_enriched) == (1, 1, 3)
        assert read("list", index, query={"match": {"title": "fox"}}, sort=sort).not_enriched == 2
    assert read("list", index, dedup=False).not_enriched == 3
    assert read("list", index, query={"match": {"title": "dog"}}).total_rows == 0


def test_an_index_without_any_enriched_article(
    es: Elasticsearch, index_name: Names, elasticsearch_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    index = index_name("none")
    dedup = Dedup(es, forest=index_name("forest"))
    dedup.setup(index)
    helpers.bulk(es, [{"_index": index, "_id": each, "text": TEXT} for each, _ in OTHERS], refresh=True)
    output.print_page(dedup.list(index))
    printed = " ".join(capsys.readouterr().out.split())
    assert "0 rows for 0 articles" in printed
    assert "3 more articles match, but are not enriched yet and in no row: index them again" in printed
    shown = request(elasticsearch_url, index, "/").body
    assert "3 more articles match, but are not shown: not enriched by esdedup yet." in shown
    assert "There are no articles yet" not in shown
    assert request(elasticsearch_url, index, "/api/v1/list").json["not_enriched"] == 3


def test_statistics_count_what_is_not_enriched(es: Elasticsearch, some: tuple[str, str]) -> None:
    index, forest = some
    maintenance = Maintenance(es, forest=forest)
    assert maintenance.stats([index]).not_enriched == 3
    assert maintenance.stats().not_enriched is None


def test_a_new_forest_beside_articles_with_roots_is_warned_of(
    es: Elasticsearch, some: tuple[str, str], index_name: Names, caplog: pytest.LogCaptureFixture
) -> None:
    index, forest = some
    action = {"_index": index, "_id": "e", "text": TEXT}
    with Dedup(es, forest=forest) as dedup:
        list(dedup.enrich([action]))
    assert not caplog.messages
    with Dedup(es, forest=index_name("other")) as dedup:
        list(dedup.enrich([action]))
        list(dedup.enrich([action]))
    (warning,) = caplog.messages
    assert f"but articles in '{index}' have roots already" in warning
    assert "unless the forest is rebuilt" in warning
