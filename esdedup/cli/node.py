"""`esdedup node`: the embedded Elasticsearch in the background."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esdedup.cli import options, output
from esdedup.cli.background_sidecar import stop_sidecar
from esdedup.cli.command import command, new_app, require_extra
from esdedup.cli.messages import say
from esdedup.errors import NodeError

if TYPE_CHECKING:
    from esdedup import node

_HELP = "Run an embedded Elasticsearch in the background, for trials and tests."
app = new_app(name="node", help=_HELP, short_help=_HELP, no_args_is_help=True)

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Directory of Elasticsearch. Default: one in the user's data directory."),
]


@command("start", example="esdedup node start --nodes 3 --hours 2", app=app)
def start(
    *,
    data: Data = None,
    port: options.Port = 9200,
    nodes: Annotated[int, typer.Option(min=1, max=9)] = 1,
    join: Annotated[bool, typer.Option("--join")] = False,
    version: str = "9",
    heap: str = "512m",
    hours: Annotated[float, typer.Option(min=0.001)] = 12.0,
    json: options.Json = False,
) -> None:
    """Start Elasticsearch and wait until it answers. The first start downloads it (about 40 MB).

    Options:
        nodes: Number of processes in the cluster.
        join: Complete the running cluster: start nodes that have exited, and add nodes up to --nodes. Nodes
            listen on the loopback interface only, so no node elsewhere can be joined.
        version: Version of Elasticsearch: 8.19 or 9.
        heap: Java heap of each node, such as 512m or 2g.
        hours: Stop after this many hours.
    """
    require_extra("node")
    from esdedup import node

    directory = data or node.default_data()
    if not json:
        say(f"starting Elasticsearch in {directory}")
    cluster = node.start(
        directory,
        port=port,
        node_count=nodes,
        join=join,
        version=version,
        heap=heap,
        lifetime_s=hours * 3600,
        progress=output.download_progress,
    )
    _show(cluster, json)


@command("stop", example="esdedup node stop", app=app)
def stop(*, data: Data = None, json: options.Json = False) -> None:
    """Stop Elasticsearch, and the demo's sidecar if there is one; the data are kept."""
    require_extra("node")
    from esdedup import node

    directory = data or node.default_data()
    # Stop the sidecar first, since it needs the server.
    stop_sidecar(directory)
    stopped = node.stop(directory)
    output.print_line("stopped" if stopped else "no node was running", {"stopped": stopped}, json=json)


@command("status", example="esdedup node status --json", app=app)
def status(*, data: Data = None, json: options.Json = False) -> None:
    """Show whether Elasticsearch is running, and at which address."""
    require_extra("node")
    from esdedup import node

    directory = data or node.default_data()
    cluster = node.find(directory)
    if cluster is None or not cluster.is_running:
        raise NodeError(f"no node is running in {directory}; `esdedup node start` starts one")
    _show(cluster, json)


def _show(cluster: "node.Cluster", json: bool) -> None:
    nodes = [
        {"name": each.name, "pid": each.pid, "url": each.url, "alive": each.is_alive}
        for each in cluster.nodes
    ]
    if json:
        output.print_json(
            {"version": cluster.version, "url": cluster.url, "data": str(cluster.data), "nodes": nodes}
        )
        return
    ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(cluster.stops_at))
    typer.echo(f"Elasticsearch {cluster.version} at {cluster.url}, until {ends} at the latest")
    for each in nodes:
        typer.echo(
            f"  {each['name']}  {each['url']}  pid {each['pid']}{'' if each['alive'] else '  (exited)'}"
        )
