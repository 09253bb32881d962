"""Starts `esdedup sidecar` or `serve` in the background, for somebody who follows a document.

``python -m tests.support.started_server sidecar …`` returns when the server answers.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

START_S = 60


def main(arguments: list[str]) -> int:
    """Start a server; return an exit code."""
    ports = dict(zip(("sidecar", "serve"), os.environ["ESDEDUP_FOLLOWED_PORTS"].split(), strict=True))
    pids = Path(os.environ["ESDEDUP_FOLLOWED_PIDS"])
    command = [sys.executable, "-m", "esdedup", *arguments]
    if "--port" not in arguments:
        command += ["--port", ports[arguments[0]]]
    port = command[command.index("--port") + 1]
    log = pids.with_name(f".log-{port}")
    with log.open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    with pids.open("a") as written:
        written.write(f"{started.pid}\n")
    path = "/readyz" if arguments[0] == "sidecar" else "/"
    if _answers(f"http://127.0.0.1:{port}{path}", started):
        return 0
    sys.stderr.write(log.read_text())
    return 1


def _answers(url: str, started: "subprocess.Popen[bytes]") -> bool:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and started.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
