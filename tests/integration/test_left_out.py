"""Learned boilerplate is left out of looked-up texts, and overrides apply to these texts."""

from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, Dedup, Fields, LeftOut, Override, Overrides, Reader, SettingError
from tests.support.asgi import request
from tests.support.between import Sent, recording
from tests.support.forests import Read, feed, roots
from tests.support.names import Names, new_names
from tests.support.pages import (
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


def texts(left_out: LeftOut) -> list[str]:
    return [span.text for span in left_out.spans]


def test_an_up_to_date_reader_needs_one_short_search(
    es: Elasticsearch, elasticsearch_url: str, fed_pages: tuple[str, str]
) -> None:
    index, forest = fed_pages
    with recording(elasticsearch_url) as (client, sent):
        assert_one_short_search(es, Reader(client, forest=forest), sent, index, forest)


def assert_one_short_search(
    es: Elasticsearch, reader: Reader, sent: list[Sent], index: str, forest: str
) -> None:
    text = page(article(1), HARBOUR)
    assert texts(reader.left_out(text, site=HARBOUR)) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    sent.clear()
    assert texts(reader.left_out(text, site=HARBOUR)) == [f"{MENU}\n\n{MAIL}", RIGHTS]
    assert [each.path for each in sent] == [f"/{forest}/_search"]
    sent.clear()
    reader.left_out(text, is_fresh=False)
    assert sent == []
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, [stored_page(500, HARBOUR)])
    es.indices.refresh(index=forest)
    sent.clear()
    reader.left_out(text)
    assert len(sent) > 1


def test_a_reader_notices_a_recreated_forest(es: Elasticsearch, index_name: Names) -> None:
    index, forest = index_name("pages"), index_name("forest")
    reader, text = Reader(es, forest=forest), page(article(1), HARBOUR)
    for site, expected in ((HARBOUR, [f"{MENU}\n\n{MAIL}", RIGHTS]), (VALLEY, [MENU])):
        es.indices.delete(index=[forest, index], ignore_unavailable=True)
        pages = [stored_page(number, site) for number in range(66)]
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index)
            feed(es, dedup, index, pages)
        es.indices.refresh(index=forest)
        assert texts(reader.left_out(text, site=HARBOUR)) == expected


def test_overrides_of_a_site_apply_to_its_texts(es: Elasticsearch, fed_pages: tuple[str, str]) -> None:
    _, forest = fed_pages
    reader = Reader(es, forest=forest, overrides=Overrides.of([Override(text=RIGHTS, site=HARBOUR)]))
    text = page(article(1), HARBOUR)
    assert texts(reader.left_out(text, site=f"https://www.{HARBOUR}/1")) == [f"{MENU}\n\n{MAIL}"]
    # Neither the override nor the site's learned boilerplate applies to other texts.
    assert texts(reader.left_out(text, site=VALLEY)) == texts(reader.left_out(text)) == [MENU]


NOTICE = "All rights reserved: no part of this article may be copied without the consent of its publisher."
OVERRIDES = Overrides.of([Override(boilerplate=NOTICE), Override(text=NOTICE, site="law.example")])
# These texts have the same passages as NOTICE, but different content hashes.
TWICE = f"{NOTICE} {NOTICE}"
THRICE = f"{NOTICE} {TWICE}"


def test_overrides_apply_to_feeding_and_lookups(
    es: Elasticsearch, read: Read, read_async: Read, index_name: Names, elasticsearch_url: str
) -> None:
    index, forest = index_name("articles"), index_name("forest")
    with Dedup(es, forest=forest, fields=Fields(link="meta.link"), overrides=OVERRIDES) as dedup:
        dedup.setup(index)
        articles: list[dict[str, Any]] = [
            {"_id": "law", "text": NOTICE, "meta": {"link": "https://www.law.example:80/1"}},
            {"_id": "ferry", "text": f"The ferry sails again. {NOTICE}"},
            {"_id": "goats", "text": f"Three goats found. {NOTICE}", "source": "news.example"},
            {"_id": "notice", "text": TWICE, "source": "law.example", "meta": {"link": "//a.example"}},
            {
                "_op_type": "update",
                "_id": "new",
                "doc": {"text": f"{NOTICE} It says so."},
                "upsert": {"text": f"{NOTICE} It says so.", "source": "law.example"},
            },
        ]
        feed(es, dedup, index, articles)
        found = roots(es, index)
        looked_up = dedup.reader.similar_to_text(index, THRICE, site="law.example").root
    assert len({found[each] for each in ("law", "ferry", "goats", "notice")}) == 4
    assert looked_up == found["new"] == found["law"]
    of = {"forest": forest, "overrides": OVERRIDES}
    for site, root in (("https://law.example/2", found["law"]), ("news.example", None), (None, None)):
        posted = {"text": THRICE} | ({} if site is None else {"site": site})
        answers = [
            *(each("similar_to_text", index, THRICE, site=site, of=of).root for each in (read, read_async)),
            request(elasticsearch_url, index, "/api/v1/similar", post=posted, of=of).json["root"],
        ]
        assert answers == [root] * 3
    # For a.example, this whole text was boilerplate, so its content hash was not remembered.
    assert read("similar_to_text", index, TWICE, site="law.example", of=of).root == found["law"]


@pytest.mark.parametrize("kind", [Dedup, Reader])
def test_overrides_are_refused_if_boilerplate_is_kept(es: Elasticsearch, kind: type[Dedup | Reader]) -> None:
    with pytest.raises(SettingError, match="no effect"):
        kind(es, profile=CLASSIC.with_changes(keep_boilerplate=True), overrides=OVERRIDES)
