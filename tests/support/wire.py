"""HTTP byte by byte: a scripted server, and a client that sends raw bytes."""

import asyncio
import contextlib
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Self
from urllib.parse import urlsplit

import uvicorn

TIMEOUT_S = 20.0


class Connection:
    """One end of a TCP connection."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        end.settimeout(TIMEOUT_S)
        self._read = b""

    @classmethod
    def to(cls, url: str) -> Self:
        parts = urlsplit(url)
        assert parts.hostname is not None
        return cls(socket.create_connection((parts.hostname, parts.port or 80), TIMEOUT_S))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def until(self, end: bytes) -> bytes:
        """Return the bytes received up to and including `end`."""
        while end not in self._read:
            part = self.socket.recv(65_536)
            assert part, f"closed before {end!r}: {self._read!r:.500}"
            self._read += part
        place = self._read.index(end) + len(end)
        found, self._read = self._read[:place], self._read[place:]
        return found

    def head(self) -> bytes:
        return self.until(b"\r\n\r\n")

    def rest(self) -> bytes:
        """Return the bytes received until the other side closes or resets the connection."""
        with contextlib.suppress(ConnectionError):
            while part := self.socket.recv(65_536):
                self._read += part
        found, self._read = self._read, b""
        return found

    def is_closed(self) -> bool:
        """Wait until the other side sends or closes; return whether it closed."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


Script = Callable[[Connection], None]


class ScriptedServer:
    """Runs a script for each connection; `script` may be replaced between connections."""

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or answer(OK)
        self.failures: list[BaseException] = []
        server = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    server.script(Connection(self.request))
                except BaseException as error:
                    server.failures.append(error)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


def answer(whole: bytes, heads: list[bytes] | None = None, *, body_end: bytes = b"") -> Script:
    """Return a script that reads a whole request, records its head, and sends `whole` as the response."""

    def script(connection: Connection) -> None:
        head = connection.head()
        if heads is not None:
            heads.append(head)
        connection.until(body_end)
        connection.send(whole)

    return script


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@contextlib.asynccontextmanager
async def running(server: uvicorn.Server) -> AsyncIterator[int]:
    """Run a server for the duration of the context; yield its port."""
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def first_bytes(port: int, request: bytes, *, connections: int) -> list[bytes]:
    """Send a request on each of several open connections; return up to twelve bytes of each response."""
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
    answers: list[bytes] = []
    for reader, writer in held:
        try:
            writer.write(request)
            answers.append(await asyncio.wait_for(reader.read(12), timeout=30))
        except ConnectionError:
            answers.append(b"")
        writer.close()
    return answers
