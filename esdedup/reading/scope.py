"""What a reader knows before it asks: names of fields, and which indices are ready."""

import dataclasses
from typing import Any

from esdedup.elastic.mappings import check_mappings, is_routed_by_root
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.requests import ReadMappings, Requests
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile

# Keyword under a text field, as Elasticsearch makes it when nobody says anything.
_SUBFIELD = "keyword"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ready:
    """What the mappings behind a name tell of reading it."""

    # The field by which sources can be counted; None where they cannot.
    source_field: str | None
    # One index whose articles lie where their root says: each cluster is on one shard.
    is_routed_by_root: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose articles are read, and by which names."""

    fields: Fields
    # Only of a text that is not indexed: the forest that is asked, and the profile that it was made with.
    forest: str = DEFAULT_FOREST
    profile: Profile = DEFAULT

    def ready(self, index: str, *, is_fresh: bool = False) -> Requests[Ready]:
        """Make sure that every index behind the name has the fields: an answer without it would be wrong.

        Args:
            index: An index, alias or pattern.
            is_fresh: What was known some seconds ago will not do.

        Raises:
            IndexNotReady: One lacks them, or there is none; or they tell time in two ways.
            SettingError: The name is empty.
        """
        if not index:
            raise SettingError("the name of the index is empty")
        mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=index, is_fresh=is_fresh)
        if not mappings:
            raise IndexNotReady(f"there is no index {index!r}", index=index, status=404)
        check_mappings(mappings, self.fields)
        self._check_times(mappings)
        return Ready(
            source_field=_source_field(mappings, self.fields),
            is_routed_by_root=len(mappings) == 1 and all(map(is_routed_by_root, mappings.values())),
        )

    def _check_times(self, mappings: dict[str, dict[str, Any]]) -> None:
        """Refuse what sorts wrongly: nanoseconds beside milliseconds."""
        kinds = {str(_mapping_of(each, self.fields.time).get("type")) for each in mappings.values()}
        if len(kinds & {"date", "date_nanos"}) > 1:
            raise IndexNotReady(
                f"the field {self.fields.time!r} is a date in some of {', '.join(sorted(mappings))}, and "
                "date_nanos in others: their articles cannot be sorted together; read them one by one",
                index=",".join(sorted(mappings)),
            )


def _source_field(mappings: dict[str, dict[str, Any]], fields: Fields) -> str | None:
    """Return the name under which sources are counted, in all of the indices."""
    found = [_mapping_of(mapping, fields.source) for mapping in mappings.values()]
    if all(how.get("type") != "text" for how in found):
        return fields.source
    if all(how.get("fields", {}).get(_SUBFIELD, {}).get("type") == "keyword" for how in found if how):
        return f"{fields.source}.{_SUBFIELD}"
    return None


def _mapping_of(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """Return how a field is mapped, along its dots; empty where it is not."""
    for part in name.split("."):
        mapping = mapping.get("properties", {}).get(part, {})
    return mapping
