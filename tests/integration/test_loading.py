"""Loading files into a real index: rejected articles, odd dates, and failures of the index."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch, helpers
from esdedup.ingest.files import FileArticle
from esdedup.ingest.load import Load

from esdedup import ArticleRejected, Dedup, IndexBlocked, IndexNotReady
from tests.support.forests import ARTICLES
from tests.support.names import Names

COUNT = 40


def articles(count: int = COUNT, **texts: str) -> Iterator[FileArticle]:
    for number, given in enumerate(ARTICLES[:count]):
        article = {name: value for name, value in given.items() if name != "_id"}
        text = texts.get(f"n{number}", article["text"])
        yield FileArticle(
            place=f"f:{number}", id=str(number), article=article | {"text": text}, size_bytes=len(text)
        )


@pytest.fixture
def index(es: Elasticsearch, index_name: Names) -> str:
    name = index_name("news")
    Dedup(es).setup(name)
    return name


@pytest.fixture
def forest(index_name: Names) -> str:
    return index_name("forest")


@pytest.fixture
def dedup(es: Elasticsearch, forest: str) -> Iterator[Dedup]:
    with Dedup(es, forest=forest) as dedup:
        yield dedup


@pytest.fixture
def rejected() -> list[ArticleRejected]:
    return []


@pytest.fixture
def load(rejected: list[ArticleRejected]) -> Load:
    return Load(on_rejected=rejected.append)


def before_each_write(
    dedup: Dedup, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], *, from_batch: int = 1
) -> None:
    """Call `happens` before each article is written, after the index was checked."""
    enrich, batches = dedup.enrich, itertools.count(1)

    def enriched(*given: Any, **how: Any) -> Iterator[dict[str, Any]]:
        batch = next(batches)
        for action in enrich(*given, **how):
            if batch >= from_batch:
                happens()
            yield action

    monkeypatch.setattr(dedup, "enrich", enriched)


def test_deleting_an_index_during_a_write_is_an_error(
    es: Elasticsearch, index: str, dedup: Dedup, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elasticsearch recreates the index without the fields of esdedup."""
    client = es.options(ignore_status=404)
    before_each_write(dedup, monkeypatch, lambda: client.indices.delete(index=index), from_batch=2)
    with pytest.raises(IndexNotReady, match=f"{index}' was deleted or changed") as error:
        load.run(es, dedup, articles(), index=index, batch_size=10)
    assert error.value.index == index
    assert (load.summary.read, load.summary.written, load.summary.failed) == (20, 10, 10)


@pytest.mark.parametrize("chunk_size", [2, 500])
def test_deleting_an_index_during_the_last_batch_fails(
    es: Elasticsearch, index: str, dedup: Dedup, chunk_size: int
) -> None:
    """The index is deleted before the only bulk request, or between two of several requests."""

    def actions() -> Iterator[dict[str, Any]]:
        given = [{"_index": index, "_id": each.id, "_source": each.article} for each in articles(7)]
        for number, action in enumerate(dedup.enrich(given)):
            if number == 3:
                es.indices.delete(index=index)
            yield action

    with pytest.raises(IndexNotReady, match=f"{index}' was deleted or changed"):
        helpers.bulk(es, actions(), chunk_size=chunk_size)
    es.options(ignore_status=404).indices.delete(index=index)


@pytest.mark.parametrize("block", ["read_only_allow_delete", "write"])
def test_loading_into_a_blocked_index_fails_immediately(
    es: Elasticsearch,
    index: str,
    dedup: Dedup,
    load: Load,
    rejected: list[ArticleRejected],
    monkeypatch: pytest.MonkeyPatch,
    block: str,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    es.indices.put_settings(index=index, settings={f"index.blocks.{block}": True})
    try:
        with pytest.raises(IndexBlocked, match=f"index \\[{index}\\] blocked by: .*then run this again"):
            load.run(es, dedup, articles(), index=index, batch_size=10)
        assert (load.summary.read, load.summary.failed, rejected, pauses) == (10, 10, [], [])
    finally:
        es.indices.put_settings(index=index, settings={f"index.blocks.{block}": None})
    load.run(es, dedup, articles(), index=index)
    assert load.summary.written == COUNT


def test_implausible_dates_are_counted(
    es: Elasticsearch, index: str, dedup: Dedup, caplog: pytest.LogCaptureFixture
) -> None:
    load = Load(on_rejected=lambda rejected: pytest.fail(str(rejected)))
    dates = ["2026-01-01", "Thu, 01 Jan 2026 08:00:00 GMT", "01.01.2026", 1_767_225_600, None]
    dated = [
        FileArticle(
            place=f"f:{n}", id=str(n), article={"text": f"text {n}", "published_at": at}, size_bytes=9
        )
        for n, at in enumerate(dates)
    ]
    load.run(es, dedup, dated, index=index, backfill=True)
    assert (load.summary.written, load.summary.undated) == (5, 3)
    load.run(es, dedup, dated, index=index)
    assert (load.summary.written, load.summary.undated) == (10, 6)
    warnings = [each.split(", of the form")[0] for each in caplog.messages if "of the form" in each]
    assert warnings == ["2: its date in 'published_at'"]


def test_dates_that_only_a_backfill_accepts_are_counted(es: Elasticsearch, index: str, dedup: Dedup) -> None:
    load = Load(on_rejected=lambda rejected: pytest.fail(str(rejected)))
    dates = ["1987-03-01", "1970-01-01", "2999-01-01", "2026-01-01", "some day", None, ["1987-03-01"]]
    dated = [
        FileArticle(
            place=f"f:{n}", id=str(n), article={"text": f"text {n}", "published_at": at}, size_bytes=9
        )
        for n, at in enumerate(dates)
    ]
    load.run(es, dedup, dated, index=index)
    assert (load.summary.written, load.summary.too_old) == (7, 2)
    load.run(es, dedup, dated, index=index, backfill=True)
    assert (load.summary.written, load.summary.too_old) == (14, 2)
    es.indices.refresh(index=index)
    old = dedup.reader.search_query(index, until="1990-01-01")
    rows = dedup.reader.list(index, query=old, dedup=False).rows
    assert {row.id for row in rows} == {"0", "6"}


def test_closing_an_index_during_a_write_stops_the_run(
    es: Elasticsearch,
    index: str,
    dedup: Dedup,
    load: Load,
    rejected: list[ArticleRejected],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before_each_write(dedup, monkeypatch, lambda: es.indices.close(index=index))
    with pytest.raises(IndexNotReady, match=r"closed: open it first"):
        load.run(es, dedup, articles(), index=index, batch_size=10)
    assert (load.summary.read, load.summary.failed, rejected) == (10, 10, [])


def test_texts_compared_only_in_part_are_counted(
    es: Elasticsearch, index: str, dedup: Dedup, caplog: pytest.LogCaptureFixture
) -> None:
    cut: list[str] = []
    load = Load(on_rejected=lambda rejected: pytest.fail(str(rejected)), on_cut=cut.append)
    load.run(es, dedup, articles(4, n2="many words " * 20_000), index=index)
    assert (load.summary.written, load.summary.cut, cut) == (4, 1, ["f:2 (id '2')"])
    list(dedup.enrich([{"_index": index, "_id": "x", "text": "many words " * 20_000}]))
    assert caplog.messages == ["x: only the first 200,000 characters of its text are fingerprinted"]
