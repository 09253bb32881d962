"""Requests to Elasticsearch as values, and operations that yield them.

An operation is a generator. It yields a request, is sent the response, and returns its result::

    def latest(index: str, field: str) -> Requests[str]:
        body = {"size": 1, "sort": [{field: "desc"}]}
        (response,) = yield Search(index=index, bodies=[body])
        return response["hits"]["hits"][0]["_id"]

`execute` runs an operation with a synchronous client, `execute_async` with an asynchronous client. Each
operation is thus written once for both, and can be tested without a server. Operations call other
operations with ``yield from``.
"""

import dataclasses
import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar, cast

_Result = TypeVar("_Result")
_Sent = TypeVar("_Sent")
_Item = TypeVar("_Item")

Query = dict[str, Any]
"""An Elasticsearch query, such as ``{"match": {"title": "..."}}``, or the body of a search."""

UNREAD = "unread"
"""The name of aggregations that only other aggregations use; their results are left out of the response."""

POINT_KEEP_ALIVE = "5m"
"""How long a point in time lasts without a search."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """Run searches in one request. The response is a list of responses; partial results are an error."""

    index: str
    bodies: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchPoint:
    """Search in a point in time. The response is None if the server has lost the point in time."""

    # Used only in messages, since the body names the point in time.
    index: str
    body: Query


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenPointInTime:
    """Open a point in time, a snapshot for searches. The response is its id."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosePointInTime:
    """Close a point in time. The response is None."""

    index: str
    point: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadDocument:
    """Get a document by its id, even before a refresh. The response is the document's source, or None."""

    index: str
    id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Write:
    """Write documents in bulk. The response is the list of their statuses."""

    # Used only in messages, since each operation names its own index.
    index: str
    operations: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadMappings:
    """Get the mappings of an index, alias or pattern. The response maps each index to its mapping."""

    index: str
    # Whether to bypass the cache of mappings.
    is_fresh: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadFilters:
    """Find the indices that an alias searches with a filter. The response is a list of their names."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refresh:
    """Make writes visible to searches, if the client has the privilege. The response has no meaning."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskOwner:
    """Ask the forest's owner about a text. The response is its `Assignment`; None if no owner answers."""

    text: str
    # None if the site is not known.
    site: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadClock:
    """Read the clock. The response is milliseconds since 1970."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recall:
    """Look up the response to a search in the cache. The response is None if it is not cached."""

    index: str
    body: Query


@dataclasses.dataclass(frozen=True, kw_only=True)
class Keep:
    """Cache the response to a search for a few seconds. The response to this request is None."""

    index: str
    body: Query
    answer: Any


ServerRequest = (
    Search
    | SearchPoint
    | OpenPointInTime
    | ClosePointInTime
    | ReadDocument
    | Write
    | ReadMappings
    | ReadFilters
    | Refresh
)
"""A request that a server answers."""

Request = ServerRequest | AskOwner | ReadClock | Recall | Keep
Requests = Generator[Request, Any, _Result]
"""An operation that returns a `_Result`."""


def refresh(index: str) -> Requests[None]:
    """Make writes visible to searches, if the client has the privilege."""
    yield Refresh(index=index)


def search(index: str, *bodies: Query) -> Requests[list[Any]]:
    """Run searches in one request; return their responses."""
    answers: list[Any] = yield Search(index=index, bodies=bodies)
    return answers


def count(index: str, query: Query) -> Requests[int]:
    """Count the documents that match; the count API would ignore shards that are unavailable."""
    (answer,) = yield from search(index, {"query": query, "size": 0, "track_total_hits": True})
    return int(answer["hits"]["total"]["value"])


def answered(
    operation: Requests[_Result], answer: Callable[[Request], Generator[_Sent, Any, Any]]
) -> Generator[_Sent, Any, _Result]:
    """Run an operation and return its result; `answer` answers each request, or raises an error."""
    step: Callable[[], Request] = functools.partial(next, operation)
    while True:
        try:
            request = step()
        except StopIteration as end:
            return cast(_Result, end.value)
        try:
            found = yield from answer(request)
        except Exception as error:
            step = functools.partial(operation.throw, error)
        else:
            step = functools.partial(operation.send, found)


def carrying(operation: Requests[_Result], index: str, *bodies: Query) -> Requests[tuple[_Result, list[Any]]]:
    """Run an operation, adding searches to its first search; return its result and the added responses."""
    answers: list[Any] | None = None

    def answer(request: Request) -> Requests[Any]:
        nonlocal answers
        if answers is not None or not isinstance(request, Search) or request.index != index:
            return (yield request)
        found = yield dataclasses.replace(request, bodies=[*request.bodies, *bodies])
        answers = found[len(request.bodies) :]
        return found[: len(request.bodies)]

    result = yield from answered(operation, answer)
    if answers is None:
        answers = (yield from search(index, *bodies)) if bodies else []
    return result, answers


def recent(index: str, body: Query) -> Requests[Any]:
    """Return the response to a search, from the cache if possible."""
    answer = yield Recall(index=index, body=body)
    if answer is None:
        (answer,) = yield from search(index, body)
        yield Keep(index=index, body=body, answer=answer)
    return answer


def aggregate(index: str, query: Query, aggregations: Query) -> Requests[dict[str, Any]]:
    """Return the results of aggregations over the matching documents."""
    (answer,) = yield from search(index, {"query": query, "size": 0, "aggs": aggregations})
    return cast(dict[str, Any], answer["aggregations"])


def chunks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Split a sequence into pieces of at most `size` items."""
    return (items[at : at + size] for at in range(0, len(items), size))
