"""Index mappings: builds them from the files in `mappings/`, and checks the mappings of existing indices."""

import fnmatch
import json
import re
from collections.abc import Collection, Iterable
from importlib import resources
from typing import Any

from esdedup.elastic.meta import WITHOUT_WORDS, is_mapped, mapping_of, meta_of, meta_with_fields, saved_fields
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import EditorialFields, Fields


def _read(name: str) -> dict[str, Any]:
    text = (resources.files("esdedup.mappings") / f"{name}.json").read_text("utf-8")
    body: dict[str, Any] = json.loads(text)
    return body


ANALYZERS: dict[str, str] = _read("analyzers")
"""Built-in analyzers of Elasticsearch, by language (ISO 639). Most of them match all forms of a word.

For Chinese, Japanese and Korean they match pairs of characters; to match words, servers need a plugin.
"""


def code_of(language: str) -> str:
    """Return the key of a language in `ANALYZERS`, such as ``zh`` for ``zh-CN``: regions seldom matter."""
    tag = str(language).lower()
    code = next((each for each in (tag, tag.partition("-")[0]) if each in ANALYZERS), None)
    if code is None:
        raise SettingError(f"unknown language {language!r:.50}; choose from {', '.join(sorted(ANALYZERS))}")
    return code


def analyzer_of(language: str) -> str:
    """Return the name of the analyzer for a language."""
    return ANALYZERS[code_of(language)]


def saved_language(mapping: dict[str, Any]) -> str | None:
    """Return the language that an index was set up for; None if there is none."""
    kept = meta_of(mapping).get("language")
    return kept if isinstance(kept, str) and kept in ANALYZERS else None


def is_set_up(mapping: dict[str, Any], *, given: Fields | None) -> bool:
    """Return whether an article index maps esdedup's fields, under `given` or, if None, the stored names."""
    fields = given or saved_fields(mapping) or Fields()
    meta = meta_of(mapping)
    is_other = "format" in meta or meta.get("removed") or _conflict_of(mapping, fields.dedup)
    return not is_other and is_mapped(mapping, fields.root)


# Elasticsearch refuses terms of more than 32,766 bytes; a character has at most 4 bytes.
_MAX_KEYWORD_CHARACTERS = 8_191
# Types of fields whose values are objects; from a field such as the source, esdedup needs a single value.
_OBJECTS = frozenset({"object", "nested", "flattened", "passthrough"})
_COPIED_TO = re.compile(r'"copy_to": (".*?"|\[.*?\])')


def forest_index(*, meta: dict[str, Any]) -> dict[str, Any]:
    """Return the mappings and settings of a forest's index; `meta` has its format, profile and shards."""
    body = _read("forest")
    body["settings"]["number_of_shards"] = meta.get("shards", 1)
    body["mappings"]["_meta"] = {"esdedup": meta}
    return body


def dedup_properties(fields: Fields) -> dict[str, Any]:
    """Return the mapping of the fields that esdedup writes into articles."""
    dedup: dict[str, Any] = _read("articles")["template"]["mappings"]["properties"]["dedup"]
    if isinstance(fields, EditorialFields):
        dedup["properties"]["story"] = dedup["properties"]["root"]
    return {fields.dedup: dedup}


def _own_properties(fields: Fields, language: str | None = None) -> dict[str, dict[str, Any]]:
    words = {"type": "text"} if language is None else {"type": "text", "analyzer": analyzer_of(language)}
    return {
        fields.text: words,
        fields.title: words,
        # An article with an unreadable date gets another time; see `ingest/dates.py`.
        fields.time: {"type": "date", "ignore_malformed": True},
        fields.source: {"type": "keyword", "ignore_above": _MAX_KEYWORD_CHARACTERS},
        fields.link: {"type": "keyword", "index": False, "doc_values": False},
    }


def missing_properties(mapping: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Return the properties that `setup` adds to a mapping: the dedup object, and missing article fields."""
    own = _own_properties(fields, saved_language(mapping))
    missing = {name: wanted for name, wanted in own.items() if not is_mapped(mapping, name)}
    return missing | dedup_properties(fields)


def storable(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template as the server accepts it: without the dates that it adds to its response."""
    return {name: each for name, each in template.items() if "_date" not in name}


def keyword_properties(mapping: dict[str, Any], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return properties that map further fields as keywords; a mapped field keeps its mapping."""
    keyword = {"type": "keyword", "ignore_above": _MAX_KEYWORD_CHARACTERS}
    return {name: keyword for name in names if not is_mapped(mapping, name)}


def article_index(
    fields: Fields,
    *,
    shards: int | None = None,
    route_by_root: bool = False,
    language: str | None = None,
    forest: str | None = None,
) -> dict[str, Any]:
    """Return the settings and mappings of a new article index; see `Articles.setup`.

    Other fields are stored but not indexed. Otherwise one article could exhaust the limit on fields in an
    index, or give a field a type that makes Elasticsearch refuse other articles.
    """
    kept: dict[str, Any] = {} if language is None else {"language": code_of(language)}
    mapping: dict[str, Any] = {"dynamic": False, "_meta": {"esdedup": kept}}
    if route_by_root:
        mapping["_routing"] = {"required": True}
        kept["routed_by_root"] = True
    mapping["properties"] = missing_properties(mapping, fields)
    mapping["_meta"] = meta_with_fields(mapping, fields, forest=forest)
    return {"mappings": mapping} | ({} if shards is None else {"settings": {"number_of_shards": shards}})


def template_of(name: str, templates: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the index template that applies to a new index of this name; None if none applies."""
    found = [
        each
        for each in templates
        for pattern in each["index_template"]["index_patterns"]
        if fnmatch.fnmatchcase(name, pattern)
    ]
    return max(found, key=lambda each: each["index_template"].get("priority", 0), default=None)


def hides_new_fields(mapping: dict[str, Any]) -> bool:
    """Return whether an index leaves unknown fields unmapped, so that a search cannot find their values."""
    return str(mapping.get("dynamic")).lower() == "false"


def refuse_forests(mappings: dict[str, dict[str, Any]]) -> None:
    """Raise if one of these indices is a forest."""
    for index, mapping in mappings.items():
        if meta_of(mapping).get("format") is not None:
            raise IndexNotReady(
                f"the index {index!r} is a forest, which holds no articles: exclude it, with 'a*,-{index}'",
                index=index,
            )


def refuse_unusable(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Raise if one of these indices is a forest, or has a mapping that added fields cannot correct."""
    refuse_forests(mappings)
    written = [f"{fields.dedup}.{each}" for each in dedup_properties(fields)[fields.dedup]["properties"]]
    for index, mapping in mappings.items():
        found, source = mapping_of(mapping, fields.dedup), mapping.get("_source", {})
        copied = "".join(_COPIED_TO.findall(json.dumps(mapping, ensure_ascii=False)))
        if mapping.get("enabled") is False or found.get("enabled") is False:
            flaw = "it has `enabled: false`, so no field of esdedup would be indexed"
        elif left_out := [each for each in (fields.root, fields.signature) if _is_left_out(each, source)]:
            flaw = f"`_source` leaves out {left_out[0]}, which esdedup reads from it"
        elif strange := _conflict_of(mapping, fields.dedup):
            theirs = f"the articles of the index {index!r} have their own field {fields.dedup!r}, which"
            other = f"{strange}: give the object of esdedup another name, such as 'es{fields.dedup}'"
            raise IndexNotReady(f"{theirs} {other}", index=index, missing_fields=(f"es{fields.root}",))
        elif own := [each for each in written if each in mapping.get("runtime", ()) or f'"{each}"' in copied]:
            flaw = f"{own[0]} also gets values from elsewhere, by `copy_to` or a runtime field"
        else:
            continue
        raise IndexNotReady(
            f"the mapping of the index {index!r} does not suit esdedup: {flaw}. "
            "Create a new index, and index the articles into it.",
            index=index,
        )


def _conflict_of(mapping: dict[str, Any], name: str) -> str | None:
    """Return why a field cannot be the dedup object; None if it can."""
    found = mapping_of(mapping, name)
    kind, names = found.get("type", "object"), found.get("properties", {}).keys()
    if kind != "object":
        return f"has the type {kind}, but must be an object"
    # Earlier versions had fewer fields.
    is_ours = {"root", "seq", "profile"} <= names or names <= dedup_properties(Fields())["dedup"][
        "properties"
    ].keys()
    return None if is_ours else f"has {', '.join(names):.80}"


def refuse_unusable_own(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Raise if a mapping does not allow the articles' own fields to be stored and searched."""
    words = {fields.text, fields.title}
    for index, mapping in mappings.items():
        for name in _own_properties(fields):
            found = mapping_of(mapping, name)
            kind = found.get("type", "object" if "properties" in found else None)
            # Objects that are not enabled are stored unparsed.
            is_object = kind in _OBJECTS and found.get("enabled") is not False
            if is_object or (name in words and kind in WITHOUT_WORDS):
                expected = "text" if name in words else "a single value"
                raise IndexNotReady(
                    f"the field {name!r} of the index {index!r} has the type {kind}, but must be {expected}: "
                    "name another field, or create a new index, and index the articles into it",
                    index=index,
                )


def _is_left_out(name: str, source: dict[str, Any]) -> bool:
    if source.get("enabled") is False:
        return True
    # A pattern that matches an object also matches the fields in it.
    names = [name, name.partition(".")[0]]

    def matches(patterns: list[str] | str) -> bool:
        each = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch.fnmatchcase(one, pattern) for one in names for pattern in each)

    included = source.get("includes") or ["*"]
    return not matches(included) or matches(source.get("excludes", []))


def check_mappings(
    mappings: dict[str, dict[str, Any]], fields: Fields, *, optional: Collection[str] = ()
) -> None:
    """Raise if an index is a forest, or lacks a field that esdedup writes or reads."""
    refuse_unusable(mappings, fields)
    name = fields.dedup
    expected = dedup_properties(fields)[name]["properties"]
    for index, mapping in mappings.items():
        if meta_of(mapping).get("removed"):
            was = f"esdedup was removed from the index {index!r}: set it up, or adopt its articles again"
            raise IndexNotReady(was, index=index, missing_fields=(fields.root,))
        wrong = [
            full
            for field, wanted in expected.items()
            if field not in optional
            and (
                (found := mapping_of(mapping, full := f"{name}.{field}")).get("type") != wanted["type"]
                or found.get("index") is False
                or (found.get("doc_values") is False and wanted.get("doc_values") is not False)
            )
        ]
        if wrong:
            raise IndexNotReady(
                f"the index {index!r} lacks fields of esdedup, or has them with another mapping: "
                f"{', '.join(wrong)}. Set the index up before anything is indexed into it.",
                index=index,
                missing_fields=tuple(wrong),
            )
