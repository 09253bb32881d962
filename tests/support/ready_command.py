"""Runs `esdedup` and `python` quickly: a process that has imported everything forks for each call.

Starting Python and importing modules take most of the time of a short command. `serve` waits for calls.
The script `CALL` replaces the command, and sends its own arguments, streams, directory and environment.
A command that starts a server returns once the server responds, and leaves it running.
"""

import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from esdedup.cli import main
from esdedup.cli.app import app as _app

ROOT = Path(__file__).parents[2]
START_S = 60
MOST_BYTES = 1_000_000
MOST_DESCRIPTORS = 1_024
# The script runs without the `site` module, so it starts in a few hundredths of a second.
CALL = """#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    given = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(given).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(given)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""
# For each command, the path at which its server responds once it is ready.
_READY = {"sidecar": "/readyz", "serve": "/"}


def serve(path: str) -> NoReturn:
    """Serve calls, each in a forked process."""
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            calling, _ = listening.accept()
            with calling:
                if os.fork() == 0:
                    listening.close()
                    _answer(calling)


def _import_all() -> None:
    import typer

    group = typer.main.get_group(_app)
    for name in group.list_commands(typer.Context(group)):
        group.get_command(typer.Context(group), name)
    import esdedup.maintenance
    import esdedup.reading.reader
    import esdedup.sidecar.app
    import esdedup.web.app  # noqa: F401


def _answer(calling: socket.socket) -> NoReturn:
    """Run the command of a call in this process, and send its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(calling, 4, 3)
    given = b""
    while len(given) < int.from_bytes(head, "big"):
        given += calling.recv(MOST_BYTES)
    (path, *arguments), directory, environment = json.loads(given)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if Path(path).name == "python":
        code = _run(lambda: _run_file(arguments), descriptors)
    elif arguments[0] == "node" and "--data" not in arguments:
        # There is nothing to do, because the tests' server is already running.
        code = 0
    elif arguments[0] in _READY and "--print-config" not in arguments:
        code = _start(arguments, Path(environment["ESDEDUP_FOLLOWED_PIDS"]), errors=descriptors[2])
    else:
        code = _run(lambda: _run_command(arguments), descriptors)
    calling.sendall(bytes([code]))
    os._exit(0)


def _run_command(arguments: list[str]) -> None:
    sys.argv = ["esdedup", *arguments]
    main()


def _run_file(arguments: list[str]) -> None:
    """Run a Python file with its arguments, as `python` does."""
    sys.argv = arguments
    sys.path[:0] = [str(Path(arguments[0]).parent.resolve()), *os.environ["PYTHONPATH"].split(":")]
    runpy.run_path(arguments[0], run_name="__main__")


def _run(program: Callable[[], None], descriptors: list[int]) -> int:
    """Run a program in a child process; return its exit code."""
    child = os.fork()
    if child == 0:
        _become(program, descriptors)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(program: Callable[[], None], descriptors: list[int]) -> NoReturn:
    """Run a program in this process with other standard streams, then exit."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    # The caller reads until every copy of its output is closed, and a server would keep a copy open.
    os.closerange(3, MOST_DESCRIPTORS)
    code = 1
    try:
        program()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _start(arguments: list[str], pids: Path, *, errors: int) -> int:
    """Start a server in the background; return 0 once it responds, or 1 if it fails."""
    ports = dict(zip(("sidecar", "serve"), os.environ["ESDEDUP_FOLLOWED_PORTS"].split(), strict=True))
    if "--port" not in arguments:
        arguments = [*arguments, "--port", ports[arguments[0]]]
    port = arguments[arguments.index("--port") + 1]
    log = os.open(pids.with_name(f".log-{port}"), os.O_CREAT | os.O_RDWR)
    child = os.fork()
    if child == 0:
        os.setsid()
        _become(lambda: _run_command(arguments), [os.open(os.devnull, os.O_RDONLY), log, log])
    with pids.open("a") as written:
        written.write(f"{child}\n")
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and os.waitpid(child, os.WNOHANG) == (0, 0):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if _answers(f"http://127.0.0.1:{port}{_READY[arguments[0]]}"):
                return 0
        time.sleep(0.05)
    os.write(errors, os.pread(log, MOST_BYTES, 0))
    return 1


def _answers(url: str) -> bool:
    """Return whether a server is ready, or is a standby that knows the owner."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as refused:
        with refused:
            return b'"url"' in refused.read()
    return True


@contextlib.contextmanager
def ready(folder: Path) -> Iterator[str]:
    """Run a process that serves calls; yield the text of the script that calls it."""
    path = folder / "socket"
    command = [sys.executable, "-m", "tests.support.ready_command", str(path)]
    # The forks need no numpy threads.
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    try:
        while not path.exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield CALL.format(python=sys.executable, path=str(path))
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    serve(sys.argv[1])
