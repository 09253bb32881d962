"""`BulkRoute`: adds roots to the articles in a request, and forwards the request to Elasticsearch.

The results of items that are refused here are merged into Elasticsearch's response, in the request's order.
"""

import asyncio
import dataclasses
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import ServerError
from esdedup.sidecar import bulk_request
from esdedup.sidecar.bodies import JSON, NDJSON, in_thread_if_large, json_content_type, unpacked
from esdedup.sidecar.enrichment import Enrichment
from esdedup.sidecar.paths import ArticlePath, article_path, error_body, routed, values_of, without
from esdedup.sidecar.proxy import Proxy, target_of
from esdedup.sidecar.upstream import WholeAnswer

log = logging.getLogger("esdedup")

# Headers that describe a request's original body, not the rewritten one.
_BODY_HEADERS = frozenset((b"content-length", b"content-encoding", b"content-type", b"transfer-encoding"))
_ACCEPT_HEADERS = frozenset((b"accept", b"accept-encoding"))
# Headers that describe the body of Elasticsearch's response, not the merged one.
_MERGED_HEADERS = frozenset((b"content-length", b"content-encoding", b"content-type"))
# Logging a line takes about 20 µs; the event loop runs other tasks after this many items.
_LOGGED_AT_ONCE = 100
# The maximum number of rejected articles in a request that are logged individually.
_MOST_LOGGED = 1_000
# Clients reject responses without this header.
_PRODUCT = (b"X-elastic-product", b"Elasticsearch")
# Query parameters that make Elasticsearch shorten or reformat its response.
_FORMS = frozenset(("filter_path", "format", "pretty"))
_VERSION = re.compile(r"compatible-with=(\d+)", re.ASCII)
# This cannot match inside a JSON string, since quotes in strings are escaped.
_STATUS = re.compile(rb'"status"\s*:\s*(\d{3})\b')
# Key in the scope of a matched request for its `ArticlePath`.
_PATH = "esdedup.article_path"
# The maximum length of a match, including the white space of a pretty-printed response.
_LONGEST = 32


@dataclasses.dataclass(eq=False)
class BulkRoute(Proxy):
    """Matches requests that write articles; a single document is handled as a bulk request of one item."""

    enrichment: Enrichment
    _: dataclasses.KW_ONLY
    # The maximum size of a decompressed body.
    max_body_bytes: int
    # Forward articles that cannot get a root, instead of refusing them.
    passes_rejected: bool = False

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        path = article_path(scope["method"], scope["raw_path"])
        return (Match.NONE if path is None else Match.FULL), {_PATH: path}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Enrich and forward the request; raises `Refused`."""
        self.enrichment.ownership().require()
        raw_body, came_s = await Request(scope, receive).body(), time.perf_counter()
        path: ArticlePath = scope[_PATH]
        is_bulk = path.operation == "bulk"
        content_type = json_content_type(_header(scope, "content-type"), usual=NDJSON if is_bulk else JSON)
        body = await unpacked(raw_body, scope=scope, most_bytes=self.max_body_bytes)
        if is_bulk:
            items = await in_thread_if_large(
                len(body), lambda: bulk_request.read_bulk(body, index=path.index)
            )
        else:
            items = [read_document(path, scope["query_string"], body)]
        await self.enrichment.enrich(items, scope)
        await self._log_rejected(items)
        if all(each.added is None and each.rejection is None for each in items):
            await self.send_on(scope, receive, send, body=raw_body)
            return
        written = _with_headers(scope, _BODY_HEADERS, ("content-type", content_type))
        if not is_bulk:
            await self._document(written, items[0], receive, send)
            return
        joined, refused = await in_thread_if_large(len(body), lambda: _split_refused(items))
        if refused:
            response = await self._with_refused(written, joined, refused, count=len(items), came_s=came_s)
            await response(scope, receive, send)
        else:
            statuses = ItemStatuses()
            await self.send_on(written, receive, send, body=joined, watch=statuses.read)
            self.enrichment.metrics.items(statuses.counts)

    async def _log_rejected(self, items: Sequence[bulk_request.BulkItem]) -> None:
        """Log articles that get no root, and mark them to be forwarded if `passes_rejected`."""
        rejected = [(each, each.rejection) for each in items if each.rejection is not None]
        for at, (item, rejection) in enumerate(rejected):
            if at % _LOGGED_AT_ONCE == _LOGGED_AT_ONCE - 1:
                await asyncio.sleep(0)
            if at < _MOST_LOGGED:
                log.warning("an article gets no root: %s", rejection.reason)
            if self.passes_rejected:
                item.pass_on()
        if len(rejected) > _MOST_LOGGED:
            log.warning("%d more articles of this request get no root", len(rejected) - _MOST_LOGGED)

    async def _with_refused(
        self, scope: Scope, body: bytes, refused: Mapping[int, dict[str, Any]], *, count: int, came_s: float
    ) -> Response:
        """Return the response to a request of `count` items; `body` contains the accepted items."""
        accept, query = _header(scope, "accept"), scope["query_string"]
        require_json(accept, query)
        media_type = json_type(accept)
        if len(refused) < count:
            scope = _with_headers(scope, _ACCEPT_HEADERS, ("accept", media_type))
            target = target_of({**scope, "query_string": whole_answer(query)})
            given = await self.upstream.ask(scope["method"], target, scope["headers"], body)
        else:
            took_ms = round(1000 * (time.perf_counter() - came_s))
            given = WholeAnswer(200, [_PRODUCT], b'{"took":%d,"items":[]}' % took_ms)
        answered = given.body
        if given.status == 200:
            statuses = ItemStatuses()
            statuses.read(answered)
            self.enrichment.metrics.items(statuses.counts)
            answered = await asyncio.to_thread(merged, answered, refused, count=count)
        response = Response(answered, given.status, media_type=media_type)
        response.raw_headers += [each for each in given.headers if each[0].lower() not in _MERGED_HEADERS]
        return response

    async def _document(
        self, scope: Scope, item: bulk_request.BulkItem, receive: Receive, send: Send
    ) -> None:
        if item.rejection is not None:
            raise bulk_request.RequestRefused(
                item.rejection.status, bulk_request.ARTICLE_REJECTED, item.rejection.reason
            )
        if item.added is not None and item.added.routing is not None:
            scope = {**scope, "query_string": routed(scope["query_string"], item.added.routing)}
        await self.send_on(scope, receive, send, body=item.body())


def read_document(path: ArticlePath, query: bytes, body: bytes) -> bulk_request.BulkItem:
    """Return a request for one document as an item of a bulk request; raises `RequestRefused`."""
    if not body and path.operation == "update":
        reason = "Validation Failed: 1: script or doc is missing;"
        raise bulk_request.RequestRefused(400, "action_request_validation_exception", reason)
    if not body:
        raise bulk_request.RequestRefused(400, "parse_exception", "request body is required")
    given = values_of(query)
    meta = {"_index": path.index, "_id": path.id, "routing": given.get("routing") or None}
    meta["doc_as_upsert"] = given.get("doc_as_upsert")
    is_create = path.operation == "index" and given.get("op_type", "").lower() == "create"
    return bulk_request.BulkItem(
        operation="create" if is_create else path.operation,
        index=path.index,
        meta={key: value for key, value in meta.items() if value is not None},
        header=b"",
        source=body,
    )


def _header(scope: Scope, name: str) -> str | None:
    return next(reversed(Headers(scope=scope).getlist(name)), None)


def _with_headers(scope: Scope, dropped: Collection[bytes], added: tuple[str, str]) -> Scope:
    kept = [each for each in scope["headers"] if each[0].lower() not in dropped]
    return {**scope, "headers": [*kept, tuple(each.encode("latin-1") for each in added)]}


def _split_refused(items: Sequence[bulk_request.BulkItem]) -> tuple[bytes, dict[int, dict[str, Any]]]:
    """Return the lines of the items to forward, and the results of the refused items by position."""
    lines = b"".join([each.lines() for each in items if each.rejection is None])
    refused = {at: refused_item(each, each.rejection) for at, each in enumerate(items) if each.rejection}
    return lines, refused


def refused_answer(refused: bulk_request.RequestRefused) -> Response:
    """Return the response to a refused request, in Elasticsearch's format."""
    body = error_body(refused.status, refused.kind, str(refused))
    response = Response(body, refused.status, media_type=JSON)
    response.raw_headers.insert(0, _PRODUCT)
    return response


def refused_item(item: bulk_request.BulkItem, rejection: bulk_request.Rejection) -> dict[str, Any]:
    """Return the result of a refused item. Clients decide by its status whether to retry."""
    error = {"type": bulk_request.ARTICLE_REJECTED, "reason": rejection.reason}
    answer = {"_index": item.index, "_id": item.meta.get("_id"), "status": rejection.status, "error": error}
    return {item.operation: answer}


def merged(answer: bytes, refused: Mapping[int, dict[str, Any]], *, count: int) -> bytes:
    """Merge refused items into Elasticsearch's response; raises `ServerError` if the response lacks items."""
    try:
        values: dict[str, Any] = json.loads(answer)
        answered = values.pop("items")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ServerError("Elasticsearch's response to a bulk request cannot be read", status=200) from error
    if not isinstance(answered, list):
        answered = []
    if len(answered) != count - len(refused):
        raise ServerError(
            f"Elasticsearch returned {len(answered):,} items of a bulk request instead of "
            f"{count - len(refused):,}",
            status=200,
        )
    remaining = iter(answered)
    items = [refused[place] if place in refused else next(remaining) for place in range(count)]
    # Escape to ASCII: an id may contain a lone surrogate.
    return json.dumps(values | {"errors": True, "items": items}, separators=(",", ":")).encode()


def whole_answer(query: bytes) -> bytes:
    """Return a query string without the parameters that make Elasticsearch shorten or reformat responses."""
    return b"&".join(without(query, _FORMS))


def json_type(accept: str | None) -> str:
    """Return the JSON media type for a response, with the API version that the caller requests, if any."""
    versioned = None if accept is None else _VERSION.search(accept)
    if versioned is None:
        return JSON
    return f"application/vnd.elasticsearch+json;compatible-with={versioned[1]}"


def require_json(accept: str | None, query: bytes) -> None:
    """Raise `RequestRefused` unless the caller accepts JSON, in which refused items are reported."""
    readable = ("json", "*/*", "application/*", "text/plain")
    is_json = accept is None or any(each in accept.lower() for each in readable)
    if not is_json or values_of(query).get("format", "json") != "json":
        raise bulk_request.RequestRefused(
            406,
            "media_type_header_exception",
            "an item of this request is refused, and the response is available in JSON only: accept "
            "application/json",
        )


class ItemStatuses:
    """Counts the statuses of items in a streamed response."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._rest = b""

    def read(self, part: bytes) -> None:
        """Count the statuses in the next part of the response, unless it is compressed."""
        text = self._rest + part
        end = 0
        for found in _STATUS.finditer(text):
            self.counts[int(found[1])] += 1
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST) :]
