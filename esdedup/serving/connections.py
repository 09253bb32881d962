"""Opens listening sockets, and adds time limits that uvicorn lacks, on slow requests and unread responses."""

import asyncio
import socket
from collections import deque
from collections.abc import Mapping
from types import FrameType
from typing import ClassVar, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from esdedup.elastic.closing import ENDING
from esdedup.errors import SettingError
from esdedup.serving.framing import framing_fault


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a name or address of this machine; port 0 picks a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {host} port {port}: {error.strerror}; --port 0 picks a free port"
        ) from error
    # Without this option, which asyncio does not set, a body may wait 40 ms until the head is acknowledged.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket, *, scheme: str = "http") -> str:
    """Return the URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


# How many connections beyond `max_connections` are reserved for probes.
_SPARE = 8


class Server(uvicorn.Server):
    """A server that a signal stops after it has answered the requests that it accepted."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop waiting for an unreachable Elasticsearch, then stop."""
        ENDING.set()
        super().handle_exit(sig, frame)


class BoundedConnection(H11Protocol):
    """A connection with time limits. Beyond `max_connections`, only probes are answered.

    Subclasses set the limits, and must define their own `spare`.
    """

    max_connections: ClassVar[int]
    # The first bytes of requests that are always answered.
    probes: ClassVar[tuple[bytes, ...]] = ()
    # The connections beyond `max_connections`, oldest first.
    spare: ClassVar[deque["BoundedConnection"]] = deque()
    # Limit for receiving the whole first request; if `max_head_s` is set, the limit starts after the head.
    max_request_s: ClassVar[float]
    max_head_s: ClassVar[float | None] = None
    # Limit for sending the response to a client that reads slowly; the application has its own timeout.
    max_answer_s: ClassVar[float]
    # Limit from a response until the next request, or its head if `max_head_s` is set, has arrived.
    max_idle_s: ClassVar[float]
    # Headers of the response to a malformed request.
    error_headers: ClassVar[Mapping[str, str]] = {}

    _deadline: asyncio.TimerHandle | None = None
    # Whether the head of the current request, and the whole request, have arrived.
    _has_head = _is_whole = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the first request."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            if not self.probes:
                transport.abort()
                return
            self.spare.append(self)
            if len(self.spare) > _SPARE:
                self.spare.popleft().transport.abort()
        self._wait(self.max_request_s if self.max_head_s is None else self.max_head_s)

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request, and update the time limit."""
        if self.conn.their_state is h11.IDLE and self._is_refused(self.conn.trailing_data[0] + data):
            return
        super().data_received(data)
        self._note_progress()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request."""
        # The next request may already be in the buffer.
        begun = self.conn.trailing_data[0]
        if begun and self.conn.our_state is self.conn.their_state is h11.DONE and framing_fault(begun):
            self.conn.start_next_cycle()
            self._is_refused(begun)
            return
        super().on_response_complete()
        self._has_head = self._is_whole = False
        self._wait(self.max_idle_s)
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._stop_waiting()
        if self in self.spare:
            self.spare.remove(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, with `error_headers`."""
        # None before the first request, contrary to uvicorn's type hint.
        if (cycle := cast(RequestResponseCycle | None, self.cycle)) is not None:
            # Stop the application from responding to an earlier request after this response.
            cycle.disconnected = True
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            # A response has begun, so another one cannot be sent.
            self.transport.close()
            return
        headers = {**self.error_headers, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        for event in (
            h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
            h11.Data(data=msg.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _is_refused(self, begun: bytes) -> bool:
        """Refuse a request if the received part of its head is invalid, or if only probes are answered."""
        if self in self.spare and not begun.startswith(self.probes):
            # The head may be incomplete; do not wait for the rest.
            self.transport.abort()
            return True
        if (fault := framing_fault(begun)) is None:
            return False
        self.logger.warning("refused a request: %s", fault)
        self.send_400_response(f"Invalid HTTP request received: {fault}.")
        return True

    def _note_progress(self) -> None:
        # None before the first request, contrary to uvicorn's type hint.
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is None or cycle.response_complete:
            return
        if not self._has_head:
            self._has_head = True
            if self.max_head_s is not None:
                self._wait(self.max_request_s)
        if not self._is_whole and not cycle.more_body:
            self._is_whole = True
            self._wait(self.max_answer_s)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
