"""`UnreadWrites`: the route of requests that may write articles in a way that nobody here reads.

They do not reach an index that was set up, where articles would get no root, or a forged one. What is known
to write no documents of the caller's passes, and so does the rest to all other indices.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from esdedup.errors import EsdedupError
from esdedup.serving.problems import Problem
from esdedup.serving.refusals import Refused
from esdedup.sidecar.document_request import DOCUMENTS, parts_of
from esdedup.sidecar.indices import Found
from esdedup.sidecar.own_paths import answer
from esdedup.sidecar.passing import Passing
from esdedup.sidecar.upstream import Upstream

_READING = frozenset(("GET", "HEAD", "OPTIONS", "DELETE"))
_REINDEX = b"_reindex"
# Index, endpoint and id.
_MOST_PARTS = 3
# Of Elasticsearch 8 and 9: what searches, deletes, and manages. What jobs such as transforms do later is for
# those who may define them (SECURITY.md).
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


class NotRead(Refused):
    """A request may write articles, and nobody here can give them roots."""

    usual_status, usual_kind = 400, "not_understood"


class UnreadWrites(BaseRoute):
    """Matches what is not known to write no documents; comes after the routes of what is read."""

    def __init__(
        self, upstream: Upstream, find: Callable[[Collection[str]], Awaitable[Mapping[str, Found]]]
    ) -> None:
        """Refuse, or send on.

        Args:
            upstream: Where requests go on to.
            find: As `Indices.find`.
        """
        self._passing = Passing(upstream)
        self._find = find

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by method and path."""
        is_http = scope["type"] == "http"
        return Match.FULL if is_http and _may_write(scope["method"], scope["raw_path"]) else Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        first = parts_of(scope["raw_path"])[0]
        try:
            if first == _REINDEX:
                request = Request(scope, receive)
                body = await request.body()
                await self._refuse_set_up(_destination(body, request.headers.get("content-encoding")))
                await self._passing.send_on(scope, receive, send, body=body)
                return
            await self._refuse_set_up(first.decode(errors="replace"))
        except ClientDisconnect:
            return
        except EsdedupError as error:
            await answer(scope, Problem.of_error(error))(scope, receive, send)
            return
        await self._passing.handle(scope, receive, send)

    async def _refuse_set_up(self, name: str) -> None:
        """Make sure that an index was not set up, nor any of several with commas and patterns.

        Raises:
            NotRead: It was, or nobody knows.
        """
        if name.startswith("_") and name != "_all":
            raise NotRead(f"{name:.100} is not known here, and may write articles: ask Elasticsearch itself")
        # Each by itself: one that is missing must not hide the others.
        found = await self._find({each for each in name.split(",") if each})
        if any(each is not None for each in found.values()):
            raise NotRead(
                f"articles of {name:.300} get their roots here, and in this request they cannot be read: "
                "send them by _bulk, _doc, _create or _update, or ask Elasticsearch itself"
            )


def _may_write(method: str, raw_path: bytes) -> bool:
    parts = parts_of(raw_path)
    if method in _READING or not parts:
        return False
    if parts[0].startswith(b"_") and parts[0] != b"_all":
        # The others of these say what becomes of one that runs.
        return parts[0] not in _HARMLESS and (parts[0] != _REINDEX or len(parts) == 1)
    if len(parts) == 1:
        # An index is made.
        return False
    # What is left of these, Elasticsearch refuses. In longer paths, older versions have types.
    is_refused = parts[1:] == [b"_bulk"] or (parts[1] in DOCUMENTS and len(parts) <= _MOST_PARTS)
    return parts[1] not in _HARMLESS and not is_refused


def _destination(body: bytes, encoding: str | None) -> str:
    """Return the index that a request to reindex writes to.

    Raises:
        NotRead: It cannot be told: the body is no plain JSON, or a script may choose another one.
    """
    given: Any = None
    try:
        given = orjson.loads(body) if encoding is None else None
        name = given["dest"]["index"]
    except (ValueError, TypeError, KeyError):
        name = None
    if not isinstance(name, str) or "script" in given:
        raise NotRead(
            "where articles are copied to is read only from plain JSON without a script: ask Elasticsearch"
        )
    return name
