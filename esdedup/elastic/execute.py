"""Executes operations with a synchronous or an asynchronous client."""

import asyncio
import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from elasticsearch import AsyncElasticsearch, Elasticsearch

from esdedup.elastic.client import refuse_inherited
from esdedup.elastic.errors import is_lost_point, refused, translated
from esdedup.elastic.pages import Hits, close, first_page, next_page
from esdedup.elastic.requests import (
    POINT_KEEP_ALIVE,
    UNREAD,
    AskOwner,
    ClosePointInTime,
    Keep,
    LocalRequest,
    OpenPointInTime,
    Query,
    ReadClock,
    ReadDocument,
    ReadFilters,
    ReadMappings,
    Recall,
    Refresh,
    Request,
    Requests,
    Search,
    SearchPoint,
    ServerRequest,
    Write,
    answered,
)
from esdedup.errors import EsdedupError, ServerError
from esdedup.forest.model import Assignment

_Result = TypeVar("_Result")
_Client = TypeVar("_Client", Elasticsearch, AsyncElasticsearch)

Asked = Callable[[str, str | None], Assignment | None]
"""Answers `AskOwner`, by its text and its site."""
AskedAsync = Callable[[str, str | None], Awaitable[Assignment | None]]

_TIMEOUT_S = 60.0
_AGE_S = 10.0
_MAX_NAMES = 1_000
_ABOUT_INDICES = frozenset({400, 404})
# Every shard must have answered, or counts would be silently wrong.
_COMPLETE: dict[str, Any] = {"allow_partial_search_results": False}
_WITHOUT_UNREAD = f"-**.{UNREAD}"
_VERBS: dict[type[ServerRequest], str] = {
    Search: "search",
    SearchPoint: "search",
    OpenPointInTime: "search",
    ClosePointInTime: "search",
    ReadDocument: "read a document of",
    Write: "write to",
    ReadMappings: "read the mapping of",
    ReadFilters: "read the aliases of",
    Refresh: "refresh",
}

# By client: the same one, whose requests end in time. Making it takes 0.3 ms, a tenth of a short request.
_ENDING: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _ending(client: _Client) -> _Client:
    ending: _Client | None = _ENDING.get(client)
    if ending is None:
        ending = _ENDING[client] = client.options(request_timeout=_TIMEOUT_S)
    return ending


class ServerCache:
    """Caches answers of the server for some seconds: mappings, estimates, a refresh."""

    def __init__(self, *, refresh_interval_s: float = 0.0) -> None:
        """Refresh an index at most that often; 0: whenever a caller must see all writes."""
        self.refresh_interval_s = refresh_interval_s
        self._mappings: dict[str, tuple[float, dict[str, Any]]] = {}
        self._answers: dict[str, tuple[float, Any]] = {}
        self._refreshed: dict[str, float] = {}

    def answer(self, request: ServerRequest) -> Any:
        """Return a cached answer; None if the caller must ask the server."""
        now_s = time.monotonic()
        if isinstance(request, ReadMappings) and not request.is_fresh:
            since_s, mappings = self._mappings.get(request.index, (0.0, {}))
            return mappings if mappings and now_s - since_s < _AGE_S else None
        if isinstance(request, Refresh):
            if now_s - self._refreshed.get(request.index, -math.inf) < self.refresh_interval_s:
                return {}
            self._refreshed[request.index] = now_s
        return None

    def recall(self, request: Recall) -> Any:
        """Return the answer to a search from some seconds ago, or None."""
        since_s, answer = self._answers.get(_key(request), (-math.inf, None))
        return answer if time.monotonic() - since_s < _AGE_S else None

    def keep(self, request: Keep) -> None:
        """Keep the answer to a search."""
        if len(self._answers) > _MAX_NAMES:
            self._answers.clear()
        self._answers[_key(request)] = (time.monotonic(), request.answer)

    def forget_mappings(self) -> None:
        """Ask for all mappings anew."""
        self._mappings.clear()

    def put_mappings(self, index: str, mappings: dict[str, Any]) -> None:
        """Cache the mappings behind a name as they are now."""
        if len(self._mappings) > _MAX_NAMES:
            self._mappings.clear()
        self._mappings[index] = (time.monotonic(), mappings)


def _key(request: Recall | Keep) -> str:
    return json.dumps([request.index, request.body])


def asking_again(operation: Callable[[], Requests[_Result]], known: ServerCache) -> Requests[_Result]:
    """Read; once more if the cached mappings may be why it failed: an alias or index has changed since."""
    try:
        return (yield from operation())
    except ServerError as error:
        if error.status not in _ABOUT_INDICES:
            raise
    known.forget_mappings()
    return (yield from operation())


def execute(
    client: Elasticsearch,
    requests: Requests[_Result],
    *,
    known: ServerCache | None = None,
    ask_owner: Asked | None = None,
) -> _Result:
    """Execute an operation; return its result.

    `known` has answers that count for some seconds. `ask_owner` answers for the forest's owner; None if that
    is not in this process.
    """
    refuse_inherited(client)
    client = _ending(client)
    steps = _steps(requests, known)
    request = next(steps)
    while not isinstance(request, _End):
        try:
            if isinstance(request, AskOwner):
                response = None if ask_owner is None else ask_owner(request.text, request.site)
            else:
                with translated(_task(request), index=request.index):
                    response = _call(client, request)
        except Exception as error:
            request = steps.throw(error)
        else:
            request = steps.send(response)
    return request.result


async def execute_async(
    client: AsyncElasticsearch,
    requests: Requests[_Result],
    *,
    known: ServerCache | None = None,
    ask_owner: AskedAsync | None = None,
) -> _Result:
    """Do as `execute`; the operation runs in worker threads, since it may compute for long."""
    refuse_inherited(client)
    client = _ending(client)
    steps = _steps(requests, known)
    request = await asyncio.to_thread(next, steps)
    while not isinstance(request, _End):
        try:
            if isinstance(request, AskOwner):
                response = None if ask_owner is None else await ask_owner(request.text, request.site)
            else:
                with translated(_task(request), index=request.index):
                    response = await _call(client, request)
        except Exception as error:
            request = await asyncio.to_thread(steps.throw, error)
        else:
            request = await asyncio.to_thread(steps.send, response)
    return request.result


@dataclasses.dataclass(frozen=True)
class _End(Generic[_Result]):
    """An operation has ended. A value: `StopIteration` could not leave a worker thread."""

    result: _Result


def _steps(
    requests: Requests[_Result], known: ServerCache | None
) -> Generator[ServerRequest | AskOwner | _End[_Result], Any, None]:
    """Yield the requests that need the server, or the owner, and read the answers; at last the result."""

    def answer(request: Request) -> Generator[ServerRequest | AskOwner | _End[_Result], Any, Any]:
        if isinstance(request, LocalRequest):
            return _local_answer(request, known)
        if isinstance(request, AskOwner):
            return (yield request)
        found = None if known is None else known.answer(request)
        return _answer(request, (yield request), known) if found is None else found

    yield _End((yield from answered(requests, answer)))


def _local_answer(request: LocalRequest, known: ServerCache | None) -> Any:
    match request:
        case ReadClock():
            return int(time.time() * 1000)
        case Recall():
            return None if known is None else known.recall(request)
        case Keep():
            return None if known is None else known.keep(request)


def hit_pages(client: Elasticsearch, index: str, body: Query) -> Iterator[Hits]:
    """Yield the hits of a search page by page, waiting for each. Parameters as for `first_page`."""
    page = execute(client, first_page(index, body))
    try:
        if page.hits:
            yield page.hits
        while not page.is_last:
            page = execute(client, next_page(page))
            if page.hits:
                yield page.hits
    except (GeneratorExit, KeyboardInterrupt):
        # The client may be closed, or its parent's in a forked process; the point in time ends by itself.
        with contextlib.suppress(EsdedupError):
            execute(getattr(client.transport, "impatient", client), close(page))
        raise


def _call(client: Elasticsearch | AsyncElasticsearch, request: ServerRequest) -> Any:
    """Send a request; return the response, or with an asynchronous client an awaitable for it."""
    match request:
        case Search():
            return _search(client, request)
        case SearchPoint():
            return client.options(ignore_status=404).search(body=request.body, **_COMPLETE)
        case OpenPointInTime():
            return client.open_point_in_time(index=request.index, keep_alive=POINT_KEEP_ALIVE)
        case ClosePointInTime():
            return client.options(ignore_status=404).close_point_in_time(id=request.point)
        case ReadDocument():
            return client.options(ignore_status=404).get(index=request.index, id=request.id)
        case Write():
            return client.bulk(operations=request.operations)
        case ReadMappings():
            return client.options(ignore_status=404).indices.get_mapping(index=request.index)
        case ReadFilters():
            return client.search_shards(index=request.index)
        case Refresh():
            return client.options(ignore_status=403).indices.refresh(index=request.index)


def _search(client: Elasticsearch | AsyncElasticsearch, request: Search) -> Any:
    # A filter costs the server a quarter more for 10,000 hits, and only aggregations need it.
    filter_path = _WITHOUT_UNREAD if any("aggs" in body for body in request.bodies) else None
    if len(request.bodies) > 1:
        lines = [line for body in request.bodies for line in ({"index": request.index, **_COMPLETE}, body)]
        return client.msearch(searches=lines, filter_path=filter_path)
    (body,) = request.bodies
    return client.search(index=request.index, body=body, filter_path=filter_path, **_COMPLETE)


def _answer(request: ServerRequest, response: Any, known: ServerCache | None) -> Any:
    match request:
        case Search():
            return [response] if len(request.bodies) == 1 else _checked(request, response["responses"])
        case SearchPoint():
            if response.meta.status != 404:
                return response
            if is_lost_point(response.body):
                return None
            raise refused(_task(request), response.body, status=404, index=request.index)
        case OpenPointInTime():
            return response["id"]
        case ReadDocument():
            return response["_source"] if response.get("found") else None
        case Write():
            return [result["status"] for each in response["items"] for result in each.values()]
        case ReadMappings():
            if response.meta.status == 404:
                return {}
            mappings = {name: each["mappings"] for name, each in response.items()}
            if known is not None:
                known.put_mappings(request.index, mappings)
            return mappings
        case ReadFilters():
            return [name for name, each in response["indices"].items() if "filter" in each]
        case ClosePointInTime() | Refresh():
            return None


def _checked(request: Search, responses: list[Any]) -> list[Any]:
    for each in responses:
        if "error" in each:
            raise refused(_task(request), each, status=each["status"], index=request.index)
    return responses


def _task(request: ServerRequest) -> str:
    return f"{_VERBS[type(request)]} the index {request.index!r}"
