"""A proxy in front of Elasticsearch that detects a certain request and can stall when it arrives."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class Pausing:
    """Passes everything on until `word` is sent; then sets `seen` and, if `pauses` is true, stalls."""

    def __init__(self, url: str, word: bytes, *, pauses: bool) -> None:
        self.seen = threading.Event()
        self._there = urlsplit(url)
        self._word = word
        self._pauses = pauses
        self._ended = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def serve(self) -> None:
        """Accept connections until the proxy is closed."""
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection((self._there.hostname, self._there.port or 80))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections, and let stalled ones continue."""
        self._ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with source, target, contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self._word in data:
                    self.seen.set()
                if self._pauses and self.seen.is_set():
                    self._ended.wait()
                target.sendall(data)


@contextlib.contextmanager
def pausing(url: str, word: bytes, *, pauses: bool) -> Iterator[Pausing]:
    """Run a `Pausing` proxy."""
    server = Pausing(url, word, pauses=pauses)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.close()
