"""`Reader` and `AsyncReader` read indices of articles. Neither takes the forest's lease.

An operation is a function that yields requests, is sent their answers, and returns its result. A method runs
one with a blocking or an async client, and takes its signature and docstring from it.
"""

import asyncio
import contextlib
import copy
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.arguments import checked
from esdedup.boilerplate.pins import NO_PINS, Pins
from esdedup.elastic.execute import ServerCache, execute, execute_async
from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.names import DEFAULT_FOREST
from esdedup.elastic.requests import Requests
from esdedup.errors import ForestMissing, IndexNotReady
from esdedup.fields import Fields
from esdedup.fingerprint.profile import DEFAULT, Profile, get_profile
from esdedup.reading.articles import article
from esdedup.reading.clusters import cluster, similar, with_fingerprint
from esdedup.reading.explanation import explain_articles
from esdedup.reading.lists import list_rows
from esdedup.reading.overview import overview
from esdedup.reading.search_form import search_query
from esdedup.reading.sources import source_field, source_names, sources
from esdedup.reading.texts import ForestScope, left_out_of_text, similar_to_text
from esdedup.reading.timeline import timeline
from esdedup.reading.versions import versions

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)
_NOT_FOUND = 404
_Operation = Callable[Concatenate[ForestScope, _Params], Requests[_Result]]


class _Reading(Generic[_Client]):
    """A client, and the operations that it runs."""

    def __init__(self, client: _Client, scope: ForestScope, *, refresh_interval_s: float) -> None:
        self._client: _Client = client
        self._scope = scope
        self._known = ServerCache(refresh_interval_s=refresh_interval_s)
        # Asks the forest's owner, if that is in this process.
        self._ask_owner: Any = None

    @contextlib.contextmanager
    def _noticing_deletion(self) -> Iterator[None]:
        """Let an operation say so if the forest was deleted while its mapping was still known."""
        try:
            yield
        except IndexNotReady as error:
            if error.index == self._scope.forest and error.status == _NOT_FOUND:
                raise ForestMissing.of(self._scope.forest) from error
            raise


def _described_by(method: Callable[..., Any], operation: Callable[..., Requests[Any]], name: str) -> None:
    """Give a method the docstring and parameters of an operation, and the type of its result."""
    signature = inspect.signature(operation)
    scope, *parameters = signature.parameters.values()
    result = typing.get_args(signature.return_annotation)[-1]
    method.__name__ = method.__qualname__ = name
    method.__doc__ = operation.__doc__
    method.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": result}
    itself = inspect.Parameter("self", scope.kind)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *parameters], return_annotation=result
    )


def _blocking(
    operation: _Operation[_Params, _Result], name: str = ""
) -> Callable[Concatenate[_Reading[Elasticsearch], _Params], _Result]:
    """Turn an operation into a method that returns its result; it has the same name, or another."""

    def method(self: _Reading[Elasticsearch], /, *args: _Params.args, **options: _Params.kwargs) -> _Result:
        requests = operation(self._scope, *args, **options)
        with self._noticing_deletion():
            return execute(self._client, requests, known=self._known, ask_owner=self._ask_owner)

    _described_by(method, operation, name or operation.__name__)
    return method


def _awaited(
    operation: _Operation[_Params, _Result], name: str = ""
) -> Callable[Concatenate[_Reading[AsyncElasticsearch], _Params], Coroutine[Any, Any, _Result]]:
    """Turn an operation into an async method that returns its result."""

    async def method(
        self: _Reading[AsyncElasticsearch], /, *args: _Params.args, **options: _Params.kwargs
    ) -> _Result:
        requests = operation(self._scope, *args, **options)
        with self._noticing_deletion():
            return await execute_async(self._client, requests, known=self._known, ask_owner=self._ask_owner)

    _described_by(method, operation, name or operation.__name__)
    return method


class Reader(_Reading[Elasticsearch]):
    """Reads indices of articles. May be shared between threads if its client may."""

    @checked
    def __init__(
        self,
        client: Elasticsearch,
        *,
        fields: Fields | None = None,
        forest: str = DEFAULT_FOREST,
        profile: Profile | str = DEFAULT,
        pins: Pins = NO_PINS,
        refresh_interval_s: float = 0.0,
    ) -> None:
        """Read with a client. Nothing is sent yet.

        Args:
            client: Closed by the caller.
            fields: The names of the articles' fields; None: those that an index keeps, see `fields`.
            forest: The forest's index; only `similar_to_text` and `left_out` need it.
            profile: The profile that the forest was made with, or its name; only those need it.
            pins: The pins that the forest is fed with; only those need them.
            refresh_interval_s: How old its view of the forest may be; 0 refreshes the forest for each text.

        Raises:
            SettingError: An argument is of a wrong type, the forest's name cannot name one index, or the pins
                would have no effect.
        """
        scope = ForestScope(fields=fields, forest=forest, profile=get_profile(profile), pins=pins)
        super().__init__(client, scope, refresh_interval_s=refresh_interval_s)

    article = _blocking(article)
    cluster = _blocking(cluster)
    explain = _blocking(explain_articles, "explain")
    fields = _blocking(ForestScope.fields_of, "fields")
    left_out = _blocking(left_out_of_text, "left_out")
    list = _blocking(list_rows, "list")
    overview = _blocking(overview)
    search_query = _blocking(search_query)
    similar = _blocking(similar)
    similar_to_text = _blocking(similar_to_text)
    source_field = _blocking(source_field)
    source_names = _blocking(source_names)
    sources = _blocking(sources)
    timeline = _blocking(timeline)
    versions = _blocking(versions)
    with_fingerprint = _blocking(with_fingerprint)


class AsyncReader(_Reading[AsyncElasticsearch]):
    """Reads indices of articles with an async client."""

    @checked
    def __init__(
        self,
        client: AsyncElasticsearch,
        *,
        fields: Fields | None = None,
        forest: str = DEFAULT_FOREST,
        profile: Profile | str = DEFAULT,
        pins: Pins = NO_PINS,
        refresh_interval_s: float = 0.0,
    ) -> None:
        """Read with an async client, which the caller closes; the other parameters are those of `Reader`."""
        scope = ForestScope(fields=fields, forest=forest, profile=get_profile(profile), pins=pins)
        super().__init__(client, scope, refresh_interval_s=refresh_interval_s)

    @classmethod
    @checked
    def like(cls, reader: Reader, client: AsyncElasticsearch) -> "AsyncReader":
        """Return what reads as `reader` does, with an async client, which the caller closes."""
        other = cls.__new__(cls)
        _Reading.__init__(
            other,
            client,
            dataclasses.replace(reader._scope, learned=LearnedCopy()),
            refresh_interval_s=reader._known.refresh_interval_s,
        )
        if reader._ask_owner is not None:
            other._ask_owner = functools.partial(asyncio.to_thread, reader._ask_owner)
        return other

    @checked
    def with_client(self, client: AsyncElasticsearch) -> "AsyncReader":
        """Return a reader that differs in its client, such as one with another caller's credentials.

        Both know what either has read of mappings and of learned boilerplate; all else is asked each time.

        Args:
            client: Closed by the caller.
        """
        other = copy.copy(self)
        other._client = client
        return other

    article = _awaited(article)
    cluster = _awaited(cluster)
    explain = _awaited(explain_articles, "explain")
    fields = _awaited(ForestScope.fields_of, "fields")
    left_out = _awaited(left_out_of_text, "left_out")
    list = _awaited(list_rows, "list")
    overview = _awaited(overview)
    search_query = _awaited(search_query)
    similar = _awaited(similar)
    similar_to_text = _awaited(similar_to_text)
    source_field = _awaited(source_field)
    source_names = _awaited(source_names)
    sources = _awaited(sources)
    timeline = _awaited(timeline)
    versions = _awaited(versions)
    with_fingerprint = _awaited(with_fingerprint)


_AnyReader = TypeVar("_AnyReader", Reader, AsyncReader)


def asking_owner(reader: _AnyReader, ask: Callable[[str, str | None], Any]) -> _AnyReader:
    """Return a reader that asks the forest's owner, which is in this process, about texts.

    Args:
        reader: Any.
        ask: What `execute` takes for a `Reader`, or `execute_async` for an `AsyncReader`.
    """
    other = copy.copy(reader)
    other._ask_owner = ask
    return other
