"""Generates Kibana's saved objects in `mappings`, grouped by root and by story: ``python -m docs.kibana``.

They are a data view, a table of the newest articles, and a dashboard of spread and sources, for an index
`news` with the default field names. The format is that of Kibana 8.8, which later versions can migrate.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esdedup.fields import EditorialFields, Fields

FILE = Path(__file__).parents[1] / "mappings" / "kibana.ndjson"
# The file for an index that is set up for editors.
EDITORIAL_FILE = FILE.with_name("kibana-editorial.ndjson")
INDEX = "news"
FIELDS = Fields()
_VIEW, _NEWEST, _DASHBOARD = "esdedup-articles", "esdedup-newest", "esdedup-dashboard"
# The dashboard has 48 columns.
_WIDTH = 48
_TO_VIEW = {"type": "index-pattern", "id": _VIEW}
_NO_QUERY: dict[str, Any] = {"query": {"query": "", "language": "kuery"}, "filter": []}
_VERSIONS = {"index-pattern": "8.0.0", "search": "8.0.0", "dashboard": "8.9.0"}

Column = dict[str, Any]


def saved_objects() -> Iterator[dict[str, Any]]:
    """Yield the saved objects, each after the objects that it refers to."""
    yield _saved(
        "index-pattern",
        _VIEW,
        {"title": INDEX, "name": "esdedup: articles", "timeFieldName": FIELDS.published},
    )
    yield _saved(
        "search",
        _NEWEST,
        {
            "title": "esdedup: newest articles",
            "columns": [FIELDS.title, FIELDS.source, FIELDS.root],
            "sort": [[FIELDS.published, "desc"]],
            "kibanaSavedObjectMeta": {
                "searchSourceJSON": json.dumps(
                    _NO_QUERY | {"indexRefName": "kibanaSavedObjectMeta.searchSourceJSON.index"}
                )
            },
        },
        [_TO_VIEW | {"name": "kibanaSavedObjectMeta.searchSourceJSON.index"}],
    )
    panels = list(_panels())
    yield _saved(
        "dashboard",
        _DASHBOARD,
        {
            "title": "esdedup: spread and sources",
            "description": "How stories spread, and which sources carry them.",
            "panelsJSON": json.dumps(panels),
            "optionsJSON": json.dumps({"useMargins": True}),
            "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(_NO_QUERY)},
            "timeRestore": True,
            "timeFrom": "now-30d",
            "timeTo": "now",
        },
        [{"type": "search", "id": _NEWEST, "name": f"{panels[-1]['panelIndex']}:panel_newest"}],
    )


def _saved(
    kind: str, name: str, attributes: dict[str, Any], references: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    return {
        "type": kind,
        "id": name,
        "attributes": attributes,
        "references": references or [],
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": _VERSIONS[kind],
    }


def _panels() -> Iterator[dict[str, Any]]:
    third, half = _WIDTH // 3, _WIDTH // 2
    for at, (name, column) in enumerate(
        {
            "Articles": _count("Articles"),
            "Stories": _unique(FIELDS.root, "Stories"),
            "Sources": _unique(FIELDS.source, "Sources"),
        }.items()
    ):
        yield _lens(
            f"number-{at}",
            name,
            "lnsMetric",
            {"n": column},
            (at * third, 0, third, 6),
            {"metricAccessor": "n"},
        )
    yield _lens(
        "over-time",
        "Articles and stories over time",
        "lnsXY",
        {"time": _time(), "n": _count("Articles"), "stories": _unique(FIELDS.root, "Stories")},
        (0, 6, _WIDTH, 12),
        _bars("line", "time", ["n", "stories"]),
    )
    yield _lens(
        "spread",
        "Spread of the largest stories",
        "lnsXY",
        {"root": _terms(FIELDS.root, 5, "Story"), "time": _time(), "n": _count("Articles")},
        (0, 18, half, 14),
        _bars("area_stacked", "time", ["n"], split="root"),
    )
    yield _lens(
        "sources",
        "Sources with the most articles",
        "lnsXY",
        {"source": _terms(FIELDS.source, 15, "Source"), "n": _count("Articles")},
        (half, 18, half, 14),
        _bars("bar_horizontal", "source", ["n"]),
    )
    yield _lens(
        "stories",
        "Largest stories",
        "lnsDatatable",
        {
            "root": _terms(FIELDS.root, 20, "Story"),
            "n": _count("Articles"),
            "sources": _unique(FIELDS.source, "Sources"),
            "first": _moment("min", "First"),
            "last": _moment("max", "Last"),
        },
        (0, 32, _WIDTH, 14),
        {"columns": [{"columnId": name} for name in ("root", "n", "sources", "first", "last")]},
    )
    yield {
        "type": "search",
        "panelIndex": "newest",
        "gridData": _place("newest", (0, 46, _WIDTH, 16)),
        "panelRefName": "panel_newest",
        "embeddableConfig": {},
    }


def _lens(
    name: str,
    title: str,
    kind: str,
    columns: Mapping[str, Column],
    place: tuple[int, int, int, int],
    visualization: dict[str, Any],
) -> dict[str, Any]:
    """Return a panel that contains a Lens visualization with one layer."""
    layer = {"columns": dict(columns), "columnOrder": list(columns), "incompleteColumns": {}}
    in_layer = {"layerId": "layer", "layerType": "data"}
    if kind == "lnsXY":
        (drawn,) = visualization["layers"]
        visualization = visualization | {"layers": [in_layer | drawn]}
    else:
        visualization = in_layer | visualization
    return {
        "type": "lens",
        "title": title,
        "panelIndex": name,
        "gridData": _place(name, place),
        "embeddableConfig": {
            "attributes": {
                "title": title,
                "type": "lens",
                "visualizationType": kind,
                "references": [_TO_VIEW | {"name": "indexpattern-datasource-layer-layer"}],
                "state": {
                    "datasourceStates": {"formBased": {"layers": {"layer": layer}}},
                    "visualization": visualization,
                    "query": _NO_QUERY["query"],
                    "filters": [],
                },
            }
        },
    }


def _place(name: str, place: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip("xywh", place, strict=True)) | {"i": name}


def _bars(series: str, along: str, values: list[str], split: str | None = None) -> dict[str, Any]:
    drawn: dict[str, Any] = {"seriesType": series, "xAccessor": along, "accessors": values}
    if split is not None:
        drawn["splitAccessor"] = split
    return {
        "preferredSeriesType": series,
        "legend": {"isVisible": True, "position": "bottom"},
        "layers": [drawn],
    }


def _column(operation: str, label: str, field: str, *, kind: str = "number", **more: Any) -> Column:
    is_bucketed = operation in {"terms", "date_histogram"}
    scale = {"terms": "ordinal", "date_histogram": "interval"}.get(operation, "ratio")
    return {
        "operationType": operation,
        "label": label,
        "customLabel": True,
        "sourceField": field,
        "dataType": kind,
        "isBucketed": is_bucketed,
        "scale": scale,
        **more,
    }


def _count(label: str) -> Column:
    return _column("count", label, "___records___")


def _unique(field: str, label: str) -> Column:
    return _column("unique_count", label, field)


def _time() -> Column:
    return _column("date_histogram", "Time", FIELDS.published, kind="date", params={"interval": "auto"})


def _moment(operation: str, label: str) -> Column:
    return _column(operation, label, FIELDS.published, kind="date")


def _terms(field: str, size: int, label: str) -> Column:
    """Return a column of the values with the most articles; the layer needs a column `n` of their counts."""
    params = {
        "size": size,
        "orderBy": {"type": "column", "columnId": "n"},
        "orderDirection": "desc",
        "otherBucket": False,
        "missingBucket": False,
        "parentFormat": {"id": "terms"},
    }
    return _column("terms", label, field, kind="string", params=params)


def written(fields: Fields = FIELDS) -> str:
    """Return the file's text, with one saved object per line."""
    text = "".join(f"{json.dumps(each)}\n" for each in saved_objects())
    return text.replace(FIELDS.cluster, fields.cluster)


if __name__ == "__main__":
    FILE.write_text(written(), "utf-8")
    EDITORIAL_FILE.write_text(written(EditorialFields()), "utf-8")
