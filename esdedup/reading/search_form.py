"""The query that a search form describes, for an index that can be searched so."""

import dataclasses
from collections.abc import Mapping

from esdedup.elastic.requests import Query, Requests
from esdedup.errors import SettingError
from esdedup.reading.choices import Choices, Values, distinct
from esdedup.reading.cluster_members import require_source_field
from esdedup.reading.queries import narrowed
from esdedup.reading.scope import ReadyIndex, Scope

_MOST_NAMED = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchForm:
    """What a search form asks for; see `Operations.search_query`."""

    words: str | None
    since: str | None
    until: str | None
    source: Values | None
    where: Mapping[str, Values] | None

    def query(self, ready: ReadyIndex, choices: Choices | None = None) -> Query | None:
        """Return the query, with some choices; None if nothing is asked for."""
        fields = ready.fields
        if self.words and self.words.strip():
            ready.refuse_unsearchable(fields.title, fields.text)
        filters = choices.filters() if choices else []
        return narrowed(self.words, fields=fields, since=self.since, until=self.until, filters=filters)

    def choices(self, index: str, ready: ReadyIndex) -> Choices:
        """Return the chosen values.

        Raises:
            SettingError: Articles cannot be chosen by a field, or a value cannot be one.
            IndexNotReady: The source field is not mapped.
        """
        chosen: dict[str, tuple[str, ...]] = {}
        if sources := distinct("source", self.source):
            ready.refuse_unsearchable(ready.fields.source)
            chosen[require_source_field(index, ready)] = sources
        for name, given in (self.where or {}).items():
            if values := distinct(name, given):
                _check_field(name, index, ready)
                chosen[name] = values
        return Choices(chosen)


def search_query(scope: Scope, index: str, form: SearchForm) -> Requests[Query | None]:
    """Return the query of a form; see `Operations.search_query`."""
    ready = yield from scope.ready(index)
    return form.query(ready, form.choices(index, ready))


def _check_field(name: str, index: str, ready: ReadyIndex) -> None:
    known = ready.keyword_fields
    if name not in known:
        named = ", ".join(known[:_MOST_NAMED]) + (", …" if len(known) > _MOST_NAMED else "")
        raise SettingError(
            f"articles in {index!r} cannot be chosen by {name!r:.100}: it is no further keyword field of the "
            f"index; {f'these are: {named}' if known else 'it has none'}"
        )
