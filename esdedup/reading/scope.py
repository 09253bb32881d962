"""A reader's configuration, and what the mappings say about an index before it is searched."""

import dataclasses
from typing import Any

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.elastic.field_names import fields_of
from esdedup.elastic.mappings import (
    check_mappings,
    hides_new_fields,
    is_mapped,
    is_routed_by_root,
    mapping_of,
    refuse_forests,
)
from esdedup.elastic.names import DEFAULT_FOREST, check_index_name
from esdedup.elastic.requests import ReadMappings, Requests
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.reading.choices import keyword_fields, uneven_fields
from esdedup.reading.tuning import Tuning

# The keyword subfield that Elasticsearch's default mapping gives a text field.
_SUBFIELD = "keyword"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadyIndex:
    """What the mappings say about the indices behind a name, which all have esdedup's fields."""

    # The names of the articles' fields.
    fields: Fields
    # The field that sources are counted by; None if it cannot be aggregated.
    source_field: str | None
    # True for one index with articles routed by root: then each cluster is on one shard.
    is_routed_by_root: bool
    # By index.
    mappings: dict[str, dict[str, Any]]
    # Which of title, text and source no search finds anything in, by name, and an index that does not map it.
    unsearchable: dict[str, str]

    @property
    def keyword_fields(self) -> list[str]:
        """The further fields that articles can be chosen by, see `choices.keyword_fields`."""
        return keyword_fields(self.mappings, self.fields)

    @property
    def uneven_fields(self) -> list[str]:
        """The fields that articles cannot be chosen by only because the indices' mappings differ."""
        of_each = [_source_field({index: mapping}, self.fields) for index, mapping in self.mappings.items()]
        source = [self.fields.source] if self.source_field is None and any(of_each) else []
        return source + uneven_fields(self.mappings, self.fields)

    def refuse_unsearchable(self, *names: str) -> None:
        """Make sure that articles can be found by one of some fields, of title, text and source.

        Raises:
            IndexNotReady: By none.
        """
        if self.unsearchable.keys() >= set(names):
            index = self.unsearchable[names[0]]
            raise IndexNotReady(
                f"the index {index!r} does not map the field {' or '.join(map(repr, names))}, so nothing is "
                "found by it: name the field that the articles have, and set the index up with that name, "
                "which maps it; articles that are in the index already have to be indexed again",
                index=index,
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """The names of the articles' fields, and what assigns a text that is not indexed: forest, profile, pins.

    Raises:
        SettingError: The forest's name cannot name one index; or the pins would have no effect.
    """

    # None: those that an index keeps.
    fields: Fields | None = None
    forest: str = DEFAULT_FOREST
    profile: Profile = DEFAULT
    pins: Pins = NO_PINS
    tuning: Tuning = Tuning()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        check_index_name(self.forest)
        refuse_useless(self.pins, keep_boilerplate=self.profile.keep_boilerplate)

    def ready(self, index: str, *, is_fresh: bool = False) -> Requests[ReadyIndex]:
        """Check that every index behind a name has the fields; one without them would make counts wrong.

        Args:
            index: An index, alias or pattern.
            is_fresh: Read the mappings anew instead of using those of the last few seconds.

        Raises:
            IndexNotReady: There is no such index, or one lacks the fields.
            SettingError: The name is empty, or not a string.
        """
        mappings = yield from _mappings(index, is_fresh=is_fresh)
        fields = fields_of(mappings, given=self.fields)
        check_mappings(mappings, fields)
        return ReadyIndex(
            fields=fields,
            source_field=_source_field(mappings, fields),
            is_routed_by_root=len(mappings) == 1 and all(map(is_routed_by_root, mappings.values())),
            mappings=mappings,
            unsearchable=_unsearchable(mappings, fields),
        )

    def fields_of(self, index: str) -> Requests[Fields]:
        """Return the names of the articles' fields behind a name, whether they are mapped or not.

        Args:
            index: An index, alias or pattern.

        Raises:
            IndexNotReady: There is no such index, or several that keep different names.
            SettingError: The name is empty, or not a string.
        """
        return fields_of((yield from _mappings(index)), given=self.fields)


def _mappings(index: str, *, is_fresh: bool = False) -> Requests[dict[str, dict[str, Any]]]:
    """Read the mappings behind a name; there is at least one, and none is a forest's."""
    if not isinstance(index, str):
        raise SettingError(
            f"the index is a {type(index).__name__}, not a string; separate several names by commas"
        )
    if not index:
        raise SettingError("the name of the index is empty")
    mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=index, is_fresh=is_fresh)
    if not mappings:
        raise IndexNotReady(f"there is no index {index!r}", index=index, status=404)
    refuse_forests(mappings)
    return mappings


def _source_field(mappings: dict[str, dict[str, Any]], fields: Fields) -> str | None:
    """Return the name under which sources can be counted in all of the indices, None if there is none."""
    sources = [mapping_of(mapping, fields.source) for mapping in mappings.values()]
    if all(source.get("type") != "text" for source in sources):
        return fields.source
    subfields = (source.get("fields", {}).get(_SUBFIELD, {}) for source in sources if source)
    if all(subfield.get("type") == "keyword" for subfield in subfields):
        return f"{fields.source}.{_SUBFIELD}"
    return None


def _unsearchable(mappings: dict[str, dict[str, Any]], fields: Fields) -> dict[str, str]:
    """Return which of title, text and source cannot be searched, each with an index that does not map it.

    An index that maps what comes lacks a field only while no article has it. That counts if all lack it: the
    name may be wrong.
    """
    found: dict[str, str] = {}
    for name in (fields.title, fields.text, fields.source):
        lacking = [index for index, mapping in mappings.items() if not is_mapped(mapping, name)]
        hidden = [index for index in lacking if hides_new_fields(mappings[index])]
        if hidden or len(lacking) == len(mappings):
            found[name] = next(iter(hidden or lacking))
    return found
