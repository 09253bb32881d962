"""Overrides count in the same way where articles are fed and where texts are looked up."""

from typing import Any

import pytest
from elasticsearch import Elasticsearch

from esdedup import CLASSIC, Dedup, Fields, Override, Overrides, Reader, SettingError
from tests.support.asgi import request
from tests.support.forests import Read, feed, roots
from tests.support.names import Names

NOTICE = "All rights reserved: no part of this article may be copied without the consent of its publisher."
OVERRIDES = Overrides.of([Override(boilerplate=NOTICE), Override(text=NOTICE, site="law.example")])
# The same passages, but other pages.
TWICE = f"{NOTICE} {NOTICE}"
THRICE = f"{NOTICE} {TWICE}"


def test_overrides_count_for_what_is_fed_and_for_what_is_looked_up(
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
    assert len({found[each] for each in ("law", "ferry", "goats")}) == 3
    assert [each for each, root in found.items() if root.startswith("~")] == ["notice"]
    assert looked_up == found["new"] == found["law"]
    of = {"forest": forest, "overrides": OVERRIDES}
    for site, root in (("https://law.example/2", found["law"]), ("news.example", None), (None, None)):
        posted = {"text": THRICE} | ({} if site is None else {"site": site})
        answers = [
            *(each("similar_to_text", index, THRICE, site=site, of=of).root for each in (read, read_async)),
            request(elasticsearch_url, index, "/api/v1/similar", post=posted, of=of).json["root"],
        ]
        assert answers == [root] * 3
    # A page that is remembered without a fingerprint gets none here either.
    assert read("similar_to_text", index, TWICE, site="law.example", of=of).root is None


@pytest.mark.parametrize("kind", [Dedup, Reader])
def test_overrides_are_refused_where_they_would_have_no_effect(
    es: Elasticsearch, kind: type[Dedup | Reader]
) -> None:
    with pytest.raises(SettingError, match="no effect"):
        kind(es, profile=CLASSIC.with_changes(keep_boilerplate=True), overrides=OVERRIDES)
