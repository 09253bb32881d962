"""`BulkRoute`: requests that write articles, which go on to Elasticsearch with their roots.

If some items are refused here, Elasticsearch is asked for a whole answer in JSON, and the items that it never
saw are put between its own, in the order of the request.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import EsdedupError, ServerError
from esdedup.serving.problems import Problem
from esdedup.sidecar.auth import CallerRefused
from esdedup.sidecar.bodies import caller_address, in_thread_if_large, json_content_type, unpacked
from esdedup.sidecar.bulk_request import (
    ARTICLE_REJECTED,
    ArticlePath,
    BulkItem,
    RequestRefused,
    article_path,
    read_bulk,
    read_document,
    routed,
    values_of,
    without,
)
from esdedup.sidecar.enrichment import Changed, Enrichment, Outcome, Rejected
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import counting, error_body
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.proxy import Proxy, target_of
from esdedup.sidecar.upstream import Header, Upstream

log = logging.getLogger("esdedup")

_NDJSON, _JSON = "application/x-ndjson", "application/json"
# Those of a body that is written anew.
_OF_BODY = frozenset((b"content-length", b"content-encoding", b"content-type", b"transfer-encoding"))
_OF_ACCEPT = frozenset((b"accept", b"accept-encoding"))
_OF_ANSWER = frozenset((b"content-length", b"content-encoding", b"content-type"))
# By this header clients know that they speak with Elasticsearch; they believe no answer without it.
_PRODUCT = (b"X-elastic-product", b"Elasticsearch")


class BulkRoute(BaseRoute):
    """Matches the requests that write articles."""

    def __init__(
        self,
        upstream: Upstream,
        enrichment: Enrichment,
        *,
        ownership: Callable[[], Ownership],
        metrics: Metrics,
        max_body_bytes: int,
        passes_rejected: bool = False,
    ) -> None:
        """Enrich, and send on.

        Args:
            upstream: Where requests go on to.
            enrichment: Says what becomes of each item.
            ownership: Returns whether this process owns the forest: if not, requests are refused unread.
            metrics: Counts what Elasticsearch makes of articles, and what is refused.
            max_body_bytes: Of a body that is unpacked.
            passes_rejected: Send articles on that can get no root, instead of refusing them.
        """
        self._upstream = upstream
        self._passing = Proxy(upstream)
        self._enrichment = enrichment
        self._ownership = ownership
        self._metrics = metrics
        self._answer = counting(metrics)
        self._max_body_bytes = max_body_bytes
        self._passes_rejected = passes_rejected

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        path = article_path(scope["method"], scope["raw_path"]) if scope["type"] == "http" else None
        return (Match.NONE, {}) if path is None else (Match.FULL, {"article_path": path})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        try:
            self._ownership().require()
            body = await Request(scope, receive).body()
            request = await _Request.read(scope, body, max_body_bytes=self._max_body_bytes)
            outcomes: Sequence[Outcome] = await self._enrichment.enrich(
                request.items, headers=request.headers, address=caller_address(scope)
            )
            outcomes = [self._after_refusal(*each) for each in zip(request.items, outcomes, strict=True)]
            if not any(isinstance(each, Changed | Rejected) for each in outcomes):
                await self._passing.send_on(scope, receive, send, body=request.raw_body)
            elif request.path.operation == "bulk":
                await self._bulk(request, outcomes, receive, send)
            else:
                await self._document(request, outcomes[0], receive, send)
        except ClientDisconnect:
            return
        except CallerRefused as refused:
            body, headers = refused.answer.body, refused.answer.headers
            response = Response(body, refused.answer.status)
            response.raw_headers = [each for each in headers if each[0].lower() != b"transfer-encoding"]
            await response(scope, receive, send)
        except RequestRefused as refused:
            self._metrics.refused(refused.kind)
            await _own(error_body(refused.status, refused.kind, str(refused)), refused.status, _JSON)(
                scope, receive, send
            )
        except EsdedupError as error:
            await self._answer(scope, Problem.of_error(error))(scope, receive, send)

    def _after_refusal(self, item: BulkItem, outcome: Outcome) -> Outcome:
        """Log what gets no root; return what becomes of it."""
        if not isinstance(outcome, Rejected):
            return outcome
        log.warning("an article gets no root: %s", outcome.reason)
        return outcome.passed(item) if self._passes_rejected else outcome

    async def _bulk(
        self, request: "_Request", outcomes: Sequence[Outcome], receive: Receive, send: Send
    ) -> None:
        places = [at for at, each in enumerate(outcomes) if not isinstance(each, Rejected)]
        statuses = ItemStatuses()
        body = await in_thread_if_large(
            len(request.raw_body),
            lambda: b"".join([_lines(request.items[at], outcomes[at]) for at in places]),
        )
        if len(places) == len(outcomes):
            await self._passing.send_on(request.rewritten(), receive, send, body=body, watch=statuses.read)
            self._metrics.items(statuses.counts)
            return
        refused = {
            at: refused_item(request.items[at], each.reason, status=each.status)
            for at, each in enumerate(outcomes)
            if isinstance(each, Rejected)
        }
        require_json(request.header(b"accept"), request.scope["query_string"])
        media_type = json_type(request.header(b"accept"))
        if not places:
            took_ms = round(1000 * (time.perf_counter() - request.came_s))
            await _own(all_refused(refused, took_ms=took_ms), 200, media_type)(request.scope, receive, send)
            return
        scope = request.rewritten(whole_answer(request.scope["query_string"]), accept=media_type)
        async with self._upstream.send(scope["method"], target_of(scope), scope["headers"], body) as given:
            answered = await given.read()
            kept = [each for each in given.headers if each[0].lower() not in _OF_ANSWER]
        if given.status == 200:
            statuses.read(answered)
            self._metrics.items(statuses.counts)
            answered = await asyncio.to_thread(merged, answered, refused, count=len(outcomes))
        response = Response(answered, given.status, media_type=media_type)
        response.raw_headers += kept
        await response(request.scope, receive, send)

    async def _document(self, request: "_Request", outcome: Outcome, receive: Receive, send: Send) -> None:
        if isinstance(outcome, Rejected):
            raise RequestRefused(outcome.status, ARTICLE_REJECTED, outcome.reason)
        assert isinstance(outcome, Changed)
        (item,) = request.items
        query = None
        if outcome.added.routing is not None:
            query = routed(request.scope["query_string"], outcome.added.routing)
        body = item.source_with(outcome.added, outcome.document, dedup=outcome.dedup)
        await self._passing.send_on(request.rewritten(query), receive, send, body=body)


class _Request:
    """A request that writes articles, read whole."""

    def __init__(self, scope: Scope, raw_body: bytes) -> None:
        """Look at no more than its headers.

        Raises:
            RequestRefused: Its body is of another type.
        """
        self.came_s = time.perf_counter()
        self.scope = scope
        self.path: ArticlePath = scope["article_path"]
        self.headers: list[Header] = scope["headers"]
        self.raw_body = raw_body
        usual = _NDJSON if self.path.operation == "bulk" else _JSON
        self._content_type = json_content_type(self.header(b"content-type"), usual=usual)
        self.items: Sequence[BulkItem] = ()

    @classmethod
    async def read(cls, scope: Scope, raw_body: bytes, *, max_body_bytes: int) -> Self:
        """Read its items.

        Raises:
            RequestRefused: They cannot be read.
        """
        request = cls(scope, raw_body)
        path = request.path
        body = await unpacked(
            raw_body,
            scope=scope,
            # Of several, no two servers make the same.
            encoding=", ".join(request._values(b"content-encoding")),
            most_bytes=max_body_bytes,
        )
        if path.operation == "bulk":
            request.items = await in_thread_if_large(len(body), lambda: read_bulk(body, index=path.index))
        else:
            request.items = [read_document(path, scope["query_string"], body)]
        return request

    def header(self, name: bytes) -> str | None:
        """Return the last header of a name, in lower case; None if there is none."""
        values = self._values(name)
        return values[-1] if values else None

    def _values(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for given, value in self.headers if given.lower() == name]

    def rewritten(self, query: bytes | None = None, *, accept: str | None = None) -> Scope:
        """Return the request as it goes on with another body.

        Args:
            query: None: as it came.
            accept: What is accepted instead, not compressed; None: what the caller accepts.
        """
        replaced = _OF_BODY if accept is None else _OF_BODY | _OF_ACCEPT
        headers = [each for each in self.headers if each[0].lower() not in replaced]
        headers.append((b"content-type", self._content_type.encode("latin-1")))
        if accept is not None:
            headers.append((b"accept", accept.encode("latin-1")))
        scope = {**self.scope, "headers": headers}
        return scope if query is None else {**scope, "query_string": query}


def _lines(item: BulkItem, outcome: Outcome) -> bytes:
    if isinstance(outcome, Changed):
        return item.with_addition(outcome.added, outcome.document, dedup=outcome.dedup)
    return item.as_it_came()


def _own(content: bytes, status: int, media_type: str) -> Response:
    """Return an answer that did not come from Elasticsearch."""
    response = Response(content, status, media_type=media_type)
    response.raw_headers.insert(0, _PRODUCT)
    return response


# Elasticsearch's parameters by which an answer is less, or written otherwise.
_FORMS = frozenset(("filter_path", "format", "pretty"))
_VERSION = re.compile(r"compatible-with=(\d+)", re.ASCII)


def refused_item(item: BulkItem, reason: str, *, status: int = 400) -> dict[str, Any]:
    """Return the answer for an item that is refused.

    Args:
        item: The item.
        reason: What is wrong with it.
        status: As Elasticsearch gives it to items. Clients send again by it: not for 400.
    """
    error = {"type": ARTICLE_REJECTED, "reason": reason}
    return {
        item.operation: {
            "_index": item.index,
            "_id": item.meta.get("_id"),
            "status": status,
            "error": error,
        }
    }


def merged(answer: bytes, refused: Mapping[int, dict[str, Any]], *, count: int) -> bytes:
    """Return the answer to a whole request.

    Args:
        answer: What Elasticsearch answered, with status 200, for the items that were sent; as JSON.
        refused: The others, by their places in the request, from 0.
        count: The number of items in the request.

    Raises:
        ServerError: It is no answer to so many items.
    """
    try:
        values: dict[str, Any] = json.loads(answer)
        answered = values.pop("items")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ServerError("Elasticsearch's answer to a bulk request cannot be read", status=200) from error
    if not isinstance(answered, list):
        answered = []
    if len(answered) != count - len(refused):
        raise ServerError(
            f"Elasticsearch answered {len(answered):,} items of a bulk request, not {count - len(refused):,}",
            status=200,
        )
    remaining = iter(answered)
    items = [refused[place] if place in refused else next(remaining) for place in range(count)]
    return _written(values | {"errors": True, "items": items})


def all_refused(items: Mapping[int, dict[str, Any]], *, took_ms: int) -> bytes:
    """Return the answer to a request of which nothing was sent to Elasticsearch."""
    return _written({"errors": True, "took": took_ms, "items": [*items.values()]})


def whole_answer(query: bytes) -> bytes:
    """Return a query for Elasticsearch to answer whole: its other parts stay as they came."""
    return b"&".join(without(query, _FORMS))


def json_type(accept: str | None) -> str:
    """Return the type of JSON that a caller accepts: of the version that is wanted."""
    versioned = None if accept is None else _VERSION.search(accept)
    if versioned is None:
        return "application/json"
    return f"application/vnd.elasticsearch+json;compatible-with={versioned[1]}"


def require_json(accept: str | None, query: bytes) -> None:
    """Make sure that a caller can read an answer with items of ours, which is JSON.

    Raises:
        RequestRefused: He wants another format.
    """
    format_ = values_of(query).get("format", "json")
    is_json = accept is None or any(
        each in accept.lower() for each in ("json", "*/*", "application/*", "text/plain")
    )
    if not is_json or format_ != "json":
        raise RequestRefused(
            406,
            "media_type_header_exception",
            "an item of this request is refused, which can be told in JSON only: accept application/json",
        )


def _written(answer: dict[str, Any]) -> bytes:
    # ASCII: an id may have half a character.
    return json.dumps(answer, separators=(",", ":")).encode()


# In a string its quotes would be escaped.
_STATUS = re.compile(rb'"status"\s*:\s*(\d{3})\b')
# No status is longer, with the white space of a pretty answer.
_LONGEST = 32


class ItemStatuses:
    """Counts the statuses in an answer that comes in parts."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._rest = b""

    @property
    def counts(self) -> Mapping[int, int]:
        """How many items have each status, as far as the answer was read."""
        return self._counts

    def read(self, part: bytes) -> None:
        """Go on with the next part of the answer; one that is compressed tells nothing."""
        text = self._rest + part
        end = 0
        for found in _STATUS.finditer(text):
            self._counts[int(found[1])] += 1
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST) :]
