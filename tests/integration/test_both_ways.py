"""Articles are found by fingerprint and root; `AsyncReader` returns the same results as `Reader`."""

import copy
import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from elasticsearch import Elasticsearch, helpers

from esdedup import ArticleNotFound, EsdedupError, IndexNotReady, Maintenance, Reader, SettingError
from esdedup.reading.list_request import Sort
from tests.support.asgi import request
from tests.support.forests import ARTICLES, Read

ROOT = Path(__file__).parents[2]
RECIPE = re.compile(r"<!-- by-bands, a recipe -->\n```json\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def stored(es: Elasticsearch, unchanged: tuple[str, str]) -> dict[str, dict[str, Any]]:
    """The dedup object of each article, by the article's id."""
    found = helpers.scan(es, index=unchanged[0], query={"_source": ["dedup"]})
    return {hit["_id"]: hit["_source"]["dedup"] for hit in found}


def with_value(stored: dict[str, dict[str, Any]], name: str, value: str) -> set[str]:
    return {article for article, dedup in stored.items() if dedup.get(name) == value}


def most_frequent(stored: dict[str, dict[str, Any]], name: str) -> str:
    values = [str(dedup[name]) for dedup in stored.values() if name in dedup]
    return max(sorted(set(values)), key=values.count)


def test_a_fingerprint_finds_all_its_articles(
    read: Read, read_async: Read, unchanged: tuple[str, str], stored: dict[str, dict[str, Any]]
) -> None:
    fingerprint = most_frequent(stored, "fingerprint")
    expected = with_value(stored, "fingerprint", fingerprint)
    assert len(expected) > 2
    for each in (read, read_async):
        found, after = list[str](), None
        for _ in range(len(expected)):
            page = each("with_fingerprint", unchanged[0], fingerprint, size=2, after=after)
            assert page.total == len(expected)
            assert page.root is None
            assert {article.root for article in page.rows} == {stored[min(expected)]["root"]}
            found += [article.id for article in page.rows]
            if (after := page.next) is None:
                break
        assert sorted(found) == sorted(expected)
    assert read("with_fingerprint", unchanged[0], "none").total == 0
    with pytest.raises(SettingError, match="non-empty"):
        read("with_fingerprint", unchanged[0], "")


def test_the_api_finds_articles_by_fingerprint_and_root(
    elasticsearch_url: str, unchanged: tuple[str, str], stored: dict[str, dict[str, Any]]
) -> None:
    article = next(iter(stored))
    shown = request(elasticsearch_url, unchanged[0], "/api/v1/article", id=article).json
    for name in ("fingerprint", "root"):
        page = request(
            elasticsearch_url, unchanged[0], "/api/v1/articles", **{"size": 100, name: shown[name]}
        ).json
        assert {each["id"] for each in page["rows"]} == with_value(stored, name, stored[article][name])
    assert request(elasticsearch_url, unchanged[0], "/api/v1/articles").status == 400
    assert (
        request(elasticsearch_url, unchanged[0], "/api/v1/articles", root="a", fingerprint="b").status == 400
    )


def test_maintenance_describes_a_node_of_the_forest(
    es: Elasticsearch, unchanged: tuple[str, str], stored: dict[str, dict[str, Any]]
) -> None:
    maintenance = Maintenance(es, forest=unchanged[1])
    leaf = next(each for each in stored.values() if each["fingerprint"] != each["root"])
    node = maintenance.node(leaf["fingerprint"])
    assert node is not None
    assert (node.root, node.is_root, node.is_live) == (leaf["root"], False, True)
    root = maintenance.node(leaf["root"])
    assert root is not None
    assert (root.root, root.is_root, root.seq < node.seq) == (root.id, True, True)
    nodes = {each["fingerprint"] for each in stored.values() if each["root"] == leaf["root"]}
    assert root.live_leaves == node.live_leaves == len(nodes) - 1
    assert maintenance.node("f" * 32) is None
    assert maintenance.node("no id") is None


def test_the_documented_query_finds_near_texts_by_bands(
    es: Elasticsearch, unchanged: tuple[str, str], stored: dict[str, dict[str, Any]]
) -> None:
    shown = RECIPE.search((ROOT / "docs/queries.md").read_text())
    assert shown is not None
    right, found, expected = 0, 0, 0
    for article, dedup in list(stored.items())[:100]:
        body = copy.deepcopy(json.loads(shown[1]))
        (near,) = body["query"]["bool"]["filter"]
        near["bool"]["should"] = [{"term": {"dedup.bands": key}} for key in dedup["bands"]]
        body["query"]["bool"]["must_not"][0]["ids"]["values"] = [article]
        hits = es.search(index=unchanged[0], body=body | {"size": 1_000})["hits"]["hits"]
        cluster = with_value(stored, "root", dedup["root"]) - {article}
        right += len({hit["_id"] for hit in hits} & cluster)
        found += len(hits)
        expected += len(cluster)
    assert right > 0.85 * found
    assert right > 0.7 * expected


def test_values_written_by_another_program_are_shown(es: Elasticsearch, unchanged: tuple[str, str]) -> None:
    reader = Reader(es)
    index = f"{unchanged[0]}-odd"
    es.indices.create(
        index=index, mappings=es.indices.get_mapping(index=unchanged[0])[unchanged[0]]["mappings"]
    )
    try:
        es.index(index=index, id="odd", document={"dedup": {"root": "~r", "bands": [1, "b"]}}, refresh=True)
        article = reader.article(index, "odd")
        assert (article.fingerprint, article.bands, article.profile, article.seq) == (
            None,
            ("1", "b"),
            None,
            None,
        )
    finally:
        es.indices.delete(index=index)


TEXT = ARTICLES[0]["text"]
QUERY = {"match": {"text": "ferry"}}


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The error that a method of one reader raised, to be compared with the other reader's error."""

    kind: type[EsdedupError]
    message: str


def answer(read: Read, name: str, *arguments: Any, **options: Any) -> Any:
    """Return the result of a method, or its error as a `Refusal`."""
    try:
        return read(name, *arguments, **options)
    except EsdedupError as error:
        return Refusal(type(error), str(error))


def test_async_methods_return_equal_results(
    es: Elasticsearch, unchanged: tuple[str, str], read: Read, read_async: Read
) -> None:
    index, forest = unchanged
    row = read("list", index, sort="similar-desc", size=1).rows[0]
    article, root = row.id, row.root
    other = read("similar", index, article, size=1).rows[0].id
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        *(("list", (index,), {"sort": sort, "size": 7}) for sort in get_args(Sort)),
        ("list", (index,), {"query": QUERY, "min_similar": 1}),
        ("list", (index,), {"head": "longest", "page": 3}),
        ("list", (index,), {"dedup": False}),
        ("similar", (index, article), {"size": 2}),
        ("similar", (index, article), {"other_sources": True}),
        ("cluster", (index, root), {"size": 2}),
        ("with_fingerprint", (index, root), {"size": 2}),
        ("list", (index,), {"details": True, "arrived_since": "2026-01-01"}),
        ("sources", (index, article), {"size": 1}),
        ("explain", (index, article, other), {"of": {"forest": forest}}),
        ("versions", (index, article), {"sort": "newest", "size": 2}),
        ("article", (index, article), {}),
        ("timeline", (index, article), {}),
        ("overview", (index, "ferry"), {"source": ["A", "B"], "size": 2}),
        ("source_names", (index,), {}),
        ("source_field", (index,), {}),
        ("fields", (index,), {}),
        ("search_query", (index, "ferry"), {"since": "2026-01-01", "source": "A"}),
        ("similar_to_text", (index, TEXT), {"of": {"forest": forest}}),
        ("left_out", (f"Home\n\nSports\n\n{TEXT}",), {"of": {"forest": forest}}),
    ]
    assert {name for name, _, _ in calls} == {
        name for name, _ in inspect.getmembers(Reader, inspect.isfunction) if not name.startswith("_")
    }
    for name, arguments, options in calls:
        found = answer(read, name, *arguments, **options)
        assert answer(read_async, name, *arguments, **options) == found, (name, options)
        assert not isinstance(found, Refusal), found
        if getattr(found, "next", None) is not None and "page" not in options:
            after = options | {"after": found.next}
            assert answer(read_async, name, *arguments, **after) == read(name, *arguments, **after)


def test_async_methods_raise_equal_errors(unchanged: tuple[str, str], read: Read, read_async: Read) -> None:
    index, _ = unchanged
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any], type[EsdedupError]]] = [
        ("list", (index,), {"page": 0}, SettingError),
        ("list", (index,), {"after": "nonsense"}, SettingError),
        ("list", ("test-none",), {}, IndexNotReady),
        ("similar", (index, "none"), {}, ArticleNotFound),
        ("article", (index, "none"), {}, ArticleNotFound),
        ("similar_to_text", (index, None), {}, SettingError),
    ]
    for name, arguments, options, error in calls:
        refusal = answer(read_async, name, *arguments, **options)
        assert refusal == answer(read, name, *arguments, **options)
        assert refusal.kind is error
