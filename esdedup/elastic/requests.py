"""Requests to Elasticsearch as values, and operations that yield them.

An operation is a generator. It yields a request, is sent the answer, and returns its result::

    def count(index: str, query: Query) -> Requests[int]:
        body = {"query": query, "size": 0, "track_total_hits": True}
        (response,) = yield Search(index=index, bodies=[body])
        return response["hits"]["total"]["value"]

`execute` carries an operation out with a client that waits, `execute_async` with one that is awaited. So
there is one copy of each operation for both, and it can be read and tested without a server. Operations
use each other with ``yield from``.
"""

import dataclasses
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

_Result = TypeVar("_Result")

Query = dict[str, Any]
"""A query of Elasticsearch, such as ``{"match": {"title": "..."}}``, or the body of a search."""

UNREAD = "unread"
"""The name of aggregations that are not sent back: other aggregations use their buckets on the server."""

POINT_KEEP_ALIVE = "5m"
"""How long a point in time lasts without a search."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """Run searches side by side. The response is a list, one answer each; partial results are an error."""

    # Not used by a body that names a point in time.
    index: str
    bodies: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenPointInTime:
    """Keep what a search sees as it is now, for some minutes. The response is the point's id."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClosePointInTime:
    """Let a point in time go. The response is None."""

    index: str
    point: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadDocument:
    """Get a document by its id, even if no refresh has shown it. The response is its source, or None."""

    index: str
    id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadMappings:
    """Get the mappings behind a name. The response is a dict from index to mapping; empty if none exist."""

    index: str
    # Whether mappings that were read some seconds ago are not good enough.
    is_fresh: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refresh:
    """Make what was written visible to searches, if the client may do that. The response is None."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadClock:
    """Read the clock. The response is milliseconds since 1970."""


ServerRequest = Search | OpenPointInTime | ClosePointInTime | ReadDocument | ReadMappings | Refresh
"""A request that a server answers."""

Request = ServerRequest | ReadClock
Requests = Generator[Request, Any, _Result]
"""An operation that returns a `_Result`."""


def search(index: str, *bodies: Query) -> Requests[list[Any]]:
    """Run searches side by side; return their answers."""
    answers: list[Any] = yield Search(index=index, bodies=bodies)
    return answers


def aggregate(index: str, query: Query, aggregations: Query) -> Requests[dict[str, Any]]:
    """Aggregate what matches; return the aggregations."""
    (answer,) = yield from search(index, {"query": query, "size": 0, "aggs": aggregations})
    result: dict[str, Any] = answer["aggregations"]
    return result
