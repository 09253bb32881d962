"""Index mappings: reads those of `mappings/`, and checks that an index has them."""

import dataclasses
import fnmatch
import itertools
import json
import re
from collections.abc import Collection, Iterable
from importlib import resources
from typing import Any

from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.writable_index import other_forest
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import EditorialFields, Fields, editorial
from esdedup.times import DEFAULT_FORMAT


def _read(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(
        (resources.files("esdedup.mappings") / f"{name}.json").read_text("utf-8")
    )
    return body


ANALYZERS: dict[str, str] = _read("analyzers")
"""By language (ISO 639): analyzers that every Elasticsearch has. Most find words in all their forms.

Of Chinese, Japanese and Korean they find pairs of characters: words need a plugin, which few servers have.
"""


def code_of(language: str) -> str:
    """Return which of `ANALYZERS` a language is; ``zh-CN`` is ``zh``, since regions seldom matter."""
    tag = str(language).lower()
    code = next((each for each in (tag, tag.partition("-")[0]) if each in ANALYZERS), None)
    if code is None:
        raise SettingError(
            f"there is no language {language!r:.50}; choose from {', '.join(sorted(ANALYZERS))}"
        )
    return code


def analyzer_of(language: str) -> str:
    """Return the name of the analyzer for a language."""
    return ANALYZERS[code_of(language)]


def _kept(mapping: dict[str, Any]) -> dict[str, Any]:
    kept = mapping.get("_meta", {}).get("esdedup")
    return kept if isinstance(kept, dict) else {}


def kept_language(mapping: dict[str, Any]) -> str | None:
    """Return the language that an index was set up for; None: for none in particular."""
    kept = _kept(mapping).get("language")
    return kept if isinstance(kept, str) and kept in ANALYZERS else None


def kept_forest(mapping: dict[str, Any]) -> str | None:
    """Return the forest that an index belongs to; None: any may take its articles."""
    kept = _kept(mapping).get("forest")
    return kept if isinstance(kept, str) else None


def forest_of(mappings: dict[str, dict[str, Any]], *, given: str | None, usual: str = DEFAULT_FOREST) -> str:
    """Return the forest of some indices: the one that they keep, else the one given, else the usual one.

    Raises `IndexNotReady` if they keep several, or another one than is given, but for one they migrate to.
    """
    index_of = {kept: name for name, each in mappings.items() if (kept := kept_forest(each))}
    if len(index_of) > 1:
        several = ", ".join(f"{index!r} to {forest!r}" for forest, index in sorted(index_of.items()))
        raise IndexNotReady(f"the indices belong to several forests ({several}): name those of one")
    for kept, name in index_of.items():
        following = next_object(mappings[name])
        if given not in {None, kept, following and following.forest}:
            raise IndexNotReady(other_forest(name, kept, given), index=name)
    return given or next(iter(index_of), usual)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextObject:
    """The second object in articles that a migration fills."""

    dedup: str
    # Whose roots are in it.
    forest: str
    # The highest number of an article when the migration began.
    since_seq: int


def copied_from(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return what a copy notes of its index, as `AdoptionIntoCopies` writes it; empty without."""
    found = _kept(mapping).get("copy_of")
    return found if isinstance(found, dict) else {}


def next_object(mapping: dict[str, Any]) -> NextObject | None:
    """Return the object that a migration fills; None if there is no migration."""
    kept, types = _kept(mapping).get("next", {}), {"dedup": str, "forest": str, "since_seq": int}
    is_read = isinstance(kept, dict) and {name: type(each) for name, each in kept.items()} == types
    return NextObject(**kept) if is_read else None


def former_objects(mapping: dict[str, Any]) -> tuple[str, ...]:
    """Return the objects that were read before migrations: articles keep the roots in them."""
    kept = _kept(mapping).get("former")
    return tuple(map(str, kept)) if isinstance(kept, list) else ()


def objects_of(mapping: dict[str, Any]) -> list[str]:
    """Return the objects that esdedup writes into articles: the one that is read, the next, former ones."""
    names = [(kept_fields(mapping) or Fields()).dedup, getattr(next_object(mapping), "dedup", "")]
    return [each for each in (*names, *former_objects(mapping)) if is_mapped(mapping, f"{each}.root")]


def is_routed_by_root(mapping: dict[str, Any]) -> bool:
    """Return whether the articles of an index with that mapping are routed by their roots."""
    is_kept = _kept(mapping).get("routed_by_root") is True
    return is_kept and mapping.get("_routing", {}).get("required") is True


def meta_with_fields(mapping: dict[str, Any], fields: Fields, *, forest: str | None = None) -> dict[str, Any]:
    """Return the `_meta` of an index with the names of its articles' fields added.

    With `forest`, it belongs to that from now on. The object that it had before becomes a former one.
    """
    kept: dict[str, Any] = {"fields": fields.names}
    if forest is not None:
        kept["forest"] = forest
    if isinstance(fields, EditorialFields):
        kept["editorial"] = True
    before = kept_fields(mapping) or Fields()
    if before.dedup != fields.dedup and is_mapped(mapping, before.root):
        former = dict.fromkeys([*former_objects(mapping), before.dedup])
        kept |= {"former": [each for each in former if each != fields.dedup], "next": None}
    return meta_with(mapping, **kept)


def kept_retention_ms(mappings: dict[str, dict[str, Any]]) -> int | None:
    """Return how long nodes lived when indices were last fed, the longest of several; None if unknown."""
    found = (_kept(mapping).get("retention_ms") for mapping in mappings.values())
    return max((each for each in found if isinstance(each, int)), default=None)


def meta_with(mapping: dict[str, Any], **kept: object) -> dict[str, Any]:
    """Return the `_meta` of an index with these values added."""
    meta: dict[str, Any] = mapping.get("_meta", {})
    return meta | {"esdedup": _kept(mapping) | kept}


def kept_fields(mapping: dict[str, Any]) -> Fields | None:
    """Return the names of the articles' fields that an index keeps; None if it keeps none."""
    kept = _kept(mapping).get("fields")
    if not isinstance(kept, dict):
        return None
    kind = EditorialFields if is_editorial(mapping) else Fields
    return kind(**{role: kept[role] for role in Fields().names if isinstance(kept.get(role), str)})


def is_editorial(mapping: dict[str, Any]) -> bool:
    """Return whether editors may merge and split the stories of an index with that mapping."""
    return _kept(mapping).get("editorial") is True


def is_set_up(mapping: dict[str, Any], *, given: Fields | None) -> bool:
    """Return whether an index of articles maps what esdedup writes, by the names given or else its own."""
    fields = given or kept_fields(mapping) or Fields()
    is_ours = "format" not in _kept(mapping) and not _strangeness(mapping, fields.dedup)
    return is_ours and is_mapped(mapping, fields.root)


def fields_of(mappings: dict[str, dict[str, Any]], *, given: Fields | None) -> Fields:
    """Return the names of the articles' fields in some indices: those given, or those that all of them keep.

    An index that keeps none has the usual names. Stories are read only where all of them have stories.
    """
    have_stories = bool(mappings) and all(map(is_editorial, mappings.values()))
    if given is not None:
        return _with_format(editorial(given, is_editorial=have_stories), *mappings.values())
    index_of = {
        editorial(kept_fields(mapping) or Fields(), is_editorial=have_stories): index
        for index, mapping in mappings.items()
    }
    if len(index_of) > 1:
        (one, one_index), (other, other_index) = sorted(index_of.items(), key=lambda item: item[1])[:2]
        raise IndexNotReady(
            f"the indices {one_index!r} and {other_index!r} name their fields differently "
            f"({_differences(one, other)}): name the fields, or read one index at a time",
            index=other_index,
        )
    return _with_format(next(iter(index_of), Fields()), *mappings.values())


def _with_format(fields: Fields, *mappings: dict[str, Any]) -> Fields:
    """Return the same names with the formats by which indices read the time; a number is in milliseconds."""
    found = [each.get("runtime", {}).get(fields.time) or mapping_of(each, fields.time) for each in mappings]
    formats = [each.get("format", DEFAULT_FORMAT) for each in found if each.get("type") in _DATES]
    formats += ["epoch_millis"] * any(each.get("type") in _NUMBERS for each in found)
    return dataclasses.replace(fields, time_format="||".join(dict.fromkeys(formats)) or None)


def require_kept(index: str, mapping: dict[str, Any], given: Fields | None) -> tuple[Fields, str | None]:
    """Return the names of the fields of articles that are written to an index, and the forest they belong to.

    Those given must be its own, or readers would not find the fields; or be those that a migration fills.
    """
    kept, following = kept_fields(mapping), next_object(mapping)
    if given is not None:
        given = editorial(given, is_editorial=is_editorial(mapping))
    if following is not None and given == dataclasses.replace(kept or Fields(), dedup=following.dedup):
        return _with_format(given, mapping), following.forest
    if given is not None and kept not in (None, given):
        raise IndexNotReady(
            f"the index {index!r} was set up with other names of fields ({_differences(kept, given)}): "
            "leave the names out to use its own, or set it up again to change them",
            index=index,
        )
    return _with_format(given or kept or Fields(), mapping), kept_forest(mapping)


def _differences(one: Fields, other: Fields) -> str:
    pairs = zip(one.names.items(), other.names.values(), strict=True)
    return ", ".join(f"{role}: {name!r} and {others!r}" for (role, name), others in pairs if name != others)


# Elasticsearch refuses longer terms: 32,766 bytes, at most 4 for each character.
_MAX_KEYWORD_CHARACTERS = 8_191
_DATES = frozenset({"date", "date_nanos"})
_NUMBERS = frozenset({"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double"})
# Types of fields in which no words can be searched.
_WITHOUT_WORDS = _DATES | _NUMBERS | {"boolean", "ip", "binary", "scaled_float"}
# Types of fields that hold no single value, such as the name of a source.
_OBJECTS = frozenset({"object", "nested", "flattened", "passthrough"})
_COPIED_TO = re.compile(r'"copy_to": (".*?"|\[.*?\])')


def forest_index(*, meta: dict[str, Any]) -> dict[str, Any]:
    """Return settings and mappings of a forest's index, with `meta` about its format and profile."""
    body = _read("forest")
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
        # An article with a strange date has a place in time all the same, see `ingest/dates.py`.
        fields.time: {"type": "date", "ignore_malformed": True},
        fields.source: {"type": "keyword", "ignore_above": _MAX_KEYWORD_CHARACTERS},
        fields.link: {"type": "keyword", "index": False, "doc_values": False},
    }


def missing_properties(mapping: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Return what `setup` adds to a mapping: the dedup object, and the own fields that it lacks."""
    own = _own_properties(fields, kept_language(mapping))
    missing = {name: wanted for name, wanted in own.items() if not is_mapped(mapping, name)}
    return missing | dedup_properties(fields)


def article_index(
    fields: Fields,
    *,
    shards: int | None = None,
    route_by_root: bool = False,
    language: str | None = None,
    forest: str | None = None,
) -> dict[str, Any]:
    """Return settings and mappings of a new article index; see `Articles.setup`.

    Other fields are stored, but not indexed: otherwise one article could use up the fields that an index may
    have, or give a field a type that keeps other articles out.
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
    """Return the index template, among those that Elasticsearch lists, that makes an index of that name."""
    found = [
        each
        for each in templates
        for pattern in each["index_template"]["index_patterns"]
        if fnmatch.fnmatchcase(name, pattern)
    ]
    return max(found, key=lambda each: each["index_template"].get("priority", 0), default=None)


def mapping_of(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping of a field, empty if it is not mapped."""
    # An object without subobjects maps its fields under names with dots.
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


def refuse_forests(mappings: dict[str, dict[str, Any]]) -> None:
    """Raise if one of these indices is a forest."""
    for index, mapping in mappings.items():
        if _kept(mapping).get("format") is not None:
            raise IndexNotReady(
                f"the index {index!r} is a forest, which holds no articles: leave it out, as 'a*,-{index}'",
                index=index,
            )


def refuse_unusable(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that none of these indices is a forest, or has a mapping that no added field would mend."""
    refuse_forests(mappings)
    written = [f"{fields.dedup}.{each}" for each in dedup_properties(fields)[fields.dedup]["properties"]]
    for index, mapping in mappings.items():
        found, source = mapping_of(mapping, fields.dedup), mapping.get("_source", {})
        copied = "".join(_COPIED_TO.findall(json.dumps(mapping, ensure_ascii=False)))
        if mapping.get("enabled") is False or found.get("enabled") is False:
            flaw = "it has `enabled: false`, so no field of esdedup would be indexed"
        elif left_out := [each for each in (fields.root, fields.signature) if _is_left_out(each, source)]:
            flaw = f"`_source` leaves out {left_out[0]}, which is read from there"
        elif strange := _strangeness(mapping, fields.dedup):
            theirs = f"the articles of the index {index!r} have a field {fields.dedup!r} of their own, which"
            other = f"{strange}: give the object of esdedup another name, such as 'es{fields.dedup}'"
            raise IndexNotReady(f"{theirs} {other}", index=index, missing_fields=(f"es{fields.root}",))
        elif own := [each for each in written if each in mapping.get("runtime", ()) or f'"{each}"' in copied]:
            flaw = f"{own[0]} also gets values from elsewhere, by `copy_to` or a runtime field"
        else:
            continue
        raise IndexNotReady(
            f"the mapping of the index {index!r} does not suit esdedup: {flaw}. "
            "Make a new index, and index the articles into it.",
            index=index,
        )


def _strangeness(mapping: dict[str, Any], name: str) -> str | None:
    """Return why a field cannot be an object of esdedup's; None if it can."""
    found = mapping_of(mapping, name)
    kind, names = found.get("type", "object"), found.get("properties", {}).keys()
    if kind != "object":
        return f"has the type {kind}, and would have to be an object"
    # Earlier versions had fewer fields.
    is_ours = {"root", "seq", "profile"} <= names or names <= dedup_properties(Fields())["dedup"][
        "properties"
    ].keys()
    return None if is_ours else f"has {', '.join(names):.80}"


def refuse_unusable_own(mappings: dict[str, dict[str, Any]], fields: Fields) -> None:
    """Make sure that the articles' own fields have mappings with which they can be stored and searched."""
    words = {fields.text, fields.title}
    for index, mapping in mappings.items():
        for name in _own_properties(fields):
            found = mapping_of(mapping, name)
            kind = found.get("type", "object" if "properties" in found else None)
            # Objects that are not enabled are stored unparsed.
            is_object = kind in _OBJECTS and found.get("enabled") is not False
            if is_object or (name in words and kind in _WITHOUT_WORDS):
                expected = "text" if name in words else "a single value"
                raise IndexNotReady(
                    f"the field {name!r} of the index {index!r} has the type {kind}, and would have to be "
                    f"{expected}: name another field, or make a new index, and index the articles into it",
                    index=index,
                )


def _is_left_out(name: str, source: dict[str, Any]) -> bool:
    if source.get("enabled") is False:
        return True
    # A pattern that matches an object also matches what is in it.
    names = [name, name.partition(".")[0]]

    def matches(patterns: list[str] | str) -> bool:
        each = [patterns] if isinstance(patterns, str) else patterns
        return any(fnmatch.fnmatchcase(one, pattern) for one in names for pattern in each)

    included = source.get("includes") or ["*"]
    return not matches(included) or matches(source.get("excludes", []))


def check_mappings(
    mappings: dict[str, dict[str, Any]], fields: Fields, *, optional: Collection[str] = ()
) -> None:
    """Make sure that indices have the fields that esdedup writes and reads, and that none is a forest."""
    refuse_unusable(mappings, fields)
    name = fields.dedup
    expected = dedup_properties(fields)[name]["properties"]
    for index, mapping in mappings.items():
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
