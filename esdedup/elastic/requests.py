"""What reading asks of a server, as values; whoever talks to it carries them out, waiting or not.

An operation is a generator: it yields what it needs, and is sent the answer. So there is one copy of it
for `Elasticsearch` and `AsyncElasticsearch`, and none of it needs a server to be understood.
"""

import dataclasses
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

_Result = TypeVar("_Result")

Query = dict[str, Any]
"""A query of Elasticsearch, such as ``{"match": {"title": "..."}}``, or the body of a search."""

UNREAD = "unread"
"""Names aggregations of which nothing is sent back: their buckets are counted in the server."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """Searches that run side by side; the answer is a list, one of them each, all complete."""

    index: str
    bodies: Sequence[Query]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadMappings:
    """The mappings behind a name; the answer is a dict from index to mapping, empty where there is none."""

    index: str
    # Whether an answer of some seconds ago will not do.
    is_fresh: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refresh:
    """Lets what was written be seen, if the client may do that; the answer means nothing."""

    index: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadClock:
    """The time; the answer is milliseconds since 1970."""


Request = Search | ReadMappings | Refresh | ReadClock
Requests = Generator[Request, Any, _Result]


def search(index: str, *bodies: Query) -> Requests[list[Any]]:
    """Run searches side by side."""
    answers: list[Any] = yield Search(index=index, bodies=bodies)
    return answers
