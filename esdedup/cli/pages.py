"""Pages in a process of their own, which ends with the Elasticsearch server they read."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from esdedup.errors import NodeError

_START_S = 30.0
_STOP_S = 10.0
_ANNOUNCED = "pages.json"


def start_pages(
    data: Path,
    *,
    server_url: str,
    server_pid: int,
    index: str,
    forest: str,
    port: int,
) -> str:
    """Serve an index in a process of its own, after stopping an earlier one; return the address.

    Args:
        data: The embedded server's directory; the address and the log of the pages are kept there.
        server_url: The server's address.
        server_pid: The pages end when this process ends.
        index: The index that they show.
        forest: Its forest.
        port: 0 takes a free one.

    Raises:
        NodeError: They did not start, or earlier ones do not end.
    """
    from esdedup.node import private

    stop_pages(data)
    command = [sys.executable, "-c", "from esdedup.cli import main; main()", "serve"]
    command += _announcing(data)
    command += ["--index", index, "--forest", forest, "--url", server_url]
    command += ["--with-pid", str(server_pid), "--port", str(port)]
    with private.open_anew(data / "pages.log") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            found = json.loads(private.read(data / _ANNOUNCED))
            if found["pid"] == process.pid:
                return str(found["url"])
        time.sleep(0.1)
    process.kill()
    lines = (data / "pages.log").read_text(errors="replace").strip().splitlines()
    raise NodeError(f"the pages did not start: {lines[-1] if lines else 'pages.log is empty'}")


def announce(path: Path, url: str) -> None:
    """Write the address and the process of the pages to a file, for `start_pages` and `stop_pages`."""
    from esdedup.node import private, processes

    # Complete or not at all: the file is read while it is being written.
    partial = path.with_suffix(".new")
    with private.open_anew(partial) as file:
        about = {"url": url, "pid": os.getpid(), "started_at": processes.start_of(os.getpid())}
        file.write(json.dumps(about).encode())
    partial.replace(path)


def stop_pages(data: Path) -> None:
    """Stop the pages that were started from that directory, if they still run.

    Raises:
        NodeError: They do not end, or another user may have written the file that names them.
    """
    from esdedup.node import private, processes

    announced = data / _ANNOUNCED
    with contextlib.suppress(OSError, ValueError):
        process = processes.Background.model_validate_json(private.read(announced)).find(_announcing(data))
        if process is not None and not processes.end([process], timeout_s=_STOP_S):
            raise NodeError(f"the pages that {announced} names do not end")
    announced.unlink(missing_ok=True)


def _announcing(data: Path) -> list[str]:
    """Return the arguments by which the process of the pages is known."""
    return ["--announce", str((data / _ANNOUNCED).resolve())]
