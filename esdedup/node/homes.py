"""The directories and ports of an embedded cluster's nodes."""

import contextlib
import json
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esdedup.errors import NodeError, SettingError
from esdedup.node import private

HOST = "127.0.0.1"


def name_of(number: int) -> str:
    """Return the name of a node, which is also its directory's."""
    return f"node-{number}"


def http_ports(port: int, count: int) -> list[int]:
    """Return the HTTP ports of `count` nodes: `port` and those after it, or free ones for 0.

    Raises:
        SettingError: There are no such ports.
        NodeError: A port is taken.
    """
    if port == 0:
        return _free_ports(count)
    ports = list(range(port, port + count))
    if not 1 <= ports[0] <= ports[-1] <= 65535:
        raise SettingError(f"port {port} and those after it for {count} nodes must be from 1 to 65535")
    for one in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, one))
            except OSError:
                raise NodeError(f"port {one} is in use by another program; choose another port") from None
    return ports


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


def write_homes(data: Path, distribution: Path, ports: Sequence[int]) -> None:
    """Write the directories of nodes that form one cluster.

    Args:
        data: The cluster's directory, which gets one directory for each node.
        distribution: The unpacked Elasticsearch.
        ports: The HTTP port of each node.
    """
    transport_ports = _free_ports(len(ports))
    for number, port in enumerate(ports):
        _write_home(data / name_of(number), distribution, number, port, transport_ports)


def _write_home(
    home: Path, distribution: Path, number: int, http_port: int, transport_ports: Sequence[int]
) -> None:
    config = home / "config"
    for directory in (home, config, home / "plugins", home / "logs", home / "data"):
        private.make_directory(directory)
    shutil.rmtree(home / "modules", ignore_errors=True)
    shutil.copytree(distribution / "modules", home / "modules")
    settings: dict[str, Any] = {
        "cluster.name": "esdedup",
        "node.name": name_of(number),
        "network.host": HOST,
        "http.port": http_port,
        "transport.port": transport_ports[number],
        "path.data": str(home / "data"),
        "path.logs": str(home / "logs"),
        # Where snapshot repositories may be.
        "path.repo": str(home.parent / "snapshots"),
        # A demo must not turn read-only because the user's disk is fairly full.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }
    if len(transport_ports) == 1:
        settings["discovery.type"] = "single-node"
    else:
        settings["discovery.seed_hosts"] = [f"{HOST}:{port}" for port in transport_ports]
        settings["cluster.initial_master_nodes"] = [name_of(each) for each in range(len(transport_ports))]
    # Every JSON value is a YAML value too.
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in settings.items()]
    (config / "elasticsearch.yml").write_text("".join(lines))
    (config / "log4j2.properties").write_text(
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n\n"
        "rootLogger.level = warn\n"
        "rootLogger.appenderRef.console.ref = console\n"
    )
