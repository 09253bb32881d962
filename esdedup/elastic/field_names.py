"""The names of the articles' fields, which an index keeps in the `_meta` of its mapping. Pure.

`setup` writes them there, so that whoever reads the index or writes to it need not name them.
"""

import dataclasses
from typing import Any

from esdedup.errors import IndexNotReady
from esdedup.fields import Fields


def meta_with_fields(mapping: dict[str, Any], fields: Fields, *, forest: str | None = None) -> dict[str, Any]:
    """Return what the `_meta` of an index becomes when it is to keep the names of its articles' fields.

    Args:
        mapping: As it was.
        fields: The names.
        forest: The forest that it belongs to; None: as it was.
    """
    meta: dict[str, Any] = mapping.get("_meta", {})
    kept = {"fields": dataclasses.asdict(fields)} | ({} if forest is None else {"forest": forest})
    return meta | {"esdedup": meta.get("esdedup", {}) | kept}


def kept_forest(mapping: dict[str, Any]) -> str | None:
    """Return the forest that an index belongs to; None: any may take its articles."""
    kept = mapping.get("_meta", {}).get("esdedup", {}).get("forest")
    return kept if isinstance(kept, str) else None


def kept_fields(mapping: dict[str, Any]) -> Fields | None:
    """Return the names of the articles' fields that an index keeps; None if it keeps none."""
    kept = mapping.get("_meta", {}).get("esdedup", {}).get("fields")
    if not isinstance(kept, dict):
        return None
    roles = [field.name for field in dataclasses.fields(Fields)]
    return Fields(**{role: kept[role] for role in roles if isinstance(kept.get(role), str)})


def fields_of(mappings: dict[str, dict[str, Any]], *, given: Fields | None) -> Fields:
    """Return the names of the articles' fields in some indices.

    Args:
        mappings: Of the indices.
        given: The caller's; they take precedence. None: those that the indices keep. An index that keeps
            none has the usual names.

    Raises:
        IndexNotReady: The indices keep different names.
    """
    if given is not None:
        return given
    index_of = {kept_fields(mapping) or Fields(): index for index, mapping in mappings.items()}
    if len(index_of) > 1:
        (one, one_index), (other, other_index) = sorted(index_of.items(), key=lambda item: item[1])[:2]
        raise IndexNotReady(
            f"the indices {one_index!r} and {other_index!r} name their fields differently "
            f"({_differences(one, other)}): name the fields, or read one index at a time",
            index=other_index,
        )
    return next(iter(index_of), Fields())


def require_kept(index: str, mapping: dict[str, Any], given: Fields | None) -> Fields:
    """Return the names of the fields of articles that are written to an index.

    Raises:
        IndexNotReady: The index keeps other names than those given, so readers would not find the fields.
    """
    kept = kept_fields(mapping)
    if given is not None and kept not in (None, given):
        raise IndexNotReady(
            f"the index {index!r} was set up with other names of fields ({_differences(kept, given)}): "
            "leave the names out to use its own, or set it up again to change them",
            index=index,
        )
    return given or kept or Fields()


def _differences(one: Fields, other: Fields) -> str:
    pairs = zip(dataclasses.asdict(one).items(), dataclasses.asdict(other).values(), strict=True)
    return ", ".join(f"{role}: {name!r} and {others!r}" for (role, name), others in pairs if name != others)
