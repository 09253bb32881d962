"""Runs a sidecar in its own process, which stops when its Elasticsearch server stops."""

import contextlib
import json
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
_ANNOUNCED = "sidecar.json"
_LOG = "sidecar.log"
# Prefixes of environment variables that are meant for other sidecars, or for clients of other servers.
_FOREIGN_VARIABLES = ("ESDEDUP_SIDECAR_", "ELASTICSEARCH_", "ES_")


def start_sidecar(data: Path, *, server_url: str, server_pid: int, port: int, options: Sequence[str]) -> str:
    """Restart the sidecar of an embedded server; return the sidecar's address once it is ready."""
    from esdedup.node import private

    stop_sidecar(data)
    command = [sys.executable, "-c", "from esdedup.cli import main; main()", "sidecar"]
    command += [*_announcing(data), "--with-pid", str(server_pid)]
    command += ["--url", server_url, "--port", str(port), *options]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_VARIABLES)
    }
    with private.open_anew(data / _LOG) as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            found = json.loads(private.read(data / _ANNOUNCED))
            if found["pid"] == process.pid:
                # Bypass any proxy, since the sidecar is on this machine.
                direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                direct.open(f"{found['url']}/readyz", timeout=_START_S).close()
                return str(found["url"])
        time.sleep(_POLL_S)
    process.kill()
    lines = (data / _LOG).read_text(errors="replace").strip().splitlines()
    raise NodeError(f"the sidecar did not start: {lines[-1] if lines else f'{_LOG} is empty'}")


def announce(path: Path, url: str) -> None:
    """Write a sidecar's address and process id to a file, for `start_sidecar` and `stop_sidecar`."""
    from esdedup.node import private, processes

    # Replace the file atomically, since `start_sidecar` may read it at any time.
    partial = path.with_suffix(".new")
    with private.open_anew(partial) as file:
        about = {"url": url, "pid": os.getpid(), "started_at": processes.start_of(os.getpid())}
        file.write(json.dumps(about).encode())
    partial.replace(path)


def end_with(pid: int) -> None:
    """Send this process SIGTERM when the process `pid` has exited."""
    threading.Thread(target=_end_after, args=(pid,), daemon=True).start()


def stop_sidecar(data: Path) -> None:
    """Stop the sidecar that was started with this directory; raise `NodeError` if it does not stop."""
    from esdedup.node import private, processes

    announced = data / _ANNOUNCED
    with contextlib.suppress(OSError, ValueError):
        process = processes.Background.model_validate_json(private.read(announced)).find(_announcing(data))
        if process is not None and not processes.end([process], timeout_s=_STOP_S):
            raise NodeError(f"the sidecar named in {announced} did not stop")
    announced.unlink(missing_ok=True)


def _announcing(data: Path) -> list[str]:
    return ["--announce", str((data / _ANNOUNCED).resolve())]


def _end_after(pid: int) -> None:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        # `is_running` is also False if another process now has this id.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_WATCH_S)
    signal.raise_signal(signal.SIGTERM)
