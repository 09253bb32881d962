"""`Proxy` forwards requests to Elasticsearch, and its responses to the callers, unchanged.

`UnreadWrites` refuses requests that could write articles without roots to a set-up index.
"""

import asyncio
import contextlib
import dataclasses
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import Refused, ServerUnavailable
from esdedup.serving.problems import Problem
from esdedup.sidecar.bodies import in_thread_if_large
from esdedup.sidecar.bulk_request import read_bulk
from esdedup.sidecar.enrichment import Target
from esdedup.sidecar.paths import BULK, BULK_METHODS, parts_of
from esdedup.sidecar.paths import answer as answer_of
from esdedup.sidecar.upstream import Upstream

_log = logging.getLogger(__name__)

# HTTP/1.0 clients cannot detect truncated responses of unknown length; up to this size, they are buffered.
_MAX_HELD_BYTES = 100 << 20


def target_of(scope: Scope) -> bytes:
    """Return the path and query of a request as received."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path


@dataclasses.dataclass(eq=False)
class Proxy(BaseRoute):
    """Forwards requests of any method and path, and their responses."""

    upstream: Upstream

    def matches(self, scope: Scope) -> tuple[Match, Scope]:  # noqa: ARG002
        """Match every request."""
        return Match.FULL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request. If the response is cut short, the server closes the caller's connection."""
        caller = Caller(scope, receive)
        try:
            async with caller.waiting():
                await self.send_on(scope, receive, send, body=caller.body())
        except ClientDisconnect:
            _log.debug("a caller disconnected before the response")

    async def send_on(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        body: bytes | AsyncIterator[bytes] | None,
        watch: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """Forward a request with `body`, and its response; call `watch` with each part of the response."""
        has_begun = False
        try:
            async with self.upstream.send(
                scope["method"], target_of(scope), scope["headers"], body
            ) as answer:
                headers, parts = answer.headers, answer.stream()
                has_length = any(name.lower() == b"content-length" for name, _ in headers)
                if scope["http_version"] == "1.0" and not has_length:
                    held = await _buffered(parts)
                    headers, parts = [*headers, (b"content-length", b"%d" % len(held))], _single_part(held)
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                has_begun = True
                async for part in parts:
                    watch(part)
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ServerUnavailable as error:
            if has_begun:
                _log.warning("%s; the caller's connection is closed", error)
            else:
                _log.warning("%s", error)
                # Answer 502 without Retry-After: only clients know whether the request may be repeated.
                problem = dataclasses.replace(Problem.of_error(error), status=502, retry_after_s=None)
                await answer_of(scope, problem)(scope, receive, send)


class Caller:
    """The caller's side of a request: its body, and whether the caller is still connected."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive, self._request = receive, Request(scope, receive)
        self._has_body = any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in scope["headers"]
        )
        self._has_sent = asyncio.Event()
        if not self._has_body:
            self._has_sent.set()

    def body(self) -> AsyncIterator[bytes] | None:
        """Return the body as a stream, if there is one; it may raise `ClientDisconnect`."""
        return self._parts() if self._has_body else None

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Raise `ClientDisconnect` in the block if the caller leaves; this cancels the request upstream."""
        try:
            async with asyncio.timeout(None) as patience:
                watching = asyncio.create_task(self._watch(patience))
                try:
                    yield
                finally:
                    watching.cancel()
        except TimeoutError:
            if patience.expired():
                raise ClientDisconnect from None
            raise

    async def _parts(self) -> AsyncIterator[bytes]:
        async for part in self._request.stream():
            # Starlette ends the stream with an empty part.
            if part:
                yield part
        self._has_sent.set()

    async def _watch(self, patience: asyncio.Timeout) -> None:
        # Receiving earlier would consume the body, and make the server send 100 Continue.
        await self._has_sent.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        patience.reschedule(0)


async def _buffered(parts: AsyncIterator[bytes]) -> bytes:
    held = bytearray()
    async for part in parts:
        held += part
        if len(held) > _MAX_HELD_BYTES:
            raise ServerUnavailable("the response is too large for HTTP/1.0; use HTTP/1.1")
    return bytes(held)


async def _single_part(part: bytes) -> AsyncIterator[bytes]:
    yield part


_READING = frozenset(("GET", "HEAD", "OPTIONS", "DELETE"))
_REINDEX = b"_reindex"
# Endpoints of Elasticsearch 8 and 9 that search, delete or manage. Some define jobs that write later, such as
# transforms; Elasticsearch requires a separate privilege to define a job (SECURITY.md).
_HARMLESS = frozenset(
    b"""
    _search _msearch _async_search _count _mget _explain _validate _field_caps _termvectors _mtermvectors
    _rank_eval _search_shards _pit _knn_search _mvt _eql _esql _query _sql _graph _terms_enum _analyze
    _render _text_structure _refresh _flush _forcemerge _cache _open _close _block _freeze _unfreeze
    _settings _mapping _mappings _alias _aliases _template _index_template _component_template _data_stream
    _ilm _slm _rollover _shrink _split _clone _delete_by_query _resolve _stats _segments _recovery
    _disk_usage _downsample _cluster _nodes _tasks _cat _remote _snapshot _searchable_snapshots _dangling
    _security _ssl _license _xpack _migration _features _health_report _internal _ingest _scripts
    _script_language _script_context _logstash _enrich _transform _rollup _watcher _ml _inference _ccr
    _autoscaling _synonyms _query_rules _application _connector _profiling _capabilities _info _streams
    _lifecycle _create_from _fleet _shutdown _monitoring _otlp
    """.split()
)


_PARTS = "esdedup.parts"


def _not_read(reason: str) -> Refused:
    return Refused(reason, kind="not_understood")


@dataclasses.dataclass(eq=False)
class UnreadWrites(Proxy):
    """Matches requests that may write documents and that no earlier route has matched."""

    # Has the signature of `Indices.find`.
    find: Callable[[Collection[str]], Awaitable[Mapping[str, Target]]]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        parts = parts_of(scope["raw_path"])
        return (Match.FULL if _may_write(scope["method"], parts) else Match.NONE), {_PARTS: parts}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request unless it may write to a set-up index; raises `Refused`."""
        first, *rest = scope[_PARTS]
        if first == _REINDEX or rest[-1:] == [BULK]:
            request = Request(scope, receive)
            body, encoding = await request.body(), request.headers.get("content-encoding")
            if first == _REINDEX:
                await self._refuse_set_up(_destination(body, encoding))
            else:
                named = functools.partial(_index_names, body, encoding, index=first.decode(errors="replace"))
                await self._refuse_set_up(await in_thread_if_large(len(body), named))
            await self.send_on(scope, receive, send, body=body)
        else:
            await self._refuse_set_up(first.decode(errors="replace"))
            await super().handle(scope, receive, send)

    async def _refuse_set_up(self, name: str) -> None:
        """Raise `Refused` if any of the indices in `name`, a list with commas and patterns, was set up."""
        if name.startswith("_") and name != "_all":
            raise _not_read(
                f"the endpoint {name:.100} is unknown and may write articles: call Elasticsearch directly"
            )
        # Look names up separately: a missing index must not hide other indices.
        found = await self.find({each for each in name.split(",") if each})
        if any(each is not None for each in found.values()):
            raise _not_read(
                f"articles in {name:.300} get their roots from the sidecar, which cannot read them in this "
                "request: use _bulk, _doc, _create or _update, or send the request to Elasticsearch"
            )


def _may_write(method: str, parts: Sequence[bytes]) -> bool:
    if method in _READING or not parts:
        return False
    if len(parts) > 1 and parts[-1] == BULK:
        # The action lines may name any index, independent of the path.
        return method in BULK_METHODS
    if parts[0].startswith(b"_") and parts[0] != b"_all":
        # `_reindex` followed by more parts manages a running task.
        return parts[0] not in _HARMLESS and (parts[0] != _REINDEX or len(parts) == 1)
    # A one-part path creates an index. Old Elasticsearch versions may read the second part as a mapping type.
    return len(parts) > 1 and parts[1] not in _HARMLESS


def _destination(body: bytes, encoding: str | None) -> str:
    """Return the index that a reindex request writes to; raises `Refused` if it is unknown."""
    try:
        given = orjson.loads(body) if encoding is None else {}
        name = given["dest"]["index"]
    except (ValueError, TypeError, KeyError):
        name = None
    if not isinstance(name, str) or "script" in given:
        raise _not_read(
            "the destination of a reindex can be read only from uncompressed JSON without a script: send "
            "the request to Elasticsearch"
        )
    return name


def _index_names(body: bytes, encoding: str | None, *, index: str) -> str:
    """Return the indices of a bulk request, separated by commas; raises `Refused` if it is unreadable."""
    if encoding is None:
        with contextlib.suppress(Refused):
            return ",".join({index, *(each.index for each in read_bulk(body, index=index) if each.index)})
    raise _not_read("a bulk request to this path must be uncompressed JSON: send it to /_bulk")
