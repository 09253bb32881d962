"""Requests to Elasticsearch as values, and operations that yield them.

An operation is a generator. It yields a request, is sent the answer, and returns its result::

    def count(index: str, query: Query) -> Requests[int]:
        body = {"query": query, "size": 0, "track_total_hits": True}
        (response,) = yield Search(index=index, bodies=[body])
        return response["hits"]["total"]["value"]

`execute` runs an operation with a synchronous client, `execute_async` with an asynchronous one. So each
operation is written once for both, and can be read and tested without a server. Operations
use each other with ``yield from``.
"""

import dataclasses
import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar, cast

_Result = TypeVar("_Result")
_Sent = TypeVar("_Sent")
_Item = TypeVar("_Item")

Query = dict[str, Any]
"""A query of Elasticsearch, such as ``{"match": {"title": "..."}}``, or the body of a search."""

UNREAD = "unread"
"""Name of helper aggregations, which other aggregations use; stripped from the response."""

POINT_KEEP_ALIVE = "5m"
"""How long a point in time lasts without a search."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """Run searches side by side. The response is a list, one answer each; partial results are an error."""

    index: str
    bodies: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchPoint:
    """Search in a point in time. The response is the answer; None if the server has forgotten the point."""

    # For messages; the body names the point.
    index: str
    body: Query


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenPointInTime:
    """Freeze what searches see, for some minutes. The response is the id of the point in time."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosePointInTime:
    """Close a point in time. The response is None."""

    index: str
    point: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadDocument:
    """Get a document by its id, even before a refresh. The response is its source, or None."""

    index: str
    id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Write:
    """Write documents, each on a condition. The response is the list of their statuses."""

    # For messages; each operation names its own.
    index: str
    operations: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadMappings:
    """Get the mappings behind a name. The response is a dict from index to mapping; empty if none exist."""

    index: str
    # Whether the cache of mappings must be bypassed.
    is_fresh: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadFilters:
    """Ask which indices are searched with an alias's filter. The response is a list of their names."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refresh:
    """Make writes visible to searches, if the client has the privilege. The response says nothing."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskOwner:
    """Ask the forest's owner about a text. The response is its `Assignment`; None if no owner can say."""

    text: str
    # None if it is not known.
    site: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadClock:
    """Read the clock. The response is milliseconds since 1970."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recall:
    """Return the answer to a search that was kept some seconds ago; None if there is none."""

    index: str
    body: Query


@dataclasses.dataclass(frozen=True, kw_only=True)
class Keep:
    """Keep the answer to a search for some seconds. The response is None."""

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
    """Run searches side by side; return their answers."""
    answers: list[Any] = yield Search(index=index, bodies=bodies)
    return answers


def stored_document(index: str, document_id: str) -> Requests[dict[str, Any] | None]:
    """Return the source of a document, even before a refresh; None if there is none."""
    found: dict[str, Any] | None = yield ReadDocument(index=index, id=document_id)
    return found


def clock_ms() -> Requests[int]:
    """Return the time in milliseconds since 1970."""
    now_ms: int = yield ReadClock()
    return now_ms


def recall(index: str, body: Query) -> Requests[Any]:
    """Return the answer to a search that was kept some seconds ago; None if there is none."""
    return (yield Recall(index=index, body=body))


def keep(index: str, body: Query, answer: Any) -> Requests[None]:
    """Keep the answer to a search for some seconds."""
    yield Keep(index=index, body=body, answer=answer)


def answered(
    operation: Requests[_Result], answer: Callable[[Request], Generator[_Sent, Any, Any]]
) -> Generator[_Sent, Any, _Result]:
    """Run an operation whose requests a generator answers, and whose errors it gets; return the result."""
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
    """Run an operation, sending further searches with its first one; return its result and their answers."""
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
    """Search, unless the answer is known from some seconds ago; return it."""
    answer = yield from recall(index, body)
    if answer is None:
        (answer,) = yield from search(index, body)
        yield from keep(index, body, answer)
    return answer


def aggregate(index: str, query: Query, aggregations: Query) -> Requests[dict[str, Any]]:
    """Aggregate the documents that match; return the aggregations."""
    (answer,) = yield from search(index, {"query": query, "size": 0, "aggs": aggregations})
    return cast(dict[str, Any], answer["aggregations"])


def chunks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Cut a sequence into pieces of at most `size`."""
    return (items[at : at + size] for at in range(0, len(items), size))
