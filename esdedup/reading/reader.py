"""`Reader` and `AsyncReader` read indices of articles. Neither takes the forest's lease.

An operation is a generator that yields requests, receives the responses, and returns its result. A method of
a reader runs an operation with the reader's client, and has the operation's signature and docstring.
"""

import asyncio
import copy
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.arguments import checked
from esdedup.boilerplate.overrides import NO_OVERRIDES, Overrides
from esdedup.elastic.execute import ServerCache, asking_again, execute, execute_async
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.requests import Requests
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.reading import articles, clusters, explanation, lists, search_form
from esdedup.reading import overview as overviews
from esdedup.reading import versions as stories
from esdedup.reading.clusters import ForestScope

REFRESH_INTERVAL_S = 1.0
"""Elasticsearch's default refresh interval: servers that look up texts cause no additional refreshes."""

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


class _Method(Generic[_Params, _Result]):
    """A method of both readers that runs an operation: blocking in `Reader`, async in `AsyncReader`."""

    def __init__(self, operation: Callable[Concatenate[ForestScope, _Params], Requests[_Result]]) -> None:
        self._operation = operation

    def __set_name__(self, owner: type, name: str) -> None:
        def requests(reader: "_Reading", *args: Any, **options: Any) -> Requests[Any]:
            return asking_again(lambda: self._operation(reader._scope, *args, **options), reader._known)

        def blocking(reader: "Reader", /, *args: Any, **options: Any) -> Any:
            made = requests(reader, *args, **options)
            return execute(reader._client, made, known=reader._known, ask_owner=reader._ask_owner)

        async def awaited(reader: "AsyncReader", /, *args: Any, **options: Any) -> Any:
            made, ask = requests(reader, *args, **options), reader._ask_owner
            return await execute_async(reader._client, made, known=reader._known, ask_owner=ask)

        for method in (blocking, awaited):
            _describe(method, self._operation, name)
        self._blocking, self._awaited = blocking, awaited

    @overload
    def __get__(
        self, reader: None, owner: "type[Reader]"
    ) -> Callable[Concatenate["Reader", _Params], _Result]: ...
    @overload
    def __get__(
        self, reader: None, owner: "type[AsyncReader]"
    ) -> Callable[Concatenate["AsyncReader", _Params], Coroutine[Any, Any, _Result]]: ...
    @overload
    def __get__(self, reader: "Reader", owner: type) -> Callable[_Params, _Result]: ...
    @overload
    def __get__(
        self, reader: "AsyncReader", owner: type
    ) -> Callable[_Params, Coroutine[Any, Any, _Result]]: ...

    def __get__(self, reader: Any, owner: type) -> Any:
        method = self._awaited if issubclass(owner, AsyncReader) else self._blocking
        return method if reader is None else types.MethodType(method, reader)


def _describe(method: Callable[..., Any], operation: Callable[..., Requests[Any]], name: str) -> None:
    """Give a method the docstring and parameters of an operation, and the type of its result.

    The types of shared parameters contain their descriptions: ``Annotated[int, "Results on a page"]``.
    """
    signature = inspect.signature(operation)
    scope, *parameters = signature.parameters.values()
    result = typing.get_args(signature.return_annotation)[-1]
    shared = []
    for at, each in enumerate(parameters):
        if typing.get_origin(each.annotation) is typing.Annotated:
            plain, meaning = typing.get_args(each.annotation)
            parameters[at] = each.replace(annotation=plain)
            shared.append(f"    {each.name}: {meaning}")
    about = inspect.getdoc(operation) or ""
    method.__name__ = method.__qualname__ = name
    method.__doc__ = "\n".join([about, "", "Shared args:", *shared] if shared else [about])
    method.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": result}
    itself = inspect.Parameter("self", scope.kind)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *parameters], return_annotation=result
    )


class _Reading:
    """The state and the operations of both readers."""

    _client: Any
    _scope: ForestScope
    _known: ServerCache
    # The function that asks the forest's owner, if the owner is in this process.
    _ask_owner: Any = None

    article = _Method(articles.article)
    cluster = _Method(clusters.cluster)
    explain = _Method(explanation.explain_articles)
    fields = _Method(ForestScope.fields_of)
    left_out = _Method(clusters.left_out_of_text)
    list = _Method(lists.list_rows)
    overview = _Method(overviews.overview)
    search_query = _Method(search_form.search_query)
    similar = _Method(clusters.similar)
    similar_to_text = _Method(clusters.similar_to_text)
    source_field = _Method(stories.source_field)
    source_names = _Method(stories.source_names)
    sources = _Method(stories.sources)
    timeline = _Method(overviews.timeline)
    versions = _Method(stories.versions)
    with_fingerprint = _Method(clusters.with_fingerprint)


class Reader(_Reading):
    """Reads indices of articles. May be shared between threads if its client may.

    Besides the errors in its docstring, a method may raise:

    Raises:
        ArticleNotFound: No article has that id, or it has no root.
        SettingError: A value is invalid, or a page is too deep.
        IndexNotReady: The index is missing, or lacks esdedup's fields.
        ServerError: Elasticsearch does not answer, or rejects the request.
    """

    @checked
    def __init__(
        self,
        client: Elasticsearch,
        *,
        fields: Fields | None = None,
        forest: str | None = None,
        profile: Profile | str = DEFAULT,
        overrides: Overrides = NO_OVERRIDES,
        refresh_interval_s: float = 0.0,
    ) -> None:
        """Create a reader, without sending a request.

        Args:
            client: Closed by the caller.
            fields: The names of the articles' fields; by default the names that an index stores (`fields`).
            forest: The forest's index; by default the name that an index stores, or ``esdedup-forest``.
                Only `similar_to_text`, `left_out` and `explain` use it.
            profile: The forest's profile, or its name; only these methods use it.
            overrides: The overrides of the process that feeds the forest; only these methods use them.
            refresh_interval_s: How old the reader's view of the forest may be; 0 refreshes it for each text.

        Raises:
            SettingError: An argument is of a wrong type, the forest's name is not a valid index name, or the
                overrides would have no effect.
        """
        self._client = client
        self._scope = ForestScope(
            fields=fields, given_forest=forest, profile=get_profile(profile), overrides=overrides
        )
        self._known = ServerCache(refresh_interval_s=refresh_interval_s)


class AsyncReader(_Reading):
    """Reads indices of articles with an async client."""

    @checked
    def __init__(
        self,
        client: AsyncElasticsearch,
        *,
        fields: Fields | None = None,
        forest: str | None = None,
        profile: Profile | str = DEFAULT,
        overrides: Overrides = NO_OVERRIDES,
        refresh_interval_s: float = 0.0,
    ) -> None:
        """Create a reader with an async client, which the caller closes; see `Reader` for the parameters."""
        self._client = client
        self._scope = ForestScope(
            fields=fields, given_forest=forest, profile=get_profile(profile), overrides=overrides
        )
        self._known = ServerCache(refresh_interval_s=refresh_interval_s)

    @classmethod
    @checked
    def like(cls, reader: Reader, client: AsyncElasticsearch) -> "AsyncReader":
        """Return an async reader with the settings of `reader`; the caller closes the client."""
        other = cls(client, refresh_interval_s=reader._known.refresh_interval_s)
        other._scope = dataclasses.replace(reader._scope, learned=LearnedCopy())
        if reader._ask_owner is not None:
            other._ask_owner = functools.partial(asyncio.to_thread, reader._ask_owner)
        return other

    @checked
    def with_client(self, client: AsyncElasticsearch) -> "AsyncReader":
        """Return a copy of this reader with another client, such as one with another caller's credentials.

        The two readers share the mappings and the learned boilerplate that either has read, and nothing else.

        Args:
            client: Closed by the caller.
        """
        other = copy.copy(self)
        other._client = client
        return other


_AnyReader = TypeVar("_AnyReader", Reader, AsyncReader)


def asking_owner(reader: _AnyReader, ask: Callable[[str, str | None], Any]) -> _AnyReader:
    """Return a reader that asks the owner in this process about texts; `execute` describes `ask`."""
    other = copy.copy(reader)
    other._ask_owner = ask
    return other
