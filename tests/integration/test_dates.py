"""Implausible dates decide neither which article is the newest nor which article is the original."""

import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.adopt import Adoption

from esdedup import BulkAction, Dedup, Reader
from esdedup.cli import output
from esdedup.reading.list_request import Head, Sort
from esdedup.times import DAY_MS, iso
from tests.support.asgi import request
from tests.support.forests import TEXT, roots
from tests.support.names import Names
from tests.support.sidecar_process import running

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
    """An index with a cluster whose articles have the dates of `ARTICLES`, and with an older article."""
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


def test_implausible_dates_determine_neither_head_nor_original(
    es: Elasticsearch, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
        # No article counts as published after its arrival.
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
    assert "? implausible date: sorted and counted by the time of arrival" in printed


def test_pages_mark_implausible_dates(elasticsearch_url: str, index: str) -> None:
    shown = request(elasticsearch_url, index, "/", dedup="false", sort="newest")
    assert shown.status == 200
    # The dates in 2099 and 1970 are marked.
    assert shown.body.count(">unlikely date</span>; arrived") == 2
    # If no article is found for a range of dates, the page explains how unlikely dates are treated.
    nothing = request(elasticsearch_url, index, "/", until="1990-01-01").body
    assert "unlikely date is found by the time of its arrival" in nothing
    listed = request(elasticsearch_url, index, "/api/v1/list", dedup="false", sort="newest").json["rows"]
    assert [row["id"] for row in listed if row["arrived_at"]] == ["undated", "unset", "future"]


# Date formats of mappings, each with the equivalent of `strftime`.
FORMATS = {
    "strict_date_optional_time||epoch_millis": "%Y-%m-%dT%H:%M:%SZ",
    "epoch_second": "%s",
    "epoch_millis": "%s000",
    "basic_date": "%Y%m%d",
    "basic_date_time": "%Y%m%dT%H%M%S.000Z",
    "date_time_no_millis": "%Y-%m-%dT%H:%M:%SZ",
    "yyyy/MM/dd HH:mm": "%Y/%m/%d %H:%M",
    "dd.MM.yyyy": "%d.%m.%Y",
    "yyyy年MM月dd日": "%Y年%m月%d日",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "EEE, dd MMM yyyy HH:mm:ss Z": "%a, %d %b %Y %H:%M:%S +0000",
    "yyyy-MM-dd HH:mm:ss||epoch_second": "%Y-%m-%d %H:%M:%S",
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]": "%Y-%m-%dT%H:%M:%S",
}


def written(days_ago: int, how: str) -> Any:
    moment = datetime.now(UTC).replace(hour=8, minute=5, second=7) - timedelta(days=days_ago)
    text = moment.strftime(how.replace("%s", str(int(moment.timestamp()))))
    # Numbers, and dates with a weekday, are written as single values; other dates are written in a list.
    return int(text) if how.startswith("%s") else text if how.startswith("%a") else [text]


def dated_index(es: Elasticsearch, name: str, time_format: str, *articles: dict[str, Any]) -> str:
    date = {"type": "date", "format": time_format}
    es.indices.create(index=name, mappings={"properties": {"published_at": date, "text": {"type": "text"}}})
    if articles:
        helpers.bulk(es, ({"_index": name, **each} for each in articles), refresh=True)
    return name


def check_dates(es: Elasticsearch, index: str, count: int) -> None:
    """Check that articles are found and sorted by the time that Elasticsearch parses."""
    es.indices.refresh(index=index)
    both = ("published_at", "dedup.published")
    found = es.search(
        index=index,
        size=100,
        sort=[{"published_at": "asc"}],
        docvalue_fields=[{"field": each, "format": "epoch_millis"} for each in both],
    )["hits"]["hits"]
    read = {hit["_id"]: [hit["fields"][each] for each in both] for hit in found}
    assert len(read) == count
    assert [each for each, (own, published) in read.items() if own != published] == []
    reader = Reader(es)
    rows = reader.list(index, sort="oldest", dedup=False, size=100).rows
    assert [row.id for row in rows] == [hit["_id"] for hit in found]
    assert [row.arrived_at for row in rows] == [None] * count
    since = iso(int(read[rows[1].id][0][0]))
    later = reader.list(index, query=reader.search_query(index, since=since), dedup=False, size=100)
    assert len(later.rows) == count - 1


def test_dates_are_parsed_by_the_format_of_the_mapping(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names
) -> None:
    forest = index_name("forest")
    indices = {each: index_name(f"format-{at}") for at, each in enumerate(FORMATS)}

    def article(time_format: str, days_ago: int) -> dict[str, Any]:
        text = f"{indices[time_format]} {days_ago} {TEXT}"
        return {"text": text, "published_at": written(days_ago, FORMATS[time_format])}

    with Dedup(es, forest=forest) as dedup:
        for time_format, index in indices.items():
            dated_index(es, index, time_format)
            dedup.setup(index)
            actions: list[BulkAction] = [
                {"_index": index, "_id": "library", **article(time_format, 5)},
                {"_index": index, "_id": "updated", **article(time_format, 1)},
                {"_op_type": "update", "_index": index, "_id": "updated", "doc": article(time_format, 9)},
                {
                    "_op_type": "update",
                    "_index": index,
                    "_id": "library",
                    "doc": {"published_at": written(8, FORMATS[time_format])},
                },
            ]
            helpers.bulk(es, dedup.enrich(actions))
    with (
        running(elasticsearch_url, forest=forest) as process,
        Dedup(es, forest=forest, sidecar=process.url) as dedup,
        Elasticsearch(process.url) as behind,
    ):
        for time_format, index in indices.items():
            remote: list[BulkAction] = [{"_index": index, "_id": "remote", **article(time_format, 4)}]
            helpers.bulk(es, dedup.enrich(remote))
            helpers.bulk(behind, [{"_index": index, "_id": "bulk", **article(time_format, 3)}])
            behind.index(index=index, id="document", document=article(time_format, 2))
        wrong = {"text": f"wrong {TEXT}", "published_at": "1970-01-01T00:00:00Z"}
        behind.index(index=indices["strict_date_optional_time||epoch_millis"], id="wrong", document=wrong)
        metrics = urllib.request.urlopen(f"{process.url}/metrics").read().decode()
    assert "esdedup_undated_articles_total 1.0" in metrics
    es.delete(index=indices["strict_date_optional_time||epoch_millis"], id="wrong", refresh=True)
    for index in indices.values():
        check_dates(es, index, 5)


def test_adoption_uses_the_times_that_elasticsearch_sorts_by(es: Elasticsearch, index_name: Names) -> None:
    """Each article of a story is from a different day, in an index with a different date format.

    Further articles of the story have unset dates. The story's other dates are within one retention period.
    """
    indices = []
    for days, (time_format, how) in enumerate(FORMATS.items(), 1):
        texts = ((f"a{days}", TEXT, 30 - days), (f"b{days}", f"{days} of {TEXT[::-1]}", 30 + days))
        articles = [
            {"_id": each, "text": text, "published_at": written(ago, how)} for each, text, ago in texts
        ]
        indices.append(dated_index(es, index_name(f"adopted-{days}"), time_format, *articles))
    nanos = index_name("adopted-nanos")
    es.indices.create(index=nanos, mappings={"properties": {"published_at": {"type": "date_nanos"}}})
    es.index(index=nanos, id="a0", document={"text": TEXT, "published_at": iso(NOW_MS)}, refresh=True)
    # Articles with unset dates join the story, too.
    unset = ["0001-01-01T00:00:00Z", "1900-01-01", "1970-01-01T00:00:01Z", None, 1_795_248_000]
    odd = [{"_id": f"u{at}", "text": TEXT, "published_at": each} for at, each in enumerate(unset)]
    indices.append(
        dated_index(es, index_name("adopted-odd"), "strict_date_optional_time||epoch_millis", *odd)
    )
    alias = index_name("adopted")
    es.indices.put_alias(index=[*indices, nanos], name=alias)
    adoption = Adoption(es, alias)
    with Dedup(es, forest=index_name("forest")) as dedup:
        adoption.run(dedup)
    assert (adoption.summary.written, adoption.summary.undated) == (
        2 * len(FORMATS) + 1 + len(odd),
        len(odd),
    )
    for index in indices[:-1]:
        check_dates(es, index, 2)
    found = roots(es, alias)
    (story,) = {root for each, root in found.items() if each[0] in "au"}
    timeline = Reader(es).timeline(alias, story)
    assert timeline.earliest is not None
    assert timeline.earliest.id == "a1"
    (first, *_) = Reader(es).overview(alias).timeline.steps
    assert first.start > "2000"
    es.options(ignore_status=404).indices.delete_alias(index="*", name=alias)
