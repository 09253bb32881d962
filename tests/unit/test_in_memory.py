"""Clustering and feeding without a server: `esdedup.cluster` and `esdedup.testing`."""

import asyncio
import inspect
import io
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esdedup
from esdedup import ArticleRejected, Dedup, Fields, FieldsNotFound, IndexNotReady, SettingError
from esdedup.testing import AsyncInMemoryDedup, InMemoryDedup
from tests import sample

SAMPLE = list(sample.articles(300))
LONG = "The ferry leaves the harbour at nine, and returns in the evening with the last passengers."


class Frame:
    """Has the methods of a frame of polars."""

    def iter_rows(self, *, named: bool) -> Iterator[dict[str, Any]]:
        assert named
        yield from SAMPLE


class Table:
    """Has the methods of a table of pyarrow; its batches are tables here."""

    def __init__(self, *parts: "Table") -> None:
        self._parts = parts

    def to_batches(self) -> tuple["Table", ...]:
        return self._parts

    def to_pylist(self) -> list[dict[str, Any]]:
        return SAMPLE


def test_any_iterable_of_rows_is_clustered() -> None:
    expected = list(esdedup.cluster(SAMPLE))
    assert [each.id for each in expected] == [each["id"] for each in SAMPLE]
    originals = [each.root for each in expected if each.is_original]
    assert len(originals) == len(set(originals)) == len({each.root for each in expected}) < len(SAMPLE)
    for articles in (iter(SAMPLE), Frame(), Table(Table())):
        assert list(esdedup.cluster(articles)) == expected  # type: ignore[arg-type]


def test_clustering_is_lazy_and_agrees_with_a_feeder() -> None:
    taken = 0

    def articles() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for taken, article in enumerate(SAMPLE * 10, 1):
            yield {**article, "id": taken}

    found = esdedup.cluster(articles(), retention=timedelta(days=30))
    assert taken == 0
    first = next(found)
    assert taken <= 1_100
    dedup = InMemoryDedup()
    actions = ({"_id": each["id"], **each} for each in SAMPLE)
    roots = [each["_source"]["dedup"]["root"] for each in dedup.enrich(actions, backfill=True)]
    assert [first.root, *(next(found).root for _ in SAMPLE[1:])] == roots


def test_articles_without_an_id_are_numbered() -> None:
    rejected: list[ArticleRejected] = []
    given: list[Any] = [{"body": LONG}, {"body": None}, "no mapping", {"body": LONG, "id": 7}, {"id": True}]
    found = list(esdedup.cluster(given, fields=Fields(text="body"), on_rejected=rejected.append))
    assert [(each.id, each.is_original) for each in found] == [("#1", True), ("7", False)]
    assert [str(each) for each in rejected] == [
        "article 2 (id '#2'): has no field 'body', or it is null",
        "article 3: must be a mapping of fields, not str",
        "article 5: its id in 'id' must be a non-empty string, a whole number or a UUID",
    ]


def test_ids_may_be_uuids_and_numbers_of_numpy() -> None:
    own = uuid.uuid4()
    given = [{"id": each, "text": LONG} for each in (own, np.int64(7))]
    assert [each.id for each in esdedup.cluster(given)] == [str(own), "7"]
    rejected: list[ArticleRejected] = []
    actions = [{"_id": each["id"], "text": each["text"]} for each in given]
    assert len(list(InMemoryDedup().enrich(actions, on_rejected=rejected.append))) == 2
    assert not rejected


def test_ids_that_a_frame_made_numbers_are_restored() -> None:
    given = [{"id": each, "text": LONG} for each in (1.0, float("nan"), 3.0)]
    assert [each.id for each in esdedup.cluster(given)] == ["1", "#2", "3"]


def test_wrong_names_and_settings_are_refused() -> None:
    with pytest.raises(FieldsNotFound):
        list(esdedup.cluster([{"body": LONG}]))
    with pytest.raises(SettingError):
        esdedup.cluster([], profile="none")
    with pytest.raises(SettingError):
        list(esdedup.cluster([], retention=timedelta(0)))


class LazyFrame:
    """Has a method of a lazy frame of polars."""

    def collect(self) -> Frame:
        return Frame()


FILES = "`esdedup cluster FILE` reads files; in Python, pass a frame, or `json.loads` of each line"


@pytest.mark.parametrize(
    ("articles", "remedy"),
    [
        *((each, FILES) for each in ("news.jsonl", b"news.jsonl", Path("news.jsonl"))),
        (
            {"train": SAMPLE},
            r"pass a list of articles, or one split of a data set, such as `dataset\['train'\]`",
        ),
        (LazyFrame(), r"pass the result of `.collect\(\)`"),
        *((each, "pass a list of articles, or a frame") for each in (None, 5, dict)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_often_passed_instead_of_articles_is_refused(articles: Any, remedy: str) -> None:
    with pytest.raises(SettingError, match=f"must be an iterable of mappings, not .*: {remedy}"):
        esdedup.cluster(articles)


def test_lines_and_names_of_files_are_refused() -> None:
    for items in (io.StringIO('{"id": 1}\n'), io.BytesIO(b"{}\n"), [Path("news.jsonl")]):
        with pytest.raises(SettingError, match=f"article 1 must be a mapping of fields, not .*: {FILES}"):
            list(esdedup.cluster(items))  # type: ignore[arg-type]


def test_clusters_expire_only_with_a_retention() -> None:
    def at(day: int) -> dict[str, Any]:
        return {"id": day, "text": LONG, "published_at": datetime(2026, 1, day, tzinfo=UTC)}

    days = [at(1), at(20)]
    assert [each.is_original for each in esdedup.cluster(days)] == [True, False]
    both = esdedup.cluster(days, retention=timedelta(days=7))
    assert [each.is_original for each in both] == [True, True]


def test_the_feeder_in_memory_has_all_methods() -> None:
    for name, method in inspect.getmembers(Dedup, inspect.isroutine):
        if not name.startswith("_"):
            mine = getattr(InMemoryDedup, name)
            assert inspect.signature(mine) == inspect.signature(method)
            assert inspect.iscoroutinefunction(getattr(AsyncInMemoryDedup, name, None)) or name in {
                "enrich",
                "open",
            }
    given = inspect.signature(Dedup).parameters
    assert given.items() > {
        (name, each if name != "retention" else given[name])
        for name, each in inspect.signature(InMemoryDedup).parameters.items()
    }


def actions(index: str = "news") -> list[dict[str, Any]]:
    return [{"_index": index, "_id": each["id"], "_source": each} for each in SAMPLE]


def test_indices_must_be_set_up_for_this_forest() -> None:
    with InMemoryDedup() as dedup:
        with pytest.raises(IndexNotReady, match="'news' does not exist: set it up") as raised:
            list(dedup.enrich(actions()))
        assert (raised.value.index, raised.value.status) == ("news", 404)
        assert (dedup.setup("news"), dedup.setup("news")) == (True, False)
        assert dedup.require_ready("news") == Fields()
        dedup.setup("other", forest="another")
        with pytest.raises(IndexNotReady, match="belongs to the forest 'another'"):
            dedup.require_ready("other")
        for invalid in ("esdedup-forest", "News"):
            with pytest.raises(SettingError):
                dedup.setup(invalid)
        with pytest.raises(SettingError, match="nothing to read"):
            _ = dedup.reader
        dedup.setup_template("daily")
        assert dedup.require_ready("news-2026") == Fields()
    assert dedup.expire().checked == 0
    assert dedup.learn(["a page that nobody has seen before"]) == 1


def test_options_of_an_index_reach_its_articles() -> None:
    dedup = InMemoryDedup(fields=Fields(dedup="own"))
    dedup.setup("routed", route_by_root=True)
    dedup.setup("edited", editorial=True)
    (routed,), (edited,) = (list(dedup.enrich(actions(name)[:1])) for name in ("routed", "edited"))
    assert routed["routing"] == routed["_source"]["own"]["root"] == edited["_source"]["own"]["story"]


def test_the_forest_survives_closing_and_is_shared() -> None:
    dedup = InMemoryDedup()
    dedup.setup("news")
    with dedup:
        before = [each["_source"]["dedup"]["root"] for each in dedup.enrich(actions())]

    async def again() -> list[Any]:
        async with AsyncInMemoryDedup(dedup) as feeder:
            assert not await feeder.setup("news")
            return [each["_source"]["dedup"] async for each in feeder.enrich(actions())]

    found = asyncio.run(again())
    assert [each["root"] for each in found] == before
    assert found[-1]["seq"] == 2 * len(SAMPLE)
