"""Index mappings: reads those of `mappings/`, and checks that an index has them."""

import json
from importlib import resources
from typing import Any

from esdedup.errors import IndexNotReady
from esdedup.fields import Fields


def _read(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(
        (resources.files("esdedup.mappings") / f"{name}.json").read_text("utf-8")
    )
    return body


def forest_index(*, meta: dict[str, Any]) -> dict[str, Any]:
    """Return settings and mappings of a forest's index, with `meta` about its format and profile."""
    body = _read("forest")
    body["mappings"]["_meta"] = {"esdedup": meta}
    return body


def dedup_properties(object_name: str) -> dict[str, Any]:
    """Return the mapping of the fields that esdedup writes into articles, under `object_name`."""
    properties: dict[str, Any] = _read("articles")["template"]["mappings"]["properties"]
    return {object_name: properties["dedup"]}


def article_index(
    fields: Fields, *, shards: int | None = None, route_by_root: bool = False
) -> dict[str, Any]:
    """Return settings and mappings of a new article index.

    Args:
        fields: The articles'.
        shards: None: the server's default.
        route_by_root: Require a routing, and record in the mapping that it is the article's root.
    """
    properties: dict[str, Any] = {
        fields.text: {"type": "text"},
        fields.title: {"type": "text"},
        fields.time: {"type": "date"},
        fields.source: {"type": "keyword"},
        fields.link: {"type": "keyword", "index": False, "doc_values": False},
    }
    body: dict[str, Any] = {"mappings": {"properties": properties | dedup_properties(fields.dedup)}}
    if shards is not None:
        body["settings"] = {"number_of_shards": shards}
    if route_by_root:
        body["mappings"] |= {"_routing": {"required": True}, "_meta": {"esdedup": {"routed_by_root": True}}}
    return body


def is_routed_by_root(mapping: dict[str, Any]) -> bool:
    """Return whether the articles of an index with that mapping are routed by their roots."""
    meta = mapping.get("_meta", {}).get("esdedup", {})
    return mapping.get("_routing", {}).get("required") is True and meta.get("routed_by_root") is True


def refuse_forests(mappings: dict[str, dict[str, Any]]) -> None:
    """Make sure that none of these indices is a forest.

    Raises:
        IndexNotReady: One is.
    """
    for index, mapping in mappings.items():
        if "format" in mapping.get("_meta", {}).get("esdedup", {}):
            raise IndexNotReady(
                f"the index {index!r} is a forest, which holds no articles: name an index of articles",
                index=index,
            )


def check_mappings(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that indices have the fields that esdedup writes and reads, and that none is a forest.

    Raises:
        IndexNotReady: An index lacks one, has it with another mapping, or is a forest.
    """
    refuse_forests(mappings)
    name = fields.dedup
    expected = dedup_properties(name)[name]["properties"]
    for index, mapping in mappings.items():
        found = mapping.get("properties", {}).get(name, {}).get("properties", {})
        wrong = [
            f"{name}.{field}"
            for field, mapping_of_field in expected.items()
            if found.get(field, {}).get("type") != mapping_of_field["type"]
            or found[field].get("index") is False
            or (found[field].get("doc_values") is False and mapping_of_field.get("doc_values") is not False)
        ]
        if wrong:
            raise IndexNotReady(
                f"the index {index!r} lacks fields of esdedup, or has them with another mapping: "
                f"{', '.join(wrong)}. Set the index up before anything is indexed into it.",
                index=index,
                missing_fields=wrong,
            )
