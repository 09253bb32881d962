"""Readers ask the forest for what it has learned, and for no more than that."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import Dedup, ForestMissing, LeftOut, Override, Overrides, Reader
from tests.support.forests import feed
from tests.support.names import Names, new_names
from tests.support.site_pages import (
    HARBOUR,
    MAIL,
    MENU,
    RIGHTS,
    VALLEY,
    article,
    feed_pages,
    page,
    stored_page,
)


@pytest.fixture(scope="module")
def fed_pages(es: Elasticsearch) -> Iterator[tuple[str, str]]:
    with new_names(es) as name:
        yield feed_pages(es, name)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all requests from now on."""
    paths: list[str] = []
    plain: Callable[..., Any] = Elasticsearch.perform_request

    def perform(self: Elasticsearch, method: str, path: str, **options: Any) -> Any:
        paths.append(path)
        return plain(self, method, path, **options)

    monkeypatch.setattr(Elasticsearch, "perform_request", perform)
    return paths


def texts(left_out: LeftOut) -> list[str]:
    return [span.text for span in left_out.spans]


def test_what_is_known_already_costs_one_short_search(
    es: Elasticsearch, fed_pages: tuple[str, str], sent: list[str]
) -> None:
    index, forest = fed_pages
    reader = Reader(es, forest=forest)
    text = page(article(1), HARBOUR)
    assert texts(reader.left_out(text)) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    sent.clear()
    assert texts(reader.left_out(text)) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert sent == [f"/{forest}/_search"]
    sent.clear()
    reader.left_out(text, is_fresh=False)
    assert sent == []
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [stored_page(500, HARBOUR)])
    es.indices.refresh(index=forest)
    sent.clear()
    reader.left_out(text)
    assert len(sent) > 1


def test_a_forest_that_was_deleted_meanwhile_is_missing(es: Elasticsearch, index_name: Names) -> None:
    """Not an index that nobody has named, though its mapping is still known."""
    index, forest = index_name("pages"), index_name("forest")
    with Dedup(es, forest=forest) as dedup:
        dedup.setup(index)
        feed(es, dedup, index, [stored_page(1, HARBOUR)])
    reader = Reader(es, forest=forest)
    reader.left_out("")
    es.indices.delete(index=forest)
    with pytest.raises(ForestMissing, match=f"there is no forest '{forest}'"):
        reader.left_out("")
    with pytest.raises(ForestMissing, match=f"there is no forest '{forest}'"):
        reader.similar_to_text(index, page(article(1), HARBOUR))


def test_a_copy_follows_its_forest_to_another_one_of_the_same_name(
    es: Elasticsearch, index_name: Names
) -> None:
    index, forest = index_name("pages"), index_name("forest")
    reader, text = Reader(es, forest=forest), page(article(1), HARBOUR)
    for site, expected in ((HARBOUR, [f"{MENU}\n\n{MAIL}", RIGHTS]), (VALLEY, [MENU])):
        es.indices.delete(index=[forest, index], ignore_unavailable=True)
        pages = [stored_page(number, site) for number in range(66)]
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, pages)
        es.indices.refresh(index=forest)
        assert texts(reader.left_out(text)) == expected


def test_overrides_of_a_site_count_for_its_texts(es: Elasticsearch, fed_pages: tuple[str, str]) -> None:
    _, forest = fed_pages
    reader = Reader(es, forest=forest, overrides=Overrides.of([Override(text=RIGHTS, site=HARBOUR)]))
    text = page(article(1), HARBOUR)
    assert texts(reader.left_out(text, site=f"https://www.{HARBOUR}/1")) == [f"{MENU}\n\n{MAIL}"]
    assert texts(reader.left_out(text)) == [f"{MENU}\n\n{MAIL}", RIGHTS]
