"""Checks JSON values that Elasticsearch will store: their strings, depth and size. Pure."""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeGuard, cast

from esdedup.elastic.limits import MAX_JSON_DEPTH
from esdedup.errors import ArticleRejected
from esdedup.fields import refuse_surrogates

# The estimated memory in bytes of a number, or of an empty list or object.
_BYTES_OF_OTHERS = 16
_SCALARS = frozenset((int, float, bool, type(None)))
_NOT_OBJECTS = _SCALARS | {str, list}


def parsed_with_surrogates(source: bytes) -> Any:
    """Parse JSON that may contain lone surrogates, which orjson rejects; raise `ValueError` if invalid."""
    try:
        return json.loads(source.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def refuse_unstorable(value: object, *, name: str) -> None:
    """Raise `ArticleRejected` for excessive nesting, lone surrogates, or field names that are not strings."""
    if (strings := _strings_in_flat(value)) is not None:
        refuse_surrogates("".join(strings), name=name)
        return
    for depth, level in enumerate(_levels(value)):
        if depth > MAX_JSON_DEPTH:
            raise ArticleRejected(name, f"is nested too deeply: more than {MAX_JSON_DEPTH} levels")
        # Check all strings of a level together, because most are short.
        refuse_surrogates("".join(each for each in level if isinstance(each, str)), name=name)
        for each in level:
            if is_object(each) and not all(isinstance(key, str) for key in each):
                raise ArticleRejected(name, "has a field whose name is not a string")


def size_of(value: object) -> int:
    """Estimate the size of a value in memory, in bytes, ignoring levels beyond the maximum depth."""
    if value.__class__ is dict and (
        strings := _strings_in_flat(cast(Mapping[object, object], value).get("_source"))
    ):
        return sum(map(len, strings))
    levels = itertools.islice(_levels(value), MAX_JSON_DEPTH + 1)
    return sum(
        len(each) if isinstance(each, str | bytes) else _BYTES_OF_OTHERS for level in levels for each in level
    )


def _strings_in_flat(value: object) -> list[str] | None:
    """Return the strings in a flat object, such as most articles; None for any other value."""
    if value.__class__ is not dict:
        return None
    strings: list[str] = []
    for key, each in cast(Mapping[object, object], value).items():
        if key.__class__ is not str:
            return None
        strings.append(key)
        if each.__class__ is str:
            strings.append(each)
        elif each.__class__ not in _SCALARS:
            return None
    return strings


def is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return whether a value is an object; faster than `isinstance` alone for JSON types."""
    return value.__class__ not in _NOT_OBJECTS and isinstance(value, Mapping)


def _levels(value: object) -> Iterator[list[object]]:
    """Yield the values of each level of nesting; not recursive, because the nesting may be very deep."""
    level = [value]
    while level:
        yield level
        below: list[object] = []
        for each in level:
            if is_object(each):
                below += each.keys()
                below += each.values()
            elif isinstance(each, list | tuple):
                below += each
        level = below
