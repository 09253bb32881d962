"""Files that name processes in the background: only our own processes are ended."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from esdedup import NodeError, node
from esdedup.cli.background_sidecar import stop_sidecar


@pytest.fixture
def foreign() -> Iterator[psutil.Process]:
    """A process that a forged file names; among its arguments are some of ours."""
    command = [sys.executable, "-c", "import time; time.sleep(600)", "serve", "esdedup.node.server"]
    started = subprocess.Popen(command)
    yield psutil.Process(started.pid)
    started.kill()
    started.wait()


def forge(path: Path, process: psutil.Process, **values: object) -> None:
    about = {"pid": process.pid, "started_at": process.create_time(), "url": "http://127.0.0.1:1"}
    path.write_text(json.dumps(about | values))
    path.chmod(0o600)
    os.utime(path, (process.create_time(), process.create_time()))


def test_stopping_a_node_ends_no_foreign_process(tmp_path: Path, foreign: psutil.Process) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "cluster.json").write_text("kept")
    of_a_node = {"name": "node-0", "home": str(elsewhere), "pid": foreign.pid, "url": "http://127.0.0.1:1"}
    nodes = [of_a_node | {"started_at": foreign.create_time()}]
    forge(tmp_path / "cluster.json", foreign, version="9", data=str(elsewhere), stops_at=9e9, nodes=nodes)
    found = node.find(tmp_path)
    assert found is not None
    assert not found.is_running
    assert found.data == tmp_path.resolve()
    assert not node.stop(tmp_path)
    assert foreign.is_running()
    assert (elsewhere / "cluster.json").read_text() == "kept"
    assert not (tmp_path / "cluster.json").exists()


def test_stopping_the_sidecar_ends_no_foreign_process(tmp_path: Path, foreign: psutil.Process) -> None:
    forge(tmp_path / "sidecar.json", foreign)
    stop_sidecar(tmp_path)
    assert foreign.is_running()
    assert foreign.status() != psutil.STATUS_ZOMBIE


def test_a_process_ends_with_another_as_it_does_after_sigterm(foreign: psutil.Process) -> None:
    program = f"import time; from esdedup.cli.background_sidecar import end_with; end_with({foreign.pid}); "
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}print(); time.sleep(60)"], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert process.poll() is None
            foreign.kill()
            assert process.wait(20) == -signal.SIGTERM
        finally:
            process.kill()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_file_that_others_may_have_written_is_not_believed(tmp_path: Path, foreign: psutil.Process) -> None:
    for name, stop in (("cluster.json", node.stop), ("sidecar.json", stop_sidecar)):
        forge(tmp_path / name, foreign)
        (tmp_path / name).chmod(0o666)
        with pytest.raises(NodeError, match="another user may have written"):
            stop(tmp_path)
        assert (tmp_path / name).exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    for name, stop in (("cluster.json", node.find), ("sidecar.json", stop_sidecar)):
        os.mkfifo(tmp_path / name, 0o600)
        with pytest.raises(NodeError, match="is no regular file"):
            stop(tmp_path)
