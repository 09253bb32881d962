"""A sidecar in a process of its own; `python -m tests.support.sidecar URL…` is that process."""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = 60.0
STOP_S = 15.0


@contextlib.contextmanager
def running(*urls: str) -> Iterator[str]:
    """Yield the address of a sidecar that stands before some nodes."""
    command = [sys.executable, "-m", "tests.support.sidecar", *urls]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(START_S, process.kill)
        late.start()
        try:
            address = process.stdout.readline().strip()
            late.cancel()
            assert address, "the sidecar did not start"
            yield address
        finally:
            late.cancel()
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def main(*urls: str) -> None:
    import uvicorn

    from esdedup.serving.listening import address_of, listen
    from esdedup.sidecar.app import create_app
    from esdedup.sidecar.upstream import Upstream

    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        create_app(Upstream(urls)),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
        # Elasticsearch closes no idle connection, and clients count on that.
        timeout_keep_alive=3_600,
    )
    server = uvicorn.Server(config)

    def end_with_parent() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.stdout.write(f"{address_of(listening)}\n")
    sys.stdout.flush()
    server.run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
