"""The query that a search form describes, for an index that can be searched so."""

from esdedup.elastic.requests import Query, Requests
from esdedup.reading.cluster_members import require_source_field
from esdedup.reading.queries import narrowed
from esdedup.reading.scope import Scope


def search_query(
    scope: Scope, index: str, words: str | None, *, since: str | None, until: str | None, source: str | None
) -> Requests[Query | None]:
    """Return the query of a form; see `Operations.search_query`."""
    ready = yield from scope.ready(index)
    fields, source_field = ready.fields, None
    if words and words.strip():
        ready.refuse_unsearchable(fields.title, fields.text)
    if source:
        ready.refuse_unsearchable(fields.source)
        source_field = require_source_field(index, ready)
    return narrowed(words, fields=fields, since=since, until=until, source=source, source_field=source_field)
