"""Connections to uvicorn that do not last for ever.

Uvicorn closes idle connections, but waits without end for a request that has begun, and for a visitor who
does not read the answer.
"""

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from esdedup.web.guards import HEADERS, MAX_ANSWER_S

MAX_CONNECTIONS = 200
"""Far below the files that a process may usually open (1,024)."""
MAX_REQUEST_S = 20.0
"""From the connection until its first request has arrived whole."""
_MARGIN_S = 5.0


class BoundedConnection(H11Protocol):
    """Ends a connection whose request or answer takes too long, and any beyond the largest number."""

    max_connections = MAX_CONNECTIONS
    max_request_s = MAX_REQUEST_S
    # The application ends late answers itself and says so. This is for answers that nobody reads, and for the
    # next request after an answer.
    max_answer_s = MAX_ANSWER_S + _MARGIN_S

    _deadline: asyncio.TimerHandle | None = None
    _is_answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
        else:
            self._wait(self.max_request_s)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; once it is whole, begin to wait for the answer."""
        super().data_received(data)
        self._note_progress()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._is_answering = False
        self._wait(self.max_answer_s)
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, with the headers of all answers."""
        headers = {**HEADERS, "Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
        for event in (
            h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
            h11.Data(data=msg.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _note_progress(self) -> None:
        # Until the first request there is none, which uvicorn's type leaves out.
        cycle = cast(RequestResponseCycle | None, self.cycle)
        is_whole = cycle is not None and not cycle.more_body and not cycle.response_complete
        if is_whole and not self._is_answering:
            self._is_answering = True
            self._wait(self.max_answer_s)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
