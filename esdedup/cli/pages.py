"""Pages in a process of their own, which ends with the Elasticsearch server they read."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

from esdedup.errors import NodeError

_START_S = 30.0
_ANNOUNCED = "pages.json"


def start_pages(data: Path, *, server_url: str, server_pid: int, index: str, forest: str, port: int) -> str:
    """Serve an index in a process of its own, after stopping an earlier one; return the address.

    Args:
        data: The embedded server's directory; the address and the log of the pages are kept there.
        server_url: The server's address.
        server_pid: The pages end when this process ends.
        index: The index that they show.
        forest: Its forest.
        port: Preferred port; if it is taken, any free one.

    Raises:
        NodeError: They did not start.
    """
    stop_pages(data)
    for wanted_port in (port, 0):
        process = _start(
            data,
            wanted_port,
            "--index",
            index,
            "--forest",
            forest,
            "--url",
            server_url,
            "--with-pid",
            str(server_pid),
        )
        end = time.monotonic() + _START_S
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(OSError, ValueError, KeyError):
                found = json.loads((data / _ANNOUNCED).read_text())
                if found["pid"] == process.pid:
                    return str(found["url"])
            time.sleep(0.1)
        process.kill()
    log = (data / "pages.log").read_text(errors="replace").strip().splitlines()
    raise NodeError(f"the pages did not start: {log[-1] if log else 'pages.log is empty'}")


def stop_pages(data: Path) -> None:
    """Stop the pages that were started from that directory, if they still run."""
    import psutil

    announced = data / _ANNOUNCED
    with contextlib.suppress(OSError, ValueError, KeyError, psutil.Error):
        process = psutil.Process(json.loads(announced.read_text())["pid"])
        # The process id may belong to another program by now.
        if abs(process.create_time() - announced.stat().st_mtime) < _START_S and "serve" in process.cmdline():
            process.terminate()
            process.wait(timeout=10)
    announced.unlink(missing_ok=True)


def _start(data: Path, port: int, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "from esdedup.cli import main; main()", "serve", *options]
    command += ["--port", str(port), "--announce", str(data / _ANNOUNCED)]
    with (data / "pages.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
