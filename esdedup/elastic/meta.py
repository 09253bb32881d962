"""Reads the mapping of an article index, and settings that esdedup stores in its `_meta`."""

import dataclasses
import itertools
from typing import Any

from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.errors import IndexNotReady
from esdedup.fields import EditorialFields, Fields, editorial
from esdedup.times import DEFAULT_FORMAT

_DATES = frozenset({"date", "date_nanos"})
_NUMBERS = frozenset({"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double"})
WITHOUT_WORDS = _DATES | _NUMBERS | {"boolean", "ip", "binary", "scaled_float"}
"""Types of fields in which words cannot be searched."""


def meta_of(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the values that esdedup has stored in an index's `_meta`; empty if there are none."""
    kept = mapping.get("_meta", {}).get("esdedup")
    return kept if isinstance(kept, dict) else {}


def meta_with(mapping: dict[str, Any], **kept: object) -> dict[str, Any]:
    """Return the `_meta` of an index with these values added."""
    meta: dict[str, Any] = mapping.get("_meta", {})
    return meta | {"esdedup": meta_of(mapping) | kept}


def saved_fields(mapping: dict[str, Any]) -> Fields | None:
    """Return the field names that are stored in an index; None if there are none."""
    kept = meta_of(mapping).get("fields")
    if not isinstance(kept, dict):
        return None
    kind = EditorialFields if is_editorial(mapping) else Fields
    return kind(**{role: kept[role] for role in Fields().names if isinstance(kept.get(role), str)})


def is_editorial(mapping: dict[str, Any]) -> bool:
    """Return whether the index with this mapping has stories, which editors may merge and split."""
    return meta_of(mapping).get("editorial") is True


def meta_with_fields(mapping: dict[str, Any], fields: Fields, *, forest: str | None = None) -> dict[str, Any]:
    """Return the `_meta` of an index with the names of its articles' fields added, and its forest if given.

    If the dedup object gets a new name, its previous name is recorded in `former`.
    """
    kept: dict[str, Any] = {"fields": fields.names}
    if forest is not None:
        kept["forest"] = forest
    if isinstance(fields, EditorialFields):
        kept["editorial"] = True
    if meta_of(mapping).get("removed"):
        kept["removed"] = False
    before = saved_fields(mapping) or Fields()
    if before.dedup != fields.dedup and is_mapped(mapping, before.root):
        former = dict.fromkeys([*former_objects(mapping), before.dedup])
        kept |= {"former": [each for each in former if each != fields.dedup], "next": None}
    return meta_with(mapping, **kept)


def fields_of(mappings: dict[str, dict[str, Any]], *, given: Fields | None) -> Fields:
    """Return the field names of some indices: `given`, or the names stored in all of these indices.

    An index without stored names has the default names. Stories are used only if all indices have stories.
    """
    have_stories = bool(mappings) and all(map(is_editorial, mappings.values()))
    if given is not None:
        return _with_format(editorial(given, is_editorial=have_stories), *mappings.values())
    index_of = {
        editorial(saved_fields(mapping) or Fields(), is_editorial=have_stories): index
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


def require_saved(index: str, mapping: dict[str, Any], given: Fields | None) -> tuple[Fields, str | None]:
    """Return the field names for articles that are written to an index, and the forest of these articles.

    `given` must be the names stored in the index, since readers use them. Only the dedup object may differ:
    it may be the object that a migration fills, with the roots of the migration's new forest.
    """
    kept, following = saved_fields(mapping), next_object(mapping)
    if given is not None:
        given = editorial(given, is_editorial=is_editorial(mapping))
    if following is not None and given == dataclasses.replace(kept or Fields(), dedup=following.dedup):
        return _with_format(given, mapping), following.forest
    if given is not None and kept not in (None, given):
        raise IndexNotReady(
            f"the index {index!r} was set up with other field names ({_differences(kept, given)}): "
            "omit the names to use its own, or set it up again to change them",
            index=index,
        )
    return _with_format(given or kept or Fields(), mapping), saved_forest(mapping)


def _with_format(fields: Fields, *mappings: dict[str, Any]) -> Fields:
    """Return the fields with the date formats that the mappings accept; numbers are milliseconds."""
    found = [each.get("runtime", {}).get(fields.time) or mapping_of(each, fields.time) for each in mappings]
    formats = [each.get("format", DEFAULT_FORMAT) for each in found if each.get("type") in _DATES]
    formats += ["epoch_millis"] * any(each.get("type") in _NUMBERS for each in found)
    return dataclasses.replace(fields, time_format="||".join(dict.fromkeys(formats)) or None)


def _differences(one: Fields, other: Fields) -> str:
    pairs = zip(one.names.items(), other.names.values(), strict=True)
    return ", ".join(f"{role}: {name!r} and {others!r}" for (role, name), others in pairs if name != others)


def saved_forest(mapping: dict[str, Any]) -> str | None:
    """Return the forest that an index belongs to; None if any forest may take its articles."""
    kept = meta_of(mapping).get("forest")
    return kept if isinstance(kept, str) else None


def forest_of(mappings: dict[str, dict[str, Any]], *, given: str | None, usual: str = DEFAULT_FOREST) -> str:
    """Return the forest stored in some indices, or else `given`, or else `usual`.

    Raises `IndexNotReady` if the indices belong to several forests, or to a forest other than `given`. During
    a migration, `given` may be its new forest.
    """
    index_of = {kept: name for name, each in mappings.items() if (kept := saved_forest(each))}
    if len(index_of) > 1:
        several = ", ".join(f"{index!r} to {forest!r}" for forest, index in sorted(index_of.items()))
        raise IndexNotReady(f"the indices belong to several forests ({several}): name the indices of one")
    for kept, name in index_of.items():
        following = next_object(mappings[name])
        if given not in {None, kept, following and following.forest}:
            raise IndexNotReady(other_forest(name, kept, given), index=name)
    return given or next(iter(index_of), usual)


def saved_retention_ms(mappings: dict[str, dict[str, Any]]) -> int | None:
    """Return the longest retention that owners have stored in some indices; None if unknown."""
    found = (meta_of(mapping).get("retention_ms") for mapping in mappings.values())
    return max((each for each in found if isinstance(each, int)), default=None)


def is_routed_by_root(mapping: dict[str, Any]) -> bool:
    """Return whether the articles of the index with this mapping are routed by their roots."""
    is_kept = meta_of(mapping).get("routed_by_root") is True
    return is_kept and mapping.get("_routing", {}).get("required") is True


def copied_from(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return what `AdoptionIntoCopies` stored about the original of a copied index; empty otherwise."""
    found = meta_of(mapping).get("copy_of")
    return found if isinstance(found, dict) else {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NextObject:
    """The second dedup object, which a migration adds to articles."""

    dedup: str
    # The forest that assigns the roots in this object.
    forest: str
    # The highest `seq` of an article when the migration began.
    since_seq: int


def next_object(mapping: dict[str, Any]) -> NextObject | None:
    """Return the object that a migration fills; None if no migration is in progress."""
    kept, types = meta_of(mapping).get("next", {}), {"dedup": str, "forest": str, "since_seq": int}
    is_read = isinstance(kept, dict) and {name: type(each) for name, each in kept.items()} == types
    return NextObject(**kept) if is_read else None


def former_objects(mapping: dict[str, Any]) -> tuple[str, ...]:
    """Return the objects that migrations have replaced, in which articles keep their earlier roots."""
    kept = meta_of(mapping).get("former")
    return tuple(map(str, kept)) if isinstance(kept, list) else ()


def objects_of(mapping: dict[str, Any]) -> list[str]:
    """Return esdedup's objects in articles: the current object, a migration's next one, and former ones."""
    names = [(saved_fields(mapping) or Fields()).dedup, getattr(next_object(mapping), "dedup", "")]
    return [each for each in (*names, *former_objects(mapping)) if is_mapped(mapping, f"{each}.root")]


def mapping_of(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the mapping of a field, empty if it is not mapped."""
    # An object with `subobjects: false` maps its fields under names with dots.
    properties = mapping.get("properties", {})
    if name in properties:
        found: dict[str, Any] = properties[name]
        return found
    first, _, rest = name.partition(".")
    return mapping_of(properties.get(first, {}), rest) if rest else {}


def is_mapped(mapping: dict[str, Any], name: str) -> bool:
    """Return whether the index maps a field, so that its values can be searched."""
    if mapping_of(mapping, name) or name in mapping.get("runtime", {}):
        return True
    parents = itertools.accumulate(name.split(".")[:-1], "{}.{}".format)
    return any(mapping_of(mapping, parent).get("type") == "flattened" for parent in parents)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WritableIndex:
    """Properties of an index that articles may be written to."""

    fields: Fields
    # The name of the index itself, not of an alias; None if it is not known.
    name: str | None = None
    # Whether articles are routed by their roots.
    is_routed_by_root: bool = False
    # The index's forest; None if any forest may take its articles.
    forest: str | None = None
    # The dedup objects of current and past migrations, with the roots of other forests.
    other_objects: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[str, ...]:
        """All objects that only esdedup may write, beginning with the object of the index's forest."""
        return (self.fields.dedup, *self.other_objects)

    def refusal(self, forest: str) -> str | None:
        """Return why a forest may not take the index's articles; None if it may."""
        is_allowed = self.forest in {None, forest}
        return None if is_allowed else other_forest(self.name, self.forest, forest)


def other_forest(index: str | None, owner: str | None, forest: str | None) -> str:
    """Return the message that an index belongs to a forest other than the given one."""
    return f"the index {index!r} belongs to the forest {owner!r}, not to {forest!r}"
