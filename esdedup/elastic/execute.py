"""Executes operations with a synchronous or an asynchronous client."""

import asyncio
import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
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
_AnyClient = Elasticsearch | AsyncElasticsearch

Asked = Callable[[str, str | None], Assignment | None]
"""A function that answers `AskOwner`, given the text and its site."""
AskedAsync = Callable[[str, str | None], Awaitable[Assignment | None]]

_TIMEOUT_S = 60.0
_AGE_S = 10.0
_MAX_ANSWERS = 2_000
_ABOUT_INDICES = frozenset({400, 404})
# Without results from every shard, counts would be silently wrong.
_COMPLETE: dict[str, Any] = {"allow_partial_search_results": False}
_WITHOUT_UNREAD = f"-**.{UNREAD}"
# A copy of each client, with a timeout. Creating a copy takes 0.3 ms, 10 % of the time of a short request.
_COPIES: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _with_timeout(client: _Client) -> _Client:
    copy: _Client | None = _COPIES.get(client)
    if copy is None:
        copy = _COPIES[client] = client.options(request_timeout=_TIMEOUT_S)
    return copy


class ServerCache:
    """Caches mappings and responses to some searches for ten seconds; limits the rate of refreshes."""

    def __init__(self, *, refresh_interval_s: float = 0.0) -> None:
        """Refresh an index at most once per interval; with 0, whenever a caller asks for a refresh."""
        self.refresh_interval_s = refresh_interval_s
        # Searches have their bodies in their keys; mappings have None.
        self._answers: dict[str, tuple[float, Any]] = {}
        self._refreshed: dict[str, float] = {}

    def recall(self, index: str, body: Query | None = None) -> Any:
        """Return the cached response to a search, or the mappings of an index; None if there is none."""
        since_s, answer = self._answers.get(json.dumps([index, body]), (-math.inf, None))
        return answer if time.monotonic() - since_s < _AGE_S else None

    def keep(self, answer: Any, index: str, body: Query | None = None) -> None:
        """Cache the response to a search, or the mappings of an index, alias or pattern."""
        if len(self._answers) > _MAX_ANSWERS:
            self._answers.clear()
        self._answers[json.dumps([index, body])] = (time.monotonic(), answer)

    def forget(self) -> None:
        """Drop all cached responses and mappings."""
        self._answers.clear()

    def is_refreshed(self, index: str) -> bool:
        """Return whether an index was refreshed within the interval; if not, record that it is refreshed."""
        now_s = time.monotonic()
        if now_s - self._refreshed.get(index, -math.inf) < self.refresh_interval_s:
            return True
        # Record the refresh before the server answers, so that concurrent requests do not refresh too.
        self._refreshed[index] = now_s
        return False

    def forget_refresh(self, index: str) -> None:
        """Allow an index to be refreshed again immediately, since its last refresh failed."""
        self._refreshed.pop(index, None)


def asking_again(operation: Callable[[], Requests[_Result]], known: ServerCache) -> Requests[_Result]:
    """Run an operation; repeat it with fresh mappings if outdated mappings may be why it failed."""
    try:
        return (yield from operation())
    except ServerError as error:
        if error.status not in _ABOUT_INDICES:
            raise
    known.forget()
    return (yield from operation())


def execute(
    client: Elasticsearch,
    requests: Requests[_Result],
    *,
    known: ServerCache | None = None,
    ask_owner: Asked | None = None,
) -> _Result:
    """Execute an operation; return its result.

    `known` caches responses. `ask_owner` asks the owner of the forest; None if another process is the owner.
    """
    refuse_inherited(client)
    client = _with_timeout(client)
    steps = _steps(client, requests, known, ask_owner)
    call = next(steps)
    while not isinstance(call, _End):
        try:
            with translated(call.task, index=call.index):
                response = call.send()
        except Exception as error:
            call = steps.throw(error)
        else:
            call = steps.send(response)
    return call.result


async def execute_async(
    client: AsyncElasticsearch,
    requests: Requests[_Result],
    *,
    known: ServerCache | None = None,
    ask_owner: AskedAsync | None = None,
) -> _Result:
    """Execute an operation as `execute` does; compute in worker threads, since some operations take long."""
    refuse_inherited(client)
    client = _with_timeout(client)
    steps = _steps(client, requests, known, ask_owner)
    call = await asyncio.to_thread(next, steps)
    while not isinstance(call, _End):
        try:
            with translated(call.task, index=call.index):
                response = await call.send()
        except Exception as error:
            call = await asyncio.to_thread(steps.throw, error)
        else:
            call = await asyncio.to_thread(steps.send, response)
    return call.result


@dataclasses.dataclass(frozen=True)
class _End(Generic[_Result]):
    """The end of an operation. It is yielded, since `StopIteration` cannot leave a worker thread."""

    result: _Result


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call of the client; `send` returns the response or, if the client is asynchronous, an awaitable."""

    # Follows "cannot" in messages.
    task: str
    index: str | None
    send: Callable[[], Any]


def _steps(
    client: _AnyClient, requests: Requests[_Result], known: ServerCache | None, ask_owner: Any
) -> Generator[_Call | _End[_Result], Any, None]:
    """Yield the calls that an operation needs and receive their responses; finally yield its result."""
    cache = known or ServerCache()

    def answer(request: Request) -> Generator[_Call | _End[_Result], Any, Any]:
        match request:
            case ReadClock():
                return int(time.time() * 1000)
            case Recall(index=index, body=body):
                return cache.recall(index, body)
            case Keep(index=index, body=body, answer=kept):
                cache.keep(kept, index, body)
                return None
            case AskOwner(text=text, site=site):
                ask = _Call("ask the forest's owner", None, lambda: ask_owner(text, site))
                return None if ask_owner is None else (yield ask)
            case ReadMappings(index=index):
                found = None if request.is_fresh else cache.recall(index)
                if not found and (found := (yield from _exchange(client, request))):
                    cache.keep(found, index)
                return found
            case Refresh(index=index) if cache.is_refreshed(index):
                return None
        try:
            return (yield from _exchange(client, request))
        except BaseException:
            if isinstance(request, Refresh):
                cache.forget_refresh(request.index)
            raise

    yield _End((yield from answered(requests, answer)))


def hit_pages(client: Elasticsearch, index: str, body: Query) -> Iterator[Hits]:
    """Yield the hits of a search, one page of hits at a time. Parameters as for `first_page`."""
    page = execute(client, first_page(index, body))
    try:
        if page.hits:
            yield page.hits
        while not page.is_last:
            page = execute(client, next_page(page))
            if page.hits:
                yield page.hits
    except (GeneratorExit, KeyboardInterrupt):
        # Suppress errors: the client may be closed, or inherited by a fork. The point in time expires anyway.
        with contextlib.suppress(EsdedupError):
            execute(getattr(client.transport, "impatient", client), close(page))
        raise


def _exchange(client: _AnyClient, request: ServerRequest) -> Generator[_Call, Any, Any]:
    """Yield the call for a request; return the part of the response that the request's class documents."""

    def call(verb: str, send: Callable[[], Any]) -> _Call:
        return _Call(f"{verb} the index {index!r}", index, send)

    def ignoring(status: int) -> _AnyClient:
        return client.options(ignore_status=status)

    index = request.index
    match request:
        case Search(bodies=[body]):
            made = call(
                "search", lambda: client.search(index=index, body=body, **_options([body]), **_COMPLETE)
            )
            return [(yield made)]
        case Search(bodies=bodies):
            lines = [line for body in bodies for line in ({"index": index, **_COMPLETE}, body)]
            made = call("search", lambda: client.msearch(searches=lines, **_options(bodies)))
            responses = (yield made)["responses"]
            for each in responses:
                if "error" in each:
                    raise refused(made.task, each, status=each["status"], index=index)
            return responses
        case SearchPoint(body=body):
            made = call("search", lambda: ignoring(404).search(body=body, **_COMPLETE))
            response = yield made
            if response.meta.status != 404:
                return response
            if is_lost_point(response.body):
                return None
            raise refused(made.task, response.body, status=404, index=index)
        case OpenPointInTime():
            made = call("search", lambda: client.open_point_in_time(index=index, keep_alive=POINT_KEEP_ALIVE))
            return (yield made)["id"]
        case ClosePointInTime(point=point):
            yield call("search", lambda: ignoring(404).close_point_in_time(id=point))
        case ReadDocument(id=document_id):
            response = yield call(
                "read a document of", lambda: ignoring(404).get(index=index, id=document_id)
            )
            return response["_source"] if response.get("found") else None
        case Write(operations=operations):
            response = yield call("write to", lambda: client.bulk(operations=operations))
            return [result["status"] for each in response["items"] for result in each.values()]
        case ReadMappings():
            made = call("read the mapping of", lambda: ignoring(404).indices.get_mapping(index=index))
            response = yield made
            found = {} if response.meta.status == 404 else response
            return {name: each["mappings"] for name, each in found.items()}
        case ReadFilters():
            response = yield call("read the aliases of", lambda: client.search_shards(index=index))
            return [name for name, each in response["indices"].items() if "filter" in each]
        case Refresh():
            yield call("refresh", lambda: ignoring(403).indices.refresh(index=index))
    return None


def _options(bodies: Sequence[Query]) -> dict[str, Any]:
    # Only aggregations need the filter, which makes a search for 10,000 hits a quarter slower.
    return {"filter_path": _WITHOUT_UNREAD} if any("aggs" in body for body in bodies) else {}
