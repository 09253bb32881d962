"""Background processes and the server's jars; only processes that esdedup started are stopped."""

import contextlib
import functools
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from jgo.maven import MavenContext

from esdedup import NodeError, node
from esdedup.cli.background_sidecar import _PROGRAM, stop_sidecar
from esdedup.node.distribution import DEFAULT_VERSION, full_version, install, known_sums


@pytest.fixture
def foreign() -> Iterator[psutil.Process]:
    """Yield a process that esdedup did not start, with arguments like those of esdedup's processes."""
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


def test_stopping_a_node_spares_foreign_processes(tmp_path: Path, foreign: psutil.Process) -> None:
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


def test_stopping_a_node_stops_its_sidecar_first(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)", *_PROGRAM]
    with subprocess.Popen(command) as sidecar:
        try:
            forge(tmp_path / "sidecar.json", psutil.Process(sidecar.pid))
            # Reaps the process, which would otherwise remain as a zombie.
            threading.Thread(target=sidecar.wait, daemon=True).start()
            stop = [sys.executable, "-m", "esdedup", "node", "stop", "--data", str(tmp_path)]
            subprocess.run(stop, check=True, timeout=60)
            assert sidecar.wait(10) == -signal.SIGTERM
        finally:
            sidecar.kill()


def test_stopping_the_sidecar_spares_foreign_processes(tmp_path: Path, foreign: psutil.Process) -> None:
    forge(tmp_path / "sidecar.json", foreign)
    stop_sidecar(tmp_path)
    assert foreign.is_running()
    assert foreign.status() != psutil.STATUS_ZOMBIE


def test_a_process_gets_sigterm_when_the_watched_process_exits(foreign: psutil.Process) -> None:
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


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
def test_a_file_writable_by_other_users_is_refused(tmp_path: Path, foreign: psutil.Process) -> None:
    for name, stop in (("cluster.json", node.stop), ("sidecar.json", stop_sidecar)):
        forge(tmp_path / name, foreign)
        (tmp_path / name).chmod(0o666)
        with pytest.raises(NodeError, match="another user may have written"):
            stop(tmp_path)
        assert (tmp_path / name).exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(20)
def test_a_pipe_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    for name, stop in (("cluster.json", node.find), ("sidecar.json", stop_sidecar)):
        os.mkfifo(tmp_path / name, 0o600)
        with pytest.raises(NodeError, match="is not a regular file"):
            stop(tmp_path)


NETTY = "org.elasticsearch.plugin:transport-netty4"
SERVER = "org.elasticsearch:elasticsearch"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a Maven repository, and download from it instead of Maven Central."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        here = {"here": f"http://127.0.0.1:{server.server_port}"}
        context = functools.partial(MavenContext, remote_repos=here)
        monkeypatch.setattr("esdedup.node.distribution.MavenContext", context)
        yield
    finally:
        server.shutdown()
        server.server_close()


def publish(folder: Path, name: str, version: str, *, needs: str = "") -> None:
    """Write an artifact to a Maven repository."""
    group, artifact = name.split(":")
    place = folder / group.replace(".", "/") / artifact / version
    place.mkdir(parents=True)
    needed = (
        f"<dependency><groupId>x</groupId><artifactId>{needs}</artifactId><version>1</version></dependency>"
    )
    (place / f"{artifact}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><dependencies>{needed if needs else ''}</dependencies></project>"
    )
    (place / f"{artifact}-{version}.jar").write_bytes(jar())


def jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        place = "META-INF/es-plugins/transport-netty4/plugin-descriptor.properties"
        archive.writestr(zipfile.ZipInfo(place), "name=transport-netty4\nmodulename=x\n")
    return content.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory for installed jars."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("", rf"elasticsearch-{DEFAULT_VERSION}\.jar differs from the published file"),
        ("evil", r"no checksum for evil-1\.jar|differs from the published file"),
    ],
    ids=["wrong", "missing"],
)
def test_a_wrong_or_missing_checksum_aborts_the_download(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, extra: str, message: str
) -> None:
    publish(tmp_path, SERVER, DEFAULT_VERSION, needs=extra)
    publish(tmp_path, NETTY, DEFAULT_VERSION)
    if extra:
        publish(tmp_path, f"x:{extra}", "1")
    with serving(tmp_path, monkeypatch), pytest.raises(NodeError, match=message):
        install(DEFAULT_VERSION)
    assert [path.name for path in (cache / "elasticsearch").iterdir()] == ["install.lock"]


def test_jars_with_the_right_checksums_are_installed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {each: f"{each.partition(':')[2]}-{DEFAULT_VERSION}.jar" for each in (SERVER, NETTY)}
    sums = dict.fromkeys(names.values(), hashlib.sha256(jar()).hexdigest())
    monkeypatch.setattr("esdedup.node.distribution.known_sums", lambda _: sums)
    for name in names:
        publish(tmp_path, name, DEFAULT_VERSION)
    with serving(tmp_path, monkeypatch):
        home = install(DEFAULT_VERSION)
    assert install(DEFAULT_VERSION) == home
    assert (home / "lib" / names[SERVER]).read_bytes() == jar()
    assert "modulename" not in (home / "modules/transport-netty4/plugin-descriptor.properties").read_text()


def test_the_package_has_checksums_for_all_default_versions() -> None:
    for name in ("8.19", "9"):
        version = full_version(name)
        sums = known_sums(version)
        assert {f"elasticsearch-{version}.jar", f"transport-netty4-{version}.jar"} < sums.keys()
        assert all(len(digest) == 64 for digest in sums.values())
