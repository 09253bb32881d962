"""The requests in the documentation, and the saved objects for Kibana."""

import collections
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from docs.kibana import EDITORIAL_FILE, FILE, saved_objects, written
from esdedup import Dedup, ForestMismatch
from esdedup.fields import EditorialFields, Fields
from esdedup.maintenance.editor import Editor, EditRequest
from tests.support.forests import ARTICLES, feed, roots
from tests.support.names import Names, new_names
from tests.support.pages import article
from tests.support.requests_shown import IN_DOCS, IN_MAPPINGS

ROOT = Path(__file__).parents[2]
SHOWN = dict(
    re.findall(r"<!-- (\S+) -->\n```json\n(.*?)```", (ROOT / "docs/queries.md").read_text(), re.DOTALL)
)


def test_documented_and_tested_requests_are_the_same() -> None:
    assert SHOWN.keys() == IN_DOCS.keys()


@pytest.mark.parametrize("name", IN_DOCS)
def test_documented_requests_are_answered(es: Elasticsearch, unchanged: tuple[str, str], name: str) -> None:
    body = json.loads(SHOWN[name])
    assert body == IN_DOCS[name]
    assert_answers(es, unchanged[0], body)


@pytest.mark.parametrize("name", IN_MAPPINGS)
def test_requests_in_mappings_are_answered(es: Elasticsearch, unchanged: tuple[str, str], name: str) -> None:
    body = json.loads((ROOT / "mappings" / f"{name}.json").read_text())
    assert body == IN_MAPPINGS[name]
    assert_answers(es, unchanged[0], body)


@pytest.mark.parametrize("shards", [1, 2])
def test_the_files_of_mappings_suffice_for_curl(
    es: Elasticsearch, elasticsearch_url: str, index_name: Names, shards: int
) -> None:
    def send(method: str, path: str, body: Any) -> Any:
        request = urllib.request.Request(f"{elasticsearch_url}/{path}", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        request.method = method
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    files = {path.stem: json.loads(path.read_text()) for path in (ROOT / "mappings").glob("*.json")}
    index, forest, template = index_name("curl"), index_name("forest"), index_name("template")
    own = {"settings": {"number_of_shards": shards}, "mappings": {"dynamic": False}}
    body = {"index_patterns": [index], "priority": 9, "composed_of": [template], "template": own}
    send("PUT", f"_component_template/{template}", files["articles"])
    send("PUT", f"_index_template/{template}", body)
    try:
        send("PUT", index, {})
    finally:
        es.indices.delete_index_template(name=template)
        es.cluster.delete_component_template(name=template)
    with Dedup(es, forest=forest) as dedup:
        feed(es, dedup, index, ARTICLES)
    counts = collections.Counter(roots(es, index).values())
    newest = send("POST", f"{index}/_search", files["list-newest"])
    found = [hit["_source"]["dedup"]["root"] for hit in newest["hits"]["hits"]]
    assert len(set(found)) == len(found) == 20
    for size in (20, 1_000):
        largest = files["list-most-similar"]
        largest["aggs"]["roots"]["terms"]["shard_size"] = size
        listed = send("POST", f"{index}/_search", largest)["aggregations"]["roots"]
        error = listed["doc_count_error_upper_bound"]
        assert error == 0 or (shards > 1 and size == 20)
        for bucket in listed["buckets"]:
            assert counts[bucket["key"]] - error <= bucket["doc_count"] <= counts[bucket["key"]]
    hit = newest["hits"]["hits"][0]
    similar = json.dumps(files["similar"]).replace("ROOT", found[0])
    similar = similar.replace('"INDEX"', json.dumps(index)).replace('"ID"', json.dumps(hit["_id"]))
    assert (
        send("POST", f"{index}/_search", json.loads(similar))["hits"]["total"]["value"]
        == counts[found[0]] - 1
    )
    # This file alone does not make a forest.
    send("PUT", bare := index_name("bare"), files["forest"])
    with pytest.raises(ForestMismatch, match="is not a forest of esdedup"):
        Dedup(es, forest=bare).open()


def assert_answers(es: Elasticsearch, index: str, body: dict[str, Any]) -> None:
    answer = es.search(index=index, body=body, allow_partial_search_results=False)
    assert not answer["timed_out"]
    assert answer["_shards"]["failed"] == 0


OBJECTS = {each["id"]: each for each in saved_objects()}
DASHBOARD = OBJECTS["esdedup-dashboard"]
PANELS = json.loads(DASHBOARD["attributes"]["panelsJSON"])


def lenses_of(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [panel["embeddableConfig"]["attributes"] for panel in panels if panel["type"] == "lens"]


LENSES = lenses_of(PANELS)
_AS_AGGREGATION = {"unique_count": "cardinality", "min": "min", "max": "max"}


def test_the_kibana_files_are_up_to_date() -> None:
    assert FILE.read_text("utf-8") == written(), "run `python -m docs.kibana`"
    assert EDITORIAL_FILE.read_text("utf-8") == written(EditorialFields()), "run `python -m docs.kibana`"


def test_every_reference_is_to_an_earlier_object() -> None:
    before: set[tuple[str, str]] = set()
    for each in map(json.loads, FILE.read_text("utf-8").splitlines()):
        assert {(to["type"], to["id"]) for to in each["references"]} <= before
        before.add((each["type"], each["id"]))
    views = {(to["type"], to["id"]) for lens in LENSES for to in lens["references"]}
    assert views == {("index-pattern", "esdedup-articles")}
    named = {f"{panel['panelIndex']}:{panel['panelRefName']}" for panel in PANELS if "panelRefName" in panel}
    assert named == {to["name"] for to in DASHBOARD["references"]}


def test_panels_fill_the_dashboard_without_overlapping() -> None:
    taken = [
        (column, row)
        for place in (panel["gridData"] for panel in PANELS)
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert {column for column, _ in taken} == set(range(48))


def test_charts_use_exactly_their_columns() -> None:
    for lens in LENSES:
        drawn, (layer,) = lens["state"]["visualization"], _layers(lens)
        (named,) = drawn.get("layers", [drawn])
        used = {named.get("metricAccessor"), named.get("xAccessor"), named.get("splitAccessor")}
        used |= set(named.get("accessors", ())) | {each["columnId"] for each in named.get("columns", ())}
        assert used - {None} == layer["columns"].keys() == set(layer["columnOrder"])


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens["title"])
def test_every_chart_has_data(es: Elasticsearch, unchanged: tuple[str, str], lens: dict[str, Any]) -> None:
    (layer,) = _layers(lens)
    answer = es.search(index=unchanged[0], size=0, aggs=_aggregations(layer))
    for name, found in answer["aggregations"].items():
        assert found.get("value") or found["buckets"], name


def test_the_table_of_articles_has_fields_of_the_index(es: Elasticsearch, unchanged: tuple[str, str]) -> None:
    columns = OBJECTS["esdedup-newest"]["attributes"]["columns"]
    assert columns == [Fields().title, Fields().source, Fields().root]
    found = es.field_caps(index=unchanged[0], fields=columns)["fields"]
    assert found.keys() >= set(columns)


def test_the_editorial_dashboard_counts_edited_stories(es: Elasticsearch) -> None:
    with new_names(es) as name:
        index, forest = name("dashboard"), name("forest")
        with Dedup(es, forest=forest) as dedup:
            dedup.setup(index, editorial=True)
            times = [f"2026-11-2{at}" for at in range(4)]
            feed(
                es,
                dedup,
                index,
                [
                    {"_id": time, "text": article(at), "published_at": time, "source": time}
                    for at, time in enumerate(times)
                ],
            )
        editor = Editor(es, forest=forest)
        for time in times[1:3]:
            editor.edit(index, EditRequest(kind="merge", ids=(time,), to=times[0]), by="an editor")
        objects = map(json.loads, EDITORIAL_FILE.read_text("utf-8").splitlines())
        (dashboard,) = (each for each in objects if each["id"] == DASHBOARD["id"])
        counted: dict[tuple[str, str], Any] = {}
        for lens in lenses_of(json.loads(dashboard["attributes"]["panelsJSON"])):
            (layer,) = _layers(lens)
            answer = es.search(index=index, size=0, aggs=_aggregations(layer))
            counted |= {(lens["title"], name): each for name, each in answer["aggregations"].items()}
    assert counted.keys() == {
        (lens["title"], layer["columnOrder"][0]) for lens in LENSES for layer in _layers(lens)
    }
    numbers = {title: found["value"] for (title, _), found in counted.items() if "value" in found}
    assert numbers == {"Articles": 4, "Stories": 2, "Sources": 4}


def _layers(lens: dict[str, Any]) -> list[dict[str, Any]]:
    return list(lens["state"]["datasourceStates"]["formBased"]["layers"].values())


def _aggregations(layer: dict[str, Any]) -> dict[str, Any]:
    """Return the aggregations for a layer's columns; a bucket aggregation contains all later aggregations."""
    aggregations: dict[str, Any] = {}
    within = aggregations
    for name, column in ((name, layer["columns"][name]) for name in layer["columnOrder"]):
        operation, field = column["operationType"], column["sourceField"]
        if operation in _AS_AGGREGATION:
            within[name] = {_AS_AGGREGATION[operation]: {"field": field}}
        elif operation == "count":
            # Count the articles in each bucket or, outside buckets, all articles.
            within.setdefault(name, {"value_count": {"field": Fields().published}})
        else:
            params = column["params"]
            body: dict[str, Any] = {"field": field}
            body |= {"size": params["size"]} if operation == "terms" else {"fixed_interval": "1d"}
            within[name] = {operation: body, "aggs": {}}
            within = within[name]["aggs"]
    return aggregations
