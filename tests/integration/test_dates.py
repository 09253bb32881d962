"""Dates that cannot be believed: they decide neither what is newest nor what is the original."""

import time

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import BulkAction, Dedup
from esdedup.cli import output
from esdedup.reading.list_request import Head, Sort
from esdedup.times import DAY_MS, iso
from tests.support.asgi import request
from tests.support.forests import TEXT
from tests.support.names import Names

NOW_MS = int(time.time() * 1000)
PUBLISHED, REPRINTED = iso(NOW_MS - DAY_MS), iso(NOW_MS - DAY_MS // 2)
ARTICLES = {
    "original": PUBLISHED,
    "reprint": REPRINTED,
    "future": "2099-01-01T00:00:00Z",
    "unset": "1970-01-01T00:00:00Z",
    "undated": None,
}


@pytest.fixture
def index(es: Elasticsearch, index_name: Names) -> str:
    """One cluster of articles with these dates, which arrived in this order, and an older article."""
    name = index_name("dates")
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(name)
        actions: list[BulkAction] = [
            {
                "_index": name,
                "_id": "other",
                "text": "Something else: " + TEXT[::-1],
                "published_at": iso(NOW_MS - 2 * DAY_MS),
            },
            *(
                {"_index": name, "_id": each, "text": TEXT, "published_at": date}
                for each, date in ARTICLES.items()
            ),
        ]
        helpers.bulk(es, dedup.enrich(actions), refresh=True)
    return name


def test_neither_head_nor_original(es: Elasticsearch, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    dedup = Dedup(es)
    rules: list[tuple[Sort, Head | None, str]] = [
        ("oldest", None, "original"),
        ("newest", "earliest", "original"),
        ("newest", None, "undated"),
    ]
    for sort, head, shown in rules:
        page = dedup.reader.list(index, sort=sort, head=head)
        row = next(each for each in page.rows if each.similar)
        assert row.id == shown
        assert row.first == PUBLISHED
        # Nothing was published after it arrived.
        assert (row.last or "") < "2099"
    similar = {each.id: each for each in dedup.reader.similar(index, "original").rows}
    assert list(similar) == ["undated", "unset", "future", "reprint"]
    assert {each for each, article in similar.items() if article.arrived_at} == {"undated", "unset", "future"}
    assert (similar["future"].published_at, similar["reprint"].arrived_at) == (ARTICLES["future"], None)
    timeline = dedup.reader.timeline(index, row.root or "")
    assert timeline.steps[-1].start < "2099"
    capsys.readouterr()
    output.print_similar(dedup.reader.similar(index, "original"))
    printed = capsys.readouterr().out
    assert "2099-01-01 00:00?" in printed
    assert printed.count("?") == 3
    assert "? not believed: sorted and counted by the time of its arrival" in printed


def test_the_pages_mark_dates_that_are_not_believed(elasticsearch_url: str, index: str) -> None:
    shown = request(elasticsearch_url, index, "/", dedup="false", sort="newest")
    assert shown.status == 200
    # Those of 2099 and 1970.
    assert shown.body.count(">unlikely date</span>; arrived") == 2
    # Where no article of a time is found, it is said why.
    nothing = request(elasticsearch_url, index, "/", until="1990-01-01").body
    assert "unlikely is found by the time of its arrival" in nothing
    listed = request(elasticsearch_url, index, "/api/v1/list", dedup="false", sort="newest").json["rows"]
    assert [row["id"] for row in listed if row["arrived_at"]] == ["undated", "unset", "future"]


def test_a_backfill_may_bring_old_articles(es: Elasticsearch, index_name: Names) -> None:
    name = index_name("archive")
    dates = {"old": "1934-05-06", "middle": "1987-02-26", "new": "2020-01-01"}
    with Dedup(es, forest=index_name("forest")) as dedup:
        dedup.setup(name)
        actions = [
            {"_index": name, "_id": each, "text": f"{each} {TEXT}", "published_at": date}
            for each, date in reversed(dates.items())
        ]
        helpers.bulk(es, dedup.enrich(actions, backfill=True), refresh=True)
        page = dedup.reader.list(name, sort="oldest", dedup=False)
    assert [(row.id, row.arrived_at) for row in page.rows] == [(each, None) for each in dates]


def test_an_update_keeps_or_moves_the_date(es: Elasticsearch, index: str) -> None:
    def published(article_id: str) -> int:
        return int(es.get(index=index, id=article_id)["_source"]["dedup"]["published"])

    before = published("original")
    with Dedup(es, forest=index.replace("dates", "forest")) as dedup:

        def update(article_id: str, **doc: object) -> None:
            action = {"_op_type": "update", "_index": index, "_id": article_id, "doc": doc}
            helpers.bulk(es, dedup.enrich([action]))

        update("original", published_at=iso(NOW_MS - 3 * DAY_MS))
        moved = published("original")
        assert before - moved == 2 * DAY_MS
        update("original", published_at="2099-01-01")
        assert published("original") == moved
