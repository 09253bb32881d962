"""A reader's configuration, and the properties of an index that its mappings show."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from esdedup.elastic import limits
from esdedup.elastic.mappings import check_mappings, hides_new_fields, is_set_up, refuse_forests
from esdedup.elastic.meta import (
    fields_of,
    former_objects,
    is_mapped,
    is_routed_by_root,
    mapping_of,
    objects_of,
)
from esdedup.elastic.requests import ReadFilters, ReadMappings, Requests
from esdedup.errors import IndexNotReady, SettingError
from esdedup.fields import Fields

# The keyword subfield that Elasticsearch's default mapping gives a text field.
_SUBFIELD = "keyword"
_KEYWORDS = frozenset({"keyword", "constant_keyword"})
# Elasticsearch accepts at most 4,096 bytes of method, path and parameters.
_MAX_NAMES_LENGTH = 3_000
# Fields of the dedup object that are missing in indices set up by versions without excerpts.
_OPTIONAL = ("part_of", "has_part")
LANGUAGE_FIELDS = ("language", "lang")
"""Names of fields for the language of an article."""
IndexName = Annotated[str, "An index, alias or pattern."]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
    """The sizes above which counts are estimated or reading stops. Tests use small values."""

    # Up to this many matching articles, searches visit only the roots of matches.
    few_articles: int = 10_000
    # Above this many matching articles, the number of rows is estimated from some of the 256 partitions.
    many_articles: int = 300_000
    # The number of partitions in that estimate, whose error is a few per cent.
    estimate_partitions: int = 8
    # A page sorted by time is cut short after reading this many articles, plus `read_articles_per_row` per
    # row up to the page's end; that takes a few seconds. If most are reprints, a row needs about 4 articles.
    read_articles: int = 20_000
    read_articles_per_row: int = 5
    # In larger indices, the newest articles are searched in a span of time that would contain `span_margin`
    # times as many articles as needed if articles were spread evenly over time.
    spanned_articles: int = 20_000
    span_margin: float = 50
    # Rows are counted up to this number; a larger number of rows is estimated.
    exact_rows: int = 10_000
    # About how many roots are inspected to estimate how many rows pass the filters by count.
    inspected_roots: int = 8_000
    # If the first roots do not prove the order by count, each shard next sends at least this many.
    first_roots: int = 1_000
    # The maximum number of roots that all shards together send to prove an order.
    sent_roots: int = 300_000
    # The maximum number of roots in one response or query: one less than Elasticsearch's limit on buckets.
    max_roots: int = limits.MAX_BUCKETS - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckedIndex:
    """The indices behind a name that are set up, and the properties that their mappings show."""

    name: str
    # The name to search, or a list of the set-up indices if the name also covers other indices.
    index: str
    not_set_up: tuple[str, ...]
    # The names of the articles' fields.
    fields: Fields
    # The field that sources are counted by; None if it cannot be aggregated.
    source_field: str | None
    # True for one index with articles routed by root: then each cluster is on one shard.
    is_routed_by_root: bool
    # The mapping of each index.
    mappings: dict[str, dict[str, Any]]
    # The title, text and source fields that cannot be searched, each with an index that does not map it.
    unsearchable: dict[str, str]

    @property
    def keyword_fields(self) -> list[str]:
        """Further keyword fields that all indices have; languages first, then short names."""
        return _languages_first(set.intersection(*self._keyword_fields_of_each()))

    @property
    def uneven_fields(self) -> list[str]:
        """Fields that cannot be used as filters, because the indices map them differently."""
        of_each = [_source_field({index: mapping}, self.fields) for index, mapping in self.mappings.items()]
        source = [self.fields.source] if self.source_field is None and any(of_each) else []
        some = set.union(*self._keyword_fields_of_each())
        uneven = some.difference(self.keyword_fields)
        return source + _languages_first({name.removesuffix(f".{_SUBFIELD}") for name in uneven})

    @property
    def former_objects(self) -> list[str]:
        """The objects with the roots that articles had before migrations, newest first."""
        former = dict.fromkeys(each for mapping in self.mappings.values() for each in former_objects(mapping))
        return [*reversed(former)]

    def _keyword_fields_of_each(self) -> list[set[str]]:
        fields = self.fields
        objects = [name for each in self.mappings.values() for name in objects_of(each)]
        written = tuple(f"{each}." for each in (fields.dedup, *objects))
        own = {fields.title, fields.text, fields.time, fields.source, fields.link, fields.site}
        return [
            {
                chosen_by
                for name, mapping in _with_names(of_index.get("properties", {}))
                if name not in own
                and not name.startswith(written)
                and (chosen_by := _chosen_by(name, mapping))
            }
            for of_index in self.mappings.values()
        ]

    def required_source_field(self) -> str:
        """Return the field that sources are counted by, or raise a `SettingError`."""
        if self.source_field is None:
            raise SettingError(
                f"the sources in {self.name!r} cannot be matched or grouped: the field "
                f"{self.fields.source!r} is mapped as text; map it as keyword, or name another field"
            )
        return self.source_field

    def refuse_unsearchable(self, *names: str) -> None:
        """Raise `IndexNotReady` unless at least one of the fields (title, text or source) can be searched."""
        if self.unsearchable.keys() >= set(names):
            index = self.unsearchable[names[0]]
            raise IndexNotReady(
                f"the index {index!r} does not map the field {' or '.join(map(repr, names))}, so it cannot "
                "be searched: set the index up with the name of its articles' field, so that the field is "
                "mapped, and index the existing articles again",
                index=index,
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """A reader's configuration: names of articles' fields, and the sizes above which counts are estimated."""

    # None means the names that an index stores.
    fields: Fields | None = None
    tuning: Tuning = Tuning()
    # The mappings that were checked last, and the result, so that they are not checked for each request.
    _last: dict[str, tuple[dict[str, Any], CheckedIndex]] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    def check(self, index: str, *, is_fresh: bool = False) -> Requests[CheckedIndex]:
        """Check the indices behind a name; leave out indices that are not set up, such as a forest.

        Mappings may be a few seconds old, unless `is_fresh`.
        """
        found = yield from mappings_of(index, is_fresh=is_fresh)
        mappings_then, ready = self._last.get(index, (None, None))
        if ready is not None and found is mappings_then:
            return ready
        mappings = self._set_up(found)
        not_set_up = tuple(sorted(found.keys() - mappings.keys()))
        if not_set_up:
            yield from _refuse_inseparable(index, not_set_up[0], mappings)
        fields = fields_of(mappings, given=self.fields)
        check_mappings(mappings, fields, optional=_OPTIONAL)
        ready = CheckedIndex(
            name=index,
            index=",".join(mappings) if not_set_up else index,
            not_set_up=not_set_up,
            fields=fields,
            source_field=_source_field(mappings, fields),
            is_routed_by_root=len(mappings) == 1 and all(map(is_routed_by_root, mappings.values())),
            mappings=mappings,
            unsearchable=_unsearchable(mappings, fields),
        )
        self._last.clear()
        if not not_set_up:
            self._last[index] = found, ready
        return ready

    def fields_of(self, index: IndexName) -> Requests[Fields]:
        """Return the names of the articles' fields: as given to the reader, or as stored in the index.

        `setup` stores them. An index that stores no names has the default names, ``Fields()``.

        Raises:
            IndexNotReady: The index is missing, or several indices store different names.
        """
        mappings = yield from mappings_of(index)
        refuse_forests(mappings)
        return fields_of(self._set_up(mappings), given=self.fields)

    def _set_up(self, mappings: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        found = {name: each for name, each in mappings.items() if is_set_up(each, given=self.fields)}
        return found or mappings


def mappings_of(index: str, *, is_fresh: bool = False) -> Requests[dict[str, dict[str, Any]]]:
    """Return the mappings of the indices behind a name; raise `IndexNotReady` if there are none."""
    if not isinstance(index, str):
        raise SettingError(
            f"the index is a {type(index).__name__}, not a string; separate several names by commas"
        )
    if not index:
        raise SettingError("the name of the index is empty")
    mappings: dict[str, dict[str, Any]] = yield ReadMappings(index=index, is_fresh=is_fresh)
    if not mappings:
        raise IndexNotReady(f"there is no index {index!r}", index=index, status=404)
    return mappings


def _refuse_inseparable(name: str, other: str, mappings: Iterable[str]) -> Requests[None]:
    """Raise `IndexNotReady` if an alias cannot be replaced by the names of its other indices."""
    filtered = yield ReadFilters(index=name)
    if filtered or len(",".join(mappings)) > _MAX_NAMES_LENGTH:
        raise IndexNotReady(
            f"the index {other!r} behind {name!r} is not set up, and cannot be left out, since "
            f"{'the alias has a filter' if filtered else 'there are too many other indices to name'}",
            index=other,
            missing_fields=(Fields().root,),
        )


def _source_field(mappings: dict[str, dict[str, Any]], fields: Fields) -> str | None:
    """Return the field by which sources can be counted in all indices, or None."""
    sources = [mapping_of(mapping, fields.source) for mapping in mappings.values()]
    if all(source.get("type") != "text" for source in sources):
        return fields.source
    subfields = (source.get("fields", {}).get(_SUBFIELD, {}) for source in sources if source)
    if all(subfield.get("type") == "keyword" for subfield in subfields):
        return f"{fields.source}.{_SUBFIELD}"
    return None


def _unsearchable(mappings: dict[str, dict[str, Any]], fields: Fields) -> dict[str, str]:
    """Return the title, text and source fields that cannot be searched, each with an index that lacks it.

    A dynamic mapping adds a field on its first use, so a field that some indices lack may be searchable.
    """
    found: dict[str, str] = {}
    for name in (fields.title, fields.text, fields.source):
        lacking = [index for index, mapping in mappings.items() if not is_mapped(mapping, name)]
        hidden = [index for index in lacking if hides_new_fields(mappings[index])]
        if hidden or len(lacking) == len(mappings):
            found[name] = next(iter(hidden or lacking))
    return found


def _languages_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (not is_language(name), len(name), name))


def is_language(name: str) -> bool:
    """Return whether a field, judging by its name, contains the language of an article."""
    return name.removesuffix(f".{_SUBFIELD}").rpartition(".")[2].lower() in LANGUAGE_FIELDS


def _with_names(properties: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield fields, including fields of objects, with their full names; skip subfields."""
    for name, mapping in properties.items():
        yield parent + name, mapping
        # The objects of a nested field are separate documents, which plain filters do not find.
        if mapping.get("type") != "nested":
            yield from _with_names(mapping.get("properties", {}), f"{parent}{name}.")


def _chosen_by(name: str, mapping: Mapping[str, Any]) -> str | None:
    """Return the field to filter by, if any: this field, or the keyword subfield of a language field."""
    if mapping.get("type") == "text" and is_language(name):
        name, mapping = f"{name}.{_SUBFIELD}", mapping.get("fields", {}).get(_SUBFIELD, {})
    can_be_chosen = (
        mapping.get("type") in _KEYWORDS
        and mapping.get("index") is not False
        and mapping.get("doc_values") is not False
    )
    return name if can_be_chosen else None
