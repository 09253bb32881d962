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
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import ServerError
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
from esdedup.sidecar.enrichment import Change, Enrichment, Outcome, Rejection
from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.own_paths import error_body
from esdedup.sidecar.owner import Ownership
from esdedup.sidecar.proxy import Proxy, target_of
from esdedup.sidecar.upstream import Upstream

log = logging.getLogger("esdedup")

_NDJSON, _JSON = "application/x-ndjson", "application/json"
# Those of a body that is written anew.
_OF_BODY = frozenset((b"content-length", b"content-encoding", b"content-type", b"transfer-encoding"))
_OF_ACCEPT = frozenset((b"accept", b"accept-encoding"))
_OF_ANSWER = frozenset((b"content-length", b"content-encoding", b"content-type"))
# By this header clients know that they speak with Elasticsearch; they believe no answer without it.
_PRODUCT = (b"X-elastic-product", b"Elasticsearch")


class BulkRoute(BaseRoute):
    """Matches requests that write articles; a single document is a bulk of one item."""

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
            metrics: Counts what Elasticsearch makes of articles.
            max_body_bytes: Of a body that is unpacked.
            passes_rejected: Send articles on that can get no root, instead of refusing them.
        """
        self._upstream = upstream
        self._proxy = Proxy(upstream)
        self._enrichment = enrichment
        self._ownership = ownership
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._passes_rejected = passes_rejected

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        path = article_path(scope["method"], scope["raw_path"]) if scope["type"] == "http" else None
        return (Match.NONE, {}) if path is None else (Match.FULL, {"article_path": path})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        self._ownership().require()
        request = _Request(scope, await Request(scope, receive).body())
        items = await request.items(max_body_bytes=self._max_body_bytes)
        address = caller_address(scope)
        outcomes = await self._enrichment.enrich(items, headers=scope["headers"], address=address)
        outcomes = [self._after_refusal(*each) for each in zip(items, outcomes, strict=True)]
        if not any(isinstance(each, Change | Rejection) for each in outcomes):
            await self._proxy.send_on(scope, receive, send, body=request.raw_body)
        elif request.path.operation == "bulk":
            await self._bulk(request, items, outcomes, receive, send)
        else:
            await self._document(request, items[0], outcomes[0], receive, send)

    def _after_refusal(self, item: BulkItem, outcome: Outcome) -> Outcome:
        """Log an article that gets no root; return what becomes of it."""
        if not isinstance(outcome, Rejection):
            return outcome
        log.warning("an article gets no root: %s", outcome.reason)
        return outcome.passed(item) if self._passes_rejected else outcome

    async def _bulk(
        self,
        request: "_Request",
        items: Sequence[BulkItem],
        outcomes: Sequence[Outcome],
        receive: Receive,
        send: Send,
    ) -> None:
        kept = [each for each in zip(items, outcomes, strict=True) if not isinstance(each[1], Rejection)]
        statuses = ItemStatuses()
        body = await in_thread_if_large(
            len(request.raw_body), lambda: b"".join([_lines(*each) for each in kept])
        )
        if len(kept) == len(items):
            await self._proxy.send_on(request.rewritten(), receive, send, body=body, watch=statuses.read)
            self._metrics.items(statuses.counts)
            return
        refused = {
            at: refused_item(items[at], each.reason, status=each.status)
            for at, each in enumerate(outcomes)
            if isinstance(each, Rejection)
        }
        accept, query = request.header(b"accept"), request.scope["query_string"]
        require_json(accept, query)
        media_type = json_type(accept)
        if kept:
            scope = request.rewritten(whole_answer(query), accept=media_type)
            async with self._upstream.send(
                scope["method"], target_of(scope), scope["headers"], body
            ) as given:
                status, answered = given.status, await given.read()
                headers = [each for each in given.headers if each[0].lower() not in _OF_ANSWER]
        else:
            status, headers = 200, [_PRODUCT]
            took_ms = round(1000 * (time.perf_counter() - request.came_s))
            answered = b'{"took":%d,"items":[]}' % took_ms
        if status == 200:
            statuses.read(answered)
            self._metrics.items(statuses.counts)
            answered = await asyncio.to_thread(merged, answered, refused, count=len(items))
        response = Response(answered, status, media_type=media_type)
        response.raw_headers += headers
        await response(request.scope, receive, send)

    async def _document(
        self, request: "_Request", item: BulkItem, outcome: Outcome, receive: Receive, send: Send
    ) -> None:
        if isinstance(outcome, Rejection):
            raise RequestRefused(outcome.status, ARTICLE_REJECTED, outcome.reason)
        assert isinstance(outcome, Change)
        query = None
        if outcome.added.routing is not None:
            query = routed(request.scope["query_string"], outcome.added.routing)
        body = item.source_with(outcome.added, outcome.document, dedup=outcome.dedup)
        await self._proxy.send_on(request.rewritten(query), receive, send, body=body)


class _Request:
    """A request that writes articles, whose body has come whole."""

    def __init__(self, scope: Scope, raw_body: bytes) -> None:
        self.came_s = time.perf_counter()
        self.scope = scope
        self.path: ArticlePath = scope["article_path"]
        self.raw_body = raw_body
        usual = _NDJSON if self.path.operation == "bulk" else _JSON
        self._content_type = json_content_type(self.header(b"content-type"), usual=usual)

    async def items(self, *, max_body_bytes: int) -> list[BulkItem]:
        """Read its items; raises `RequestRefused`."""
        # Of several encodings, no two servers make the same.
        encoding = ", ".join(self._values(b"content-encoding"))
        body = await unpacked(self.raw_body, scope=self.scope, encoding=encoding, most_bytes=max_body_bytes)
        if self.path.operation == "bulk":
            return await in_thread_if_large(len(body), lambda: read_bulk(body, index=self.path.index))
        return [read_document(self.path, self.scope["query_string"], body)]

    def header(self, name: bytes) -> str | None:
        """Return the last header of a name, in lower case; None if there is none."""
        return next(reversed(self._values(name)), None)

    def _values(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for given, value in self.scope["headers"] if given.lower() == name]

    def rewritten(self, query: bytes | None = None, *, accept: str | None = None) -> Scope:
        """Return the request as it goes on with another body.

        Args:
            query: None: as it came.
            accept: What is accepted instead, not compressed; None: what the caller accepts.
        """
        replaced = _OF_BODY if accept is None else _OF_BODY | _OF_ACCEPT
        headers = [each for each in self.scope["headers"] if each[0].lower() not in replaced]
        headers.append((b"content-type", self._content_type.encode("latin-1")))
        if accept is not None:
            headers.append((b"accept", accept.encode("latin-1")))
        return {
            **self.scope,
            "headers": headers,
            "query_string": self.scope["query_string"] if query is None else query,
        }


def _lines(item: BulkItem, outcome: Outcome) -> bytes:
    if isinstance(outcome, Change):
        return item.with_addition(outcome.added, outcome.document, dedup=outcome.dedup)
    return item.as_it_came()


def refused_answer(refused: RequestRefused) -> Response:
    """Return the answer to a request that is refused, as Elasticsearch gives it."""
    body = error_body(refused.status, refused.kind, str(refused))
    response = Response(body, refused.status, media_type=_JSON)
    response.raw_headers.insert(0, _PRODUCT)
    return response


# Elasticsearch's parameters by which an answer is less, or written otherwise.
_FORMS = frozenset(("filter_path", "format", "pretty"))
_VERSION = re.compile(r"compatible-with=(\d+)", re.ASCII)


def refused_item(item: BulkItem, reason: str, *, status: int = 400) -> dict[str, Any]:
    """Return the answer for an item that is refused. By its status clients send again: not for 400."""
    error = {"type": ARTICLE_REJECTED, "reason": reason}
    return {
        item.operation: {"_index": item.index, "_id": item.meta.get("_id"), "status": status, "error": error}
    }


def merged(answer: bytes, refused: Mapping[int, dict[str, Any]], *, count: int) -> bytes:
    """Return the answer to a whole request; raises `ServerError` if the given one does not fit.

    Args:
        answer: What Elasticsearch answered, with status 200, for the items that were sent; as JSON.
        refused: The answers for the others, by their places in the request, from 0.
        count: The number of items in the request.
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
    # ASCII: an id may have a lone surrogate.
    return json.dumps(values | {"errors": True, "items": items}, separators=(",", ":")).encode()


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
    """Raise `RequestRefused` unless a caller can read JSON, as an answer with items of ours is."""
    readable = ("json", "*/*", "application/*", "text/plain")
    is_json = accept is None or any(each in accept.lower() for each in readable)
    if not is_json or values_of(query).get("format", "json") != "json":
        raise RequestRefused(
            406,
            "media_type_header_exception",
            "an item of this request is refused, which can be told in JSON only: accept application/json",
        )


# In a string its quotes would be escaped.
_STATUS = re.compile(rb'"status"\s*:\s*(\d{3})\b')
# No status is longer, with the white space of a pretty answer.
_LONGEST = 32


class ItemStatuses:
    """Counts the statuses in an answer that comes in parts."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._rest = b""

    def read(self, part: bytes) -> None:
        """Go on with the next part of the answer; one that is compressed tells nothing."""
        text = self._rest + part
        end = 0
        for found in _STATUS.finditer(text):
            self.counts[int(found[1])] += 1
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST) :]
