"""Index mappings: reads those of `mappings/`, and checks that an index has them."""

import fnmatch
import itertools
import json
from importlib import resources
from typing import Any

from esdedup.elastic.field_names import meta_with_fields
from esdedup.elastic.languages import analyzer_of, code_of, kept_language
from esdedup.errors import IndexNotReady
from esdedup.fields import Fields

# Elasticsearch refuses longer terms: 32,766 bytes, at most 4 for each character.
_MAX_KEYWORD_CHARACTERS = 8_191
# Types of fields in which no words can be searched.
_WITHOUT_WORDS = frozenset(
    {
        *("boolean", "date", "date_nanos", "ip", "binary"),
        *("byte", "short", "integer", "long", "unsigned_long"),
        *("half_float", "float", "double", "scaled_float"),
    }
)
# Types of fields that hold no single value, such as the name of a source.
_OBJECTS = frozenset({"object", "nested", "flattened", "passthrough"})


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


def _own_properties(fields: Fields, language: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the mapping of the articles' own fields that esdedup reads."""
    words = {"type": "text"} if language is None else {"type": "text", "analyzer": analyzer_of(language)}
    return {
        fields.text: words,
        fields.title: words,
        # An article with a strange date has a place in time all the same, see `ingest/dates.py`.
        fields.time: {"type": "date", "ignore_malformed": True},
        fields.source: {"type": "keyword", "ignore_above": _MAX_KEYWORD_CHARACTERS},
        fields.link: {"type": "keyword", "index": False, "doc_values": False},
    }


def missing_properties(mapping: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Return what `setup` adds to a mapping: the dedup object, and the own fields that it lacks."""
    own = _own_properties(fields, kept_language(mapping))
    missing = {name: wanted for name, wanted in own.items() if not is_mapped(mapping, name)}
    wanted = dedup_properties(fields.dedup)
    properties = wanted[fields.dedup]["properties"]
    for name, each in properties.items():
        found = mapping_of(mapping, f"{fields.dedup}.{name}")
        if found.get("type") == each["type"] and each.get("doc_values") is False:
            # Elasticsearch takes no doc values away: those of signatures, which version 0.2.0 set up.
            properties[name] = found
    return missing | wanted


def article_index(
    fields: Fields,
    *,
    shards: int | None = None,
    route_by_root: bool = False,
    language: str | None = None,
    forest: str | None = None,
) -> dict[str, Any]:
    """Return settings and mappings of a new article index.

    Fields that are not named here are stored, but not indexed: otherwise one article could use up the
    fields that an index may have, or give a field a type that keeps other articles out.

    Args:
        fields: The articles'.
        shards: None: the server's default.
        route_by_root: Require a routing, and record in the mapping that it is the article's root.
        language: Of titles and texts, which the mapping records; None: words are found as they are written.
        forest: The forest that it belongs to, which the mapping records; None: none in particular.
    """
    meta: dict[str, Any] = {} if language is None else {"esdedup": {"language": code_of(language)}}
    properties = missing_properties({"_meta": meta}, fields)
    body: dict[str, Any] = {"mappings": {"dynamic": False, "properties": properties, "_meta": meta}}
    if shards is not None:
        body["settings"] = {"number_of_shards": shards}
    if route_by_root:
        body["mappings"]["_routing"] = {"required": True}
        meta["esdedup"] = meta.get("esdedup", {}) | {"routed_by_root": True}
    body["mappings"]["_meta"] = meta_with_fields(body["mappings"], fields, forest=forest)
    return body


def mapping_of(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping of a field, empty if it is not mapped.

    An object without subobjects maps its fields under names with dots.
    """
    properties = mapping.get("properties", {})
    if name in properties:
        found: dict[str, Any] = properties[name]
        return found
    first, _, rest = name.partition(".")
    return mapping_of(properties.get(first, {}), rest) if rest else {}


def is_mapped(mapping: dict[str, Any], name: str) -> bool:
    """Return whether the index has a field, so that what articles have in it can be searched."""
    if mapping_of(mapping, name) or name in mapping.get("runtime", {}):
        return True
    parents = itertools.accumulate(name.split(".")[:-1], "{}.{}".format)
    return any(mapping_of(mapping, parent).get("type") == "flattened" for parent in parents)


def hides_new_fields(mapping: dict[str, Any]) -> bool:
    """Return whether articles may have values in fields that are not mapped, which no search finds."""
    return str(mapping.get("dynamic")).lower() == "false"


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


def refuse_unusable(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that none of these indices is a forest, or has a mapping that no added field would mend.

    Raises:
        IndexNotReady: One is, or has.
    """
    refuse_forests(mappings)
    for index, mapping in mappings.items():
        found, source = mapping_of(mapping, fields.dedup), mapping.get("_source", {})
        if mapping.get("enabled") is False or found.get("enabled") is False:
            flaw = "it has `enabled: false`, so no field of esdedup would be indexed"
        elif left_out := [each for each in (fields.root, fields.signature) if _is_left_out(each, source)]:
            flaw = f"`_source` leaves out {left_out[0]}, which is read from there"
        elif "type" in found and found["type"] != "object":
            flaw = f"the field {fields.dedup!r} has the type {found['type']}, and would have to be an object"
        else:
            continue
        raise IndexNotReady(
            f"the mapping of the index {index!r} does not suit esdedup: {flaw}. "
            "Make a new index, and index the articles into it.",
            index=index,
        )


def refuse_unusable_own(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that the articles' own fields have mappings with which they can be stored and searched.

    Raises:
        IndexNotReady: One has not.
    """
    words = {fields.text, fields.title}
    for index, mapping in mappings.items():
        for name in _own_properties(fields):
            found = mapping_of(mapping, name)
            kind = found.get("type", "object" if "properties" in found else None)
            # What is not enabled is stored as it comes.
            is_object = kind in _OBJECTS and found.get("enabled") is not False
            if is_object or (name in words and kind in _WITHOUT_WORDS):
                expected = "text" if name in words else "a single value"
                raise IndexNotReady(
                    f"the field {name!r} of the index {index!r} has the type {kind}, and would have to be "
                    f"{expected}: name another field, or make a new index, and index the articles into it",
                    index=index,
                )


def _is_left_out(name: str, source: dict[str, Any]) -> bool:
    """Return whether a mapping's ``_source`` leaves out a field."""
    if source.get("enabled") is False:
        return True
    # A pattern that matches an object also matches what is in it.
    names = [name, name.partition(".")[0]]

    def matches(patterns: list[str] | str) -> bool:
        each = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch.fnmatchcase(one, pattern) for one in names for pattern in each)

    included = source.get("includes") or ["*"]
    return not matches(included) or matches(source.get("excludes", []))


def check_mappings(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that indices have the fields that esdedup writes and reads, and that none is a forest.

    Raises:
        IndexNotReady: An index lacks one, has it with another mapping, is a forest, or can never have them.
    """
    refuse_unusable(mappings, fields)
    name = fields.dedup
    expected = dedup_properties(name)[name]["properties"]
    for index, mapping in mappings.items():
        wrong = [
            full
            for field, wanted in expected.items()
            if (found := mapping_of(mapping, full := f"{name}.{field}")).get("type") != wanted["type"]
            or found.get("index") is False
            or (found.get("doc_values") is False and wanted.get("doc_values") is not False)
        ]
        if wrong:
            raise IndexNotReady(
                f"the index {index!r} lacks fields of esdedup, or has them with another mapping: "
                f"{', '.join(wrong)}. Set the index up before anything is indexed into it.",
                index=index,
                missing_fields=wrong,
            )
