"""Sockets to listen on, and time limits that uvicorn lacks, for slow requests and answers nobody reads."""

import asyncio
import socket
from collections import deque
from collections.abc import Mapping
from typing import ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from esdedup.errors import SettingError
from esdedup.serving.framing import framing_fault


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a name or an address of this machine; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingError(
            f"cannot listen on {host} port {port}: {error.strerror}; --port 0 takes a free one"
        ) from error
    # Otherwise a body waits up to 40 ms for the head's acknowledgement; asyncio does not set it here.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket, *, scheme: str = "http") -> str:
    """Return the address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


# Connections beyond the largest number.
_SPARE = 8


class BoundedConnection(H11Protocol):
    """A connection with time limits. Beyond the largest number, only probes get in.

    Subclasses set the bounds, and have a `spare` of their own.
    """

    max_connections: ClassVar[int]
    # The beginnings of requests that are always answered.
    probes: ClassVar[tuple[bytes, ...]] = ()
    # The connections beyond the number, the first ones first.
    spare: ClassVar[deque["BoundedConnection"]] = deque()
    # Until the first request has arrived whole: from the connection, or after the head if that has a bound.
    max_request_s: ClassVar[float]
    max_head_s: ClassVar[float | None] = None
    # From then until it is answered, for clients that do not read; the application has a timeout of its own.
    max_answer_s: ClassVar[float]
    # From an answer until the next request, or its head, has arrived.
    max_idle_s: ClassVar[float]
    # Headers of the answer to a malformed request.
    error_headers: ClassVar[Mapping[str, str]] = {}

    _deadline: asyncio.TimerHandle | None = None
    # The bytes so far of the request that is not answered yet.
    _has_head = _is_whole = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
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
        """Begin to wait for the next request."""
        # The next request may have been received already.
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
        # None before the first request, unlike uvicorn's type.
        if (cycle := cast(RequestResponseCycle | None, self.cycle)) is not None:
            # The application that is still at the request would answer after this.
            cycle.disconnected = True
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            # Its answer has begun.
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
        """Refuse a request if the part of its head that has arrived is invalid."""
        if self in self.spare and not begun.startswith(self.probes):
            # Only a part of its head may have arrived: do not wait for the rest.
            self.transport.abort()
            return True
        if (fault := framing_fault(begun)) is None:
            return False
        self.logger.warning("refused a request: %s", fault)
        self.send_400_response(f"Invalid HTTP request received: {fault}.")
        return True

    def _note_progress(self) -> None:
        # None before the first request, unlike uvicorn's type.
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
