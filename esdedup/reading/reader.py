"""`Reader` and `AsyncReader`: what a program uses to read an index. Neither needs the forest's lease.

Every method is one operation of `esdedup.reading`, carried out by a client that waits or by one that is
awaited; parameters and errors are told there.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.execute import Mappings, execute, execute_async
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.requests import Requests
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.reading import articles, cluster_members, lists, text_lookup
from esdedup.reading.scope import Scope

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)


class _Reading(Generic[_Client]):
    """What both kinds of reader are made of."""

    def __init__(
        self,
        client: _Client,
        *,
        fields: Fields = Fields(),  # noqa: B008 - frozen
        forest: str = DEFAULT_FOREST,
        profile: Profile = DEFAULT,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            client: Stays the caller's, who closes it.
            fields: The names of the articles' fields.
            forest: Name of the forest's index; only `similar_to_text` asks it.
            profile: The forest's.
        """
        self._client: _Client = client
        self._scope = Scope(fields=fields, forest=forest, profile=profile)
        self._known = Mappings()


def _waiting(
    operation: Callable[Concatenate[Scope, _Params], Requests[_Result]],
) -> Callable[Concatenate[_Reading[Elasticsearch], _Params], _Result]:
    """Make a method of an operation."""

    @functools.wraps(operation)
    def method(self: _Reading[Elasticsearch], /, *args: _Params.args, **options: _Params.kwargs) -> _Result:
        return execute(self._client, operation(self._scope, *args, **options), known=self._known)

    return method


def _awaited(
    operation: Callable[Concatenate[Scope, _Params], Requests[_Result]],
) -> Callable[Concatenate[_Reading[AsyncElasticsearch], _Params], Awaitable[_Result]]:
    """Make a method of an operation, to be awaited."""

    @functools.wraps(operation)
    async def method(
        self: _Reading[AsyncElasticsearch], /, *args: _Params.args, **options: _Params.kwargs
    ) -> _Result:
        steps = operation(self._scope, *args, **options)
        return await execute_async(self._client, steps, known=self._known)

    return method


class Reader(_Reading[Elasticsearch]):
    """Answers from indices of articles. May be used by several threads at once, if its client may."""

    list = _waiting(lists.list_rows)
    similar = _waiting(cluster_members.similar)
    sources = _waiting(cluster_members.sources)
    article = _waiting(articles.article)
    timeline = _waiting(articles.timeline)
    source_names = _waiting(articles.source_names)
    source_field = _waiting(articles.source_field)
    similar_to_text = _waiting(text_lookup.similar_to_text)


class AsyncReader(_Reading[AsyncElasticsearch]):
    """The same, with a client that is awaited."""

    list = _awaited(lists.list_rows)
    similar = _awaited(cluster_members.similar)
    sources = _awaited(cluster_members.sources)
    article = _awaited(articles.article)
    timeline = _awaited(articles.timeline)
    source_names = _awaited(articles.source_names)
    source_field = _awaited(articles.source_field)
    similar_to_text = _awaited(text_lookup.similar_to_text)
