"""Runs a sidecar in its own process, which stops when its Elasticsearch server stops."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from esdedup.errors import NodeError

_START_S = 60.0
_STOP_S = 10.0
_WATCH_S = 2.0
_POLL_S = 0.1
_STARTED = "sidecar.json"
_LOG = "sidecar.log"
_PROGRAM = ("-c", "from esdedup.cli import main; main()", "sidecar")
# Prefixes of environment variables that are meant for other sidecars, or for clients of other servers.
_FOREIGN_VARIABLES = ("ESDEDUP_SIDECAR_", "ELASTICSEARCH_", "ES_")


def start_sidecar(data: Path, *, server_url: str, server_pid: int, port: int, options: Sequence[str]) -> str:
    """Restart the sidecar of an embedded server; return the sidecar's address once it is ready."""
    from esdedup.node import private, processes
    from esdedup.node.control import usable_ports

    stop_sidecar(data)
    (port,) = usable_ports(port, 1)
    command = [sys.executable, *_PROGRAM, "--with-pid", str(server_pid)]
    command += ["--url", server_url, "--port", str(port), *options]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_VARIABLES)
    }
    with private.open_anew(data / _LOG) as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    with private.open_anew(data / _STARTED) as file:
        started_at = processes.start_of(process.pid)
        file.write(processes.Background(pid=process.pid, started_at=started_at).model_dump_json().encode())
    # Bypass any proxy, since the sidecar is on this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            direct.open(f"{url}/readyz", timeout=_START_S).close()
            return url
        time.sleep(_POLL_S)
    process.kill()
    lines = (data / _LOG).read_text(errors="replace").strip().splitlines()
    raise NodeError(f"the sidecar did not start: {lines[-1] if lines else f'{_LOG} is empty'}")


def end_with(pid: int) -> None:
    """Send this process SIGTERM when the process `pid` has exited."""
    threading.Thread(target=_end_after, args=(pid,), daemon=True).start()


def stop_sidecar(data: Path) -> None:
    """Stop the sidecar that was started with this directory; raise `NodeError` if it does not stop."""
    from esdedup.node import private, processes

    started = data / _STARTED
    with contextlib.suppress(OSError, ValueError):
        process = processes.Background.model_validate_json(private.read(started)).find(_PROGRAM)
        if process is not None and not processes.end([process], timeout_s=_STOP_S):
            raise NodeError(f"the sidecar named in {started} did not stop")
    started.unlink(missing_ok=True)


def _end_after(pid: int) -> None:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        # `is_running` is also False if another process now has this id.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_WATCH_S)
    signal.raise_signal(signal.SIGTERM)
