"""`Upstream`: streams requests to Elasticsearch, and its responses back.

Only hop-by-hop headers are removed. Nothing is added; in particular, no credentials.
"""

import contextlib
import itertools
import math
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Self

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from esdedup.errors import ServerUnavailable, SettingError
from esdedup.sidecar.metrics import Metrics

Header = tuple[bytes, bytes]
Headers = Sequence[Header]

# Headers that concern a single connection (RFC 9110, 7.6.1); aiohttp chunks bodies itself.
_ONE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
# Control characters that no header may contain: all but the tab (RFC 9110, 5.5).
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def end_to_end(headers: Iterable[Header]) -> list[Header]:
    """Return the headers except hop-by-hop headers, which a proxy must not forward."""
    headers = list(headers)
    named = b",".join(value for name, value in headers if name.lower() == b"connection")
    dropped = _ONE_CONNECTION.union(part.strip().lower() for part in named.split(b","))
    if any(name.lower() == b"transfer-encoding" for name, _ in headers):
        # A chunked message's length must be ignored, and so must not be forwarded (RFC 9112, 6.3).
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def to_send(headers: Iterable[Header]) -> list[tuple[str, str]]:
    """Return the headers to forward: all end-to-end headers except `Host`; raises `SettingError`."""
    return [
        (name.decode("ascii"), as_text(value, f"the header {name.decode('ascii')}"))
        for name, value in end_to_end(headers)
        if name.lower() != b"host"
    ]


def as_text(value: bytes, what: str) -> str:
    """Decode a part of a request for aiohttp, which encodes it to the same bytes."""
    if _CONTROL.search(value):
        raise SettingError(f"{what} contains a control character")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise SettingError(f"{what} is not UTF-8") from None


# How long a node is tried only after all other nodes, once a connection to it has failed.
_AVOIDED_S = 5.0


class Node:
    """The address of an Elasticsearch node, with its path but without user and password."""

    def __init__(self, url: str) -> None:
        try:
            given = URL(url)
            host, port = given.host, given.port
        except ValueError:
            host = port = None
        if not host or not port or given.scheme not in {"http", "https"} or given.raw_query_string:
            # Do not quote the address: it may contain a password.
            raise SettingError("urls must look like https://localhost:9200")
        self.origin = URL.build(scheme=given.scheme, host=host, port=port)
        self._prefix = given.raw_path.rstrip("/")
        self.avoided_until_s = -math.inf

    def __str__(self) -> str:
        return str(self.origin)

    def url(self, target: str) -> URL:
        """Return the address of a path and query, whose bytes are left unchanged."""
        path, _, query = target.partition("?")
        return URL.build(
            scheme=self.origin.scheme,
            authority=self.origin.raw_authority,
            path=self._prefix + path,
            query_string=query,
            encoded=True,
        )


# Headers that aiohttp would add. `Host` is not among them, since every request needs it.
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
# Requests with these methods may be repeated (RFC 9110, 9.2.2).
_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"))
# Elasticsearch sends warnings as headers: as many as its settings allow, each perhaps as long as a query.
_MAX_HEADER_BYTES = 1 << 20
_MAX_HEADERS = 10_000
# Idle connections are closed after this time, before firewalls and proxies in between drop them.
_IDLE_S = 15.0
# TCP keep-alive: a silent connection is probed after a minute, and given up after five failures 15 s apart.
_PROBES = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 5))


# After responses with these statuses, Elasticsearch may stop reading from the connection.
_LAST_STATUSES = frozenset(
    (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.EXPECTATION_FAILED)
)


class _Response(aiohttp.ClientResponse):
    """A node's response; its connection is reused only if the node still reads from it."""

    async def start(self, connection: Connection) -> Self:
        protocol = connection.protocol
        await super().start(connection)
        if self.status in _LAST_STATUSES and protocol is not None:
            protocol.force_close()
            if self.connection is None:
                # The whole response has arrived, so the connection is in the pool already.
                protocol.close()
        return self


class UpstreamAnswer:
    """A response of Elasticsearch, with the headers that a proxy forwards."""

    def __init__(self, response: aiohttp.ClientResponse, node: str) -> None:
        self.status = response.status
        self.headers = end_to_end(response.raw_headers)
        self._content = response.content
        self._node = node

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive; raise `ServerUnavailable` if the connection breaks."""
        try:
            async for part in self._content.iter_any():
                yield part
        except (aiohttp.ClientError, OSError) as error:
            raise ServerUnavailable(f"{self._node} sent an incomplete response ({_reason(error)})") from error


class WholeAnswer(NamedTuple):
    """A response of Elasticsearch with its whole body."""

    status: int
    headers: Headers
    body: bytes


class Upstream:
    """The nodes of an Elasticsearch cluster, used in turn. Use it inside ``async with upstream``."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        ca_certs: Path | None = None,
        max_connections: int = 200,
        connect_timeout_s: float = 5.0,
        read_timeout_s: float = 3_600.0,
        metrics: Metrics | None = None,
    ) -> None:
        """Hold the nodes at `urls`; raises `SettingError`.

        If all `max_connections` are in use, requests wait. `read_timeout_s` limits the time between two parts
        of a response. It may be long enough for merges, since TCP keep-alive detects vanished nodes earlier.
        """
        if not urls:
            raise SettingError("urls names no server")
        self._nodes = [Node(url) for url in urls]
        self._turns = itertools.count()
        is_secure = any(node.origin.scheme == "https" for node in self._nodes)
        self._tls = tls_context(ca_certs) if is_secure else None
        self._max_connections = max_connections
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_timeout_s, sock_read=read_timeout_s
        )
        self._metrics = metrics
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections,
                ssl=self._tls or True,
                keepalive_timeout=_IDLE_S,
                socket_factory=_probed_socket,
            ),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_Response,
            skip_auto_headers=_NOT_ADDED,
            auto_decompress=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            max_headers=_MAX_HEADERS,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    @contextlib.asynccontextmanager
    async def send(
        self,
        method: str,
        target: bytes,
        headers: Iterable[Header],
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[UpstreamAnswer]:
        """Send a request, and yield the response once its headers have arrived.

        Leaving the context early closes the connection, so that Elasticsearch can cancel the request. Raises
        `SettingError`, `ServerUnavailable` if no node answers, and errors raised while iterating `body`.
        """
        sent = _Body(body) if body is not None and not isinstance(body, bytes) else body
        began_s = time.perf_counter()
        status = None
        try:
            node, response = await self._respond(method, as_text(target, "the path"), to_send(headers), sent)
            status = response.status
        finally:
            if self._metrics is not None:
                self._metrics.upstream(status, seconds=time.perf_counter() - began_s)
        try:
            yield UpstreamAnswer(response, str(node))
        finally:
            # No effect if the body was read, since the connection is then back in the pool.
            response.close()

    async def ask(
        self,
        method: str,
        target: bytes,
        headers: Iterable[Header] = (),
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> WholeAnswer:
        """Send a request and return the whole response; raises the same errors as `send` and `stream`."""
        async with self.send(method, target, headers, body) as answer:
            parts = [part async for part in answer.stream()]
            return WholeAnswer(answer.status, answer.headers, b"".join(parts))

    async def _respond(
        self, method: str, target: str, headers: list[tuple[str, str]], body: "bytes | _Body | None"
    ) -> tuple[Node, aiohttp.ClientResponse]:
        assert self._session is not None, "use `async with upstream`"
        if not target.startswith("/") or method == "CONNECT":
            raise SettingError(f"this is not a path of Elasticsearch: {method} {target:.200}")
        failures = []
        for node in self._in_turn():
            try:
                response = await self._session.request(
                    method, node.url(target), headers=headers, data=body, allow_redirects=False
                )
                if 200 <= response.status < 600:
                    return node, response
                response.close()
                failures.append(f"{node}: it answered with status {response.status}")
                break
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                node.avoided_until_s = time.monotonic() + _AVOIDED_S
                failures.append(f"{node}: {_reason(error)}")
            except (aiohttp.ClientError, OSError) as error:
                if isinstance(body, _Body) and body.failure is not None:
                    raise body.failure from None
                failures.append(f"{node}: {_reason(error)}")
                begun = isinstance(body, _Body) and body.begun
                if method not in _IDEMPOTENT or begun:
                    break
        raise ServerUnavailable(f"cannot reach Elasticsearch: {'; '.join(failures)}")

    def _in_turn(self) -> list[Node]:
        """Return all nodes in the order in which to try them, ending with the nodes to avoid."""
        now_s = time.monotonic()
        avoided = [node for node in self._nodes if now_s < node.avoided_until_s]
        used = [node for node in self._nodes if node not in avoided]
        first = next(self._turns) % max(len(used), 1)
        return [*used[first:], *used[:first], *avoided]


class _Body:
    """A streamed body that records errors raised by its source, to distinguish them from a node's errors."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self.begun = False
        self.failure: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # The body can be read only once, so it cannot be sent to another node.
        assert not self.begun
        self.begun = True
        try:
            async for part in self._parts:
                yield part
        except Exception as error:
            self.failure = error
            raise


def tls_context(ca_certs: Path | None) -> ssl.SSLContext:
    """Return a context that trusts `ca_certs`, by default the system's authorities; raises `SettingError`."""
    try:
        if ca_certs is not None and ca_certs.is_dir():
            return ssl.create_default_context(capath=ca_certs)
        return ssl.create_default_context(cafile=ca_certs)
    except OSError as error:
        raise SettingError(f"cannot read the certificates at {ca_certs}: they must be PEM") from error


def _probed_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket with TCP keep-alive, which detects a vanished node during a long response."""
    family, kind, protocol, *_ = address
    probed = socket.socket(family, kind, protocol)
    probed.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        # Some systems lack some of these options.
        with contextlib.suppress(AttributeError, OSError):
            probed.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return probed


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        # The error's own message quotes the received headers.
        return "it closed the connection before the end of the response's headers"
    return (str(error) or type(error).__name__).strip().split("\n", 1)[0][:300]
