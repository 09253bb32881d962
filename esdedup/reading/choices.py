"""Values that articles must have in keyword fields, such as sources and languages. Pure.

Which fields articles can be chosen by is read from the mappings.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from esdedup.elastic.limits import MAX_TERMS
from esdedup.elastic.mappings import mapping_of
from esdedup.elastic.requests import Query
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.queries import check_term

_KEYWORDS = frozenset({"keyword", "constant_keyword"})
LANGUAGE_FIELDS = ("language", "lang")
"""What a field is called that tells the language of an article."""

Values = str | Sequence[str]
"""One value of a field, or several: an article must have one of them."""


@dataclasses.dataclass(frozen=True)
class Choices:
    """The values chosen for each field, by its full name; an article must have one of them in every field."""

    by_field: Mapping[str, tuple[str, ...]]

    def filters(self, *, but: str | None = None) -> list[Query]:
        """Return the filters for articles that have the chosen values, `but` for those of one field."""
        return [
            {"term": {field: values[0]}} if len(values) == 1 else {"terms": {field: list(values)}}
            for field, values in self.by_field.items()
            if field != but
        ]


def distinct(name: str, values: Values | None) -> tuple[str, ...]:
    """Return each of the values of a field once; none if there are none, or only an empty one.

    Raises:
        SettingError: One is no string, or no value that a keyword field can have; or there are too many.
    """
    if not values:
        return ()
    found = tuple(dict.fromkeys([values] if isinstance(values, str) else values))
    if len(found) > MAX_TERMS:
        raise SettingError(f"{len(found):,} values of {name}; at most {MAX_TERMS:,} are possible")
    for each in found:
        if not isinstance(each, str):
            raise SettingError(f"the {name} {each!r:.60} is a {type(each).__name__}, not a string")
        check_term(name, each)
    return found


def values_by_field(conditions: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each field from conditions that are written as ``field:value``.

    Raises:
        SettingError: One is written otherwise.
    """
    found: dict[str, list[str]] = {}
    for each in conditions:
        field, _, value = each.partition(":")
        if not field or not value:
            raise SettingError(f"{each!r:.100} must be a field and a value, such as language:en")
        found.setdefault(field, []).append(value)
    return found


def keyword_fields(mappings: Mapping[str, Mapping[str, Any]], fields: Fields) -> list[str]:
    """Return the keyword fields that all of the indices have, beside the article's own and esdedup's.

    Fields that tell the language come first, then those with the shortest names.
    """
    first, *others = mappings.values()
    own = {fields.title, fields.text, fields.time, fields.source, fields.link, fields.site}
    found = [
        name
        for name in _names(first.get("properties", {}))
        if name not in own
        and not name.startswith(f"{fields.dedup}.")
        and all(_can_be_chosen_by(mapping_of(dict(each), name)) for each in (first, *others))
    ]
    return _languages_first(found)


def uneven_fields(mappings: Mapping[str, Mapping[str, Any]], fields: Fields) -> list[str]:
    """Return the fields that are such keyword fields in some of the indices only, in the same order."""
    of_each = (keyword_fields({index: mapping}, fields) for index, mapping in mappings.items())
    return _languages_first(set().union(*of_each).difference(keyword_fields(mappings, fields)))


def _languages_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (not is_language(name), len(name), name))


def is_language(name: str) -> bool:
    """Return whether a field tells, by its name, the language of an article."""
    return name.rpartition(".")[2].lower() in LANGUAGE_FIELDS


def _names(properties: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """Yield the full names of fields and of those in objects; subfields repeat their field, and are not."""
    for name, mapping in properties.items():
        yield parent + name
        # The objects of a nested field are documents of their own, which no plain filter finds.
        if mapping.get("type") != "nested":
            yield from _names(mapping.get("properties", {}), f"{parent}{name}.")


def _can_be_chosen_by(mapping: Mapping[str, Any]) -> bool:
    return (
        mapping.get("type") in _KEYWORDS
        and mapping.get("index") is not False
        and mapping.get("doc_values") is not False
    )
