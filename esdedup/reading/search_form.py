"""Turns a search form (words, times and choices) into a query. Pure except for reading the mappings."""

import dataclasses
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated
from zoneinfo import ZoneInfo

from esdedup.elastic.limits import MAX_TERMS
from esdedup.elastic.requests import Query, Requests
from esdedup.errors import SettingError
from esdedup.fields import Fields
from esdedup.reading.queries import check_term, moment_ms
from esdedup.reading.scope import CheckedIndex, IndexName, Scope
from esdedup.times import zone_named

Values = str | Sequence[str]
"""One value of a field, or several: an article must have one of them."""
Words = Annotated[
    str | None,
    """Words that must all be in the title or in the text; ``"a phrase"``, ``a | b``, ``-without``,
        ``begin*`` and ``(group)`` work as in most search boxes. Every input is valid.""",
]
Since = Annotated[str | None, "The first moment, inclusive, ISO 8601."]
Until = Annotated[str | None, "The last moment, inclusive, ISO 8601; a day without a time is included whole."]
OneOfSources = Annotated[
    Values | None, "The exact name of a source, or of several: an article must have one of them."
]
Where = Annotated[
    Mapping[str, Values] | None,
    """Values of further keyword fields, as for `source`, such as ``{"language": ["en", "zh"]}``;
        an article must have one of the values in each field. `overview` returns the fields.""",
]
TimeZoneName = Annotated[
    str, "The zone of calendar days and of times without a zone: an IANA name, such as ``Asia/Shanghai``."
]

_MOST_NAMED = 10
# The common operators of `simple_query_string`, which never raises syntax errors.
_OPERATORS = "AND|ESCAPE|NOT|OR|PHRASE|PRECEDENCE|PREFIX|WHITESPACE"
# A quoted phrase, whose closing quote may be missing, or a word.
_PIECES = re.compile(r'"[^"]*"?|[^\s"]+')
# A word, with the operators before and after it.
_WORD = re.compile(r"(?P<before>[-+|(]*)(?P<word>.*?)(?P<after>[*)|+]*)")

_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


Choices = Mapping[str, tuple[str, ...]]
"""The values chosen for each field, by its full name; an article must have one of them in every field."""


def filters_of(choices: Choices, *, but: str | None = None) -> list[Query]:
    """Return the filters for articles with the chosen values, ignoring the choices in the field `but`."""
    return [
        {"term": {field: values[0]}} if len(values) == 1 else {"terms": {field: list(values)}}
        for field, values in choices.items()
        if field != but
    ]


def distinct(name: str, values: Values | None) -> tuple[str, ...]:
    """Return the distinct values of a field; an empty string means no value."""
    if not values:
        return ()
    found = tuple(dict.fromkeys([values] if isinstance(values, str) else values))
    if len(found) > MAX_TERMS:
        raise SettingError(f"{len(found):,} values of {name}; at most {MAX_TERMS:,} are possible")
    for each in found:
        if not isinstance(each, str):
            raise SettingError(f"the {name} {each!r:.60} must be a string, not {type(each).__name__}")
        check_term(name, each)
    return found


def values_by_field(conditions: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each field from conditions, which must be written as ``field:value``."""
    found: dict[str, list[str]] = {}
    for each in conditions:
        field, _, value = each.partition(":")
        if not field or not value:
            raise SettingError(f"{each!r:.100} must be a field and a value, such as language:en")
        found.setdefault(field, []).append(value)
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchForm:
    """The values of a search form; they are the parameters of `search_query`."""

    words: str | None = None
    since: str | None = None
    until: str | None = None
    source: Values | None = None
    where: Mapping[str, Values] | None = None
    zone: ZoneInfo = ZoneInfo("UTC")  # noqa: RUF009 - immutable

    def choices(self, ready: CheckedIndex) -> Choices:
        """Return the chosen values; raise an error if the index cannot be searched for one of them."""
        found: dict[str, tuple[str, ...]] = {}
        if sources := distinct("source", self.source):
            ready.refuse_unsearchable(ready.fields.source)
            found[ready.required_source_field()] = sources
        for name, given in (self.where or {}).items():
            if values := distinct(name, given):
                _check_field(name, ready)
                found[name] = values
        if self.words and self.words.strip():
            ready.refuse_unsearchable(ready.fields.title, ready.fields.text)
        return found

    def query(self, fields: Fields, filters: Sequence[Query] = ()) -> Query | None:
        """Return the query for words, times, and further filters; None if all are empty."""
        matched = list(filters)
        bounds = {
            "gte": moment_ms(self.since, self.zone),
            "lte": moment_ms(self.until, self.zone, is_end=True),
        }
        given = {bound: moment for bound, moment in bounds.items() if moment is not None}
        if given:
            # Milliseconds work with any date format of the field.
            matched.insert(0, {"range": {fields.published: given | {"format": "epoch_millis"}}})
        matching = [words(self.words, fields)] if self.words and self.words.strip() else []
        return {"bool": {"must": matching, "filter": matched}} if matching or matched else None


def search_query(
    scope: Scope,
    index: IndexName,
    words: Words = None,
    *,
    since: Since = None,
    until: Until = None,
    source: OneOfSources = None,
    where: Where = None,
    time_zone: TimeZoneName = "UTC",
) -> Requests[Query | None]:
    """Return the query that a search form describes, for `list`; None if the form is empty.

    Raises:
        SettingError: `since` or `until` is not a time; there is no such time zone; the source field is text,
            which cannot be matched exactly; or the index has no such keyword field.
        IndexNotReady: The index is missing, or lacks the fields that are searched.
    """
    form = SearchForm(
        words=words, since=since, until=until, source=source, where=where, zone=zone_named(time_zone)
    )
    ready = yield from scope.check(index)
    return form.query(ready.fields, filters_of(form.choices(ready)))


def words(text: str, fields: Fields) -> Query:
    """Return the query for words in the title or the text.

    All words must occur; ``"quotes"`` enclose a phrase, ``a | b`` means either, ``-word`` excludes, ``wor*``
    is the beginning of a word, and parentheses group. Chinese without spaces becomes a phrase, and so do
    words joined by punctuation, as in ``long-term``: otherwise, the standard analyser would split them into
    words that may be anywhere in the text. Text without words, such as ``!?``, matches nothing.
    """
    # The standard analyser makes tokens from letters, numbers and emoji, which are "other symbols".
    if not any(each[0] in "LN" or each == "So" for each in map(unicodedata.category, text)):
        return {"match_none": {}}
    return {
        "simple_query_string": {
            "query": " ".join(_phrased(piece) for piece in _PIECES.findall(text)),
            "fields": [f"{fields.title}^2", fields.text],
            "default_operator": "and",
            "flags": _OPERATORS,
            # A field whose type is not text matches none of the words.
            "lenient": True,
        }
    }


def _check_field(name: str, ready: CheckedIndex) -> None:
    known = ready.keyword_fields
    if name not in known:
        named = ", ".join(known[:_MOST_NAMED]) + (", …" if len(known) > _MOST_NAMED else "")
        raise SettingError(
            f"articles in {ready.name!r} cannot be filtered by {name!r:.100}: "
            f"{f'the further keyword fields are {named}' if known else 'it has no further keyword fields'}"
        )


def _phrased(piece: str) -> str:
    """Return a word as a phrase if the analyser would split it, and anything else unchanged."""
    found = _WORD.fullmatch(piece)
    if piece.startswith('"') or found is None:
        return piece
    before, word, after = found.group("before", "word", "after")
    # A prefix cannot be in a phrase, and operators within a word must stay operators.
    if after.startswith("*") or any(sign in word for sign in r"|+()*\""):
        return piece
    if _IDEOGRAPH.fullmatch(word):
        # If Chinese is indexed as bigrams, a single character is found only as a prefix.
        return f"{before}{word}*{after}"
    is_cut = len(word) > 1 and not (word.isalnum() and word.isascii())
    return f'{before}"{word}"{after}' if is_cut else piece
